"""The vectors of an index: one file for each shard, written as they come and opened as memory maps."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import IndexFormatError
from knowhalu.retrieval.sections import CURE, HEAD, Sections, SectionWriter

Storage = Literal["float32", "float16"]
TYPES: dict[Storage, Any] = {"float32": np.dtype("<f4"), "float16": np.dtype("<f2")}
BLOCK = 32 * 2**20
"""Bytes of float32 that are made at once where vectors must be converted or copied."""
Floats = NDArray[np.float32]


class VectorWriter:
    """Write the vectors of a shard as they come; use it as a context manager."""

    def __init__(self, path: Path, storage: Storage) -> None:
        self._file, self._type, self.count = SectionWriter(path, storage), TYPES[storage], 0
        self._file.begin()

    def add(self, vectors: Floats) -> None:
        """Append rows `(n, dimension)`."""
        self._file.write(np.ascontiguousarray(vectors, dtype=self._type))
        self.count += len(vectors)

    def __enter__(self) -> "VectorWriter":
        """Return the writer."""
        return self

    def __exit__(self, *error: Any) -> None:
        """Complete the file, or remove it where something failed."""
        self._file.__exit__(*error)


def open_vectors(path: Path, dimension: int, count: int, storage: Storage, digest: str | None = None) -> NDArray[Any]:
    """Open the vectors of a shard, `(count, dimension)`, as a memory map; raises IndexFormatError for another file."""
    rows = Sections(path, storage, digest).numbers(0, TYPES[storage], dimension)
    if len(rows) != count:
        raise IndexFormatError(f"{path}: holds {len(rows)} vectors of length {dimension}, not {count}. {CURE}")
    return rows


def stream(paths: Sequence[Path], dimension: int, storage: Storage) -> Iterator[Floats]:
    """Read the vectors of shards from start to end in blocks of float32, which no memory map keeps in memory."""
    most = max(1, BLOCK // (4 * dimension))
    for path in paths:
        with path.open("rb") as file:
            file.seek(HEAD)
            while len(rows := np.fromfile(file, TYPES[storage], most * dimension)):
                yield rows.reshape(-1, dimension).astype(np.float32, copy=False)


class Vectors:
    """The vectors of all shards as one list of rows."""

    def __init__(self, shards: Sequence[NDArray[Any]], dimension: int) -> None:
        self.shards, self.dimension = list(shards), dimension
        self._starts = np.cumsum([0, *map(len, shards)])

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self._starts[-1])

    def blocks(self, first: int = 0) -> Iterator[tuple[int, Floats]]:
        """Yield all rows from `first` on as float32, each block with the number of its first row."""
        most = max(1, BLOCK // (4 * self.dimension))
        for start, shard in zip(self._starts, self.shards, strict=False):
            inner = max(0, first - int(start))
            # float32 is handed out as it lies on disk; only what must be converted is cut into blocks
            step = max(1, len(shard)) if shard.dtype == np.float32 else most
            for at in range(inner, len(shard), step):
                yield int(start) + at, shard[at : at + step].astype(np.float32, copy=False)

    def gather(self, rows: NDArray[np.int64]) -> Floats:
        """Copy the given rows, in this order, as float32 `(n, dimension)`."""
        if len(self.shards) == 1:
            return self.shards[0][rows].astype(np.float32, copy=False)
        found = np.empty((len(rows), self.dimension), np.float32)
        shards = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(shards):
            here = shards == number
            found[here] = self.shards[number][rows[here] - self._starts[number]]
        return found
