"""Compressed token vectors: the nearest centroid, and the residual in a few bits per number (ColBERTv2, section 3.3)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import InputError
from knowhalu.index.container import Floats, Ints

ALLOWED_BITS = (1, 2, 4, 8)
MAX_VECTORS_PER_CENTROID = 40
"""Most training vectors for each centroid."""
KMEANS_ROUNDS = 8
MAX_RESIDUAL_SAMPLE = 2**18
"""Sampled residual numbers for fitting the quantization levels."""


class ResidualCodes(NamedTuple):
    """Compressed vectors: centroid numbers `(n,)`, and packed residuals `(n, dimension * bits / 8)`."""

    centroids: NDArray[np.int32]
    residuals: NDArray[np.uint8]


class ResidualCodec:
    """Compress vectors of length 1 to a centroid and residuals of `bits` bits, and back.

    `borders` `(2**bits - 1,)` divide the residuals into ranges, `values` `(2**bits,)` represent them: a number of a residual is
    restored as the nearest value. ColBERTv2 uses quantiles; values of least squared error are more accurate.
    """

    def __init__(self, centroids: Floats, borders: Floats, values: Floats) -> None:
        floats = (np.ascontiguousarray(a, dtype=np.float32) for a in (centroids, borders, values))
        self.centroids, self.borders, self.values = floats
        self.bits = int(len(values)).bit_length() - 1
        if self.bits not in ALLOWED_BITS or len(values) != 1 << self.bits or len(borders) != len(values) - 1:
            raise InputError(f"{len(values)} values and {len(borders)} borders: residuals must have 1, 2, 4 or 8 bits")
        self.dimension = self.centroids.shape[1]
        if self.dimension * self.bits % 8:
            raise InputError(f"{self.dimension} numbers of {self.bits} bits do not fill whole bytes. Use more bits")
        # the values of each of the 256 bytes, so that unpacking is one look-up
        shifts = np.arange(0, 8, self.bits)
        self._byte_values = self.values[(np.arange(256)[:, None] >> shifts) & (len(self.values) - 1)]
        self._index: Any = None

    @classmethod
    def train(cls, vectors: Floats, centroids: int, bits: int = 4, seed: int = 0) -> "ResidualCodec":
        """Fit centroids by k-means, and the values to the residuals."""
        import faiss

        means = faiss.Kmeans(
            vectors.shape[1], min(centroids, len(vectors)), niter=KMEANS_ROUNDS, seed=seed, spherical=True,
            min_points_per_centroid=1, max_points_per_centroid=MAX_VECTORS_PER_CENTROID,
        )  # fmt: skip
        means.train(np.ascontiguousarray(vectors, dtype=np.float32))
        centers = np.asarray(means.centroids, dtype=np.float32).reshape(-1, vectors.shape[1])
        _, near = means.index.search(vectors, 1)
        return cls(centers, *_fit_quantization_levels((vectors - centers[near[:, 0]]).ravel(), 1 << bits))

    def nearest(self, vectors: Floats) -> NDArray[np.int32]:
        """Return the number of the nearest centroid of each vector."""
        if self._index is None:
            import faiss

            self._index = faiss.IndexFlatIP(self.dimension)
            self._index.add(self.centroids)
        _, near = self._index.search(np.ascontiguousarray(vectors, dtype=np.float32), 1)
        centroids: NDArray[np.int32] = near[:, 0].astype(np.int32)
        return centroids

    def compress(self, vectors: Floats) -> ResidualCodes:
        """Compress vectors `(n, dimension)`."""
        near = self.nearest(vectors)
        level = np.searchsorted(self.borders, vectors - self.centroids[near]).astype(np.uint8)
        shifts = np.arange(0, 8, self.bits, dtype=np.uint8)
        packed = np.bitwise_or.reduce(level.reshape(len(level), -1, 8 // self.bits) << shifts, axis=2)
        return ResidualCodes(near, packed)

    def restore(self, codes: ResidualCodes) -> Floats:
        """Return the vectors of codes, normalized to length 1."""
        vectors: Floats = self.centroids[codes.centroids] + self._byte_values[codes.residuals].reshape(
            len(codes.centroids), self.dimension
        )
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
        return vectors


def _fit_quantization_levels(numbers: Floats, count: int) -> tuple[Floats, Floats]:
    """Fit the values that represent numbers with the least squared error, and the borders half-way between (Lloyd 1982)."""
    numbers = numbers[:: max(1, len(numbers) // MAX_RESIDUAL_SAMPLE)]
    values = np.quantile(numbers, (np.arange(count) + 0.5) / count)
    for _ in range(KMEANS_ROUNDS * 4):
        level = np.searchsorted((values[1:] + values[:-1]) / 2, numbers)
        sizes = np.bincount(level, minlength=count)
        sums = np.bincount(level, weights=numbers, minlength=count)
        values = np.where(sizes > 0, sums / np.maximum(sizes, 1), values)
    return ((values[1:] + values[:-1]) / 2).astype(np.float32), values.astype(np.float32)


def maxsim(query: Floats, tokens: Floats, starts: Ints) -> Floats:
    """Score passages by late interaction (ColBERT, section 3.3): the sum of the best match of every token of the query.

    `tokens` are the concatenated vectors of all passages, `starts` where each passage begins; none is empty.
    """
    best: Floats = np.maximum.reduceat(tokens @ query.T, starts, axis=0)
    scores: Floats = best.sum(axis=1, dtype=np.float32)
    return scores
