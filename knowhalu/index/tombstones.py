"""What was changed in an index since its shards were written: which documents are gone, and what follows from it.

A passage is shown at the first place where its title and text stand in a document that is still there. So where the document
that it was read from is gone, it moves to its first echo, and is dead where there is none. Shards are never rewritten for this.
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
    """Dead documents and rows, sorted, and the moved rows `(row, document, number, start)`, sorted by row."""

    def __init__(self, documents: Ints = EMPTY_ROWS, rows: Ints = EMPTY_ROWS, moved: Ints | None = None) -> None:
        self.documents, self.rows = documents, rows
        self.moved: Ints = np.zeros((0, 4), np.int64) if moved is None else moved

    @classmethod
    def open(cls, path: Path, digest: str) -> "Tombstones":
        """Open a file of edits."""
        file = SectionFile(path, EDITS_KIND, digest)
        return cls(file.numbers(0)[:, 0], file.numbers(1)[:, 0], file.numbers(2, columns=4))

    def write(self, path: Path) -> SectionWriter:
        """Write a file of edits; return the writer, which knows its size and sha256."""
        with SectionWriter(path, EDITS_KIND) as file:
            for data in (self.documents, self.rows, self.moved):
                file.begin()
                file.write(np.ascontiguousarray(data))
        return file

    def check(self, rows: int, documents: int, path: Path) -> None:
        """Raise IndexFormatError where an edit is about a row or document that the index does not have."""
        for given, end in ((self.documents, documents), (self.rows, rows), (self.moved[:, 0], rows)):
            if len(given) and (given[0] < 0 or given[-1] >= end or np.any(given[1:] <= given[:-1])):
                raise IndexFormatError(f"{path}: names what the index does not have. {DAMAGE_HINT}")
        if np.any((self.moved[:, 1] < 0) | (self.moved[:, 1] >= documents)):
            raise IndexFormatError(f"{path}: moves a passage to no document. {DAMAGE_HINT}")

    def is_dead(self, rows: Ints) -> NDArray[np.bool_]:
        """Tell for each row whether no document has it any more."""
        return is_in_sorted(rows, self.rows)

    def places(self, rows: Ints, spans: Ints) -> Ints:
        """Put into `spans` (document, number, start, end), one for each row, the places that rows have moved to."""
        if not len(self.moved):
            return spans
        at = np.minimum(np.searchsorted(self.moved[:, 0], rows), len(self.moved) - 1)
        here = np.flatnonzero(self.moved[at, 0] == rows)
        spans = spans.copy()
        length = spans[here, 3] - spans[here, 2]
        spans[here, :3] = self.moved[at[here], 1:]
        spans[here, 3] = spans[here, 2] + length
        return spans


def is_in_sorted(values: Ints, sorted_ones: Ints) -> NDArray[np.bool_]:
    """Tell for each value whether it is among sorted ones."""
    if not len(sorted_ones):
        return np.zeros(values.shape, bool)
    at = np.minimum(np.searchsorted(sorted_ones, values), len(sorted_ones) - 1)
    found: NDArray[np.bool_] = sorted_ones[at] == values
    return found


def resolve_deletions(shards: Sequence[Shard], documents: Ints) -> Tombstones:
    """Work out dead and moved rows from the sorted numbers of the documents that are gone."""
    firsts = np.cumsum([0, *map(len, shards)])
    gone = [np.flatnonzero(is_in_sorted(np.ascontiguousarray(s.spans[:, 0]), documents)) for s in shards]
    rows = np.concatenate([here + first for here, first in zip(gone, firsts, strict=False)]).astype(np.int64)
    keys = np.concatenate([s.keys[here] for s, here in zip(shards, gone, strict=True)])
    order = np.argsort(keys)
    keys, owners = keys[order], rows[order]
    moved: dict[int, tuple[int, int, int]] = {}
    for shard in shards:
        heard = shard.echo_keys
        for i in find_keys(heard, keys):
            document, number, start = map(int, shard.echo_places[i])
            row = int(owners[np.searchsorted(keys, heard[i : i + 1])[0]])
            if row not in moved and not is_in_sorted(np.array([document]), documents)[0]:
                moved[row] = document, number, start
    table = np.array([[r, *moved[r]] for r in sorted(moved)], np.int64).reshape(-1, 4)
    return Tombstones(documents, rows[~is_in_sorted(rows, table[:, 0])], table)
