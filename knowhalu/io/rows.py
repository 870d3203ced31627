"""Rows of files: JSON Lines, JSON, CSV, TSV, Parquet and Arrow, the text formats also compressed (see `compression`)."""

import csv
import gzip
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

from knowhalu.errors import InputError, MissingExtra
from knowhalu.io.compression import READ_ERRORS, open_uncompressed, uncompressed_name

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
ROW_SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".arrow")
MAX_CELL_CHARS = 64 * 2**20
"""Characters of one cell of a table at most."""
BATCH_ROWS = 256


class Row(NamedTuple):
    """A parsed row, its place ("FILE, line 3"), and the id of a row that has none of its own ("line-3")."""

    place: str
    default_id: str
    fields: Any


def row_suffix(path: Path) -> str:
    """Return the suffix that tells the format of a file, in lower case, without that of its compression."""
    return Path(uncompressed_name(path)).suffix


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file, each an object with named fields; the suffix decides the format, JSON Lines by default.

    Raises InputError naming file, line and remedy, MissingExtra for Parquet or Arrow without pyarrow.
    """
    readers = {".csv": _read_table, ".tsv": _read_table, ".parquet": _read_arrow, ".arrow": _read_arrow}
    for row in readers.get(row_suffix(path), read_json_rows)(path):
        if not isinstance(row.fields, Mapping):
            raise InputError(f"{row.place}: not an object with named fields. A row of a data set is one, such as {{...}}.")
        yield row


def read_json_rows(path: Path) -> Iterator[Row]:
    """Yield the values of a JSON Lines or JSON file, objects or not; JSON Lines are read line by line.

    A `.json` file is one value, or an array whose items are the rows, unless its first line is an object and others follow.
    Raises InputError naming file, line and remedy.
    """
    with _open_rows(path) as file:
        if row_suffix(path) != ".json":
            yield from _read_json_lines(file, path)
            return
        head, following = _read_first_lines(file)
        if following and is_json_object(head[-1].removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")):
            yield from _read_json_lines(chain(head, [following], file), path)
            return
        data = b"".join((*head, following, file.read()))
        content = decode_utf8(data.removeprefix(BYTE_ORDER_MARK), str(path))
        if not content.strip():
            return
        value = parse_json(content, str(path))
        if not isinstance(value, list):
            yield Row(str(path), "line-1", value)
            return
        for number, item in enumerate(value, 1):
            yield Row(f"{path}, item {number}", f"item-{number}", item)


def decode_utf8(data: bytes, place: str, offset: int = 0) -> str:
    """Return UTF-8 bytes as text; raises InputError naming the byte, counted from the start of the file."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        utf16 = " (it looks like UTF-16)" if offset == 0 and data[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        raise InputError(f"{place}: not UTF-8 at byte {offset + error.start}{utf16}. Save the file as UTF-8.") from error


def parse_json(content: str, place: str) -> Any:
    """Parse a JSON text; raises InputError naming the place, also where an object names a field twice."""
    try:
        return json.loads(content, object_pairs_hook=_refuse_duplicate_names)
    except json.JSONDecodeError as error:
        at = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}, column {error.colno}"
        what = error.msg[:1].lower() + error.msg[1:]
        raise InputError(f"{place}: not JSON ({what} at {at}). Write one JSON object on each line.") from error
    except _DuplicateName as error:
        raise InputError(f"{place}, field {error.args[0]!r}: is given twice. Keep one of them.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: JSON that is nested too deep or holds too long a number. Write it simpler.") from error


def is_json_object(line: str) -> bool:
    """Tell whether a line is a JSON object by itself."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _read_first_lines(file: IO[bytes]) -> tuple[list[bytes], bytes]:
    """Return the lines up to the first that is not blank, and the one after it."""
    lines: list[bytes] = []
    while line := file.readline():
        lines.append(line)
        if line.removeprefix(BYTE_ORDER_MARK).strip():
            return lines, file.readline()
    return lines, b""


def _read_json_lines(lines: Iterable[bytes], path: Path) -> Iterator[Row]:
    offset = 0
    for number, raw in enumerate(lines, 1):
        place = f"{path}, line {number}"
        body = raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw
        line = decode_utf8(body, place, offset + len(raw) - len(body))
        offset += len(raw)
        if not line.strip():
            continue
        if number == 1 and line.lstrip().startswith("["):
            raise InputError(f"{place}: a JSON array, not an object. Name the file .json, or write one object on each line.")
        yield Row(place, f"line-{number}", parse_json(line, place))


class _DuplicateName(Exception):
    """A name that occurs twice in one JSON object; without this the later value would silently win."""


def _refuse_duplicate_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise _DuplicateName(next(n for n in names if names.count(n) > 1))
    return fields


@contextmanager
def _open_rows(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, compressed or not; errors of the system or of the compression become an InputError."""
    try:
        with open_uncompressed(path) as (file, _):
            yield file
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file. Check the path.") from error
    except gzip.BadGzipFile as error:
        raise InputError(f"{path}: cannot be read: its gzip data is damaged ({error}). Copy the file again.") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}). Check the path.") from error
    except READ_ERRORS as error:
        what = "gzip" if path.suffix.lower() == ".gz" else "compressed"
        raise InputError(
            f"{path}: cannot be read: its {what} data ends early or is damaged ({error}). Copy the file again."
        ) from error


