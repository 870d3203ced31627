"""Files of numbers and bytes with section lengths and a sha256, opened as memory maps; used for all data of an index.

The head is 128 bytes: `KNOWHALU`, eight letters of the kind, eight little-endian int64 (the bytes of each section), the sha256
of all that follows the head, zeros. A file is written under a temporary name and renamed when it is complete.
"""

import contextlib
import errno
import hashlib
import mmap
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import IndexFormatError

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

HEAD_BYTES = 128
MAGIC = b"KNOWHALU"
MAX_SECTIONS = 8
"""Sections that a file may have."""
INT64 = np.dtype("<i8")
SPARE_OPEN_FILES = 64
"""File descriptors reserved for files that are not of an index."""
_MMAP_OPTIONS: dict[str, Any] = {"trackfd": False} if sys.version_info >= (3, 13) else {}
"""From Python 3.13 on, a file can be mapped without keeping it open."""
DAMAGE_HINT = "The index is damaged: copy it again or rebuild it (`knowhalu index verify` lists what is wrong)"
OPEN_FILES_HINT = "Allow more open files (`ulimit -n 65536`), or build the index with larger shards (--shard)"
Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


def make_head(kind: str, lengths: list[int], digest: bytes) -> bytes:
    """Return the head of a file."""
    padded = lengths + [0] * (MAX_SECTIONS - len(lengths))
    return (MAGIC + kind.encode().ljust(8) + struct.pack("<8q", *padded) + digest).ljust(HEAD_BYTES, b"\0")


class SectionWriter:
    """Write a file section by section; leaving the context completes the file, or removes it after an error."""

    def __init__(self, path: Path, kind: str) -> None:
        self.path, self._kind = path, kind
        self._temporary = path.with_name(f"{path.name}.tmp")
        self._file: IO[bytes] = self._temporary.open("wb")
        self._file.write(bytes(HEAD_BYTES))
        self._hash, self._lengths = hashlib.sha256(), list[int]()
        self.digest, self.size = "", 0

    def begin(self) -> None:
        """Begin the next section."""
        self._lengths.append(0)

    def write(self, data: bytes | NDArray[Any]) -> None:
        """Append to the current section."""
        # memoryview.cast refuses arrays without rows
        view = memoryview(data if isinstance(data, bytes) else data.reshape(-1).view(np.uint8).data)
        self._hash.update(view)
        self._file.write(view)
        self._lengths[-1] += view.nbytes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self._file.close()
            self._temporary.unlink(missing_ok=True)
            return
        self._file.seek(0)
        self._file.write(make_head(self._kind, self._lengths, self._hash.digest()))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.replace(self._temporary, self.path)
        self.digest, self.size = self._hash.hexdigest(), HEAD_BYTES + sum(self._lengths)


class SectionFile:
    """An opened file: its sections as memory maps.

    Raises IndexFormatError, which ends with the `remedy`, unless kind and lengths fit the file and, where a `digest` is given,
    it equals that of the head.
    """

    def __init__(self, path: Path, kind: str, digest: str | None = None, remedy: str = DAMAGE_HINT) -> None:
        self.path, self._remedy = path, remedy
        try:
            with path.open("rb") as file:
                _raise_open_file_limit(file.fileno())
                head = file.read(HEAD_BYTES)
                size = os.fstat(file.fileno()).st_size
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ, **_MMAP_OPTIONS) if size else b""
        except OSError as error:
            remedy = OPEN_FILES_HINT if error.errno in (errno.EMFILE, errno.ENFILE) else remedy
            raise IndexFormatError(f"{path}: cannot be read ({error.strerror}). {remedy}") from error
        lengths = list(struct.unpack_from("<8q", head.ljust(HEAD_BYTES, b"\0"), 16))
        self.digest = head[80:112].hex()
        if head != make_head(kind, lengths, head[80:112]) or min(lengths) < 0 or sum(lengths) != size - HEAD_BYTES:
            raise IndexFormatError(f"{path}: is not a complete file of {kind}. {remedy}")
        if digest is not None and digest != self.digest:
            raise IndexFormatError(f"{path}: is another file than the index was made with. {remedy}")
        self._starts = [HEAD_BYTES + sum(lengths[:i]) for i in range(MAX_SECTIONS)]
        self.lengths = lengths

    def numbers(self, section: int, kind: np.dtype[Any] = INT64, columns: int = 1) -> NDArray[Any]:
        """Return a section as rows of numbers `(n, columns)`; raises IndexFormatError where it holds no whole rows."""
        length = self.lengths[section]
        if length % (kind.itemsize * columns):
            raise IndexFormatError(f"{self.path}: {length} bytes are not whole rows of {columns} numbers. {self._remedy}")
        count = length // kind.itemsize
        return np.frombuffer(self._map, dtype=kind, count=count, offset=self._starts[section]).reshape(-1, columns)

    def slice(self, section: int, start: int, end: int) -> bytes:
        """Return bytes of a section; raises IndexFormatError where they lie outside of it."""
        if not 0 <= start <= end <= self.lengths[section]:
            raise IndexFormatError(f"{self.path}: bytes {start} to {end} lie outside of the file. {self._remedy}")
        return self._map[self._starts[section] + start : self._starts[section] + end]


