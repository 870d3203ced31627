"""The words of reading: what a file is, what a row of it is, and what may be wrong with one."""

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
"""Jobs that are queued for each process."""


class BrokenRecord(Exception):  # noqa: N818 - a finding about one record, never seen by callers
    """What is wrong with one record, and the cure."""


class SkippedRecord(NamedTuple):
    """Why a sound record is no document, in words that are counted, such as "redirect"."""

    reason: str


class Heading(NamedTuple):
    """A heading in a text: the line `text[start:end]`, and the path of headings that leads to it."""

    start: int
    end: int
    path: tuple[str, ...]


class FieldNames(NamedTuple):
    """The field names of a source; the first of each that a record has is taken."""

    text: Sequence[str] = ("text", "contents", "passage", "body", "content", "content_string", "sentences")
    title: Sequence[str] = ("full_section_title", "title", "wikipedia_title", "document_title", "article_title")
    id: Sequence[str] = ("id", "_id", "docid", "wikipedia_id", "pid")


class SourceRow(NamedTuple):
    """One row: its content, or what is wrong with it, or why it is left out; the id it gets if it has none; where it stands.

    `fields` names the fields of the content; it is that of the user only for rows of tables.
    """

    value: Mapping[str, Any] | BrokenRecord | SkippedRecord
    fallback_id: str
    where: str
    fields: FieldNames = FieldNames()
    headings: tuple[Heading, ...] = ()


class ReadJob(NamedTuple):
    """Work that gives rows and may be done in another process: a function of a module and its arguments."""

    work: Callable[..., list[SourceRow]]
    arguments: tuple[Any, ...]


class SourceFile(NamedTuple):
    """A file to read: `name` stands in the ids that are made up."""

    path: Path
    name: str
    fields: FieldNames
    quotes: bool = True
    format: str = ""


FormatReader = Callable[[SourceFile, PositionCallback], Iterator[SourceRow | ReadJob]]
"""Reads one format, row by row; raises InputError where the file as a whole cannot be read."""


def run_jobs(found: Iterable[SourceRow | ReadJob], workers: int) -> Iterator[SourceRow]:
    """Yield rows in order, those of jobs from `workers` processes where there is more than one."""
    if workers < 2:
        for item in found:
            yield from item.work(*item.arguments) if isinstance(item, ReadJob) else (item,)
        return
    # spawned, since a fork of a process with the threads of a model in it may hang
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    waiting: deque[SourceRow | Future[list[SourceRow]]] = deque()
    try:
        for item in found:
            waiting.append(pool.submit(item.work, *item.arguments) if isinstance(item, ReadJob) else item)
            if len(waiting) > QUEUED_JOBS_PER_WORKER * workers:
                yield from _rows_of_item(waiting.popleft())
        while waiting:
            yield from _rows_of_item(waiting.popleft())
    except BrokenProcessPool as error:
        raise InputError("a process that reads documents was killed, perhaps for want of memory. Use fewer workers") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _rows_of_item(item: "SourceRow | Future[list[SourceRow]]") -> Iterable[SourceRow]:
    return (item,) if isinstance(item, SourceRow) else item.result()
