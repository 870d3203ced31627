"""Passages by row, the input of every kind of search: those of an index folder, a slice of them, or a list in memory.

Shards are not rewritten when documents are deleted. A passage is shown at its first occurrence in a document that was not
deleted: where the document that it was read from was deleted, it moves to its first remaining echo, and is dead where there is
none.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import IndexFormatError
from knowhalu.index.chunking import passage_title
from knowhalu.index.container import DAMAGE_HINT, Ints, SectionFile, SectionWriter
from knowhalu.index.manifest import Manifest
from knowhalu.index.shard_file import Shard
from knowhalu.io.keys import find_keys
from knowhalu.types import Passage

EDITS_KIND = "edits"
EMPTY_ROWS: Ints = np.zeros(0, np.int64)


class PassageRows(Protocol):
    """Passages by row, counted from 0; the input of building a part."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def get(self, i: int, score: float = 0.0) -> Passage:
        """Return the passage of row `i` with a score."""


class Passages(PassageRows, Protocol):
    """All rows of an index, some of which may be deleted."""

    def live(self) -> Iterator[int]:
        """Yield the rows that are not deleted, ascending."""

    def places(self, rows: Ints) -> Ints:
        """Return (document, number, start, end) of each row; documents and numbers ascend in the order of the sources."""


class PassageList(list[Passage]):
    """Passages in memory, in their order."""

    def get(self, i: int, score: float = 0.0) -> Passage:
        """Return passage `i` with a score."""
        return self[i].model_copy(update={"score": score})

    def live(self) -> Iterator[int]:
        """Yield all rows."""
        return iter(range(len(self)))

    def places(self, rows: Ints) -> Ints:
        """Return places with one document for each row."""
        return np.stack([rows, *np.zeros((3, len(rows)), np.int64)], axis=1)


class PassageSlice:
    """Consecutive rows of an index, counted from 0."""

    def __init__(self, passages: PassageRows, first: int, rows: int) -> None:
        self._passages, self._first, self._rows = passages, first, rows

    def __len__(self) -> int:
        return self._rows

    def get(self, i: int, score: float = 0.0) -> Passage:
        """Return the passage of row `i` of the slice with a score."""
        return self._passages.get(self._first + i, score)


def top_rows(passages: Passages, rows: Ints, scores: NDArray[np.floating], k: int) -> list[tuple[int, float]]:
    """Return the `k` best rows with their scores, best first; ties keep the order of the sources.

    That order is the same for an index that was changed and one that was rebuilt.
    """
    if len(scores) > k:
        candidates = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
        rows, scores = rows[candidates], scores[candidates]
    places = passages.places(rows)
    order = np.lexsort((places[:, 1], places[:, 0], -scores))[:k]
    return list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))


class Tombstones(NamedTuple):
    """Deleted documents and dead rows, sorted, and moved rows `(row, document, number, start)`, sorted by row."""

    documents: Ints = EMPTY_ROWS
    rows: Ints = EMPTY_ROWS
    moved: Ints = EMPTY_ROWS.reshape(0, 4)

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

    def places(self, rows: Ints, spans: Ints) -> Ints:
        """Replace the places of moved rows in `spans` (document, number, start, end), one for each row."""
        if not len(self.moved):
            return spans
        at = np.minimum(np.searchsorted(self.moved[:, 0], rows), len(self.moved) - 1)
        has_moved = np.flatnonzero(self.moved[at, 0] == rows)
        spans = spans.copy()
        length = spans[has_moved, 3] - spans[has_moved, 2]
        spans[has_moved, :3] = self.moved[at[has_moved], 1:]
        spans[has_moved, 3] = spans[has_moved, 2] + length
        return spans


def is_in_sorted(values: Ints, sorted_values: Ints) -> NDArray[np.bool_]:
    """Return for each value whether it is in a sorted array."""
    if not len(sorted_values):
        return np.zeros(values.shape, bool)
    values = np.ascontiguousarray(values)  # a column is faster to search as a copy
    at = np.minimum(np.searchsorted(sorted_values, values), len(sorted_values) - 1)
    is_in: NDArray[np.bool_] = sorted_values[at] == values
    return is_in


