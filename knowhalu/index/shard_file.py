"""A shard of passages: texts, their places, and the documents that begin in it, written once and never changed.

A passage whose title and text occurred before is an echo: it is stored as a place (document, number, start) and the key of the
passage that it repeats, without text or vector. Documents are numbered across the whole index, in the order of reading.
"""

import hashlib
from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import IndexFormatError
from knowhalu.index.container import DAMAGE_HINT, INT64, Ints, SectionFile, SectionWriter
from knowhalu.io.keys import KEY_TYPE, Keys, make_key

PASSAGES_KIND = "passages"
MAX_SHARD_CHARACTERS = 256 * 2**20
"""Characters after which a shard is full, whatever its number of passages."""
CONTENT_MODULUS = 2**256
SECTION_MARK = "\0"
"""Encloses the path of a section, which precedes the text of a passage."""


class Section(IntEnum):
    """Sections of a shard, in the order of the file; ends are offsets into texts and names, from 0 on."""

    KEYS, SPANS, TEXT_ENDS, DOCUMENT_KEYS, NAME_ENDS, ECHOES, TEXTS, NAMES = range(8)


class ShardSummary(NamedTuple):
    """Counts, size and hash of a finished shard; `content` is the sum of the hashes of all occurrences, in any order."""

    passages: int
    documents: int
    echoes: int
    content: int
    size: int
    sha256: str


def sum_counts(summaries: Iterable[ShardSummary]) -> tuple[int, int, int]:
    """Return the total numbers of passages, documents and echoes."""
    counts = list(summaries)
    return sum(s.passages for s in counts), sum(s.documents for s in counts), sum(s.echoes for s in counts)


def hash_occurrence(name: str, number: int, start: int, key: bytes) -> int:
    """Return the hash of an occurrence of a passage; the sum of these is the content of an index."""
    return int.from_bytes(hashlib.blake2b(f"{name}\0{number}\0{start}\0".encode() + key, digest_size=32).digest())


