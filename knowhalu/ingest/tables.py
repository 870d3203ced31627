"""Files with a record per line or row: JSON lines, TSV, CSV and Parquet.

Known by their field names are the collections of DPR (`psgs_w100.tsv`), ColBERT, WikiChat, HotpotQA and 2WikiMultihopQA, BEIR,
and KILT; their lists of sentences are joined into one text.
"""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from knowhalu.errors import InputError
from knowhalu.ingest.records import BYTE_ORDER_MARK, BrokenRecord, FieldNames, Heading, SourceFile, SourceRow
from knowhalu.io import compression
from knowhalu.io.compression import PositionCallback, read_file_lines
from knowhalu.io.rows import import_pyarrow

COLBERT_FORMAT = "colbert"
PRESET_FIELDS = {
    "dpr": FieldNames(("text",), ("title",), ("id",)),
    "colbert": FieldNames(("passage", "text"), ("title",), ("pid", "id")),
    "wikichat": FieldNames(("content", "content_string", "passage", "text"),
                       ("full_section_title", "document_title", "article_title", "title"), ("id", "pid")),
    "hotpotqa": FieldNames(("text", "sentences"), ("title",), ("id",)),
    "beir": FieldNames(("text",), ("title",), ("_id", "id")),
    "kilt": FieldNames(("text",), ("wikipedia_title",), ("wikipedia_id", "_id")),
}  # fmt: skip
"""The field names of each collection."""
_LINK = re.compile(r"</?a\b[^<>]*>")
_KILT_SECTION = "Section::::"
_KILT_BULLET = re.compile(r"^BULLET::::-?\s*")


def read_jsonl(file: SourceFile, note: PositionCallback) -> Iterator[SourceRow]:
    """Read a JSON object from each line."""
    for number, line in read_file_lines(file.path, note):
        if line is None or line.strip():
            yield _row(file, number, _parse(line, first=number == 1))


def _row(file: SourceFile, number: int, value: Mapping[str, Any] | BrokenRecord) -> SourceRow:
    name, where = f"{file.name}:{number}", f"{file.path}:{number}"
    row = SourceRow(value, name, where, file.fields)
    return row if isinstance(value, BrokenRecord) else _join_text_lists(row, file)


def _parse(line: bytes | None, *, first: bool) -> Mapping[str, Any] | BrokenRecord:
    if line is None:
        return BrokenRecord(f"the line is longer than {compression.MAX_RECORD_BYTES >> 20} MiB; split the document")
    try:
        text = line.decode()
        value = json.loads(text.removeprefix(BYTE_ORDER_MARK) if first else text)
    except UnicodeDecodeError as error:
        return BrokenRecord(f"not UTF-8 ({error.reason} at byte {error.start + 1} of the line); convert the file to UTF-8")
    except (ValueError, RecursionError) as error:
        return BrokenRecord(f"not JSON ({error}); each line must be a JSON object")
    return value if isinstance(value, dict) else BrokenRecord(f"a JSON {type(value).__name__}, not an object with fields")


def read_table(file: SourceFile, note: PositionCallback) -> Iterator[SourceRow]:
    """Read the rows of a TSV or CSV file; its first line is the header, except in a collection of ColBERT."""
    csv.field_size_limit(compression.MAX_RECORD_BYTES)
    # surrogateescape passes invalid UTF-8, and the marker of a line over the limit, on to the check of their row
    decoded = (
        (n, (b"\xff" if line is None else line).decode(errors="surrogateescape")) for n, line in read_file_lines(file.path, note)
    )
    content = (line.removeprefix(BYTE_ORDER_MARK) if n == 1 else line for n, line in decoded)
    if (first := next(content, None)) is None:
        return
    delimiter = "," if file.format == "csv" else "\t"
    header = _default_columns(first.rstrip("\r\n").split("\t"), file.fields) if delimiter == "\t" else None
    raw = header is not None or file.format == COLBERT_FORMAT or not file.quotes
    reader = csv.reader(
        chain([first], content), delimiter=delimiter, strict=True, quoting=csv.QUOTE_NONE if raw else csv.QUOTE_MINIMAL
    )
    while True:
        start = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            hint = "if quotation marks are plain characters in this file, read it with quotes off"
            yield _row(file, start, BrokenRecord(f"lines {start} to {reader.line_num}: {error}; {hint}"))
            continue
        if cells is None:
            return
        if header is None:
            header = [c.strip() for c in cells]
        elif cells and len(cells) == len(header):
            yield _row(file, start, dict(zip(header, cells, strict=True)))
        elif cells:
            yield _row(file, start, BrokenRecord(f"{len(cells)} columns instead of {len(header)} ({', '.join(header)})"))


