"""Training files: labelled rows, held-out sources, overlap with evaluation files, and helpers of the scripts."""

import argparse
import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import InputError, KnowHaluError
from knowhalu.io.fitted_files import file_hash
from knowhalu.io.rows import read_rows

TrainingRow = dict[str, Any]


def is_held_out(key: str, share: int = 8) -> bool:
    """Return whether a source belongs to the held-out eighth, on which judgments are fitted and verifiers measured."""
    return hashlib.sha256(key.encode()).digest()[0] % share == 0


def is_in_portion(key: str, portion: float) -> bool:
    """Return whether a source belongs to a portion of all sources, 0 to 1; a larger portion contains a smaller one."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[1:5]) < portion * 2**32


def hash_training_files(paths: Iterable[Path]) -> str:
    """Return a hash over the names and contents of files; a missing file changes it, too."""
    known = sorted((p.name, file_hash(p)) for p in paths)
    return hashlib.sha256(repr(known).encode()).hexdigest()[:16]


def read_training_rows(path: Path) -> Iterator[TrainingRow]:
    """Yield the rows of a file in any format of `read_rows`; raises InputError with file and line."""
    return (row.fields for row in read_rows(path))


def text_of(row: TrainingRow) -> str:
    """Return the source text of a row, from whichever field holds it."""
    return str(row.get("source") or row.get("document") or row.get("knowledge") or row["text"])


def text_key(text: str) -> str:
    """Return the hash that identifies a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def join_texts(rows: Iterable[TrainingRow], files: Iterable[Path]) -> Iterator[TrainingRow]:
    """Yield rows with their texts from `files`: the whole text as `source`, the passage as `document`.

    In a row, `of` is the hash of its text, and `start` and `end` are the passage in characters.

    Raises InputError, before the first row, where no file has a text.
    """
    rows, files = list(rows), list(files)
    wanted = {row["of"] for row in rows}
    texts = {key: text for file in files for text in map(text_of, read_training_rows(file)) if (key := text_key(text)) in wanted}
    for row in rows:
        if row["of"] not in texts:
            names = ", ".join(file.name for file in files)
            raise InputError(f"{row['id']}: its text {row['of']} is not in {names}; use the unchanged files of the data card")
    for row in rows:
        text = texts[row["of"]]
        yield {**row, "source": text, "document": text[row["start"] : row["end"]]}


SOURCE_NGRAM, MAX_SOURCE_OVERLAP = 9, 0.2
"""A source leaks if an evaluation file contains more than this share of its n-grams of this size."""
MAX_TEXT_COVERAGE = 0.8
"""A source also leaks if it contains this share of the n-grams of any text of an evaluation file."""
CLAIM_NGRAM, MAX_CLAIM_OVERLAP = 5, 0.5
"""The same for a claim, whose n-grams are shorter, since wording is shared by chance more often."""
_IGNORED_FILES = (".md", "LICENSE", "NOTICE")
_SOURCES = ("source", "document", "knowledge", "text")
_CLAIMS = ("claim", "response", "right_summary", "hallucinated_summary", "right_answer", "hallucinated_answer")


def _lower_words(text: str) -> list[str]:
    """Return a text's words in lower case, letters and digits of any script."""
    return re.findall(r"\w+", text.lower())


