"""What an index would take, before it is built: a sample of the sources is read and cut, and a few passages are embedded."""

import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from knowhalu.errors import InputError
from knowhalu.retrieval.base import Embedder
from knowhalu.retrieval.chunking import cut, titled
from knowhalu.retrieval.costs import bytes_per_vector, memory_now, search_seconds
from knowhalu.retrieval.formats import format_of
from knowhalu.retrieval.manifest import Chunking
from knowhalu.retrieval.sources import SourceRecord, Sources

DOCUMENTS, FILES, SECONDS = 2000, 20, 10.0
"""How much of each format is sampled at most: so many documents, of so many files, in so many seconds."""
PASSAGES = 2048
"""The passages that are kept for measuring the embedder."""
PER_PASSAGE, PER_DOCUMENT = 64, 48
"""Bytes on disk of places, keys and offsets."""
KEYS, IDS = 24, 36
"""Bytes of memory that tell a passage, and an id, from all others."""
BUFFERS = 256 * 2**20
"""Bytes of passages and vectors that are held before they are written."""


class Amount(NamedTuple):
    """What was read: counts, bytes of text and of titles, bytes of the files, and the seconds it took."""

    documents: float = 0
    passages: float = 0
    words: float = 0
    text: float = 0
    titles: float = 0
    read: float = 0
    seconds: float = 0

    def plus(self, other: "Amount", times: float = 1) -> "Amount":
        """Return the sum with another amount, taken so many times."""
        return Amount(*(a + b * times for a, b in zip(self, other, strict=True)))


class Plan(NamedTuple):
    """What a build would take: bytes on disk and in memory, seconds for reading, embedding and the search structure."""

    exact: bool
    documents: int
    passages: int
    words: float
    factory: str
    disk: int
    memory: int
    reading: float
    embedding: float
    searching: float
    rate: float
    sampled: int
    problems: int


def make_plan(
    reader: Sources,
    embedder: Embedder,
    chunking: Chunking,
    *,
    factory: Callable[[int], str] = lambda _: "Flat",
    number_bytes: int = 4,
    exact: bool = False,
) -> Plan:
    """Estimate a build from a sample of the sources, or from all of them where `exact`.

    `factory` names the FAISS factory for a number of passages, `number_bytes` is the size of a stored number. Raises
    InputError where nothing can be read.
    """
    survey = _Survey(chunking)
    whole, problems, complete = survey.all(reader) if exact else survey.sample(reader)
    if not whole.passages:
        raise InputError("there is no document to build an index from. Give a source with at least one text")
    passages, documents = round(whole.passages), round(whole.documents)
    rate = measure(embedder, survey.texts)
    name = factory(passages)
    code = bytes_per_vector(name, embedder.dimension)
    stored = embedder.dimension * number_bytes + PER_PASSAGE + (code if name != "Flat" else 0)
    memory = memory_now() + BUFFERS + passages * (KEYS + (code if name != "Flat" else 0)) + documents * IDS
    return Plan(
        exact=complete,
        documents=documents,
        passages=passages,
        words=whole.words / whole.passages,
        factory=name,
        disk=round(passages * stored + whole.text + whole.titles + documents * PER_DOCUMENT),
        memory=round(memory),
        reading=whole.seconds / (1 if exact else max(1, reader.workers)),
        embedding=passages / rate,
        searching=search_seconds(name, passages, embedder.dimension),
        rate=rate,
        sampled=survey.documents,
        problems=problems,
    )


def measure(embedder: Embedder, texts: Sequence[str], seconds: float = 1.0) -> float:
    """Return the passages that are embedded in a second, measured on ever more of these."""
    embedder.encode(texts[:8])  # the first call makes ready what later ones use
    count, rate = 16, 0.0
    while True:
        batch = list(islice(texts, count))
        started = time.perf_counter()
        embedder.encode(batch)
        spent = time.perf_counter() - started
        rate = len(batch) / max(spent, 1e-9)
        if spent >= seconds or len(batch) == len(texts):
            return rate
        count *= 2


class _Survey:
    """Reads and cuts documents and keeps some passages as they are embedded."""

    def __init__(self, chunking: Chunking) -> None:
        self._chunking = chunking
        self.texts: list[str] = []
        self.documents = 0

    def all(self, reader: Sources) -> tuple[Amount, int, bool]:
        """Read everything; return what there is."""
        started = time.perf_counter()
        amount = Amount()
        for record in reader:
            amount = amount.plus(self._amount(record))
        return amount._replace(seconds=time.perf_counter() - started), reader.skipped, True

    def sample(self, reader: Sources) -> tuple[Amount, int, bool]:
        """Read some documents of each format and scale them by the bytes of its files."""
        groups: dict[str, list[tuple[Path, int]]] = {}
        for (path, _), size in zip(reader.files, reader.sizes, strict=True):
            groups.setdefault(reader.format or format_of(path) or "", []).append((path, size))
        whole, problems, complete = Amount(), 0, True
        for files in groups.values():
            found, broken, ended = self._group(reader, files)
            total = sum(size for _, size in files)
            whole = whole.plus(found, 1 if ended else total / max(found.read, 1))
            problems, complete = problems + broken, complete and ended
        return whole, problems, complete

    def _group(self, reader: Sources, files: list[tuple[Path, int]]) -> tuple[Amount, int, bool]:
        chosen = [files[i * len(files) // min(FILES, len(files))] for i in range(min(FILES, len(files)))]
        found, problems, complete = Amount(), 0, len(chosen) == len(files)
        stop = time.perf_counter() + SECONDS
        for number, (path, size) in enumerate(chosen):
            part = Sources(path, fields=reader.fields, on_error="skip", quotes=reader.quotes, format=reader.format)
            started, limit = time.perf_counter(), max(1, DOCUMENTS // len(chosen))
            amount, count, ended = Amount(), 0, True
            for count, record in enumerate(part, 1):
                amount = amount.plus(self._amount(record))
                if part.read and (count >= limit or time.perf_counter() > stop) and part.read < size:
                    ended = False
                    break
            read = size if ended else part.read
            found = found.plus(amount._replace(read=read, seconds=time.perf_counter() - started))
            problems, complete = problems + part.skipped, complete and ended
            if time.perf_counter() > stop and number + 1 < len(chosen):
                return found, problems, False
        return found, problems, complete

    def _amount(self, record: SourceRecord) -> Amount:
        self.documents += 1
        passages = list(cut(record, self._chunking))
        kept = passages[: max(0, PASSAGES - len(self.texts))]
        titles = [titled(record.title, p.section) if self._chunking.titles else "" for p in kept]
        self.texts += [f"{title}. {p.span.text}" if title else p.span.text for title, p in zip(titles, kept, strict=True)]
        words = sum(len(p.span.text.split()) for p in passages)
        size = sum(len(p.span.text.encode()) for p in passages)
        return Amount(1, len(passages), words, size, len(record.title.encode()) + len(record.id.encode()))
