"""Estimate the disk, memory and time of a build: read, split and embed a sample of the sources, and extrapolate."""

import re
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from knowhalu.errors import InputError
from knowhalu.index.build import peak_memory
from knowhalu.index.chunking import chunk_document, passage_title
from knowhalu.index.faiss_file import make_faiss_index
from knowhalu.index.manifest import Chunking
from knowhalu.index.protocols import Embedder
from knowhalu.index.sharding import text_to_embed
from knowhalu.ingest.sources import DocumentReader, SourceRecord, detect_format

MAX_SAMPLED_DOCUMENTS, MAX_SAMPLED_FILES, MAX_SAMPLING_SECONDS = 2000, 20, 10.0
"""Limits of the sample of each format."""
MAX_TIMED_PASSAGES = 2048
"""Passages for measuring the speed of the embedder."""
BYTES_PER_PASSAGE, BYTES_PER_DOCUMENT = 64, 48
"""Bytes of places, keys and offsets on disk."""
MEMORY_PER_PASSAGE, MEMORY_PER_DOCUMENT = 24, 36
"""Bytes of memory of the key of a passage and of a document."""
UNKNOWN_MEMORY = 2**30
"""Bytes assumed for the process with the embedder where the system does not report its memory."""
BUFFER_BYTES = 256 * 2**20
"""Bytes of passages and vectors in memory before they are written."""


class SourceAmount(NamedTuple):
    """An amount of input: counts, bytes of text and of titles, bytes of the files, and seconds of reading."""

    documents: float = 0
    passages: float = 0
    words: float = 0
    text: float = 0
    titles: float = 0
    read: float = 0
    seconds: float = 0

    def plus(self, other: "SourceAmount", times: float = 1) -> "SourceAmount":
        """Return the sum with another amount, multiplied by `times`."""
        return SourceAmount(*(a + b * times for a, b in zip(self, other, strict=True)))


class BuildPlan(NamedTuple):
    """An estimate: bytes on disk and in memory, seconds for reading, embedding and the search structure."""

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


def plan_build(
    reader: DocumentReader,
    embedder: Embedder,
    chunking: Chunking,
    *,
    factory: Callable[[int], str] = lambda _: "Flat",
    number_bytes: int = 4,
    exact: bool = False,
) -> BuildPlan:
    """Estimate a build from a sample of the sources, or from all of them with `exact`.

    `factory` returns the FAISS factory for a number of passages, `number_bytes` is the size of a stored number. Raises
    InputError where there is no document.
    """
    survey = _SourceSurvey(chunking)
    whole, problems, complete = survey.all(reader) if exact else survey.sample(reader)
    if not whole.passages:
        raise InputError("the sources contain no document. Give a source with at least one text")
    passages, documents = round(whole.passages), round(whole.documents)
    rate = measure_embedding_rate(embedder, survey.texts)
    name = factory(passages)
    code = 0 if name == "Flat" else bytes_per_vector(name, embedder.dimension)
    stored = embedder.dimension * number_bytes + BYTES_PER_PASSAGE + code
    memory = (peak_memory() or UNKNOWN_MEMORY) + BUFFER_BYTES
    memory += passages * (MEMORY_PER_PASSAGE + code) + documents * MEMORY_PER_DOCUMENT
    return BuildPlan(
        exact=complete,
        documents=documents,
        passages=passages,
        words=whole.words / whole.passages,
        factory=name,
        disk=round(passages * stored + whole.text + whole.titles + documents * BYTES_PER_DOCUMENT),
        memory=memory,
        reading=whole.seconds / (1 if exact else max(1, reader.workers)),
        embedding=passages / rate,
        searching=estimate_faiss_seconds(name, passages, embedder.dimension),
        rate=rate,
        sampled=survey.documents,
        problems=problems,
    )


def measure_embedding_rate(embedder: Embedder, texts: Sequence[str], seconds: float = 1.0) -> float:
    """Return the number of passages embedded in a second, measured on batches of growing size."""
    embedder.encode(texts[:8])  # the first call initializes the model
    count, rate = 16, 0.0
    while True:
        batch = list(islice(texts, count))
        started = time.perf_counter()
        embedder.encode(batch)
        elapsed = time.perf_counter() - started
        rate = len(batch) / max(elapsed, 1e-9)
        if elapsed >= seconds or len(batch) == len(texts):
            return rate
        count *= 2


