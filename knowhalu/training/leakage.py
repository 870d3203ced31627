"""The leakage check: training rows whose source or whose claim overlaps with an evaluation file are left out."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from knowhalu.errors import InputError
from knowhalu.training.rows import Row, read_rows

WORDS, SHARE = 9, 0.2
"""A source leaks if more than this share of its sequences of so many words stands in an evaluation file."""
CLAIM_WORDS, CLAIM_SHARE = 5, 0.5
"""The same for a claim, of which less can be shared by chance of wording."""
_SOURCES = ("source", "document", "knowledge", "text")
_CLAIMS = ("claim", "response", "right_summary", "hallucinated_summary", "right_answer", "hallucinated_answer")


def sequences(text: str, size: int = WORDS) -> set[int]:
    """Return the hashes of a text's sequences of `size` words (lower case, letters and digits only)."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return {hash(tuple(words[i : i + size])) for i in range(len(words) - size + 1)}


class _Texts:
    """Texts of evaluation files; a text without a sequence of so many words leaks only if it is the same."""

    def __init__(self, texts: Iterable[str], size: int, share: float) -> None:
        self.size, self.share = size, share
        self.known: dict[str, bool] = {}
        self._sequences: set[int] = set()
        self._short: set[str] = set()
        for text in texts:
            found = sequences(text, size)
            self._sequences |= found
            if not found:
                self._short.add(text)

    def __contains__(self, text: str) -> bool:
        if (known := self.known.get(text)) is None:
            found = sequences(text, self.size)
            known = len(found & self._sequences) > self.share * len(found) if found else text in self._short
            self.known[text] = known
        return known


class Leakage:
    """Tell whether a training row overlaps with the evaluation rows: `row in leakage`.

    Claims of fewer than five words ("Yes", a name) are no sign of a leak, wherever they stand.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        rows = list(rows)
        self.sources = _Texts({t for r in rows for t in sources_of(r)}, WORDS, SHARE)
        self.claims = _Texts({t for r in rows for t in claims_of(r)}, CLAIM_WORDS, CLAIM_SHARE)

    @classmethod
    def of_folder(cls, folder: Path) -> "Leakage":
        """Read every `*.jsonl` and `*.jsonl.gz` of a folder; raises InputError where there is none."""
        paths = sorted(p for p in folder.glob("*.jsonl*") if p.is_file())
        if not paths:
            raise InputError(f"{folder}: no .jsonl or .jsonl.gz file to check the training data against")
        return cls(_rows(paths))

    def __contains__(self, row: Row) -> bool:
        return any(t in self.sources for t in sources_of(row)) or any(t in self.claims for t in claims_of(row))

    @property
    def left_out(self) -> tuple[int, int]:
        """Count the different sources and claims that were found to leak so far."""
        return sum(self.sources.known.values()), sum(self.claims.known.values())


def sources_of(row: Row) -> Iterator[str]:
    """Yield the sources of a row, under whichever names they stand."""
    yield from (t for f in _SOURCES if isinstance(t := row.get(f), str))


def claims_of(row: Row) -> Iterator[str]:
    """Yield what a row says of its source, where it has five words or more."""
    said = [row.get(f) for f in _CLAIMS] + [c["text"] for f in ("claims", "answers") for c in row.get(f) or ()]
    yield from (t for t in said if isinstance(t, str) and len(t.split()) >= CLAIM_WORDS)


def _rows(paths: Iterable[Path]) -> Iterator[Row]:
    for path in paths:
        yield from read_rows(path)
