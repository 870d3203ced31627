"""Dense search of an index folder: candidates from FAISS or exact search, ranked by their stored vectors.

FAISS compares a block in one matrix product, whose rounding depends on the neighbours, so its scores only choose candidates.
`inner_products` computes each score by itself, so an index that was changed ranks exactly as one that was rebuilt.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from knowhalu.index.container import BLOCK_BYTES, Floats, Ints, ShardVectors
from knowhalu.index.faiss_file import open_faiss, parse_parameters
from knowhalu.index.manifest import SearchParameters, check_embedder, open_shard_vectors, read_index_info
from knowhalu.index.passages import is_in_sorted, open_store
from knowhalu.index.protocols import Embedder, check_k
from knowhalu.types import Passage


class NearestRows(NamedTuple):
    """Rows and their cosines, best first, `(queries, k)`, padded with -1."""

    rows: Ints
    scores: Floats


class FaissIndex:
    """Search the passages of an index folder by the cosine of their vectors.

    With the factory "Flat" the result is exact. Otherwise FAISS finds candidates among the passages of the last complete build,
    and all later ones are compared. Candidates are ranked by their stored vectors, ties by the order of the documents.
    Thread-safe.
    """

    def __init__(self, folder: Path, embedder: Embedder, parameters: SearchParameters | str | None = None) -> None:
        self.folder, self.embedder = Path(folder), embedder
        self.manifest = read_index_info(self.folder)
        check_embedder(self.folder, self.manifest, embedder)
        defaults = self.manifest.search.parameters
        if isinstance(parameters, str):
            parameters = parse_parameters(parameters, self.manifest.factory, defaults)
        self.parameters = parameters or defaults
        self.store = open_store(self.folder, self.manifest)
        self._vectors = open_shard_vectors(self.folder, self.manifest)
        self._faiss = open_faiss(self.folder, self.manifest, self.store.tombstones.rows)
        self._exact = ExactSearch(self._vectors, self.manifest.search.rows if self._faiss else 0)

    @classmethod
    def open(cls, folder: Path, embedder: Embedder, parameters: SearchParameters | str | None = None) -> "FaissIndex":
        """Open an index; raises IndexFormatError where it is missing, damaged or built with another embedder.

        `parameters` replace those of the manifest; a text such as "nprobe=64" changes some of them and raises SettingsError for
        an unknown name.
        """
        return cls(folder, embedder, parameters)

    def __len__(self) -> int:
        return self.manifest.counts.passages

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return at most `k` passages for each query, best first; none for a blank query."""
        check_k(k)
        numbers = [i for i, query in enumerate(queries) if query.strip()]
        results: list[list[Passage]] = [[] for _ in queries]
        if numbers:
            near = self.nearest(self.embedder.encode([queries[i] for i in numbers], query=True), k)
            for i, row, score in zip(numbers, near.rows.tolist(), near.scores.tolist(), strict=True):
                results[i] = [self.store.get(n, s) for n, s in zip(row, score, strict=True) if n >= 0]
        return results

    def nearest(self, queries: Floats, k: int) -> NearestRows:
        """Return the `k` nearest rows of each query vector `(n, dimension)`."""
        queries = np.ascontiguousarray(queries, np.float32)
        k = min(k, len(self))
        if k == 0:
            return NearestRows(np.zeros((len(queries), 0), np.int64), np.zeros((len(queries), 0), np.float32))
        candidates = np.zeros((len(queries), 0), np.int64)
        if self._faiss:
            count = min(self.manifest.search.rows, k * self.parameters.refine)
            candidates = self._faiss.candidates(queries, count, self.parameters)
        if not len(self._exact):
            return self._ranked(queries, candidates, k)
        want = min(k + 8, len(self._exact))
        while True:
            near = self._exact.candidates(queries, want)
            best = self._ranked(queries, np.hstack([candidates, near.rows]), k)
            # a row below the last candidate could be among the best only if their scores were within the error bound
            if want == len(self._exact) or np.all(near.floor + self._exact.error < best.scores[:, -1]):
                return best
            want = min(4 * want, len(self._exact))

    def _ranked(self, queries: Floats, rows: Ints, k: int) -> NearestRows:
        """Rank candidate rows `(n, m)` by their exact scores, then by document and number, and keep `k`."""
        alive = rows >= 0
        if len(self.store.tombstones.rows):
            alive &= ~is_in_sorted(rows, self.store.tombstones.rows)
        query_numbers, is_whole = np.arange(len(rows))[:, None], bool(alive.all())
        known = rows if is_whole else np.where(alive, rows, 0)
        scores = inner_products(queries, self._vectors, known)
        if not is_whole:
            scores[~alive] = -np.inf
        order = np.argsort(-scores, axis=1)
        best = scores[query_numbers, order]
        if np.any((best[:, 1:] == best[:, :-1]) & (best[:, 1:] > -np.inf)):
            places = self.store.places(known.ravel()).reshape(*rows.shape, 4)
            order = np.lexsort((places[..., 1], places[..., 0], -scores))
        order, best = order[:, :k], best[:, :k]
        return NearestRows(np.where(best > -np.inf, rows[query_numbers, order], -1), best)


class NearestCandidates(NamedTuple):
    """The nearest rows of each query, `(queries, count)`, and the lowest of their scores, `(queries,)`."""

    rows: Ints
    floor: Floats


class ExactSearch:
    """Compare queries with all vectors from row `first` on."""

    def __init__(self, vectors: ShardVectors, first: int) -> None:
        self._vectors, self._first = vectors, first
        self.error = vectors.dimension * 2.0**-23
        """Bound of the rounding error of a score: that of a sum of this many products, for two orders of summation."""

    def __len__(self) -> int:
        return len(self._vectors) - self._first

    def candidates(self, queries: Floats, count: int) -> NearestCandidates:
        """Return the `count` nearest rows of each query, unordered."""
        rows = np.zeros((len(queries), 0), np.int64)
        scores = np.zeros((len(queries), 0), np.float32)
        for first, block in self._vectors.blocks(self._first) if count else ():
            import faiss

            best, places = faiss.knn(queries, block, min(count, len(block)), faiss.METRIC_INNER_PRODUCT)
            rows, scores = np.hstack([rows, places + first]), np.hstack([scores, best])
            if rows.shape[1] > count:
                keep = np.argpartition(-scores, count - 1, axis=1)[:, :count]
                rows, scores = np.take_along_axis(rows, keep, 1), np.take_along_axis(scores, keep, 1)
        floor = scores.min(axis=1) if scores.shape[1] else np.full(len(queries), -np.inf, np.float32)
        return NearestCandidates(rows, floor)


def inner_products(queries: Floats, vectors: ShardVectors, rows: Ints) -> Floats:
    """Return the inner product of each query with its rows `(queries, m)`."""
    products = np.empty(rows.shape, np.float32)
    step = max(1, BLOCK_BYTES // (4 * max(1, rows.shape[1]) * vectors.dimension))
    for i in range(0, len(queries), step):
        near = vectors.gather(rows[i : i + step].ravel()).reshape(*rows[i : i + step].shape, vectors.dimension)
        # unlike a matrix product, einsum sums each row by itself, so a score does not depend on the neighbours
        products[i : i + step] = np.einsum("qmd,qd->qm", near, queries[i : i + step])
    return products
