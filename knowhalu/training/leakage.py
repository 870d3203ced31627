"""The leakage check: training rows whose source or whose claim overlaps with an evaluation file are left out."""

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from knowhalu.errors import InputError
from knowhalu.training.rows import Row, read_rows

WORDS, SHARE = 9, 0.2
"""A source leaks if more than this share of its sequences of so many words stands in an evaluation file."""
CLAIM_WORDS, CLAIM_SHARE = 5, 0.5
"""The same for a claim, of which less can be shared by chance of wording."""
_OTHERS = (".csv", ".tsv", ".parquet", ".arrow")
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

    Every text of an evaluation row counts, under whichever name it stands. Claims of fewer than five words ("Yes", a name) are no
    sign of a leak, wherever they stand. `seal` is a hash of all texts.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        texts = sorted({t for row in rows for t in texts_of(row)})
        self.seal = blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        self.sources = _Texts(texts, WORDS, SHARE)
        self.claims = _Texts((t for t in texts if len(t.split()) >= CLAIM_WORDS), CLAIM_WORDS, CLAIM_SHARE)

    @classmethod
    def of_folder(cls, folder: Path) -> "Leakage":
        """Read every `*.jsonl` and `*.jsonl.gz` of a folder; raises InputError where there is none, or data of another form."""
        paths = sorted(p for p in folder.glob("*.jsonl*") if p.is_file())
        if not paths:
            raise InputError(f"{folder}: no .jsonl or .jsonl.gz file to check the training data against")
        if others := sorted(p for p in folder.iterdir() if p.name.removesuffix(".gz").endswith(_OTHERS)):
            raise InputError(
                f"{others[0]}: training data cannot be checked against this form; make it JSON lines, or move it away"
            )
        return cls(_rows(paths))

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


def _rows(paths: Iterable[Path]) -> Iterator[Row]:
    for path in paths:
        yield from read_rows(path)
