"""Files with a record in each line or row: JSON lines, TSV, CSV and Parquet."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from knowhalu.errors import InputError, MissingExtra
from knowhalu.ingest.presets import COLLECTION, shaped
from knowhalu.ingest.records import BOM, Broken, Fields, File, Row
from knowhalu.io import compression
from knowhalu.io.compression import Note, lines


def read_jsonl(file: File, note: Note) -> Iterator[Row]:
    """Read a JSON object from each line."""
    for number, line in lines(file.path, note):
        if line is None or line.strip():
            yield _row(file, number, _parse(line, first=number == 1))


def _row(file: File, number: int, value: Mapping[str, Any] | Broken) -> Row:
    name, where = f"{file.name}:{number}", f"{file.path}:{number}"
    row = Row(value, name, where, file.fields)
    return row if isinstance(value, Broken) else shaped(row, file)


def _parse(line: bytes | None, *, first: bool) -> Mapping[str, Any] | Broken:
    if line is None:
        return Broken(f"the line is longer than {compression.LONGEST >> 20} MiB; split the document")
    try:
        text = line.decode()
        value = json.loads(text.removeprefix(BOM) if first else text)
    except UnicodeDecodeError as error:
        return Broken(f"not UTF-8 ({error.reason} at byte {error.start + 1} of the line); convert the file to UTF-8")
    except (ValueError, RecursionError) as error:
        return Broken(f"not JSON ({error}); each line holds one JSON object")
    return value if isinstance(value, dict) else Broken(f"a JSON {type(value).__name__}, not an object with fields")


def read_table(file: File, note: Note) -> Iterator[Row]:
    """Read the rows of a TSV or CSV file; its first line names the columns, except in a collection of passages."""
    csv.field_size_limit(compression.LONGEST)
    # surrogateescape lets bytes that are not UTF-8 (and the mark of an endless line) through to their row, which refuses them
    decoded = ((n, (b"\xff" if line is None else line).decode(errors="surrogateescape")) for n, line in lines(file.path, note))
    content = (line.removeprefix(BOM) if n == 1 else line for n, line in decoded)
    if (first := next(content, None)) is None:
        return
    delimiter = "," if file.format == "csv" else "\t"
    header = _unnamed(first.rstrip("\r\n").split("\t"), file.fields) if delimiter == "\t" else None
    raw = header is not None or file.format == COLLECTION or not file.quotes
    reader = csv.reader(
        chain([first], content), delimiter=delimiter, strict=True, quoting=csv.QUOTE_NONE if raw else csv.QUOTE_MINIMAL
    )
    while True:
        start = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            cure = "if quotation marks are plain characters in this file, read it with quotes off"
            yield _row(file, start, Broken(f"lines {start} to {reader.line_num}: {error}; {cure}"))
            continue
        if cells is None:
            return
        if header is None:
            header = [c.strip() for c in cells]
        elif cells:
            yield _row(file, start, _cells(header, cells))


def _unnamed(cells: list[str], fields: Fields) -> list[str] | None:
    """Return the columns of a collection that has no line for their names: a number, the passage, perhaps a title."""
    named = {c.strip() for c in cells} & {name for names in fields for name in names}
    return ["pid", "passage", "title"][: len(cells)] if not named and cells[0].isdecimal() and len(cells) in {2, 3} else None


def _cells(header: list[str], cells: list[str]) -> Mapping[str, Any] | Broken:
    if len(cells) != len(header):
        return Broken(f"{len(cells)} columns where there are {len(header)} ({', '.join(header)})")
    return dict(zip(header, cells, strict=True))


def read_parquet(file: File, note: Note) -> Iterator[Row]:
    """Read the rows of a Parquet file, of wide tables only the columns that matter."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtra("pyarrow", "parquet") from error
    try:
        with pq.ParquetFile(file.path, memory_map=True) as table:
            number, size = 0, file.path.stat().st_size
            wanted = _wanted(table.schema_arrow.names, file.fields)
            for batch in table.iter_batches(batch_size=256, columns=wanted):
                for value in batch.to_pylist():
                    number += 1
                    yield _row(file, number, value)
                note(size * number // max(table.metadata.num_rows, 1))
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise InputError(f"{file.path}: cannot be read as Parquet ({error}). Write the file again") from error


def _wanted(has: Sequence[str], fields: Fields) -> list[str] | None:
    """Return the columns to read: a table may carry wide ones that nobody asked for, such as vectors."""
    return [c for names in fields for c in names if c in has] if set(fields.text) & set(has) else None
