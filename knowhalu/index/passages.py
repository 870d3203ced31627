"""Passages by row, as every kind of search sees them: those of an index folder, some of its rows, or a list in memory."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from knowhalu.types import Passage

Ints = NDArray[np.int64]


class PassageRows(Protocol):
    """Passages by row, counted from 0; what a part is built from."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def get(self, i: int, score: float = 0.0) -> Passage:
        """Return the passage of row `i` with a score."""


class Passages(PassageRows, Protocol):
    """All rows of an index, of which some may be deleted."""

    def live(self) -> Iterator[int]:
        """Yield the rows that are shown, rising."""

    def places(self, rows: Ints) -> Ints:
        """Return (document, number, start, end) of each row; documents and numbers rise in the order of the sources."""


class PassageList(list[Passage]):
    """Passages in memory, in their order."""

    def get(self, i: int, score: float = 0.0) -> Passage:
        """Return passage `i` with a score."""
        return self[i].model_copy(update={"score": score})

    def live(self) -> Iterator[int]:
        """Yield all rows."""
        return iter(range(len(self)))

    def places(self, rows: Ints) -> Ints:
        """Return each row as a document of its own."""
        return np.stack([rows, *np.zeros((3, len(rows)), np.int64)], axis=1)


class PassageSlice:
    """Some rows of an index, counted from 0."""

    def __init__(self, passages: PassageRows, first: int, rows: int) -> None:
        self._passages, self._first, self._rows = passages, first, rows

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._rows

    def get(self, i: int, score: float = 0.0) -> Passage:
        """Return the passage of row `i` of the view with a score."""
        return self._passages.get(self._first + i, score)


def top_rows(passages: Passages, rows: Ints, scores: NDArray[np.floating], k: int) -> list[tuple[int, float]]:
    """Return the `k` rows that score most and their scores, best first; equal ones in the order of the sources.

    That order is the same for an index that was changed and one that was built anew.
    """
    if len(scores) > k:
        kept = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
        rows, scores = rows[kept], scores[kept]
    places = passages.places(rows)
    order = np.lexsort((places[:, 1], places[:, 0], -scores))[:k]
    return list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))
