"""The passage store: texts and where they come from, on disk, read one by one through memory maps.

`texts.bin` is the UTF-8 of all passages end to end and `texts.offsets` where each begins; `documents.*` holds id and title
of every document in the same way; `spans.bin` has a row (document, number, start, end) for each passage. Numbers are
little-endian int64.
"""

import mmap
import struct
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import IndexFormatError
from knowhalu.types import Passage

FILES = ("texts.bin", "texts.offsets", "documents.bin", "documents.offsets", "spans.bin")
INT = np.dtype("<i8")
CURE = "The index is damaged: copy it again or rebuild it (`knowhalu index verify` lists what is wrong)"


class _StringWriter:
    def __init__(self, folder: Path, name: str) -> None:
        self._data, self._offsets = (folder / f"{name}.bin").open("wb"), (folder / f"{name}.offsets").open("wb")
        self._end = 0
        self._offsets.write(struct.pack("<q", 0))

    def add(self, text: str) -> None:
        data = text.encode()
        self._data.write(data)
        self._end += len(data)
        self._offsets.write(struct.pack("<q", self._end))

    def files(self) -> list[IO[bytes]]:
        return [self._data, self._offsets]


class StoreWriter:
    """Write a passage store into a folder, passage by passage; as a context manager it closes its files."""

    def __init__(self, folder: Path) -> None:
        self.passages = self.documents = 0
        self._texts, self._names = _StringWriter(folder, "texts"), _StringWriter(folder, "documents")
        self._spans = (folder / "spans.bin").open("wb")

    def add_document(self, name: str, title: str) -> int:
        """Add a document and return its number."""
        self._names.add(name)
        self._names.add(title)
        self.documents += 1
        return self.documents - 1

    def add(self, text: str, document: int, number: int, start: int) -> None:
        """Add passage `number` of a document: `text` stands at character `start` of it."""
        self._texts.add(text)
        self._spans.write(struct.pack("<4q", document, number, start, start + len(text)))
        self.passages += 1

    def __enter__(self) -> "StoreWriter":
        """Return the writer."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close all files."""
        for file in (*self._texts.files(), *self._names.files(), self._spans):
            file.close()


def _map(path: Path) -> mmap.mmap | bytes:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""


def _ints(path: Path) -> NDArray[np.int64]:
    data = _map(path)
    if not data or len(data) % INT.itemsize:
        raise IndexFormatError(f"{path}: {len(data)} bytes are no list of numbers. {CURE}")
    return np.frombuffer(data, dtype=INT)


class _Strings:
    def __init__(self, folder: Path, name: str, count: int) -> None:
        self._data, self._path = _map(folder / f"{name}.bin"), folder / f"{name}.bin"
        self._offsets = _ints(folder / f"{name}.offsets")
        if self._offsets.size != count + 1 or self._offsets[0] != 0 or self._offsets[-1] != len(self._data):
            raise IndexFormatError(f"{self._path}: its offsets do not end where it ends. {CURE}")

    def __getitem__(self, i: int) -> str:
        start, end = int(self._offsets[i]), int(self._offsets[i + 1])
        if not 0 <= start <= end <= len(self._data):
            raise IndexFormatError(f"{self._path}: text {i} lies outside of the file. {CURE}")
        try:
            return self._data[start:end].decode()
        except UnicodeDecodeError as error:
            raise IndexFormatError(f"{self._path}: text {i} is not UTF-8 ({error.reason}). {CURE}") from error

    def rising(self) -> bool:
        """Tell whether every text ends where or after it begins."""
        return bool(np.all(self._offsets[1:] >= self._offsets[:-1]))


class PassageStore:
    """Read passages by number; nothing but the numbers asked for is read from disk."""

    def __init__(self, folder: Path, passages: int, documents: int) -> None:
        self._texts, self._names = _Strings(folder, "texts", passages), _Strings(folder, "documents", 2 * documents)
        spans = _ints(folder / "spans.bin")
        if spans.size != 4 * passages:
            raise IndexFormatError(f"{folder / 'spans.bin'}: holds {spans.size // 4} passages, not {passages}. {CURE}")
        self._spans, self._documents, self._folder = spans.reshape(-1, 4), documents, folder

    def __len__(self) -> int:
        """Return the number of passages."""
        return len(self._spans)

    def get(self, i: int, score: float = 0.0) -> Passage:
        """Return passage `i` with a score; raises IndexFormatError where its bytes make no sense."""
        document, number, start, end = map(int, self._spans[i])
        if not 0 <= document < self._documents:
            raise IndexFormatError(f"{self._folder / 'spans.bin'}: passage {i} belongs to no document. {CURE}")
        name, title = self._names[2 * document], self._names[2 * document + 1]
        return Passage(id=f"{name}#{number}", text=self._texts[i], title=title, score=score, document=name, start=start, end=end)

    def problems(self) -> Iterable[str]:
        """Name what does not add up between the numbers of the store; reads the numbers of all passages."""
        if not self._texts.rising() or not self._names.rising():
            yield f"{self._folder}: offsets run backwards"
        document, _, start, end = self._spans.T
        if np.any((document < 0) | (document >= self._documents)):
            yield f"{self._folder / 'spans.bin'}: a passage belongs to no document"
        if np.any((start < 0) | (end <= start)):
            yield f"{self._folder / 'spans.bin'}: a passage has no characters"
