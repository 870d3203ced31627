"""Building an index: records to passages, passages to vectors, all streamed, and the folder put in place at the very end."""

import hashlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import knowhalu
from knowhalu.errors import IndexFormatError, InputError
from knowhalu.retrieval.base import Embedder
from knowhalu.retrieval.chunking import cut, titled
from knowhalu.retrieval.manifest import MANIFEST, VECTORS, Chunking, Counts, EmbedderEntry, Manifest, hash_file
from knowhalu.retrieval.sources import SourceRecord
from knowhalu.retrieval.store import FILES, StoreWriter
from knowhalu.retrieval.vectors import VectorWriter
from knowhalu.text import Span

BATCH = 512
"""Passages embedded at once: enough to sort them by length, few enough to hold."""


class Progress(NamedTuple):
    """How far a build is."""

    documents: int
    passages: int
    duplicates: int


class _Piece(NamedTuple):
    record: SourceRecord
    title: str
    number: int
    span: Span


def build_index(
    records: Iterable[SourceRecord],
    out: Path,
    embedder: Embedder,
    *,
    chunking: Chunking | None = None,
    force: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Manifest:
    """Build an index folder from documents and return its manifest.

    Everything is written to a hidden folder beside `out`, which takes its name when it is complete: a build that is
    killed leaves no half index. Raises IndexFormatError where `out` exists (unless `force`, which replaces an index and
    clears away what killed builds left), InputError where there is no document.
    """
    chunking, out = chunking or Chunking(), Path(out).resolve()
    _check_target(out, force)
    out.parent.mkdir(parents=True, exist_ok=True)
    work = _beside(out)
    try:
        counts = _write(records, work, embedder, chunking, progress or (lambda _: None))
        manifest = _describe(work, embedder, chunking, counts)
        _publish(work, out, force)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    return manifest


def _check_target(out: Path, force: bool) -> None:
    if not out.exists():
        return
    if not force:
        raise IndexFormatError(f"{out}: exists already. Give another folder, or force the build to replace it")
    if not out.is_dir() or (any(out.iterdir()) and not (out / MANIFEST).is_file()):
        raise IndexFormatError(f"{out}: is not an index, so it is not replaced. Give another folder")


def _beside(out: Path) -> Path:
    work = out.with_name(f".{out.name}.building-{uuid.uuid4().hex[:12]}")
    work.mkdir()
    return work


def _write(
    records: Iterable[SourceRecord], work: Path, embedder: Embedder, chunking: Chunking, progress: Callable[[Progress], None]
) -> Counts:
    pieces = _Pieces(records, chunking)
    stream = iter(pieces)
    with StoreWriter(work) as store, VectorWriter(work / VECTORS, embedder.dimension) as vectors:
        last: tuple[SourceRecord, str] | None = None
        document = -1
        while batch := list(islice(stream, BATCH)):
            for piece in batch:
                if last is None or piece.record is not last[0] or piece.title != last[1]:
                    last, document = (piece.record, piece.title), store.add_document(piece.record.id, piece.title)
                store.add(piece.span.text, document, piece.number, piece.span.start)
            vectors.add(embedder.encode([_embedded(p, chunking) for p in batch]))
            progress(Progress(pieces.documents, store.passages, pieces.duplicates))
    if not store.passages:
        raise InputError("there is no document to build an index from. Give a source with at least one text")
    return Counts(documents=store.documents, passages=store.passages, duplicates=pieces.duplicates)


def _embedded(piece: _Piece, chunking: Chunking) -> str:
    return f"{piece.title}. {piece.span.text}" if chunking.titles and piece.title else piece.span.text


class _Pieces:
    """Cut records into passages; one that was there before, title and text alike, is counted and dropped."""

    def __init__(self, records: Iterable[SourceRecord], chunking: Chunking) -> None:
        self._records, self._chunking = records, chunking
        self._seen: set[bytes] = set()
        self.documents = self.duplicates = 0

    def __iter__(self) -> Iterator[_Piece]:
        for record in self._records:
            self.documents += 1
            for number, (section, span) in enumerate(cut(record, self._chunking), 1):
                title = titled(record.title, section)
                key = hashlib.blake2b(f"{title}\0{span.text}".encode(), digest_size=16).digest()
                if key in self._seen:
                    self.duplicates += 1
                    continue
                self._seen.add(key)
                yield _Piece(record, title, number, span)


def _describe(work: Path, embedder: Embedder, chunking: Chunking, counts: Counts) -> Manifest:
    manifest = Manifest(
        created_by=f"knowhalu {knowhalu.__version__}",
        embedder=EmbedderEntry(name=embedder.name, fingerprint=embedder.fingerprint, dimension=embedder.dimension),
        counts=counts,
        chunking=chunking,
        files={name: hash_file(work / name) for name in (*FILES, VECTORS)},
    ).sealed()
    (work / MANIFEST).write_bytes(manifest.to_bytes())
    return manifest


def _publish(work: Path, out: Path, force: bool) -> None:
    """Bring all bytes to disk, then give the folder its name; an old index steps aside first."""
    for path in work.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    if out.exists():
        _check_target(out, force)
        os.replace(out, _beside(out))
    os.replace(work, out)
    if force:
        for left in out.parent.glob(f".{out.name}.building-*"):
            shutil.rmtree(left, ignore_errors=True)
