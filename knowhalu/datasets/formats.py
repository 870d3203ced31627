"""Rows of a file in any form in which data sets come: JSON Lines, JSON, CSV, TSV, Parquet and Arrow."""

import csv
import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from knowhalu.errors import InputError, MissingExtra
from knowhalu.io.records import JSONRow, read_json_rows

MAX_CELL_CHARS = 64 * 2**20
"""Characters of one cell of a table at most."""
SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".arrow")


def read_dataset_rows(path: Path) -> Iterator[JSONRow]:
    """Yield the rows of a file, each an object; what is told by its name decides how it is read.

    Raises InputError naming file and line, MissingExtra where Parquet or Arrow is to be read without pyarrow.
    """
    suffix = suffix_of(path)
    readers = {".csv": _table, ".tsv": _table, ".parquet": _parquet, ".arrow": _arrow}
    for row in readers.get(suffix, read_json_rows)(path):
        if not isinstance(row.fields, Mapping):
            raise InputError(f"{row.place}: not an object with named fields. A row of a data set is one, such as {{...}}.")
        yield row


def suffix_of(path: Path) -> str:
    """Return the suffix that tells the format, in lower case."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _table(path: Path) -> Iterator[JSONRow]:
    """Read a table whose first line names the columns; an empty cell counts as absent."""
    csv.field_size_limit(MAX_CELL_CHARS)
    try:
        with gzip.open(path, "rt", encoding="utf-8-sig", newline="") if path.name.endswith(".gz") else path.open(
            encoding="utf-8-sig", newline=""
        ) as file:  # fmt: skip
            reader = csv.reader(file, delimiter="\t" if suffix_of(path) == ".tsv" else ",", strict=True)
            header = [name.strip() for name in next(reader, [])]
            start = reader.line_num + 1
            for cells in reader:
                if cells:
                    yield JSONRow(f"{path}, line {start}", f"line-{start}", _cells(header, cells, f"{path}, line {start}"))
                start = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path}, near line {reader.line_num}: not a table ({error}). Write the file again.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 ({error.reason} at byte {error.start}). Save the file as UTF-8.") from error
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from error


def _cells(header: list[str], cells: list[str], place: str) -> dict[str, str | None]:
    if len(cells) != len(header):
        raise InputError(f"{place}: {len(cells)} cells where the first line names {len(header)}. Write the file again.")
    return {name: cell or None for name, cell in zip(header, cells, strict=True)}


def _parquet(path: Path) -> Iterator[JSONRow]:
    pa = _pyarrow()
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            yield from _batches(path, file.schema_arrow, file.iter_batches(batch_size=256))
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise _unreadable(path, error) from error


def _arrow(path: Path) -> Iterator[JSONRow]:
    """Read an Arrow stream, as the `datasets` library saves its tables."""
    pa = _pyarrow()
    try:
        with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as stream:
            yield from _batches(path, stream.schema, stream)
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise _unreadable(path, error) from error


def _batches(path: Path, schema: Any, batches: Any) -> Iterator[JSONRow]:
    names, number = _class_names(schema.metadata, path.parent), 0
    for batch in batches:
        for fields in batch.to_pylist():
            number += 1
            for name in names.keys() & fields.keys():
                fields[name] = _class_name(names[name], fields[name])
            yield JSONRow(f"{path}, row {number}", f"row-{number}", fields)


def _class_names(metadata: Mapping[bytes, bytes] | None, folder: Path) -> dict[str, list[str]]:
    """Return the names behind the numbers of class labels, which `datasets` keeps in the table's head or in a file beside it."""
    beside = folder / "dataset_info.json"
    try:
        if metadata and b"huggingface" in metadata:
            features = json.loads(metadata[b"huggingface"])["info"]["features"]
        else:
            features = json.loads(beside.read_text(encoding="utf-8"))["features"] if beside.exists() else {}
        kinds = {n: f for n, f in features.items() if isinstance(f, dict) and f.get("_type") == "ClassLabel"}
        return {name: [str(n) for n in kind["names"]] for name, kind in kinds.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{beside}: does not tell the names of the labels ({error!r}). Save the data set again.") from error


def _class_name(names: list[str], value: Any) -> Any:
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else value


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.ipc  # noqa: F401
    except ImportError as error:
        raise MissingExtra("pyarrow", "parquet") from error
    return pyarrow


def _unreadable(path: Path, error: BaseException) -> InputError:
    return InputError(f"{path}: cannot be read ({error}). Check the path, or write the file again.")
