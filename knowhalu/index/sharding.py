"""The first stage of a build: documents are cut into passages and written as shards, as a resumable stream."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from knowhalu.errors import IndexFormatError
from knowhalu.index.chunking import cut
from knowhalu.index.journal import Work
from knowhalu.index.manifest import Chunking
from knowhalu.index.progress import Meter
from knowhalu.index.shards import Shard, ShardWriter, Written
from knowhalu.ingest.sources import SourceRecord
from knowhalu.io.keys import KEY, KeySet, find, key_of
from knowhalu.text.sentences import Span

WINDOW = 8192
"""Pieces that are looked up together."""
CHARACTERS = 2**24
"""Characters after which a window ends, however few its pieces are."""


class Position(NamedTuple):
    """A place in the stream: so many records, so many pieces of the last one, and a hash over all records up to it."""

    records: int = 0
    pieces: int = 0
    chain: str = ""


class Piece(NamedTuple):
    """A passage of a record; the first piece of a record `opens` its document, and a record without text has only that."""

    record: SourceRecord
    opens: bool
    number: int
    section: str
    span: Span | None
    key: bytes
    position: Position


class SourcesChanged(Exception):  # noqa: N818 - tells the builder, never a caller
    """The records are not those that were read before."""


def embedded(title: str, text: str, chunking: Chunking) -> str:
    """Return what is embedded of a passage."""
    return f"{title}. {text}" if chunking.titles and title else text


def pieces(records: Iterable[SourceRecord], chunking: Chunking, after: Position) -> Iterator[Piece]:
    """Cut records into pieces, leaving out those up to `after`.

    Raises SourcesChanged where the records up to there are others than they were.
    """
    count, chain = 0, ""
    for count, record in enumerate(records, 1):  # noqa: B007
        chain = _linked(chain, record)
        if count < after.records:
            continue
        if count == after.records and chain != after.chain:
            raise SourcesChanged
        done = after.pieces if count == after.records else -1
        yield from _pieces(record, chunking, count, chain, done)
    if count < after.records:
        raise SourcesChanged


def _pieces(record: SourceRecord, chunking: Chunking, count: int, chain: str, done: int) -> Iterator[Piece]:
    number = 0
    for number, (section, span) in enumerate(cut(record, chunking), 1):
        if number > done:
            key = key_of(record.title, section, span.text)
            yield Piece(record, number == 1, number, section, span, key, Position(count, number, chain))
    if not number and done < 0:
        yield Piece(record, True, 0, "", None, b"", Position(count, 0, chain))


def _linked(chain: str, record: SourceRecord) -> str:
    headings = (f"{h.start} {h.path}" for h in record.headings)
    parts = "\0".join((chain, record.id, record.title, record.text, *headings))
    return hashlib.blake2b(parts.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def in_windows(stream: Iterator[Piece]) -> Iterator[list[Piece]]:
    """Gather pieces into windows of bounded size."""
    window, size = list[Piece](), 0
    for piece in stream:
        window.append(piece)
        size += len(piece.span.text) if piece.span else 0
        if len(window) >= WINDOW or size >= CHARACTERS:
            yield window
            window, size = [], 0
    if window:
        yield window


class Cut(NamedTuple):
    """A finished shard of the work folder."""

    path: Path
    made: Written

    def open(self) -> Shard:
        """Open the shard."""
        return Shard(self.path, self.made.passages, self.made.documents, self.made.echoes, self.made.sha256)


class Seen(Protocol):
    """Tells which texts are new, and which documents may come."""

    def check(self, records: Sequence[SourceRecord]) -> None:
        """Raise InputError for a document that may not come in."""

    def load(self, shard: Shard) -> None:
        """Take in the passages of a shard that was finished before."""

    def new(self, keys: list[bytes]) -> list[bool]:
        """Take in keys and tell for each whether it is new."""


class SeenNothing:
    """The texts of this work alone."""

    def __init__(self) -> None:
        self._keys = KeySet()

    def check(self, records: Sequence[SourceRecord]) -> None:
        """Let every document in."""

    def load(self, shard: Shard) -> None:
        """Take in the passages of a shard that was finished before."""
        self._keys.load(shard.keys)

    def new(self, keys: list[bytes]) -> list[bool]:
        """Take in keys and tell for each whether it is new."""
        return [self._keys.add(key) for key in keys]


class SeenIndex(SeenNothing):
    """The texts of this work and of the shards of an index, which are looked through anew for each window."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        super().__init__()
        self._shards = shards

    def new(self, keys: list[bytes]) -> list[bool]:
        """Take in keys and tell for each whether it is new."""
        wanted = np.sort(np.array(keys, KEY))
        known = {s.keys[i : i + 1].tobytes() for s in self._shards for i in find(s.keys, wanted)}
        return [key not in known and self._keys.add(key) for key in keys]


