"""Cutting documents into passages, as a stream that can be taken up again where it was left."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from knowhalu.retrieval.chunking import cut
from knowhalu.retrieval.keys import key_of
from knowhalu.retrieval.manifest import Chunking
from knowhalu.retrieval.sources import SourceRecord
from knowhalu.text import Span

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
