"""The leakage check: training sources that overlap with a text of an evaluation file are left out."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from knowhalu.errors import InputError
from knowhalu.training.rows import Row, read_rows

WORDS = 9
"""Length of the word sequences that are compared."""
SHARE = 0.2
"""A text leaks if more than this share of its word sequences stands in an evaluation file."""
_FIELDS = ("source", "document", "knowledge", "text")


def sequences(text: str) -> set[int]:
    """Return the hashes of a text's sequences of nine words (lower case, letters and digits only)."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return {hash(tuple(words[i : i + WORDS])) for i in range(len(words) - WORDS + 1)}


class Leakage:
    """Tell whether a text overlaps with evaluation texts: `text in leakage`.

    Short texts, which have no sequence of nine words, leak only if they are the same.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._sequences: set[int] = set()
        self._short: set[str] = set()
        self._known: dict[str, bool] = {}
        for text in {t for row in rows for f in _FIELDS if isinstance(t := row.get(f), str)}:
            found = sequences(text)
            self._sequences |= found
            if not found:
                self._short.add(text)

    @classmethod
    def of_folder(cls, folder: Path) -> "Leakage":
        """Read every `*.jsonl` and `*.jsonl.gz` of a folder; raises InputError where there is none."""
        paths = sorted(p for p in folder.glob("*.jsonl*") if p.is_file())
        if not paths:
            raise InputError(f"{folder}: no .jsonl or .jsonl.gz file to check the training data against")
        return cls(_rows(paths))

    def __contains__(self, text: str) -> bool:
        if (known := self._known.get(text)) is None:
            found = sequences(text)
            known = text in self._short or len(found & self._sequences) > SHARE * max(1, len(found))
            self._known[text] = known
        return known

    @property
    def left_out(self) -> int:
        """Count the different texts that were found to leak so far."""
        return sum(self._known.values())


def _rows(paths: Iterable[Path]) -> Iterator[Row]:
    for path in paths:
        yield from read_rows(path)