class _NgramIndex:
    """Texts to check against; a text shorter than an n-gram leaks only if it has the same words.

    With `whole`, a text also leaks if it contains that share of the n-grams of a single indexed text.
    """

    def __init__(self, texts: Iterable[str], size: int, share: float, whole: float = np.inf) -> None:
        self.size, self.share, self.whole = size, share, whole
        self.known: dict[str, bool] = {}
        self._short: set[str] = set()
        hashes: list[NDArray[np.int64]] = []
        for text in texts:
            hashes.append(self._ngrams(text))
            if not hashes[-1].size:
                self._short.add(" ".join(_lower_words(text)))
        self._sizes = np.array([h.size for h in hashes], np.int64)
        keys = np.concatenate([np.empty(0, np.int64), *hashes])
        order = keys.argsort()
        self._keys, self._owners = keys[order], np.repeat(np.arange(len(hashes)), self._sizes)[order]

    def __contains__(self, text: str) -> bool:
        if (known := self.known.get(text)) is None:
            known = self.known[text] = self._leaks(text)
        return known

    def _ngrams(self, text: str) -> NDArray[np.int64]:
        """Return the hashes of the distinct n-grams of a text."""
        words = _lower_words(text)
        return np.fromiter({hash(tuple(words[i : i + self.size])) for i in range(len(words) - self.size + 1)}, np.int64)

    def _leaks(self, text: str) -> bool:
        ngrams = self._ngrams(text)
        if not ngrams.size:
            return " ".join(_lower_words(text)) in self._short
        first, last = (np.searchsorted(self._keys, ngrams, side) for side in ("left", "right"))
        shared = last > first
        if shared.sum() > self.share * ngrams.size:
            return True
        if not shared.any():
            return False
        holders = np.concatenate([self._owners[a:b] for a, b in zip(first[shared], last[shared], strict=True)])
        owners, counts = np.unique(holders, return_counts=True)
        return bool((counts >= self.whole * self._sizes[owners]).any())


class Leakage:
    """The evaluation texts that training rows must not overlap with: `row in leakage`.

    Every text of an evaluation row counts, whatever its field. Claims of fewer than five words ("Yes", a name) never count as a
    leak. `seal` is a hash of all texts.
    """

    def __init__(self, rows: Iterable[TrainingRow]) -> None:
        texts = sorted({t for row in rows for t in _texts_of(row)})
        self.seal = blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        self.sources = _NgramIndex(texts, SOURCE_NGRAM, MAX_SOURCE_OVERLAP, MAX_TEXT_COVERAGE)
        self.claims = _NgramIndex((t for t in texts if len(t.split()) >= CLAIM_NGRAM), CLAIM_NGRAM, MAX_CLAIM_OVERLAP)

    @classmethod
    def of_folder(cls, folder: Path) -> "Leakage":
        """Read every `.jsonl` and `.jsonl.gz` below a folder; raises InputError where there is none, or another kind of file."""
        return cls(read_folder_rows(folder))

    def __contains__(self, row: TrainingRow) -> bool:
        sources = (t for f in _SOURCES if isinstance(t := row.get(f), str))
        return any(t in self.sources for t in sources) or any(t in self.claims for t in _claims_of(row))

    @property
    def left_out(self) -> tuple[int, int]:
        """Return the numbers of distinct sources and claims that leaked so far."""
        return sum(self.sources.known.values()), sum(self.claims.known.values())


def _texts_of(value: Any) -> Iterator[str]:
    """Yield every text of a row at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts_of(inner)


def _claims_of(row: TrainingRow) -> Iterator[str]:
    """Yield the claims and answers of a row that have five words or more."""
    texts = [row.get(f) for f in _CLAIMS] + [c["text"] for f in ("claims", "answers") for c in row.get(f) or ()]
    yield from (t for t in texts if isinstance(t, str) and len(t.split()) >= CLAIM_NGRAM)


def read_folder_rows(folder: Path) -> Iterator[TrainingRow]:
    """Read every row below a folder; raises InputError, before the first row, for a file of another format."""
    paths = sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.endswith(_IGNORED_FILES))
    if not paths:
        raise InputError(f"{folder}: there is no .jsonl or .jsonl.gz file to check the training data against")
    if others := [p for p in paths if not p.name.removesuffix(".gz").endswith(".jsonl")]:
        raise InputError(
            f"{others[0]}: training data cannot be checked against this format; convert the file to JSON lines, or move it away"
        )
    for path in paths:
        yield from read_training_rows(path)


def run_script(main: Callable[[], int | None]) -> None:
    """Run a script and exit; an error of this library is printed as one line without a traceback."""
    try:
        sys.exit(main())
    except KnowHaluError as error:
        sys.exit(f"error: {error}")


def parse_budget(kind: Callable[[str], float], text: str) -> float:
    """Parse a budget of the command line."""
    try:
        value = kind(text)
    except ValueError:
        value = 0
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text!r}: give a number above 0")
    return value
