"""The leakage check: training rows whose source or claim overlaps with an evaluation file are left out; label cues."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from knowhalu.errors import InputError
from knowhalu.text.overlap import coverage, facts
from knowhalu.training.examples import SUPPORTED, Example
from knowhalu.training.rows import Row, read_rows

CUES: dict[str, Callable[[Example], float]] = {
    "length": lambda e: len(e.claim.split()),
    "overlap": lambda e: coverage(e.claim, e.premise),
    "negation": lambda e: facts(e.claim).negations,
    "length of the source": lambda e: len(e.premise.split()),
}


def told(examples: Sequence[Example], weights: Sequence[float] | None = None) -> dict[str, float]:
    """Return for every cue its ROC-AUC of supported against the rest: .5 tells nothing, less than .5 speaks against.

    NaN where only one label is there.
    """
    supported = np.array([e.target == SUPPORTED for e in examples])
    if not 0 < supported.sum() < len(supported):
        return dict.fromkeys(CUES, float("nan"))
    return {
        name: float(roc_auc_score(supported, [cue(e) for e in examples], sample_weight=weights)) for name, cue in CUES.items()
    }


WORDS, SHARE = 9, 0.2
"""A source leaks if more than this share of its sequences of so many words stands in an evaluation file."""
WHOLE = 0.8
"""It leaks, too, if this share of the sequences of any text of an evaluation file stands in it."""
CLAIM_WORDS, CLAIM_SHARE = 5, 0.5
"""As `WORDS` and `SHARE` for a claim, of which less can be shared by chance of wording."""
_BESIDE = (".md", "LICENSE", "NOTICE")
_SOURCES = ("source", "document", "knowledge", "text")
_CLAIMS = ("claim", "response", "right_summary", "hallucinated_summary", "right_answer", "hallucinated_answer")


def words_of(text: str) -> list[str]:
    """Return a text's words in lower case, letters and digits of any script."""
    return re.findall(r"\w+", text.lower())


def sequences(text: str, size: int = WORDS) -> set[int]:
    """Return the hashes of a text's sequences of `size` words."""
    words = words_of(text)
    return {hash(tuple(words[i : i + size])) for i in range(len(words) - size + 1)}


class _Texts:
    """Texts to check against; one without a sequence of so many words leaks only if it has the same words.

    With `whole`, a text leaks as well if that share of the sequences of a single one of these stands in it.
    """

    def __init__(self, texts: Iterable[str], size: int, share: float, whole: float = np.inf) -> None:
        self.size, self.share, self.whole = size, share, whole
        self.known: dict[str, bool] = {}
        self._short: set[str] = set()
        found: list[np.ndarray[Any, np.dtype[np.int64]]] = []
        for text in texts:
            found.append(self._sequences(text))
            if not found[-1].size:
                self._short.add(" ".join(words_of(text)))
        self._sizes = np.array([f.size for f in found], np.int64)
        keys = np.concatenate([np.empty(0, np.int64), *found])
        order = keys.argsort()
        self._keys, self._owners = keys[order], np.repeat(np.arange(len(found)), self._sizes)[order]

    def __contains__(self, text: str) -> bool:
        if (known := self.known.get(text)) is None:
            known = self.known[text] = self._leaks(text)
        return known

    def _sequences(self, text: str) -> "np.ndarray[Any, np.dtype[np.int64]]":
        return np.fromiter(sequences(text, self.size), np.int64)

    def _leaks(self, text: str) -> bool:
        found = self._sequences(text)
        if not found.size:
            return " ".join(words_of(text)) in self._short
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
    """Tell whether a training row overlaps with the evaluation rows: `row in leakage`.

    Every text of an evaluation row counts, under whichever name it stands. Claims of fewer than five words ("Yes", a name) are no
    sign of a leak, wherever they stand. `seal` is a hash of all texts.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        texts = sorted({t for row in rows for t in texts_of(row)})
        self.seal = blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        self.sources = _Texts(texts, WORDS, SHARE, WHOLE)
        self.claims = _Texts((t for t in texts if len(t.split()) >= CLAIM_WORDS), CLAIM_WORDS, CLAIM_SHARE)

    @classmethod
    def of_folder(cls, folder: Path) -> "Leakage":
        """Read every `.jsonl` and `.jsonl.gz` below a folder; raises InputError where there is none, or data of another form."""
        return cls(rows_below(folder))

    def __contains__(self, row: Row) -> bool:
        return any(t in self.sources for t in sources_of(row)) or any(t in self.claims for t in claims_of(row))

    @property
    def left_out(self) -> tuple[int, int]:
        """Count the different sources and claims that were found to leak so far."""
        return sum(self.sources.known.values()), sum(self.claims.known.values())


def texts_of(value: Any) -> Iterator[str]:
    """Yield every text that stands in a row, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts_of(inner)


def sources_of(row: Row) -> Iterator[str]:
    """Yield the sources of a row, under whichever names they stand."""
    yield from (t for f in _SOURCES if isinstance(t := row.get(f), str))


def claims_of(row: Row) -> Iterator[str]:
    """Yield what a row says of its source, where it has five words or more."""
    said = [row.get(f) for f in _CLAIMS] + [c["text"] for f in ("claims", "answers") for c in row.get(f) or ()]
    yield from (t for t in said if isinstance(t, str) and len(t.split()) >= CLAIM_WORDS)


def rows_below(folder: Path) -> Iterator[Row]:
    """Read every row below a folder; raises InputError, before the first one, for a file that cannot be checked against."""
    paths = sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.endswith(_BESIDE))
    if not paths:
        raise InputError(f"{folder}: no .jsonl or .jsonl.gz file to check the training data against")
    if others := [p for p in paths if not p.name.removesuffix(".gz").endswith(".jsonl")]:
        raise InputError(f"{others[0]}: training data cannot be checked against this form; make it JSON lines, or move it away")
    for path in paths:
        yield from read_rows(path)
