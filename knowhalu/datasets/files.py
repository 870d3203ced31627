"""Find the files of a data set: a file, a folder of files, or a folder saved by the `datasets` library."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path

from knowhalu.datasets.card import DatasetCard
from knowhalu.errors import InputError
from knowhalu.io.rows import ROW_SUFFIXES, row_suffix

TEST, ALL = "test", "all"
VALIDATION = ("val", "validation", "valid")
"""Names of the same split in different sets."""
_SPLITS = {"train", "dev", TEST, *VALIDATION}


def stem_of(path: Path) -> str:
    """Return a file's name without its suffixes, in lower case."""
    return path.name.lower().removesuffix(".gz").rpartition(".")[0] or path.name.lower()


def matches_card(card: DatasetCard, path: Path) -> bool:
    """Tell whether the name of a file matches the patterns of a card."""
    return any(fnmatch(stem_of(path), pattern) for pattern in card.files)


def data_files(folder: Path) -> list[Path]:
    """Return the files of a folder that can be read as rows, in order of their names."""
    return sorted(f for f in folder.iterdir() if f.is_file() and row_suffix(f) in ROW_SUFFIXES and not f.name.startswith("."))


def is_saved_dataset(folder: Path) -> bool:
    """Tell whether a folder was saved by the `datasets` library."""
    return (folder / "state.json").exists() or (folder / "dataset_dict.json").exists()


def choose_files(
    path: Path, card: DatasetCard, split: str | None, has_layout: Callable[[Path], bool]
) -> tuple[list[Path], str | None]:
    """Return the files of a data set at a path, and the split that their folder or name tells, if any.

    In a folder, files whose names match the card are taken, or else those whose rows have one of its layouts.
    Raises InputError where there are none, or where they are of several splits and none is chosen.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file or folder. Check the path.")
    if path.is_file():
        return [path], None
    by_split = saved_files(path) if is_saved_dataset(path) else _files_by_split(path, card, has_layout)
    if len(by_split) == 1 and None in by_split:
        return by_split[None], None
    if split == ALL:
        return [f for files in by_split.values() for f in files], ALL
    splits = [name for name in by_split if name]
    name = next(iter(by_split)) if split is None and len(by_split) == 1 else matching_split(split or TEST, splits)
    if name is None:
        known = ", ".join(f"{name!r:.40}" for name in sorted(splits))
        raise InputError(
            f"{path}: has no split {split or TEST!r}; its splits are {known}. Choose one with --split, or all with --split all."
        )
    return by_split[name], name


def matching_split(wanted: str, available: Iterable[str]) -> str | None:
    """Return the available split of this name, or of another name for the same split; None where there is none."""
    names = set(available)
    return next((n for n in (wanted, *(VALIDATION if wanted in VALIDATION else ())) if n in names), None)


def saved_files(folder: Path) -> dict[str | None, list[Path]]:
    """Return the Arrow files of a folder written by `save_to_disk`, by split."""
    if (folder / "dataset_dict.json").exists():
        names = _read_list(folder / "dataset_dict.json", "splits")
        return {str(name): _arrow_files(folder / str(name)) for name in names}
    return {None: _arrow_files(folder)}


def _arrow_files(folder: Path) -> list[Path]:
    state = folder / "state.json"
    if _read_list(state, "_indices_data_files", missing=None):
        raise InputError(
            f"{folder}: its rows are selected by an index file. Save it again with dataset.flatten_indices().save_to_disk()."
        )
    names = [f.get("filename") if isinstance(f, dict) else None for f in _read_list(state, "_data_files")]
    files = [folder / Path(str(name)).name for name in names if name]
    if not files:
        raise InputError(f"{state}: names no data files. Save the data set again.")
    return files


def _read_list(path: Path, field: str, missing: Sequence[str] | None = ()) -> list[object]:
    try:
        value = json.loads(path.read_text(encoding="utf-8")).get(field, missing) or []
        return value if isinstance(value, list) else [value]
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: cannot be read ({error}). Save the data set again.") from error


def _files_by_split(folder: Path, card: DatasetCard, has_layout: Callable[[Path], bool]) -> dict[str | None, list[Path]]:
    """Return the files of a data set in a folder by the split in their names."""
    further = {name for layout in card.layouts for name in layout.beside}
    files = [f for place in (folder, folder / "data") if place.is_dir() for f in data_files(place) if f.name not in further]
    if not files:
        raise InputError(f"{folder}: holds no {', '.join(ROW_SUFFIXES)} files. Name the file or the folder that holds them.")
    own_files = [f for f in files if matches_card(card, f)] or [f for f in files if has_layout(f)]
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
