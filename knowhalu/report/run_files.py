"""Find the runs at given paths: their outcome files, their rows and their comparison."""

import json
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

from knowhalu.errors import InputError
from knowhalu.io.samples import read_samples
from knowhalu.types import Sample

COMPARISON_FILE = "comparison.json"
RUN_PATH_HINT = "Give a folder of `knowhalu compare`, a folder of such folders, or an outcome file of `knowhalu detect`."


class RunFiles(NamedTuple):
    """The files of a run: its outcomes by method, its rows and the fields of its comparison, where there are any."""

    name: str
    files: dict[str, Path]
    rows: Path | None
    comparison: dict[str, Any] | None


def find_runs(paths: Sequence[Path], rows: Path | None = None) -> list[RunFiles]:
    """Find the runs at the paths; `rows` is the file of the rows of a single run.

    Raises InputError for a path without a run, and where the compared rows are missing.
    """
    runs = [run for path in paths for run in _runs(path, rows)]
    if rows is not None and len(runs) > 1:
        raise InputError(f"--rows {rows}: there are {len(runs)} runs. It can only name the rows of a single one.")
    names = [run.name for run in runs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two runs are called {name!r}. Rename the folder or file of one of them.")
    return runs


def _runs(path: Path, rows: Path | None) -> list[RunFiles]:
    if path.is_file():
        return [RunFiles(path.stem, {path.stem: path}, rows, None)]
    if not path.is_dir():
        raise InputError(f"{path}: no such file or folder. {RUN_PATH_HINT}")
    if (path / COMPARISON_FILE).is_file():
        return [_compared_run(path, rows)]
    found = [_compared_run(folder, rows) for folder in sorted(path.iterdir()) if (folder / COMPARISON_FILE).is_file()]
    if not found:
        raise InputError(f"{path}: neither it nor a folder in it holds a {COMPARISON_FILE}. {RUN_PATH_HINT}")
    return found


def _compared_run(folder: Path, rows: Path | None) -> RunFiles:
    path = folder / COMPARISON_FILE
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
    return RunFiles(folder.resolve().name, files, rows or _rows_of(folder, Path(given)), fields)


def _rows_of(folder: Path, given: Path) -> Path:
    """Return the file of the compared rows: as given, or next to the outcomes if all files were moved together."""
    places = (given, folder / "input" / given.name, folder / given.name, folder.parent / given.name)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise InputError(f"{folder}: the compared rows are no longer at {given}. Name their file: --rows FILE.")
    return found


def read_samples_at(path: Path, places: Set[int]) -> Iterator[tuple[int, Sample]]:
    """Yield the rows at some places."""
    return ((place, sample) for place, sample in enumerate(read_samples(path)) if place in places)
