"""Runs on disk: which outcome files and which rows belong to the folder or file that a user names."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from knowhalu.errors import InputError

COMPARISON = "comparison.json"
FORMS = "Give a folder of `knowhalu compare`, a folder of such folders, or an outcome file of `knowhalu detect`."


class Run(NamedTuple):
    """What is known of a run before it is read: its outcome files by method, its rows and its comparison, if there are any."""

    name: str
    files: dict[str, Path]
    rows: Path | None
    comparison: dict[str, Any] | None


def find_runs(paths: Sequence[Path], rows: Path | None = None) -> list[Run]:
    """Find the runs that lie at the paths; `rows` names the texts of a single one.

    Raises InputError for what is no run, and where the rows that were compared are not to be found.
    """
    found = [run for path in paths for run in _runs(path, rows)]
    if rows is not None and len(found) > 1:
        raise InputError(f"--rows {rows}: there are {len(found)} runs. It can only name the rows of a single one.")
    names = [run.name for run in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two runs are called {name!r}. Rename the folder or file of one of them.")
    return found


def _runs(path: Path, rows: Path | None) -> list[Run]:
    if path.is_file():
        return [Run(path.stem, {path.stem: path}, rows, None)]
    if not path.is_dir():
        raise InputError(f"{path}: no such file or folder. {FORMS}")
    if (path / COMPARISON).is_file():
        return [_compared(path, rows)]
    found = [_compared(folder, rows) for folder in sorted(path.iterdir()) if (folder / COMPARISON).is_file()]
    if not found:
        raise InputError(f"{path}: neither it nor a folder in it holds a {COMPARISON}. {FORMS}")
    return found


def _compared(folder: Path, rows: Path | None) -> Run:
    path = folder / COMPARISON
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        names, given = [str(result["name"]) for result in fields["results"]], str(fields["input"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        cure = "Run the same `knowhalu compare` again; its outcomes are kept."
        raise InputError(f"{path}: not a comparison of KnowHalu ({type(error).__name__}: {error}). {cure}") from error
    files = {name: folder / f"{Path(name).name}.jsonl" for name in names}
    for file in files.values():
        if not file.is_file():
            raise InputError(f"{file}: no such file, and {path} names it. Run the same `knowhalu compare` again.")
    return Run(folder.resolve().name, files, rows or _rows_of(folder, Path(given)), fields)


def _rows_of(folder: Path, given: Path) -> Path:
    """Find the compared rows: where they were, or beside the outcomes if all was moved together."""
    places = (given, folder / "input" / given.name, folder / given.name, folder.parent / given.name)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise InputError(f"{folder}: the compared rows are no longer at {given}. Name their file: --rows FILE.")
    return found