def resolve_deletions(shards: Sequence[Shard], documents: Ints) -> Tombstones:
    """Compute the dead and moved rows from the sorted numbers of the deleted documents."""
    firsts = np.cumsum([0, *map(len, shards)])
    deleted = [np.flatnonzero(is_in_sorted(s.spans[:, 0], documents)) for s in shards]
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


class PassageStore:
    """The passages of an index folder by row, across its shards and with its tombstones applied; reads from disk on demand.

    Rows are numbered across all shards and keep their numbers until the index is compacted.
    """

    def __init__(self, shards: Sequence[Shard], tombstones: Tombstones) -> None:
        self.shards, self.tombstones = list(shards), tombstones
        self._rows = [0, *accumulate(len(s) for s in shards)]
        self._documents = [0, *accumulate(len(s.document_keys) for s in shards)]

    def __len__(self) -> int:
        return self._rows[-1]

    @property
    def documents(self) -> int:
        """Return the number of documents, including deleted ones."""
        return self._documents[-1]

    def live(self) -> Iterator[int]:
        """Yield the rows that are not deleted, ascending."""
        dead = set(self.tombstones.rows.tolist())
        return (row for row in range(len(self)) if row not in dead)

    def places(self, rows: Ints) -> Ints:
        """Return (document, number, start, end) of each row, with tombstones applied."""
        places = np.empty((len(rows), 4), np.int64)
        numbers = np.searchsorted(self._rows, rows, side="right") - 1
        for number in np.unique(numbers):
            inside = numbers == number
            places[inside] = self.shards[number].spans[rows[inside] - self._rows[number]]
        return self.tombstones.places(rows, places)

    def text(self, row: int) -> tuple[str, str]:
        """Return the text of a row and the path of its section."""
        number = bisect_right(self._rows, row) - 1
        return self.shards[number].text(row - self._rows[number])

    def document(self, number: int) -> tuple[str, str]:
        """Return id and title of a document."""
        if not 0 <= number < self._documents[-1]:
            raise IndexFormatError(f"{self.shards[0].path.parent}: a passage belongs to no document. {DAMAGE_HINT}")
        shard = bisect_right(self._documents, number) - 1
        inner = number - self._documents[shard]
        return self.shards[shard].name(inner), self.shards[shard].title(inner)

    def get(self, i: int, score: float = 0.0) -> Passage:
        """Return the passage of row `i` with a score; raises IndexFormatError where its bytes are damaged."""
        shard = bisect_right(self._rows, i) - 1
        place = self.shards[shard].spans[i - self._rows[shard]]
        if len(self.tombstones.moved):
            place = self.places(np.array([i], np.int64))[0]
        document, number, start, end = place.tolist()
        name, title = self.document(document)
        text, section = self.text(i)
        title = passage_title(title, section)
        return Passage(id=f"{name}#{number}", text=text, title=title, score=score, document=name, start=start, end=end)

    def problems(self) -> Iterator[str]:
        """List inconsistencies between the numbers of the store; reads the numbers of all passages."""
        for shard, documents in zip(self.shards, self._documents[1:], strict=True):
            yield from shard.problems(documents)


def open_store(folder: Path, manifest: Manifest) -> PassageStore:
    """Open the passages of an index folder; raises IndexFormatError where a file does not match the manifest."""
    shards = [
        Shard(folder / s.passages, s.rows, s.documents, s.echoes, manifest.files[s.passages].sha256) for s in manifest.shards
    ]
    if not manifest.edits:
        return PassageStore(shards, Tombstones())
    path = folder / manifest.edits
    store = PassageStore(shards, Tombstones.open(path, manifest.files[manifest.edits].sha256))
    store.tombstones.check(len(store), store.documents, path)
    return store
