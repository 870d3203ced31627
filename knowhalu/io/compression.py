"""Open files that may be compressed (.gz, .bz2, .xz, .zst), and read their lines in bounded memory."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from knowhalu.errors import InputError, MissingExtra

MAX_RECORD_BYTES = 64 * 2**20
"""Bytes of the longest record that is read; a longer one is taken for a damaged file."""


PositionCallback = Callable[[int], None]
"""Takes the byte position in the file."""


COMPRESSED_SUFFIXES = frozenset({".gz", ".bz2", ".xz", ".zst"})
_BLOCK_BYTES = 2**18
_GZIP_START = b"\x1f\x8b"
READ_ERRORS: tuple[type[Exception], ...] = (EOFError, zlib.error, lzma.LZMAError, OSError)
"""Exceptions raised by a damaged or vanished file."""


def uncompressed_name(path: Path) -> str:
    """Return the name of a file in lower case, without the suffix of its compression."""
    name = path.name.lower()
    return name.removesuffix(Path(name).suffix) if Path(name).suffix in COMPRESSED_SUFFIXES else name


class _ConcatenatedStreams(io.RawIOBase):
    """All streams of a .bz2 or .xz file; unlike the readers of the library, an incomplete stream is an error."""

    def __init__(self, raw: IO[bytes], make: type[bz2.BZ2Decompressor] | type[lzma.LZMADecompressor]) -> None:
        self._raw, self._make = raw, make
        self._stream, self._fresh = make(), True

    def readable(self) -> bool:
        """Return True: the stream is for reading."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with decompressed bytes; return their number, 0 at the end of the last stream."""
        while True:
            data = b""
            if self._stream.eof:
                data = self._stream.unused_data
                self._stream, self._fresh = self._make(), True
            if self._stream.needs_input and not data:
                data = self._raw.read(_BLOCK_BYTES)
                if not data and self._fresh:
                    return 0
                if not data:
                    raise EOFError("it ends within a stream")
            self._fresh = False
            block = self._stream.decompress(data, len(buffer))
            if block:
                buffer[: len(block)] = block
                return len(block)


@contextmanager
def _open_zstandard(raw: IO[bytes]) -> Iterator[IO[bytes]]:
    try:
        from compression import zstd
    except ImportError:
        try:
            from backports import zstd
        except ImportError as error:
            raise MissingExtra("backports.zstd", "zst") from error
    try:
        with zstd.open(raw) as file:
            yield file
    except zstd.ZstdError as error:
        raise OSError(error) from error


@contextmanager
def open_uncompressed(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open a file, compressed or not; yield its content, and the file itself, whose position tells the progress."""
    kind = path.suffix.lower()
    with path.open("rb") as raw:
        if kind == ".gz" or (kind not in COMPRESSED_SUFFIXES and _starts_as_gzip(raw)):
            yield gzip.open(raw), raw  # type: ignore[misc]
        elif kind in {".bz2", ".xz"}:
            make = bz2.BZ2Decompressor if kind == ".bz2" else lzma.LZMADecompressor
            yield io.BufferedReader(_ConcatenatedStreams(raw, make), _BLOCK_BYTES), raw
        elif kind == ".zst":
            with _open_zstandard(raw) as file:
                yield file, raw
        else:
            yield raw, raw


def _starts_as_gzip(raw: IO[bytes]) -> bool:
    """Tell whether a file without the suffix is compressed all the same; its position stays at the start."""
    start = raw.read(len(_GZIP_START))
    raw.seek(0)
    return start == _GZIP_START


@contextmanager
def raise_as_input_error(path: Path) -> Iterator[None]:
    """Raise an InputError for the exceptions of a damaged or vanished file."""
    try:
        yield
    except READ_ERRORS as error:
        raise InputError(f"{path}: cannot be read to its end ({error}). Copy or compress the file again") from error


def read_file_lines(path: Path, note: PositionCallback) -> Iterator[tuple[int, bytes | None]]:
    """Yield the numbered lines of a file, compressed or not; None stands for a line longer than any record."""
    with raise_as_input_error(path), open_uncompressed(path) as (file, raw):
        number = 0
        while line := file.readline(MAX_RECORD_BYTES + 1):
            number += 1
            fits = len(line) <= MAX_RECORD_BYTES
            while not fits and line and not line.endswith(b"\n"):
                line = file.readline(MAX_RECORD_BYTES)
            note(raw.tell())
            yield number, line if fits else None


def read_document_bytes(path: Path) -> bytes | None:
    """Return the bytes of a file with one document; None for a file longer than any record."""
    with open_uncompressed(path) as (file, _):
        data = file.read(MAX_RECORD_BYTES + 1)
    return data if len(data) <= MAX_RECORD_BYTES else None
