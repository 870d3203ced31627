"""Which files a path means: one file, a folder of them, or a folder that the `datasets` library saved."""

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
"""What the same split is called in different sets."""
_SPLITS = {"train", "dev", TEST, *VALIDATION}


def stem_of(path: Path) -> str:
    """Return a file's name without its suffixes, in lower case."""
    return path.name.lower().removesuffix(".gz").rpartition(".")[0] or path.name.lower()


def matches_card(card: DatasetCard, path: Path) -> bool:
    """Tell whether a file has the name of a data set's."""
    return any(fnmatch(stem_of(path), pattern) for pattern in card.files)


def data_files(folder: Path) -> list[Path]:
    """Return the files of a folder that can be read as data, in order of their names."""
    return sorted(f for f in folder.iterdir() if f.is_file() and row_suffix(f) in ROW_SUFFIXES and not f.name.startswith("."))


def is_saved_dataset(folder: Path) -> bool:
    """Tell whether the `datasets` library saved this folder."""
    return (folder / "state.json").exists() or (folder / "dataset_dict.json").exists()


def choose_files(
    path: Path, card: DatasetCard, split: str | None, has_form: Callable[[Path], bool]
) -> tuple[list[Path], str | None]:
    """Return the files that a path means, and the split that their place or name says they hold, if it says one.

    Of a folder, those are taken that bear the set's name, or else those that have its form.
    Raises InputError where there are none, or several splits and none is chosen.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file or folder. Check the path.")
    if path.is_file():
        return [path], None
    found = saved_files(path) if is_saved_dataset(path) else _named(path, card, has_form)
    if len(found) == 1 and None in found:
        return found[None], None
    if split == ALL:
        return [f for files in found.values() for f in files], ALL
    name = next(iter(found)) if split is None and len(found) == 1 else matching_split(split or TEST, [n for n in found if n])
    if name is None:
        told = ", ".join(f"{n!r:.40}" for n in sorted(n for n in found if n))
        raise InputError(
            f"{path}: holds no split {split or TEST!r}, but {told}. Choose one by --split, or all of them by --split all."
        )
    return found[name], name


def matching_split(wanted: str, there: Iterable[str]) -> str | None:
    """Return the split that is meant, which other sets call otherwise; None where there is none."""
    names = set(there)
    return next((n for n in (wanted, *(VALIDATION if wanted in VALIDATION else ())) if n in names), None)


def saved_files(folder: Path) -> dict[str | None, list[Path]]:
    """Return the Arrow files of a folder that was written by `save_to_disk`, by split."""
    if (folder / "dataset_dict.json").exists():
        names = _json(folder / "dataset_dict.json", "splits")
        return {str(name): _arrow_files(folder / str(name)) for name in names}
    return {None: _arrow_files(folder)}


def _arrow_files(folder: Path) -> list[Path]:
    state = folder / "state.json"
    if _json(state, "_indices_data_files", missing=None):
        raise InputError(f"{folder}: its rows are picked by an index. Save it again by dataset.flatten_indices().save_to_disk().")
    names = [f.get("filename") if isinstance(f, dict) else None for f in _json(state, "_data_files")]
    files = [folder / Path(str(name)).name for name in names if name]
    if not files:
        raise InputError(f"{state}: names no data files. Save the data set again.")
    return files


def _json(path: Path, field: str, missing: Sequence[str] | None = ()) -> list[object]:
    try:
        found = json.loads(path.read_text(encoding="utf-8")).get(field, missing) or []
        return found if isinstance(found, list) else [found]
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: cannot be read ({error}). Save the data set again.") from error


def _named(folder: Path, card: DatasetCard, has_form: Callable[[Path], bool]) -> dict[str | None, list[Path]]:
    """Return the files of a set in a folder by the split in their names."""
    beside = {name for layout in card.layouts for name in layout.beside}
    files = [f for place in (folder, folder / "data") if place.is_dir() for f in data_files(place) if f.name not in beside]
    if not files:
        raise InputError(f"{folder}: holds no {', '.join(ROW_SUFFIXES)} files. Name the file or the folder that holds them.")
    named = [f for f in files if matches_card(card, f)] or [f for f in files if has_form(f)]
    if not named:
        needs = " or ".join(", ".join(layout.fields) for layout in card.layouts)
        raise InputError(f"{folder}: holds no file with rows of this set, which have {needs}. Name the file.")
    found: dict[str | None, list[Path]] = {}
    for file in named:
        told = [w for w in re.split(r"[^a-z]+", stem_of(file)) if w in _SPLITS]
        found.setdefault(told[-1] if told else None, []).append(file)
    if len(found) > 1 and None in found:
        del found[None]  # what names no split beside files that do is no part of one
    return found