def _read_table(path: Path) -> Iterator[Row]:
    """Read a table whose first line names the columns; an empty cell counts as absent."""
    csv.field_size_limit(MAX_CELL_CHARS)
    with _open_rows(path) as file:
        lines = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        reader = csv.reader(lines, delimiter="\t" if row_suffix(path) == ".tsv" else ",", strict=True)
        try:
            header = [name.strip() for name in next(reader, [])]
            start = reader.line_num + 1
            for cells in reader:
                if cells:
                    place = f"{path}, line {start}"
                    yield Row(place, f"line-{start}", _name_cells(header, cells, place))
                start = reader.line_num + 1
        except csv.Error as error:
            raise InputError(f"{path}, near line {reader.line_num}: not a table ({error}). Write the file again.") from error
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not UTF-8 ({error.reason} at byte {error.start}). Save the file as UTF-8.") from error


def _name_cells(header: list[str], cells: list[str], place: str) -> dict[str, str | None]:
    if len(cells) != len(header):
        raise InputError(f"{place}: {len(cells)} cells where the first line names {len(header)}. Write the file again.")
    return {name: cell or None for name, cell in zip(header, cells, strict=True)}


def _read_arrow(path: Path) -> Iterator[Row]:
    """Read a Parquet file, or an Arrow stream, the format in which the `datasets` library saves its tables."""
    pyarrow = import_pyarrow()
    from pyarrow import ipc, parquet

    try:
        if row_suffix(path) == ".parquet":
            with parquet.ParquetFile(path) as file:
                yield from _read_batches(path, file.schema_arrow, file.iter_batches(batch_size=BATCH_ROWS))
        else:
            with pyarrow.memory_map(str(path)) as source, ipc.open_stream(source) as stream:
                yield from _read_batches(path, stream.schema, stream)
    except (pyarrow.ArrowException, UnicodeDecodeError, OSError) as error:
        raise InputError(f"{path}: cannot be read ({error}). Check the path, or write the file again.") from error


def _read_batches(path: Path, schema: Any, batches: Any) -> Iterator[Row]:
    class_names, number = _read_class_names(schema.metadata, path.parent), 0
    for batch in batches:
        for fields in batch.to_pylist():
            number += 1
            for name in class_names.keys() & fields.keys():
                fields[name] = _name_class(class_names[name], fields[name])
            yield Row(f"{path}, row {number}", f"row-{number}", fields)


def _read_class_names(metadata: Mapping[bytes, bytes] | None, folder: Path) -> dict[str, list[str]]:
    """Return the names behind the numbers of class labels, which `datasets` keeps in the schema or in a file next to it."""
    info = folder / "dataset_info.json"
    try:
        if metadata and b"huggingface" in metadata:
            features = json.loads(metadata[b"huggingface"])["info"]["features"]
        else:
            features = json.loads(info.read_text(encoding="utf-8"))["features"] if info.exists() else {}
        classes = {n: f for n, f in features.items() if isinstance(f, dict) and f.get("_type") == "ClassLabel"}
        return {name: [str(n) for n in feature["names"]] for name, feature in classes.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{info}: does not tell the names of the labels ({error!r}). Save the data set again.") from error


def _name_class(names: list[str], value: Any) -> Any:
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else value


def import_pyarrow() -> Any:
    """Import pyarrow; raises MissingExtra where it is not installed."""
    try:
        import pyarrow
        import pyarrow.ipc  # noqa: F401
    except ImportError as error:
        raise MissingExtra("pyarrow", "parquet") from error
    return pyarrow
