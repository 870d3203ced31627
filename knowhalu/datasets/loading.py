"""Load a data set: find its files at a path, choose a split, and convert the rows to samples.

A path is that of a file, of a folder of files, or of a folder saved by the `datasets` library.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from fnmatch import fnmatch
from hashlib import file_digest, sha256
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from knowhalu.datasets.card import DatasetCard, Layout
from knowhalu.datasets.catalog import dataset_card, dataset_cards
from knowhalu.datasets.row_reader import row_converter
from knowhalu.errors import InputError
from knowhalu.io.rows import ROW_SUFFIXES, Row, read_rows, row_suffix
from knowhalu.io.samples import hash_id
from knowhalu.registry import import_object
from knowhalu.types import META_PART, META_SET, Sample

SHARD_SUFFIXES = (".arrow", ".parquet")
"""Suffixes of files that may be shards of one table."""
TEST, ALL = "test", "all"
VALIDATION = ("val", "validation", "valid")
"""Names of the same split in different sets."""
_SPLITS = {"train", "dev", TEST, *VALIDATION}


def stem_of(path: Path) -> str:
    """Return a file's name without its suffixes, in lower case."""
    return path.name.lower().removesuffix(".gz").rpartition(".")[0] or path.name.lower()


def _matches_card(card: DatasetCard, path: Path) -> bool:
    """Tell whether the name of a file matches the patterns of a card."""
    return any(fnmatch(stem_of(path), pattern) for pattern in card.files)


def data_files(folder: Path) -> list[Path]:
    """Return the files of a folder that can be read as rows, in order of their names."""
    return sorted(f for f in folder.iterdir() if f.is_file() and row_suffix(f) in ROW_SUFFIXES and not f.name.startswith("."))


def is_saved_dataset(folder: Path) -> bool:
    """Tell whether a folder was saved by the `datasets` library."""
    return (folder / "state.json").exists() or (folder / "dataset_dict.json").exists()


class DatasetSource(NamedTuple):
    """A data set on disk: its card, the layout of its rows, the files to read, and the split to take.

    `split` is "all" where rows have splits and all are taken, None where there are none; `split_rows` counts the rows of each.
    """

    card: DatasetCard
    layout: Layout
    files: tuple[Path, ...]
    split: str | None
    split_rows: dict[str, int]

    @property
    def name(self) -> str:
        """Return the name of the data set."""
        return self.card.name


def open_dataset(name: str | DatasetCard, path: Path, split: str | None = None) -> DatasetSource:
    """Find the files of a data set and its split: the given one, or else "test", or all rows where there is none.

    Raises InputError where the files have another layout, or no such split; SettingsError for an unknown name.
    """
    card = dataset_card(name) if isinstance(name, str) else name
    files, file_split = _choose_files(path, card, split)
    first = _first(files)
    if first is None:
        raise InputError(f"{path}: has no rows. Check the path.")
    layout = _layout(card, first)
    if file_split is not None:
        return DatasetSource(card, layout, tuple(files), file_split, {})
    split_rows = _count_splits(files, card.split)
    return DatasetSource(card, layout, tuple(files), _choose_split(path, card, split, split_rows), split_rows)


def load_samples(source: DatasetSource) -> Iterator[Sample]:
    """Yield the samples of a data set, each with the name of the set in `meta`, a label, and a unique id.

    Raises InputError naming file, line and field at the first row that cannot be used.
    """
    convert = row_converter(source.layout)
    taken = source.split if source.split_rows and source.split != ALL else None
    seen: set[bytes] = set()
    for part, row in _rows(source):
        if taken is not None and not _is_of_split(row, source.card.split, taken):
            continue
        for name in source.layout.fields:
            if name not in row.fields:
                raise InputError(f"{row.place}, field {name!r}: is missing. Other rows have it; add it, or leave the row out.")
        try:
            samples = list(convert(row))
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(f"{row.place}, field {'.'.join(map(str, first['loc']))!r}: {first['msg']}") from error
        for sample in samples:
            if sample.label is None:
                raise InputError(
                    f"{row.place}, field 'label': is missing. A row without a label cannot be evaluated; leave it out."
                )
            yield sample.model_copy(
                update={"id": _unique_id(sample.id, row, seen), "meta": {META_SET: source.name, **part, **sample.meta}}
            )


