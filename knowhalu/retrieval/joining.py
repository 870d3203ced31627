"""Joining small shards, so that many small additions do not leave as many files.

Rows and documents keep their numbers, for only neighbours are joined. A shard takes in those before it while they are at most
twice its size, so of any number of additions only a few shards are left, and each passage is copied only a few times.
"""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from knowhalu.retrieval.cutting import Cut
from knowhalu.retrieval.embedding import Task
from knowhalu.retrieval.manifest import Manifest, ShardEntry
from knowhalu.retrieval.sections import SectionWriter
from knowhalu.retrieval.shards import KIND, Shard, Written
from knowhalu.retrieval.vectors import VectorWriter, open_vectors


def joinable(manifest: Manifest, made: Written) -> int:
    """Return how many of the last shards of an index a new one takes in; never those that a FAISS file is about."""
    starts = list(accumulate((s.rows for s in manifest.shards), initial=0))
    size, count = made.passages + made.documents + made.echoes, 0
    for entry, start in zip(reversed(manifest.shards), reversed(starts[:-1]), strict=True):
        other = _size(entry)
        if other > 2 * size or size + other > manifest.shard or start < manifest.search.rows:
            break
        size, count = size + other, count + 1
    return count


def _size(entry: ShardEntry) -> int:
    return entry.rows + entry.documents + entry.echoes


def join(old: Sequence[Shard], vectors: Sequence[NDArray[np.generic]], task: Task) -> Task:
    """Write old shards and a new one as one shard beside the new one, and return it."""
    new = task.cut.open()
    path = task.cut.path.with_name("joined.passages")
    joined = task._replace(cut=Cut(path, _passages([*old, new], path)))
    dimension = int(vectors[0].shape[1])
    with VectorWriter(joined.out, task.storage) as file:
        for rows in (*vectors, open_vectors(task.out, dimension, len(new), task.storage)):
            file.add(rows.astype(np.float32))
    return joined


def _passages(shards: Sequence[Shard], path: Path) -> Written:
    columns = list(zip(*(shard.sections() for shard in shards), strict=True))
    with SectionWriter(path, KIND) as file:
        for number, parts in enumerate(columns):
            file.begin()
            file.write(_ends(parts) if number in (2, 4) else np.concatenate(parts))
    passages, documents, echoes = (sum(map(len, columns[i])) for i in (0, 3, 5))
    return Written(passages, documents, echoes, 0, file.size, file.digest)


def _ends(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Join lists of ends, each of which begins at 0."""
    found, last = [np.zeros(1, np.int64)], 0
    for ends in parts:
        found.append(ends[1:] + last)
        last += int(ends[-1])
    return np.concatenate(found)
