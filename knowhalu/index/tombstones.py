"""Deletions in an index since its shards were written: deleted documents, and the resulting dead and moved rows.

A passage is shown at its first occurrence in a document that was not deleted. Where the document that it was read from was
deleted, the passage moves to its first remaining echo, and is dead where there is none. Shards are not rewritten for this.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import IndexFormatError
from knowhalu.index.container import DAMAGE_HINT, Ints, SectionFile, SectionWriter
from knowhalu.index.shard_file import Shard
from knowhalu.io.keys import find_keys

EDITS_KIND = "edits"
EMPTY_ROWS: Ints = np.zeros(0, np.int64)


class Tombstones:
    """Deleted documents and dead rows, sorted, and moved rows `(row, document, number, start)`, sorted by row."""

    def __init__(self, documents: Ints = EMPTY_ROWS, rows: Ints = EMPTY_ROWS, moved: Ints | None = None) -> None:
        self.documents, self.rows = documents, rows
        self.moved: Ints = np.zeros((0, 4), np.int64) if moved is None else moved

    @classmethod
    def open(cls, path: Path, digest: str) -> "Tombstones":
        """Open a file of tombstones."""
        file = SectionFile(path, EDITS_KIND, digest)
        return cls(file.numbers(0)[:, 0], file.numbers(1)[:, 0], file.numbers(2, columns=4))

    def write(self, path: Path) -> SectionWriter:
        """Write a file of tombstones; return the writer, which has its size and sha256."""
        with SectionWriter(path, EDITS_KIND) as file:
            for data in (self.documents, self.rows, self.moved):
                file.begin()
                file.write(np.ascontiguousarray(data))
        return file

    def check(self, rows: int, documents: int, path: Path) -> None:
        """Raise IndexFormatError where a row or document is not in the index or out of order."""
        for values, end in ((self.documents, documents), (self.rows, rows), (self.moved[:, 0], rows)):
            if len(values) and (values[0] < 0 or values[-1] >= end or np.any(values[1:] <= values[:-1])):
                raise IndexFormatError(f"{path}: names rows or documents that the index does not have. {DAMAGE_HINT}")
        if np.any((self.moved[:, 1] < 0) | (self.moved[:, 1] >= documents)):
            raise IndexFormatError(f"{path}: moves a passage to a document that the index does not have. {DAMAGE_HINT}")

    def is_dead(self, rows: Ints) -> NDArray[np.bool_]:
        """Return for each row whether it is dead."""
        return is_in_sorted(rows, self.rows)

    def places(self, rows: Ints, spans: Ints) -> Ints:
        """Replace the places of moved rows in `spans` (document, number, start, end), one for each row."""
        if not len(self.moved):
            return spans
        at = np.minimum(np.searchsorted(self.moved[:, 0], rows), len(self.moved) - 1)
        here = np.flatnonzero(self.moved[at, 0] == rows)
        spans = spans.copy()
        length = spans[here, 3] - spans[here, 2]
        spans[here, :3] = self.moved[at[here], 1:]
        spans[here, 3] = spans[here, 2] + length
        return spans


def is_in_sorted(values: Ints, sorted_values: Ints) -> NDArray[np.bool_]:
    """Return for each value whether it is in a sorted array."""
    if not len(sorted_values):
        return np.zeros(values.shape, bool)
    at = np.minimum(np.searchsorted(sorted_values, values), len(sorted_values) - 1)
    is_in: NDArray[np.bool_] = sorted_values[at] == values
    return is_in


def resolve_deletions(shards: Sequence[Shard], documents: Ints) -> Tombstones:
    """Compute the dead and moved rows from the sorted numbers of the deleted documents."""
    firsts = np.cumsum([0, *map(len, shards)])
    deleted = [np.flatnonzero(is_in_sorted(np.ascontiguousarray(s.spans[:, 0]), documents)) for s in shards]
    rows = np.concatenate([inside + first for inside, first in zip(deleted, firsts, strict=False)]).astype(np.int64)
    keys = np.concatenate([s.keys[inside] for s, inside in zip(shards, deleted, strict=True)])
    order = np.argsort(keys)
    keys, owners = keys[order], rows[order]
    moved: dict[int, tuple[int, int, int]] = {}
    for shard in shards:
        echo_keys = shard.echo_keys
        for i in find_keys(echo_keys, keys):
            document, number, start = map(int, shard.echo_places[i])
            row = int(owners[np.searchsorted(keys, echo_keys[i : i + 1])[0]])
            if row not in moved and not is_in_sorted(np.array([document]), documents)[0]:
                moved[row] = document, number, start
    table = np.array([[r, *moved[r]] for r in sorted(moved)], np.int64).reshape(-1, 4)
    return Tombstones(documents, rows[~is_in_sorted(rows, table[:, 0])], table)