class ShardWriter:
    """Collect documents and passages and write them as one file; `first_document` counts those of earlier shards."""

    def __init__(self, first_document: int, limit: int) -> None:
        self._first, self._limit = first_document, limit
        self._keys, self._texts = list[bytes](), list[bytes]()
        self._spans, self._echoes = list[tuple[int, int, int, int]](), list[tuple[int, int, int, bytes]]()
        self._document_keys, self._names = list[bytes](), list[bytes]()
        self._size = self._content = 0

    @property
    def full(self) -> bool:
        """Return whether the shard must be finished before more is added."""
        largest = max(len(self._keys), len(self._echoes), len(self._document_keys))
        return largest >= self._limit or self._size >= MAX_SHARD_CHARACTERS

    @property
    def empty(self) -> bool:
        """Return whether nothing was added."""
        return not (self._keys or self._echoes or self._document_keys)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Return the numbers of passages, documents and echoes added."""
        return len(self._keys), len(self._document_keys), len(self._echoes)

    def document(self, name: str, title: str) -> None:
        """Begin a document, which all following passages belong to."""
        self._document_keys.append(make_key(name))
        self._names += (name.encode(), title.encode())
        self._size += len(name) + len(title)

    def passage(self, name: str, number: int, start: int, key: bytes, text: str, section: str = "") -> None:
        """Add passage `number` of the current document `name`: `text` begins at character `start`, in a section."""
        self._spans.append((self._current_document, number, start, start + len(text)))
        self._keys.append(key)
        marked = section or text.startswith(SECTION_MARK)
        self._texts.append((f"{SECTION_MARK}{section}{SECTION_MARK}{text}" if marked else text).encode())
        self._size += len(text) + len(section)
        self._content += hash_occurrence(name, number, start, key)

    def echo(self, name: str, number: int, start: int, key: bytes) -> None:
        """Add an occurrence of the text of an earlier passage."""
        self._echoes.append((self._current_document, number, start, key))
        self._content += hash_occurrence(name, number, start, key)

    @property
    def _current_document(self) -> int:
        return self._first + len(self._document_keys) - 1

    def finish(self, path: Path) -> ShardSummary:
        """Write the file."""
        places = np.array([e[:3] for e in self._echoes], INT64).reshape(-1, 3)
        with SectionWriter(path, PASSAGES_KIND) as file:
            for data in (
                b"".join(self._keys),
                np.array(self._spans, INT64),
                np.array([0, *accumulate(map(len, self._texts))], INT64),
                b"".join(self._document_keys),
                np.array([0, *accumulate(map(len, self._names))], INT64),
                np.hstack([places, np.frombuffer(b"".join(e[3] for e in self._echoes), INT64).reshape(-1, 2)]),
                b"".join(self._texts),
                b"".join(self._names),
            ):
                file.begin()
                file.write(data)
        return ShardSummary(*self.counts, self._content % CONTENT_MODULUS, file.size, file.digest)


class Shard:
    """An opened shard; raises IndexFormatError where the file does not have these counts or this digest."""

    def __init__(self, path: Path, passages: int, documents: int, echoes: int, digest: str | None = None) -> None:
        self.path, self._file = path, SectionFile(path, PASSAGES_KIND, digest)
        self.keys: Keys = self._file.numbers(Section.KEYS, KEY_TYPE)[:, 0]
        self.spans: Ints = self._file.numbers(Section.SPANS, columns=4)
        self._text_ends: Ints = self._file.numbers(Section.TEXT_ENDS)[:, 0]
        self.document_keys: Keys = self._file.numbers(Section.DOCUMENT_KEYS, KEY_TYPE)[:, 0]
        self._name_ends: Ints = self._file.numbers(Section.NAME_ENDS)[:, 0]
        self._echoes: Ints = self._file.numbers(Section.ECHOES, columns=5)
        counts = (len(self.keys), len(self.document_keys), len(self._echoes))
        expected = (passages, documents, echoes)
        lengths = (len(self.spans), len(self._text_ends) - 1, len(self._name_ends) - 1)
        if counts != expected or lengths != (passages, passages, 2 * documents):
            raise IndexFormatError(f"{path}: holds {counts} passages, documents and echoes, not {expected}. {DAMAGE_HINT}")

    def __len__(self) -> int:
        """Return the number of passages."""
        return len(self.keys)

    def sections(self) -> list[NDArray[Any]]:
        """Return the contents of all sections."""
        texts, names = (self._file.numbers(i, np.dtype(np.uint8))[:, 0] for i in (Section.TEXTS, Section.NAMES))
        return [self.keys, self.spans, self._text_ends, self.document_keys, self._name_ends, self._echoes, texts, names]

    @property
    def echo_places(self) -> Ints:
        """Return (document, number, start) of the echoes."""
        return self._echoes[:, :3]

    @property
    def echo_keys(self) -> Keys:
        """Return the keys of the echoes."""
        return np.frombuffer(self._echoes[:, 3:].tobytes(), KEY_TYPE)

    def text(self, i: int) -> tuple[str, str]:
        """Return the text of passage `i` and the path of its section."""
        stored = self._decode(Section.TEXTS, self._text_ends, i)
        if not stored.startswith(SECTION_MARK):
            return stored, ""
        section, _, text = stored[1:].partition(SECTION_MARK)
        return text, section

    def name(self, i: int) -> str:
        """Return the id of document `i` of the shard."""
        return self._decode(Section.NAMES, self._name_ends, 2 * i)

    def title(self, i: int) -> str:
        """Return the title of document `i` of the shard."""
        return self._decode(Section.NAMES, self._name_ends, 2 * i + 1)

    def _decode(self, section: int, ends: Ints, i: int) -> str:
        data = self._file.slice(section, int(ends[i]), int(ends[i + 1]))
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise IndexFormatError(f"{self.path}: text {i} is not UTF-8 ({error.reason}). {DAMAGE_HINT}") from error

    def problems(self, documents: int) -> Iterator[str]:
        """List inconsistencies between the numbers; the index has `documents` documents up to the end of this shard."""
        for ends, section in ((self._text_ends, Section.TEXTS), (self._name_ends, Section.NAMES)):
            if ends[0] != 0 or ends[-1] != self._file.lengths[section] or np.any(ends[1:] < ends[:-1]):
                yield f"{self.path}: offsets do not match the texts"
        places = np.concatenate([self.spans[:, 0], self._echoes[:, 0]])
        if np.any((places < 0) | (places >= documents)):
            yield f"{self.path}: a passage belongs to no document"
        if np.any((self.spans[:, 2] < 0) | (self.spans[:, 3] <= self.spans[:, 2])):
            yield f"{self.path}: a passage has no characters"
