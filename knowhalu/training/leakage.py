"""Find training rows whose source or claim overlaps with an evaluation file, and measure label cues."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from knowhalu.errors import InputError
from knowhalu.text.overlap import coverage, text_facts
from knowhalu.training.data_files import TrainingRow, read_training_rows
from knowhalu.training.examples import SUPPORTED, TrainingExample

CUES: dict[str, Callable[[TrainingExample], float]] = {
    "length": lambda e: len(e.claim.split()),
    "overlap": lambda e: coverage(e.claim, e.premise),
    "negation": lambda e: text_facts(e.claim).negations,
    "length of the source": lambda e: len(e.premise.split()),
}


def cue_aucs(examples: Sequence[TrainingExample], weights: Sequence[float] | None = None) -> dict[str, float]:
    """Return the ROC-AUC of each cue for supported against the rest; 0.5 carries no information.

    NaN where there is only one label.
    """
    supported = np.array([e.target == SUPPORTED for e in examples])
    if not 0 < supported.sum() < len(supported):
        return dict.fromkeys(CUES, float("nan"))
    return {
        name: float(roc_auc_score(supported, [cue(e) for e in examples], sample_weight=weights)) for name, cue in CUES.items()
    }


SOURCE_NGRAM, MAX_SOURCE_OVERLAP = 9, 0.2
"""A source leaks if an evaluation file contains more than this share of its n-grams of this size."""
MAX_TEXT_COVERAGE = 0.8
"""A source also leaks if it contains this share of the n-grams of any text of an evaluation file."""
CLAIM_NGRAM, MAX_CLAIM_OVERLAP = 5, 0.5
"""The same for a claim, whose n-grams are shorter, since wording is shared by chance more often."""
_IGNORED_FILES = (".md", "LICENSE", "NOTICE")
_SOURCES = ("source", "document", "knowledge", "text")
_CLAIMS = ("claim", "response", "right_summary", "hallucinated_summary", "right_answer", "hallucinated_answer")


def lower_words(text: str) -> list[str]:
    """Return a text's words in lower case, letters and digits of any script."""
    return re.findall(r"\w+", text.lower())


def ngram_hashes(text: str, size: int = SOURCE_NGRAM) -> set[int]:
    """Return the hashes of a text's n-grams of `size` words."""
    words = lower_words(text)
    return {hash(tuple(words[i : i + size])) for i in range(len(words) - size + 1)}


class _NgramIndex:
    """Texts to check against; a text shorter than an n-gram leaks only if it has the same words.

    With `whole`, a text also leaks if it contains that share of the n-grams of a single indexed text.
    """

    def __init__(self, texts: Iterable[str], size: int, share: float, whole: float = np.inf) -> None:
        self.size, self.share, self.whole = size, share, whole
        self.known: dict[str, bool] = {}
        self._short: set[str] = set()
        found: list[np.ndarray[Any, np.dtype[np.int64]]] = []
        for text in texts:
            found.append(self._sequences(text))
            if not found[-1].size:
                self._short.add(" ".join(lower_words(text)))
        self._sizes = np.array([f.size for f in found], np.int64)
        keys = np.concatenate([np.empty(0, np.int64), *found])
        order = keys.argsort()
        self._keys, self._owners = keys[order], np.repeat(np.arange(len(found)), self._sizes)[order]

    def __contains__(self, text: str) -> bool:
        if (known := self.known.get(text)) is None:
            known = self.known[text] = self._leaks(text)
        return known

    def _sequences(self, text: str) -> "np.ndarray[Any, np.dtype[np.int64]]":
        return np.fromiter(ngram_hashes(text, self.size), np.int64)

    def _leaks(self, text: str) -> bool:
        found = self._sequences(text)
        if not found.size:
            return " ".join(lower_words(text)) in self._short
        first, last = (np.searchsorted(self._keys, found, side) for side in ("left", "right"))
        there = last > first
        if there.sum() > self.share * found.size:
            return True
        if not there.any():
            return False
        holders = np.concatenate([self._owners[a:b] for a, b in zip(first[there], last[there], strict=True)])
        owners, counts = np.unique(holders, return_counts=True)
        return bool((counts >= self.whole * self._sizes[owners]).any())


class Leakage:
    """The evaluation texts that training rows must not overlap with: `row in leakage`.

    Every text of an evaluation row counts, whatever its field. Claims of fewer than five words ("Yes", a name) never count as a
    leak. `seal` is a hash of all texts.
    """

    def __init__(self, rows: Iterable[TrainingRow]) -> None:
        texts = sorted({t for row in rows for t in texts_of(row)})
        self.seal = blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        self.sources = _NgramIndex(texts, SOURCE_NGRAM, MAX_SOURCE_OVERLAP, MAX_TEXT_COVERAGE)
        self.claims = _NgramIndex((t for t in texts if len(t.split()) >= CLAIM_NGRAM), CLAIM_NGRAM, MAX_CLAIM_OVERLAP)

    @classmethod
    def of_folder(cls, folder: Path) -> "Leakage":
        """Read every `.jsonl` and `.jsonl.gz` below a folder; raises InputError where there is none, or another kind of file."""
        return cls(read_folder_rows(folder))

    def __contains__(self, row: TrainingRow) -> bool:
        return any(t in self.sources for t in sources_of(row)) or any(t in self.claims for t in claims_of(row))

    @property
    def left_out(self) -> tuple[int, int]:
        """Return the numbers of distinct sources and claims that leaked so far."""
        return sum(self.sources.known.values()), sum(self.claims.known.values())


def texts_of(value: Any) -> Iterator[str]:
    """Yield every text of a row at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts_of(inner)


def sources_of(row: TrainingRow) -> Iterator[str]:
    """Yield the sources of a row, from all fields that may hold one."""
    yield from (t for f in _SOURCES if isinstance(t := row.get(f), str))


def claims_of(row: TrainingRow) -> Iterator[str]:
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
