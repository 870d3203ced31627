"""The first stage of a build: split documents into passages and write them as shards, in a resumable stream."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from knowhalu.errors import IndexFormatError
from knowhalu.index.chunking import chunk_document
from knowhalu.index.manifest import Chunking
from knowhalu.index.shard_file import Shard, ShardSummary, ShardWriter, sum_counts
from knowhalu.index.transaction import IndexTransaction
from knowhalu.ingest.sources import SourceRecord
from knowhalu.io.keys import KEY_TYPE, KeySet, find_keys, make_key
from knowhalu.text.sentences import Span

WINDOW_PASSAGES = 8192
"""Passages that are looked up, or sorted by length, together."""
WINDOW_CHARACTERS = 2**24
"""Characters after which a window ends, however few its passages are."""
T = TypeVar("T")
RecordsCheck = Callable[[Sequence[SourceRecord]], None]
"""Raises InputError for a document that may not be added."""


class StreamPosition(NamedTuple):
    """A position in the stream: records, passages of the last record, and a hash of all records up to it."""

    records: int = 0
    passages: int = 0
    chain: str = ""


class StreamedPassage(NamedTuple):
    """A passage of a record; the first one `opens` the document, and a record without passages yields only an opening."""

    record: SourceRecord
    opens: bool
    section: str
    span: Span | None
    key: bytes
    position: StreamPosition


class SourcesChanged(Exception):  # noqa: N818 - internal signal
    """The records differ from those of the unfinished work."""


def text_to_embed(title: str, text: str, chunking: Chunking) -> str:
    """Return the text of a passage that is embedded."""
    return f"{title}. {text}" if chunking.titles and title else text


def stream_passages(records: Iterable[SourceRecord], chunking: Chunking, after: StreamPosition) -> Iterator[StreamedPassage]:
    """Split records into passages and yield those behind the position `after`.

    Raises SourcesChanged where the records up to that position differ from those read before.
    """
    count, chain = 0, ""
    for count, record in enumerate(records, 1):  # noqa: B007
        headings = (f"{h.start} {h.path}" for h in record.headings)
        content = "\0".join((chain, record.id, record.title, record.text, *headings))
        chain = hashlib.blake2b(content.encode(errors="surrogatepass"), digest_size=16).hexdigest()
        if count < after.records:
            continue
        if count == after.records and chain != after.chain:
            raise SourcesChanged
        done, number = after.passages if count == after.records else -1, 0
        for number, (section, span) in enumerate(chunk_document(record, chunking), 1):
            if number > done:
                key = make_key(record.title, section, span.text)
                yield StreamedPassage(record, number == 1, section, span, key, StreamPosition(count, number, chain))
        if not number and done < 0:
            yield StreamedPassage(record, True, "", None, b"", StreamPosition(count, 0, chain))
    if count < after.records:
        raise SourcesChanged


def group_into_windows(stream: Iterable[T], length: Callable[[T], int]) -> Iterator[list[T]]:
    """Group passages into windows of bounded size; `length` counts the characters of one."""
    window, size = list[T](), 0
    for passage in stream:
        window.append(passage)
        size += length(passage)
        if len(window) >= WINDOW_PASSAGES or size >= WINDOW_CHARACTERS:
            yield window
            window, size = [], 0
    if window:
        yield window


class FinishedShard(NamedTuple):
    """A finished shard of the work folder."""

    path: Path
    summary: ShardSummary

    def open(self) -> Shard:
        """Open the shard."""
        return Shard(self.path, self.summary.passages, self.summary.documents, self.summary.echoes, self.summary.sha256)


class ShardBuilder:
    """Write records as shards in a work folder, resuming where an earlier process stopped.

    Texts that occur again in this build or in the shards `old` of the index are echoes. `check` raises for documents that may
    not be added. The numbers of the documents begin with `first_document`.
    """

    def __init__(
        self,
        work: IndexTransaction,
        chunking: Chunking,
        limit: int,
        *,
        old: Sequence[Shard] = (),
        check: RecordsCheck | None = None,
        first_document: int = 0,
    ) -> None:
        self._work, self._chunking, self._limit, self._first = work, chunking, limit, first_document
        self._old, self._check, self._keys = old, check, KeySet()
        self.shards = [_open_finished_shard(work, i, s["shard"]) for i, s in enumerate(s for s in work.steps if "shard" in s)]
        for shard in self.shards:
            self._keys.load(shard.open().keys)
        last_step = work.steps[-1] if work.steps else {}
        self._after, self._is_complete = StreamPosition(*last_step.get("position", ())), "end" in last_step
        self._writer = self._begin()

    def run(self, records: Iterable[SourceRecord], show: Callable[[int, int, int, int], None]) -> list[FinishedShard]:
        """Read all records; raises SourcesChanged where they differ from those of the unfinished work.

        `show` gets documents, passages, duplicates and documents read so far.
        """
        position = self._after
        stream = stream_passages(records, self._chunking, self._after)
        for window in group_into_windows(stream, lambda passage: len(passage.span.text) if passage.span else 0):
            if self._is_complete:
                raise SourcesChanged
            if self._check is not None:
                self._check([p.record for p in window if p.opens])
            is_new = iter(self._are_new([p.key for p in window if p.span]))
            for passage in window:
                position = passage.position
                self._add(passage, is_new)
                if self._writer.full:
                    self._close(position)
            passages, documents, echoes = (a + b for a, b in zip(self._counts(), self._writer.counts, strict=True))
            show(documents, passages, echoes, documents)
        if not self._writer.empty:
            self._close(position)
        if not self._is_complete:
            self._step({"end": True, "position": position})
        return self.shards

    def _are_new(self, keys: list[bytes]) -> list[bool]:
        """Add keys and return for each whether it is new; the old shards are searched once for all of them."""
        wanted = np.sort(np.array(keys, KEY_TYPE))
        known = {s.keys[i : i + 1].tobytes() for s in self._old for i in find_keys(s.keys, wanted)}
        return [key not in known and self._keys.add(key) for key in keys]

    def _counts(self) -> tuple[int, int, int]:
        return sum_counts(shard.summary for shard in self.shards)

    def _begin(self) -> ShardWriter:
        return ShardWriter(self._first + self._counts()[1], self._limit)

    def _add(self, passage: StreamedPassage, is_new: Iterator[bool]) -> None:
        record, span, number = passage.record, passage.span, passage.position.passages
        if passage.opens:
            self._writer.document(record.id, record.title)
        if span is None:
            return
        if next(is_new):
            self._writer.passage(record.id, number, span.start, passage.key, span.text, passage.section)
        else:
            self._writer.echo(record.id, number, span.start, passage.key)

    def _close(self, position: StreamPosition) -> None:
        path = self._work.folder / f"{len(self.shards):05d}.passages"
        summary = self._writer.finish(path)
        self.shards.append(FinishedShard(path, summary))
        self._writer = self._begin()
        self._step({"shard": [*summary[:3], f"{summary.content:x}", *summary[4:]], "position": position})

    def _step(self, step: dict[str, Any]) -> None:
        self._work.note(step)
        self._work.steps.append(step)


def _open_finished_shard(work: IndexTransaction, number: int, shard: list[Any]) -> FinishedShard:
    passages, documents, echoes, content, size, sha256 = shard
    summary = ShardSummary(passages, documents, echoes, int(content, 16), size, sha256)
    finished = FinishedShard(work.folder / f"{number:05d}.passages", summary)
    if not finished.path.is_file():
        raise IndexFormatError(f"{finished.path}: is missing from the unfinished work. Use --force to start over")
    return finished
