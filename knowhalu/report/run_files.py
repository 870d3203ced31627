"""Runs on disk: which outcome files and rows belong to a folder or file, and the rows of each."""

import json
from array import array
from collections.abc import Hashable, Iterator, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import InputError
from knowhalu.evaluation.bootstrap import group_keys, group_numbers
from knowhalu.io.samples import InputHashes, hash_id, read_samples
from knowhalu.text.sentences import word_count
from knowhalu.types import META_TYPE, Sample

COMPARISON_FILE = "comparison.json"
RUN_PATH_HINT = "Give a folder of `knowhalu compare`, a folder of such folders, or an outcome file of `knowhalu detect`."


class RunFiles(NamedTuple):
    """What is known of a run before it is read: its outcome files by method, its rows and its comparison, if there are any."""

    name: str
    files: dict[str, Path]
    rows: Path | None
    comparison: dict[str, Any] | None


def find_runs(paths: Sequence[Path], rows: Path | None = None) -> list[RunFiles]:
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
    """Find the compared rows: where they were, or beside the outcomes if all was moved together."""
    places = (given, folder / "input" / given.name, folder / given.name, folder.parent / given.name)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise InputError(f"{folder}: the compared rows are no longer at {given}. Name their file: --rows FILE.")
    return found


NO_LABEL, FAITHFUL, HALLUCINATED = -1, 0, 1


class RowFacts(NamedTuple):
    """What is held of every row, in the order of the file, whatever the length of its text."""

    path: Path
    places: dict[bytes, int]
    gold: NDArray[np.int8]
    words: NDArray[np.int64]
    groups: NDArray[np.intp]
    inputs: InputHashes
    types: list[str | None]

    def place(self, name: str, content: str, where: str) -> int:
        """Return the place of a row; raises InputError where it is gone, or is not what it was when it was checked."""
        place = self.places.get(hash_id(name))
        if place is None:
            raise InputError(f"{where}: the row {name!r} is not in {self.path}. Name the file that was checked: --rows FILE.")
        if content and not self.inputs.is_same(place, content):
            raise InputError(f"{where}: the row {name!r} has changed in {self.path} since then. Check it again first.")
        return place


def read_row_facts(path: Path) -> RowFacts:
    """Read and validate all rows; raises InputError at the first that cannot be used."""
    places: dict[bytes, int] = {}
    gold, words, inputs = array("b"), array("q"), InputHashes()
    types: list[str | None] = []

    def keys(sample: Sample) -> list[Hashable]:
        places[hash_id(sample.id)] = len(gold)
        gold.append({None: NO_LABEL, "faithful": FAITHFUL, "hallucinated": HALLUCINATED}[sample.label])
        words.append(word_count(sample.response))
        inputs.add(sample)
        types.append(_type(sample))
        return group_keys(sample)

    groups = group_numbers(keys(sample) for sample in read_samples(path))
    numbers = np.array(gold, dtype=np.int8), np.array(words, dtype=np.int64)
    return RowFacts(path, places, *numbers, groups, inputs, types)


def read_samples_at(path: Path, places: Set[int]) -> Iterator[tuple[int, Sample]]:
    """Yield some rows with their places."""
    return ((place, sample) for place, sample in enumerate(read_samples(path)) if place in places)


def _type(sample: Sample) -> str | None:
    named = sample.meta.get(META_TYPE)
    return str(named) if named is not None else sample.kind