def _default_columns(cells: list[str], fields: FieldNames) -> list[str] | None:
    """Return the columns of a collection without a header: a number, the passage, and optionally a title."""
    named = {c.strip() for c in cells} & {name for names in fields for name in names}
    return ["pid", "passage", "title"][: len(cells)] if not named and cells[0].isdecimal() and len(cells) in {2, 3} else None


def read_parquet(file: SourceFile, note: PositionCallback) -> Iterator[SourceRow]:
    """Read the rows of a Parquet file, without columns that are not needed."""
    pa = import_pyarrow()
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(file.path, memory_map=True) as table:
            number, size = 0, file.path.stat().st_size
            names = set(table.schema_arrow.names)
            # other columns may be large, such as vectors
            columns = [n for names_of in file.fields for n in names_of if n in names] if names & set(file.fields.text) else None
            for batch in table.iter_batches(batch_size=256, columns=columns):
                for value in batch.to_pylist():
                    number += 1
                    yield _row(file, number, value)
                note(size * number // max(table.metadata.num_rows, 1))
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise InputError(f"{file.path}: cannot be read as Parquet ({error}). Write the file again") from error


def _join_text_lists(row: SourceRow, file: SourceFile) -> SourceRow:
    """Join the text of a row where it is a list of sentences or paragraphs."""
    value: Any = row.value
    field = next((n for n in row.fields.text if value.get(n) is not None), "")
    content = value.get(field)
    if isinstance(content, list):
        try:
            if "wikipedia_title" in value:
                text, headings = _join_kilt_paragraphs(_check_strings(content), value["wikipedia_title"])
                return row._replace(value={**value, field: text}, headings=headings)
            paragraphs = [_join_sentences(_check_strings(p)) if isinstance(p, list) else p for p in content]
            nested = any(isinstance(p, list) for p in content)
            text = "\n".join(_check_strings(paragraphs)) if nested else _join_sentences(_check_strings(content))
            return row._replace(value={**value, field: _LINK.sub("", text)})
        except BrokenRecord as problem:
            return row._replace(value=problem)
    if file.format == "wikichat" and isinstance(content, str) and not any(value.get(n) for n in row.fields.title):
        title, mark, rest = content.partition(" | ")
        return row._replace(value={**value, row.fields.title[0]: title, field: rest}) if mark else row
    return row


def _check_strings(items: Iterable[Any]) -> list[str]:
    strings = list(items)
    if types := [type(s).__name__ for s in strings if not isinstance(s, str)]:
        raise BrokenRecord(f"the text is a list that contains {types[0]}, not only strings")
    return strings


def _join_sentences(sentences: list[str]) -> str:
    """Join sentences, with a space where neither side has one."""
    parts: list[str] = []
    for sentence in filter(None, sentences):
        if parts and not parts[-1][-1].isspace() and not sentence[0].isspace():
            parts.append(" ")
        parts.append(sentence)
    return "".join(parts)


def _join_kilt_paragraphs(paragraphs: list[str], title: Any) -> tuple[str, tuple[Heading, ...]]:
    """Join the paragraphs of an article, without a repeated title and with its section marks as headings."""
    parts: list[str] = []
    headings, at = [], 0
    for number, paragraph in enumerate(paragraphs):
        line = _KILT_BULLET.sub("", paragraph.strip())
        if number == 0 and line == title:
            continue
        if line.startswith(_KILT_SECTION):
            path = tuple(p.strip() for p in line.removeprefix(_KILT_SECTION).removesuffix(".").split(":") if p.strip())
            line = path[-1] if path else ""
            headings.append(Heading(at, at + len(line), path))
        parts.append(line + "\n")
        at += len(parts[-1])
    return "".join(parts), tuple(headings)
