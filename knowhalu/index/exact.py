"""Exact search: all vectors compared block by block, and scores that do not depend on where a vector lies.

FAISS compares a block in one multiplication, whose rounding depends on the neighbours. So its scores only choose candidates;
`inner_products` gives each its score from its own numbers alone, and an index that was changed answers just like one built anew.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.index.container import BLOCK_BYTES, Floats, ShardVectors

Ints = NDArray[np.int64]


class NearestCandidates(NamedTuple):
    """The nearest rows of each query, `(queries, count)`, and the lowest score among them, `(queries,)`."""

    rows: Ints
    floor: Floats


class ExactSearch:
    """Compare queries with all vectors from row `first` on."""

    def __init__(self, vectors: ShardVectors, first: int) -> None:
        self._vectors, self._first = vectors, first
        self.error = vectors.dimension * 2.0**-23
        """How far a score may be from the true one: the bound for a sum of so many products, for two ways to add them up."""

    def __len__(self) -> int:
        """Return the number of vectors that are compared."""
        return len(self._vectors) - self._first

    def candidates(self, queries: Floats, count: int) -> NearestCandidates:
        """Return the `count` nearest rows of each query, in no order."""
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
    found = np.empty(rows.shape, np.float32)
    step = max(1, BLOCK_BYTES // (4 * max(1, rows.shape[1]) * vectors.dimension))
    for i in range(0, len(queries), step):
        near = vectors.gather(rows[i : i + step].ravel()).reshape(*rows[i : i + step].shape, vectors.dimension)
        # unlike a matrix product, it adds up each row by itself, so a score does not depend on the neighbours
        found[i : i + step] = np.einsum("qmd,qd->qm", near, queries[i : i + step])
    return found
