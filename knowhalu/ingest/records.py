"""The types of reading sources: files, rows and their problems; and running read jobs in processes."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from knowhalu.errors import InputError
from knowhalu.io.compression import PositionCallback

BYTE_ORDER_MARK = "\ufeff"
QUEUED_JOBS_PER_WORKER = 3
"""Jobs queued for each process."""


class BrokenRecord(Exception):  # noqa: N818 - a problem of one record, not raised to callers
    """The problem of one record, and the remedy."""


class SkippedRecord(NamedTuple):
    """The reason why a valid record is not a document, such as "redirect"; reasons are counted."""

    reason: str


class Heading(NamedTuple):
    """A heading in a text: the line `text[start:end]`, and the path of headings down to it."""

    start: int
    end: int
    path: tuple[str, ...]


class FieldNames(NamedTuple):
    """The field names of a source; of each tuple, the first that a record has is used."""

    text: Sequence[str] = ("text", "contents", "passage", "body", "content", "content_string", "sentences")
    title: Sequence[str] = ("full_section_title", "title", "wikipedia_title", "document_title", "article_title")
    id: Sequence[str] = ("id", "_id", "docid", "wikipedia_id", "pid")


class SourceRow(NamedTuple):
    """One row: its content, or its problem, or the reason for skipping it; the id if it has none of its own; and its place.

    `fields` are the field names of the content; those of the user apply only to rows of tables.
    """

    value: Mapping[str, Any] | BrokenRecord | SkippedRecord
    fallback_id: str
    where: str
    fields: FieldNames = FieldNames()
    headings: tuple[Heading, ...] = ()


class ReadJob(NamedTuple):
    """A function of a module and its arguments, which returns rows and may run in another process."""

    work: Callable[..., list[SourceRow]]
    arguments: tuple[Any, ...]


class SourceFile(NamedTuple):
    """A file to read: `name` is used in generated ids."""

    path: Path
    name: str
    fields: FieldNames
    quotes: bool = True
    format: str = ""

    def row(self, value: Mapping[str, Any] | BrokenRecord | SkippedRecord, headings: tuple[Heading, ...] = ()) -> SourceRow:
        """Return a row whose place is the file as a whole."""
        return SourceRow(value, self.name, str(self.path), headings=headings)


FormatReader = Callable[[SourceFile, PositionCallback], Iterator[SourceRow | ReadJob]]
"""Reads one format, row by row; raises InputError where the file cannot be read at all."""


def run_jobs(items: Iterable[SourceRow | ReadJob], workers: int) -> Iterator[SourceRow]:
    """Yield rows in order and in bounded memory; with several `workers`, jobs run in that many processes."""
    if workers < 2:
        for item in items:
            yield from item.work(*item.arguments) if isinstance(item, ReadJob) else (item,)
        return
    # spawned, since forking a process with the threads of a model may hang
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    waiting: deque[SourceRow | Future[list[SourceRow]]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(item.work, *item.arguments) if isinstance(item, ReadJob) else item)
            if len(waiting) > QUEUED_JOBS_PER_WORKER * workers:
                yield from _rows_of_item(waiting.popleft())
        while waiting:
            yield from _rows_of_item(waiting.popleft())
    except BrokenProcessPool as error:
        raise InputError("a process that reads documents was killed, possibly for lack of memory. Use fewer workers") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _rows_of_item(item: "SourceRow | Future[list[SourceRow]]") -> Iterable[SourceRow]:
    return (item,) if isinstance(item, SourceRow) else item.result()