def recognise_dataset(path: Path) -> str | None:
    """Return the name of the data set of a file or saved folder, by its name and fields; None for no known layout."""
    files = [f for some in _saved_files(path).values() for f in some] if path.is_dir() else [path]
    first = _first(files)
    if first is None:
        return None
    fitting = {name: layout for name, card in dataset_cards().items() if (layout := _matching_fields(card, first)) is not None}
    named = [name for name in fitting if _matches_card(dataset_cards()[name], path)]
    own = sorted((n for n, layout in fitting.items() if not layout.common), key=lambda n: -len(fitting[n].fields))
    common = [n for n in ("claims", "qa-pairs", "summary-pairs", "samples") if n in fitting]
    return next(iter([*named, *own, *common]), None)


def hash_files(files: Iterable[Path]) -> str:
    """Return the SHA-256 of a file, or of the hashes of several in order."""
    hashes = [_sha256(file) for file in files]
    return hashes[0] if len(hashes) == 1 else sha256("".join(hashes).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _rows(source: DatasetSource) -> Iterator[tuple[dict[str, str], Row]]:
    """Yield the rows of all files; several files that are neither splits nor shards are parts of the set."""
    read: Callable[[Path], Iterator[Row]] = import_object(source.layout.rows)
    are_splits = source.split is not None and not source.split_rows
    for file in source.files:
        is_part = len(source.files) > 1 and not are_splits and row_suffix(file) not in SHARD_SUFFIXES
        for row in read(file):
            alone = row if len(source.files) == 1 else row._replace(default_id=f"{file.stem}-{row.default_id}")
            yield ({META_PART: stem_of(file)} if is_part else {}), alone


def _is_of_split(row: Row, field: str, split: str) -> bool:
    value = row.fields.get(field)
    if not isinstance(value, str) or not value:
        raise InputError(f"{row.place}, field {field!r}: names no split, but other rows do. Add it, or use --split all.")
    return value == split


def _unique_id(name: str, row: Row, seen: set[bytes]) -> str:
    """Return the id, with the place of the row where another row has the same id."""
    given, number = name, 1
    while (digest := hash_id(given)) in seen:
        given = f"{name}#{row.default_id}" if number == 1 else f"{name}#{row.default_id}#{number}"
        number += 1
    seen.add(digest)
    return given


def _first(files: Iterable[Path]) -> Row | None:
    return next((row for file in files for row in read_rows(file)), None)


def _has_layout(card: DatasetCard, file: Path) -> bool:
    try:
        first = _first([file])
    except InputError:
        return False
    return first is not None and _matching_fields(card, first) is not None


def _matching_fields(card: DatasetCard, row: Row) -> Layout | None:
    return next((layout for layout in card.layouts if all(name in row.fields for name in layout.fields)), None)


def _layout(card: DatasetCard, row: Row) -> Layout:
    """Return the layout of a data set that a row has; the error names a missing field, and another set with this layout."""
    if (layout := _matching_fields(card, row)) is not None:
        return layout
    nearest = min(card.layouts, key=lambda layout: sum(field not in row.fields for field in layout.fields))
    missing = next(field for field in nearest.fields if field not in row.fields)
    alike = [(n, f) for n, c in dataset_cards().items() if (f := _matching_fields(c, row)) is not None]
    alike.sort(key=lambda pair: (pair[1].common, -len(pair[1].fields)))
    hint = f" This looks like {alike[0][0]}: knowhalu eval {alike[0][0]}." if alike else ""
    needs = " or ".join(", ".join(layout.fields) for layout in card.layouts)
    raise InputError(f"{row.place}, field {missing!r}: is missing. Rows of {card.name} have {needs}.{hint}")


def _count_splits(files: Iterable[Path], field: str) -> dict[str, int]:
    values = (row.fields.get(field) for file in files for row in read_rows(file))
    return dict(Counter(value for value in values if isinstance(value, str) and value))


def _choose_split(path: Path, card: DatasetCard, split: str | None, split_rows: dict[str, int]) -> str | None:
    if split in (None, ALL):
        usual = next(iter(split_rows)) if len(split_rows) == 1 else ALL
        return (TEST if TEST in split_rows and split is None else usual) if split_rows else None
    if not split_rows:
        raise InputError(f"{path}: no row names a split in a field {card.split!r}. Leave --split out.")
    name = _matching_split(str(split), split_rows)
    if name is None:
        known = ", ".join(f"{name!r:.40} ({count:,})" for name, count in sorted(split_rows.items()))
        raise InputError(f"{path}: no row is of the split {split!r}; there are {known}. Choose one of them with --split.")
    return name


def _choose_files(path: Path, card: DatasetCard, split: str | None) -> tuple[list[Path], str | None]:
    """Return the files of a data set at a path, and the split that their folder or name tells, if any.

    In a folder, files whose names match the card are taken, or else those whose rows have one of its layouts.
    Raises InputError where there are none, or where they are of several splits and none is chosen.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file or folder. Check the path.")
    if path.is_file():
        return [path], None
    by_split = _saved_files(path) if is_saved_dataset(path) else _files_by_split(path, card)
    if len(by_split) == 1 and None in by_split:
        return by_split[None], None
    if split == ALL:
        return [f for files in by_split.values() for f in files], ALL
    splits = [name for name in by_split if name]
    name = next(iter(by_split)) if split is None and len(by_split) == 1 else _matching_split(split or TEST, splits)
    if name is None:
        known = ", ".join(f"{name!r:.40}" for name in sorted(splits))
        raise InputError(
            f"{path}: has no split {split or TEST!r}; its splits are {known}. Choose one with --split, or all with --split all."
        )
    return by_split[name], name


def _matching_split(wanted: str, available: Container[str]) -> str | None:
    """Return the available split of this name, or of another name for the same split; None where there is none."""
    names = (wanted, *(VALIDATION if wanted in VALIDATION else ()))
    return next((name for name in names if name in available), None)


def _saved_files(folder: Path) -> dict[str | None, list[Path]]:
    """Return the Arrow files of a folder written by `save_to_disk`, by split."""
    if (folder / "dataset_dict.json").exists():
        names = _read_list(folder / "dataset_dict.json", "splits")
        return {str(name): _arrow_files(folder / str(name)) for name in names}
    return {None: _arrow_files(folder)}


def _arrow_files(folder: Path) -> list[Path]:
    state = folder / "state.json"
    if _read_list(state, "_indices_data_files"):
        raise InputError(
            f"{folder}: its rows are selected by an index file. Save it again with dataset.flatten_indices().save_to_disk()."
        )
    names = [f.get("filename") if isinstance(f, dict) else None for f in _read_list(state, "_data_files")]
    files = [folder / Path(str(name)).name for name in names if name]
    if not files:
        raise InputError(f"{state}: names no data files. Save the data set again.")
    return files


def _read_list(path: Path, field: str) -> list[object]:
    try:
        value = json.loads(path.read_text(encoding="utf-8")).get(field) or []
        return value if isinstance(value, list) else [value]
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: cannot be read ({error}). Save the data set again.") from error


def _files_by_split(folder: Path, card: DatasetCard) -> dict[str | None, list[Path]]:
    """Return the files of a data set in a folder by the split in their names."""
    further = {name for layout in card.layouts for name in layout.beside}
    files = [f for place in (folder, folder / "data") if place.is_dir() for f in data_files(place) if f.name not in further]
    if not files:
        raise InputError(f"{folder}: holds no {', '.join(ROW_SUFFIXES)} files. Name the file or the folder that holds them.")
    own_files = [f for f in files if _matches_card(card, f)] or [f for f in files if _has_layout(card, f)]
    if not own_files:
        needs = " or ".join(", ".join(layout.fields) for layout in card.layouts)
        raise InputError(f"{folder}: has no file with rows of this set, which have the fields {needs}. Name the file.")
    by_split: dict[str | None, list[Path]] = {}
    for file in own_files:
        splits = [word for word in re.split(r"[^a-z]+", stem_of(file)) if word in _SPLITS]
        by_split.setdefault(splits[-1] if splits else None, []).append(file)
    if len(by_split) > 1 and None in by_split:
        del by_split[None]  # a file without a split in its name, among files with one, belongs to none
    return by_split
