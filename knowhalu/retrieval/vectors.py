"""The vectors of an index: a flat FAISS file, written row by row without ever holding all rows, and opened as a memory map."""

import os
import struct
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import IndexFormatError, MissingExtra
from knowhalu.retrieval.store import CURE


def import_faiss() -> Any:
    """Import FAISS; raises MissingExtra where it is not installed."""
    try:
        import faiss
    except ImportError as error:
        raise MissingExtra("faiss-cpu", "faiss") from error
    return faiss


def header(dimension: int, count: int) -> bytes:
    """Return the bytes that stand before `count` vectors in a flat inner-product file, as FAISS writes them."""
    faiss = import_faiss()
    empty = bytearray(faiss.serialize_index(faiss.IndexFlatIP(dimension)).tobytes())
    # the count stands behind the four letters of the kind and the dimension; the number of floats comes last
    empty[8:16] = struct.pack("<q", count)
    empty[-8:] = struct.pack("<Q", count * dimension)
    return bytes(empty)


class VectorWriter:
    """Write vectors to a FAISS file as they come; as a context manager it completes and closes the file."""

    def __init__(self, path: Path, dimension: int) -> None:
        self.count, self._dimension = 0, dimension
        self._file = path.open("wb")
        self._file.write(header(dimension, 0))

    def add(self, vectors: NDArray[np.float32]) -> None:
        """Append rows `(n, dimension)`."""
        self._file.write(np.ascontiguousarray(vectors, dtype="<f4").tobytes())
        self.count += len(vectors)

    def __enter__(self) -> "VectorWriter":
        """Return the writer."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Put the count into the head of the file and close it."""
        self._file.seek(0, os.SEEK_SET)
        self._file.write(header(self._dimension, self.count))
        self._file.close()


def open_vectors(path: Path, dimension: int, count: int) -> Any:
    """Open a FAISS file as a memory map; raises IndexFormatError unless it is what it is said to be.

    The head is compared byte for byte before FAISS reads it, so that a damaged file cannot make it allocate or crash.
    """
    faiss = import_faiss()
    expected = header(dimension, count)
    with path.open("rb") as file:
        found = file.read(len(expected))
    if found != expected or path.stat().st_size != len(expected) + 4 * count * dimension:
        raise IndexFormatError(f"{path}: not a flat FAISS file of {count} vectors of length {dimension}. {CURE}")
    return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
