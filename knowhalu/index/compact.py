"""Compaction: rewrite a changed index as a build of its documents would, from its own passages and vectors."""

import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from knowhalu.errors import InputError
from knowhalu.index.build import IndexRecipe, ProgressCallback, publish_index
from knowhalu.index.container import Ints, ShardVectors, VectorWriter
from knowhalu.index.embedding import EmbeddingTask
from knowhalu.index.manifest import Manifest, open_shard_vectors, read_manifest
from knowhalu.index.passages import PassageStore, is_in_sorted, open_store
from knowhalu.index.shard_file import Shard, ShardWriter
from knowhalu.index.sharding import FinishedShard
from knowhalu.index.transaction import IndexTransaction
from knowhalu.index.update import describe_change, manifest_recipe

BLOCK_VECTORS = 8192
"""Vectors copied at once."""


def compact_index(folder: Path, *, force: bool = False, progress: ProgressCallback | None = None) -> Manifest:
    """Rewrite an index to the same bytes as a build from its documents in their order; it can be searched meanwhile.

    Raises InputError where no document is left, IndexFormatError where another process is changing the index or there is
    unfinished work on it (`force` discards that).
    """
    folder, watch = Path(folder).resolve(), progress or (lambda _: None)
    read_manifest(folder)
    with IndexTransaction(folder, lambda: describe_change("compact", folder), restart=force) as work:
        if work.published:
            return work.published
        manifest = read_manifest(folder)
        if manifest.generation == 1:
            return manifest
        if not manifest.counts.passages:
            raise InputError(f"{folder}: all documents were deleted, so there is nothing to compact. Add documents first")
        # what an earlier process has copied is copied again quickly
        work.clear()
        store, vectors = open_store(folder, manifest), open_shard_vectors(folder, manifest)
        recipe = manifest_recipe(manifest)
        tasks = list(_Compactor(work, store, vectors, recipe).run())
        return publish_index(work, tasks, recipe, watch)


class _Occurrence(NamedTuple):
    """An occurrence of a text; `row` is its row where this is the first occurrence, else -1."""

    document: int
    number: int
    start: int
    key: bytes
    row: int


def _first_occurrences(store: PassageStore) -> Iterator[_Occurrence]:
    """Yield the places that passages were read from, in order, for documents that were not deleted."""
    first = 0
    for shard in store.shards:
        for i, (document, number, start, _) in _iterate_live(shard.spans, store):
            yield _Occurrence(document, number, start, shard.keys[i : i + 1].tobytes(), first + i)
        first += len(shard)


def _repeated_occurrences(shard: Shard, store: PassageStore, homes: dict[tuple[int, int], int]) -> Iterator[_Occurrence]:
    keys = shard.echo_keys
    for i, (document, number, start) in _iterate_live(shard.echo_places, store):
        yield _Occurrence(document, number, start, keys[i : i + 1].tobytes(), homes.get((document, number), -1))


def _iterate_live(places: Ints, store: PassageStore) -> Iterator[tuple[int, list[int]]]:
    live = np.flatnonzero(~is_in_sorted(places[:, 0], store.tombstones.documents))
    for start in range(0, len(live), BLOCK_VECTORS):
        block = live[start : start + BLOCK_VECTORS]
        yield from zip(block.tolist(), places[block].tolist(), strict=True)


class _Compactor:
    """Write the documents that were not deleted into new shards."""

    def __init__(self, work: IndexTransaction, store: PassageStore, vectors: ShardVectors, recipe: IndexRecipe) -> None:
        self._work, self._store, self._vectors, self._recipe = work, store, vectors, recipe
        self._documents = self._shards = 0
        self._begin()

    def _begin(self) -> None:
        self._writer, self._rows = ShardWriter(self._documents, self._recipe.shard), list[int]()

    def run(self) -> Iterator[EmbeddingTask]:
        """Write all shards, each as soon as it is full, and yield their tasks."""
        homes = {(d, n): row for row, d, n, _ in self._store.tombstones.moved.tolist()}
        streams = [_first_occurrences(self._store), *(_repeated_occurrences(s, self._store, homes) for s in self._store.shards)]
        places = heapq.merge(*streams)
        place = next(places, None)
        for document in range(self._store.documents):
            if is_in_sorted(np.array([document]), self._store.tombstones.documents)[0]:
                continue
            name, title = self._store.document(document)
            self._writer.document(name, title)
            if place is None or place.document != document:
                yield from self._finish(full=True)
            while place is not None and place.document == document:
                if place.row < 0:
                    self._writer.echo(name, place.number, place.start, place.key)
                else:
                    self._writer.passage(name, place.number, place.start, place.key, *self._store.text(place.row))
                    self._rows.append(place.row)
                yield from self._finish(full=True)
                place = next(places, None)
        yield from self._finish(full=False)

    def _finish(self, *, full: bool) -> Iterator[EmbeddingTask]:
        """Write the current shard: when it is `full`, or at the end unless it is empty."""
        if (full and not self._writer.full) or self._writer.empty:
            return
        path = self._work.folder / f"{self._shards:05d}.passages"
        self._documents += self._writer.counts[1]
        task = EmbeddingTask(FinishedShard(path, self._writer.finish(path)), 0, "", self._recipe.chunking, self._recipe.storage)
        rows = np.array(self._rows, np.int64)
        with VectorWriter(task.out, self._recipe.storage) as file:
            for start in range(0, len(rows), BLOCK_VECTORS):
                file.add(self._vectors.gather(rows[start : start + BLOCK_VECTORS]))
        self._shards += 1
        self._begin()
        yield task