def _raise_open_file_limit(file: int) -> None:
    """Raise the soft limit of open files when it is almost reached; each mapped file counts as one."""
    if resource is None:
        return
    used = os.dup(file)  # the lowest free descriptor
    os.close(used)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or used + SPARE_OPEN_FILES < soft:
        return
    doubled = 2 * soft if hard == resource.RLIM_INFINITY else min(2 * soft, hard)
    with contextlib.suppress(ValueError, OSError):  # a system may have further limits
        resource.setrlimit(resource.RLIMIT_NOFILE, (doubled, hard))


def hash_file(path: Path, start: int = HEAD_BYTES) -> str:
    """Return the sha256 of the bytes of a file from `start` on; by default of all that follows the head."""
    with path.open("rb") as file:
        file.seek(start)
        return hashlib.file_digest(file, "sha256").hexdigest()


Storage = Literal["float32", "float16"]
STORAGE_TYPES: dict[Storage, Any] = {"float32": np.dtype("<f4"), "float16": np.dtype("<f2")}
BLOCK_BYTES = 32 * 2**20
"""Bytes of float32 that are converted or copied at once."""


class VectorWriter(SectionWriter):
    """Write the vectors of a shard block by block; use it as a context manager."""

    def __init__(self, path: Path, storage: Storage) -> None:
        super().__init__(path, storage)
        self._type = STORAGE_TYPES[storage]
        self.begin()

    def add(self, vectors: Floats) -> None:
        """Append rows `(n, dimension)`."""
        self.write(np.ascontiguousarray(vectors, dtype=self._type))


def open_vectors(path: Path, dimension: int, count: int, storage: Storage, digest: str | None = None) -> NDArray[Any]:
    """Open the vectors of a shard, `(count, dimension)`, as a memory map; raises IndexFormatError for another file."""
    rows = SectionFile(path, storage, digest).numbers(0, STORAGE_TYPES[storage], dimension)
    if len(rows) != count:
        raise IndexFormatError(f"{path}: holds {len(rows)} vectors of length {dimension}, not {count}. {DAMAGE_HINT}")
    return rows


def stream_vectors(paths: Sequence[Path], dimension: int, storage: Storage) -> Iterator[Floats]:
    """Read the vectors of shards from start to end in blocks of float32, without memory maps."""
    limit = max(1, BLOCK_BYTES // (4 * dimension))
    for path in paths:
        with path.open("rb") as file:
            file.seek(HEAD_BYTES)
            while len(rows := np.fromfile(file, STORAGE_TYPES[storage], limit * dimension)):
                yield rows.reshape(-1, dimension).astype(np.float32, copy=False)


class ShardVectors:
    """The vectors of all shards as one list of rows."""

    def __init__(self, shards: Sequence[NDArray[Any]], dimension: int) -> None:
        self.shards, self.dimension = list(shards), dimension
        self._starts = np.cumsum([0, *map(len, shards)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def blocks(self, first: int = 0) -> Iterator[tuple[int, Floats]]:
        """Yield all rows from `first` on as float32, each block with the number of its first row."""
        limit = max(1, BLOCK_BYTES // (4 * self.dimension))
        for start, shard in zip(self._starts, self.shards, strict=False):
            # float32 is returned as a view of the file; only float16 is converted block by block
            step = max(1, len(shard)) if shard.dtype == np.float32 else limit
            for at in range(max(0, first - int(start)), len(shard), step):
                yield int(start) + at, shard[at : at + step].astype(np.float32, copy=False)

    def gather(self, rows: Ints) -> Floats:
        """Copy the given rows, in this order, as float32 `(n, dimension)`."""
        if len(self.shards) == 1:
            return self.shards[0][rows].astype(np.float32, copy=False)
        vectors = np.empty((len(rows), self.dimension), np.float32)
        shards = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(shards):
            inside = shards == number
            vectors[inside] = self.shards[number][rows[inside] - self._starts[number]]
        return vectors
