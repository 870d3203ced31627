"""Rows of files, before anything is asked of them: one reader for each format, all streaming."""

import csv
import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from knowhalu.errors import InputError, MissingExtra

LONGEST = 64 * 2**20
"""Bytes of the longest record that is read; more is a broken file, not a document."""
BOM = "\ufeff"


class Broken(Exception):  # noqa: N818 - a finding about one record, never seen by callers
    """What is wrong with one record, and the cure."""


class Fields(NamedTuple):
    """The field names of a source; the first of each that a record has is taken."""

    text: Sequence[str] = ("text", "contents", "passage", "body")
    title: Sequence[str] = ("title",)
    id: Sequence[str] = ("id", "_id", "docid")


class Row(NamedTuple):
    """One row: its fields or what is wrong with it, the id it gets if it has none, and where it stands.

    A `plain` row is a text file, whose fields always have the default names.
    """

    value: Mapping[str, Any] | Broken
    fallback_id: str
    where: str
    plain: bool = False


Note = Callable[[int], None]
"""Takes the byte position in the file."""


def suffix_of(path: Path) -> str | None:
    """Return the format of a file by its name, without `.gz`; None for an unknown one."""
    name = path.name.lower().removesuffix(".gz")
    suffix = Path(name).suffix
    packable = suffix in {".jsonl", ".ndjson", ".tsv", ".csv"}
    return suffix if packable or (suffix in {".parquet", ".txt", ".md"} and path.suffix.lower() != ".gz") else None


def rows_of(path: Path, name: str, fields: Fields, *, quotes: bool, note: Note) -> Iterator[Row]:
    """Read the rows of one file; `name` stands in the ids that are made up.

    Raises InputError where the format is unknown or the file as a whole cannot be read.
    """
    suffix = suffix_of(path)
    try:
        if suffix in {".jsonl", ".ndjson"}:
            yield from _jsonl(path, name, note)
        elif suffix in {".tsv", ".csv"}:
            yield from _table(path, name, "\t" if suffix == ".tsv" else ",", quotes, note)
        elif suffix == ".parquet":
            yield from _parquet(path, name, fields, note)
        elif suffix in {".txt", ".md"}:
            yield _text(path, name)
        else:
            raise InputError(f"{path}: unknown kind of file. Give .jsonl, .jsonl.gz, .tsv, .csv, .parquet, .txt or .md")
    except (EOFError, zlib.error, OSError) as error:
        raise InputError(f"{path}: cannot be read to its end ({error}). Copy or pack the file again") from error


def _lines(path: Path, note: Note) -> Iterator[tuple[int, bytes | None]]:
    """Yield the numbered lines of a file, packed or not; None stands for a line longer than any record."""
    with path.open("rb") as raw:
        file: IO[bytes] = gzip.open(raw) if path.suffix.lower() == ".gz" else raw  # type: ignore[assignment]
        number = 0
        while line := file.readline(LONGEST + 1):
            number += 1
            whole = len(line) <= LONGEST
            while not whole and line and not line.endswith(b"\n"):
                line = file.readline(LONGEST)
            yield number, line if whole else None
            note(raw.tell())


def _jsonl(path: Path, name: str, note: Note) -> Iterator[Row]:
    for number, line in _lines(path, note):
        if line is None or line.strip():
            yield Row(_parse(line, first=number == 1), f"{name}:{number}", f"{path}:{number}")


def _parse(line: bytes | None, *, first: bool) -> Mapping[str, Any] | Broken:
    if line is None:
        return Broken(f"the line is longer than {LONGEST >> 20} MiB; split the document")
    try:
        text = line.decode()
        value = json.loads(text.removeprefix(BOM) if first else text)
    except UnicodeDecodeError as error:
        return Broken(f"not UTF-8 ({error.reason} at byte {error.start + 1} of the line); convert the file to UTF-8")
    except (ValueError, RecursionError) as error:
        return Broken(f"not JSON ({error}); each line holds one JSON object")
    return value if isinstance(value, dict) else Broken(f"a JSON {type(value).__name__}, not an object with fields")


def _table(path: Path, name: str, delimiter: str, quotes: bool, note: Note) -> Iterator[Row]:
    csv.field_size_limit(LONGEST)
    # surrogateescape lets bytes that are not UTF-8 (and the mark of an endless line) through to their row, which refuses them
    decoded = ((n, (b"\xff" if line is None else line).decode(errors="surrogateescape")) for n, line in _lines(path, note))
    lines = (line.removeprefix(BOM) if n == 1 else line for n, line in decoded)
    reader = csv.reader(lines, delimiter=delimiter, strict=True, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE)
    header: list[str] | None = None
    while True:
        start = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            cure = "if quotation marks are plain characters in this file, read it with quotes off"
            yield Row(Broken(f"lines {start} to {reader.line_num}: {error}; {cure}"), "", f"{path}:{start}")
            continue
        if cells is None:
            return
        if header is None:
            header = [c.strip() for c in cells]
        elif cells:
            yield Row(_cells(header, cells), f"{name}:{start}", f"{path}:{start}")


def _cells(header: list[str], cells: list[str]) -> Mapping[str, Any] | Broken:
    if len(cells) != len(header):
        return Broken(f"{len(cells)} columns where the first line names {len(header)} ({', '.join(header)})")
    return dict(zip(header, cells, strict=True))


def _parquet(path: Path, name: str, fields: Fields, note: Note) -> Iterator[Row]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtra("pyarrow", "parquet") from error
    try:
        with pq.ParquetFile(path, memory_map=True) as file:
            number, size = 0, path.stat().st_size
            has = file.schema_arrow.names
            # a table may carry wide columns that nobody asked for, such as vectors
            wanted = [c for names in fields for c in names if c in has] if set(fields.text) & set(has) else None
            for batch in file.iter_batches(batch_size=256, columns=wanted):
                for value in batch.to_pylist():
                    number += 1
                    yield Row(value, f"{name}:{number}", f"{path}:{number}")
                note(size * number // max(file.metadata.num_rows, 1))
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as Parquet ({error}). Write the file again") from error


def _text(path: Path, name: str) -> Row:
    title = path.stem
    with path.open("rb") as file:
        data = file.read(LONGEST + 1)
    if len(data) > LONGEST:
        return Row(Broken(f"longer than {LONGEST >> 20} MiB; split the document"), name, str(path))
    try:
        text = data.decode().removeprefix(BOM)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        return Row(Broken(f"not UTF-8 ({error.reason}); convert the file to UTF-8"), name, f"{path}:{line}")
    first = text.lstrip().partition("\n")[0]
    if path.suffix.lower() == ".md" and first.startswith("# "):
        title = first[2:].strip() or title
    return Row({"id": name, "title": title, "text": text}, name, str(path), plain=True)
