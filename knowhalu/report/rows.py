"""The rows of a run: of each its gold label, length, type of error, and what says that it is still the row that was checked."""

from array import array
from collections.abc import Hashable, Iterator, Set
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import InputError
from knowhalu.evaluation.groups import group_numbers, sharing_keys
from knowhalu.records import Inputs, id_hash, read_samples
from knowhalu.text import word_count
from knowhalu.types import TYPE, Sample

UNKNOWN, FAITHFUL, HALLUCINATED = -1, 0, 1


class Texts(NamedTuple):
    """What is held of every row, in the order of the file, whatever the length of its text."""

    path: Path
    places: dict[bytes, int]
    gold: NDArray[np.int8]
    words: NDArray[np.int64]
    groups: NDArray[np.intp]
    inputs: Inputs
    types: list[str | None]

    def place(self, name: str, content: str, where: str) -> int:
        """Return the place of a row; raises InputError where it is gone, or is not what it was when it was checked."""
        place = self.places.get(id_hash(name))
        if place is None:
            raise InputError(f"{where}: the row {name!r} is not in {self.path}. Name the file that was checked: --rows FILE.")
        if content and not self.inputs.is_same(place, content):
            raise InputError(f"{where}: the row {name!r} has changed in {self.path} since then. Check it again first.")
        return place


def read_texts(path: Path) -> Texts:
    """Read and validate all rows; raises InputError at the first that cannot be used."""
    places: dict[bytes, int] = {}
    gold, words, inputs = array("b"), array("q"), Inputs()
    types: list[str | None] = []

    def keys(sample: Sample) -> list[Hashable]:
        places[id_hash(sample.id)] = len(gold)
        gold.append({None: UNKNOWN, "faithful": FAITHFUL, "hallucinated": HALLUCINATED}[sample.label])
        words.append(word_count(sample.response))
        inputs.add(sample)
        types.append(_type(sample))
        return sharing_keys(sample)

    groups = group_numbers(keys(sample) for sample in read_samples(path))
    numbers = np.array(gold, dtype=np.int8), np.array(words, dtype=np.int64)
    return Texts(path, places, *numbers, groups, inputs, types)


def samples_at(path: Path, places: Set[int]) -> Iterator[tuple[int, Sample]]:
    """Yield some rows with their places."""
    return ((place, sample) for place, sample in enumerate(read_samples(path)) if place in places)


def _type(sample: Sample) -> str | None:
    named = sample.meta.get(TYPE)
    return str(named) if named is not None else sample.kind
