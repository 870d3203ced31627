"""Groups of rows that are not independent of one another: those of one source, question or pair."""

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from knowhalu.types import GROUP, PAIR, Sample


def group_numbers(keys: Iterable[Sequence[Hashable]]) -> NDArray[np.intp]:
    """Return a group number for every row, from 0 on: rows that share a key, also by way of others, are one group."""
    parent: list[int] = []
    first: dict[Hashable, int] = {}
    for row, names in enumerate(keys):
        parent.append(row)
        for name in names:
            parent[_root(parent, row)] = _root(parent, first.setdefault(name, row))
    roots = [_root(parent, row) for row in range(len(parent))]
    numbers = {root: i for i, root in enumerate(dict.fromkeys(roots))}
    return np.array([numbers[root] for root in roots], dtype=np.intp)


def sharing_keys(sample: Sample) -> list[Hashable]:
    """Return what a row may share with others: its own groups, or else its pair, its question and each of its sources."""
    if (given := sample.meta.get(GROUP)) is not None:
        return [hash((GROUP, str(name))) for name in (given if isinstance(given, list | tuple) else [given])]
    pair = [str(sample.meta[PAIR])] if sample.meta.get(PAIR) is not None else []
    question = [sample.question] if sample.question else []
    sources = [*(d.text for d in sample.documents), *sample.knowledge]
    kinds = ((PAIR, pair), ("question", question), ("source", sources))
    return [hash((kind, text)) for kind, texts in kinds for text in texts]


def _root(parent: list[int], row: int) -> int:
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = parent[row]
    return row