class _SourceSurvey:
    """Counts documents and their passages, and keeps some texts for measuring the embedder."""

    def __init__(self, chunking: Chunking) -> None:
        self._chunking = chunking
        self.texts: list[str] = []
        self.documents = 0

    def all(self, reader: DocumentReader) -> tuple[SourceAmount, int, bool]:
        """Read everything; return the amount, the number of skipped records, and True: the count is complete."""
        started = time.perf_counter()
        amount = SourceAmount()
        for record in reader:
            amount = amount.plus(self._amount(record))
        return amount._replace(seconds=time.perf_counter() - started), reader.skipped, True

    def sample(self, reader: DocumentReader) -> tuple[SourceAmount, int, bool]:
        """Read some documents of each format and scale them by the size of its files; return the same as `all`."""
        groups: dict[str, list[tuple[Path, int]]] = {}
        for (path, _), size in zip(reader.files, reader.sizes, strict=True):
            groups.setdefault(reader.format or detect_format(path) or "", []).append((path, size))
        whole, problems, complete = SourceAmount(), 0, True
        for files in groups.values():
            amount, skipped, is_whole = self._group(reader, files)
            total = sum(size for _, size in files)
            whole = whole.plus(amount, 1 if is_whole else total / max(amount.read, 1))
            problems, complete = problems + skipped, complete and is_whole
        return whole, problems, complete

    def _group(self, reader: DocumentReader, files: list[tuple[Path, int]]) -> tuple[SourceAmount, int, bool]:
        chosen = [files[i * len(files) // min(MAX_SAMPLED_FILES, len(files))] for i in range(min(MAX_SAMPLED_FILES, len(files)))]
        total, problems, complete = SourceAmount(), 0, len(chosen) == len(files)
        stop = time.perf_counter() + MAX_SAMPLING_SECONDS
        for number, (path, size) in enumerate(chosen):
            sample = DocumentReader(path, fields=reader.fields, on_error="skip", quotes=reader.quotes, format=reader.format)
            started, limit = time.perf_counter(), max(1, MAX_SAMPLED_DOCUMENTS // len(chosen))
            amount, count, is_whole = SourceAmount(), 0, True
            for count, record in enumerate(sample, 1):
                amount = amount.plus(self._amount(record))
                if sample.read and (count >= limit or time.perf_counter() > stop) and sample.read < size:
                    is_whole = False
                    break
            read = size if is_whole else sample.read
            total = total.plus(amount._replace(read=read, seconds=time.perf_counter() - started))
            problems, complete = problems + sample.skipped, complete and is_whole
            if time.perf_counter() > stop and number + 1 < len(chosen):
                return total, problems, False
        return total, problems, complete

    def _amount(self, record: SourceRecord) -> SourceAmount:
        self.documents += 1
        passages = list(chunk_document(record, self._chunking))
        timed = passages[: max(0, MAX_TIMED_PASSAGES - len(self.texts))]
        self.texts += [text_to_embed(passage_title(record.title, p.section), p.span.text, self._chunking) for p in timed]
        words = sum(len(p.span.text.split()) for p in passages)
        size = sum(len(p.span.text.encode()) for p in passages)
        return SourceAmount(1, len(passages), words, size, len(record.title.encode()) + len(record.id.encode()))


KMEANS_ITERATIONS, KMEANS_VECTORS_PER_LIST = 10, 40
"""Iterations of k-means, and training vectors for each list."""
HNSW_VISITED_NODES = 40
"""Nodes that HNSW visits for each node that it adds."""
PQ_CODEWORDS = 256
SCATTERED_ACCESS_FACTOR = 20
"""Slowdown of distances to scattered vectors against a matrix product."""


def _list_and_neighbour_counts(factory: str) -> tuple[int, int]:
    """Return the number of lists of an IVF and of links of a node of HNSW, each 0 for another factory."""
    if "IVF" in factory:
        lists = re.search(r"IVF(\d+)", factory)
        return int(lists[1]) if lists else 0, 0
    links = re.search(r"^(?:.*,)?HNSW(\d*)", factory)
    return 0, int(links[1] or 32) if links else 0


def bytes_per_vector(factory: str, dimension: int) -> int:
    """Return the bytes of a vector in an index of this factory, including its id and its links."""
    import faiss

    index = make_faiss_index(factory, dimension)
    inner = faiss.downcast_index(index.index) if isinstance(index, faiss.IndexPreTransform) else index
    codes = inner.storage if isinstance(inner, faiss.IndexHNSW) else inner
    lists, neighbours = _list_and_neighbour_counts(factory)
    return int(codes.sa_code_size()) + (8 if lists else 0) + 8 * neighbours


def estimate_faiss_seconds(factory: str, passages: int, dimension: int) -> float:
    """Estimate the seconds to train and fill an index of this factory; 0 for exact search."""
    if factory == "Flat":
        return 0.0
    lists, neighbours = _list_and_neighbour_counts(factory)
    near = HNSW_VISITED_NODES * 2 * neighbours * SCATTERED_ACCESS_FACTOR
    coded = PQ_CODEWORDS if "PQ" in factory else 0
    trained = KMEANS_ITERATIONS * min(passages, KMEANS_VECTORS_PER_LIST * lists) * lists
    return 2 * dimension * (trained + passages * (lists + near + coded)) / _measure_flops()


def _measure_flops(size: int = 1024) -> float:
    """Return the floating-point operations in a second of a matrix product."""
    a = np.ones((size, size), np.float32)
    a @ a
    started = time.perf_counter()
    a @ a
    return 2 * size**3 / (time.perf_counter() - started)