class Cutter:
    """Cut records into shards in a work folder, going on where an earlier process stopped."""

    def __init__(self, work: Work, chunking: Chunking, *, limit: int, seen: Seen, first_document: int = 0) -> None:
        self._work, self._chunking, self._limit, self._seen, self._first = work, chunking, limit, seen, first_document
        self.shards = [_known(work, i, s["shard"]) for i, s in enumerate(s for s in work.steps if "shard" in s)]
        for shard in self.shards:
            seen.load(shard.open())
        last = work.steps[-1] if work.steps else {}
        self._after = Position(*last.get("position", ()))
        self._writer = self._begin()

    def run(self, records: Iterable[SourceRecord], meter: Meter) -> list[Cut]:
        """Read all records; raises SourcesChanged where they are not those that were read before."""
        position = self._after
        for window in in_windows(pieces(records, self._chunking, self._after)):
            if self._work.steps and "end" in self._work.steps[-1]:
                raise SourcesChanged
            self._seen.check([p.record for p in window if p.opens])
            new = iter(self._seen.new([p.key for p in window if p.span]))
            for piece in window:
                position = piece.position
                self._take(piece, new)
                if self._writer.full:
                    self._close(position)
            passages, documents, echoes = (a + b for a, b in zip(self._counts(), self._writer.counts, strict=True))
            meter.show(documents, passages, echoes, documents)
        if not self._writer.empty:
            self._close(position)
        if not (self._work.steps and "end" in self._work.steps[-1]):
            self._step({"end": True, "position": position})
        return self.shards

    def _counts(self) -> tuple[int, int, int]:
        made = [shard.made for shard in self.shards]
        return sum(m.passages for m in made), sum(m.documents for m in made), sum(m.echoes for m in made)

    def _begin(self) -> ShardWriter:
        return ShardWriter(self._first + self._counts()[1], self._limit)

    def _take(self, piece: Piece, new: Any) -> None:
        record, span = piece.record, piece.span
        if piece.opens:
            self._writer.document(record.id, record.title)
        if span is None:
            return
        if next(new):
            self._writer.passage(record.id, piece.number, span.start, piece.key, span.text, piece.section)
        else:
            self._writer.echo(record.id, piece.number, span.start, piece.key)

    def _close(self, position: Position) -> None:
        path = self._work.folder / f"{len(self.shards):05d}.passages"
        made = self._writer.finish(path)
        self.shards.append(Cut(path, made))
        self._writer = self._begin()
        self._step({"shard": [*made[:3], f"{made.content:x}", *made[4:]], "position": position})

    def _step(self, step: dict[str, Any]) -> None:
        self._work.note(step)
        self._work.steps.append(step)


def _known(work: Work, number: int, shard: list[Any]) -> Cut:
    passages, documents, echoes, content, size, sha256 = shard
    made = Written(passages, documents, echoes, int(content, 16), size, sha256)
    cut = Cut(work.folder / f"{number:05d}.passages", made)
    if not cut.path.is_file():
        raise IndexFormatError(f"{cut.path}: is missing from the unfinished work. Force the command to begin anew")
    return cut
