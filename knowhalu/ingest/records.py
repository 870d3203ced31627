"""The words of reading: what a file is, what a row of it is, and what may be wrong with one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from knowhalu.io.compression import PositionCallback

BYTE_ORDER_MARK = "\ufeff"


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
