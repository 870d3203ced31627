"""The late-interaction part: a compressed vector for every token of every passage, and the rows near each centroid.

A vector is stored as its nearest centroid and a residual in a few bits per number (ColBERTv2, section 3.3).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import InputError
from knowhalu.index.container import Floats, Ints
from knowhalu.index.part import POSTINGS_PER_RUN, IndexPart, PartManifest, PartWriter, PostingRuns, write_posting_lists
from knowhalu.index.passages import PassageRows
from knowhalu.index.protocols import TokenEncoder
from knowhalu.types import Passage

BATCH_PASSAGES = 256
"""Passages encoded at once."""
MAX_CENTROIDS = 2**16
CENTROIDS_PER_SQRT_TOKENS = 8.0
"""Centroids per square root of the number of tokens; the number is rounded down to a power of two."""
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
        return np.asarray(near[:, 0], np.int32)

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


def passage_text(passage: Passage) -> str:
    """Return the input of the encoder: the title as a sentence, then the text."""
    return f"{passage.title}. {passage.text}" if passage.title else passage.text


def build_late_part(
    passages: PassageRows,
    folder: Path,
    content: str,
    encoder: TokenEncoder,
    *,
    bits: int = 4,
    centroids: int | None = None,
    seed: int = 0,
    run: int = POSTINGS_PER_RUN,
) -> PartManifest:
    """Write the late-interaction part of an index into `folder`.

    Centroids are learned from a sample of passages drawn by `seed`; memory holds the sample and one run of postings.
    Raises InputError where there is no passage.
    """
    if not len(passages):
        raise InputError("there is no passage to build a late-interaction index from. Add documents first")
    encoded, centroids = _encode_sample(passages, encoder, centroids, seed)
    codec = ResidualCodec.train(np.concatenate([encoded[row] for row in sorted(encoded)]), centroids, bits, seed)
    with PartWriter(folder, "late") as out:
        runs = PostingRuns(out.work / "runs", run)
        out.add("centers", codec.centroids, "<f4")
        out.add("borders", codec.borders, "<f4")
        out.add("values", codec.values, "<f4")
        out.add("tokens", np.zeros(1), "<i8")
        step, total = centroid_key_step(len(codec.centroids)), 0
        for start, vectors in _encode_passages(passages, encoder, encoded):
            codes, sizes = codec.compress(np.concatenate(vectors)), list(map(len, vectors))
            out.add("codes", codes.centroids, "<i4")
            out.add("residuals", codes.residuals, "u1")
            out.add("tokens", total + np.cumsum(sizes), "<i8")
            total += sum(sizes)
            rows = np.repeat(np.arange(start, start + len(vectors)), sizes)
            row, centroid = np.unique(np.stack([rows, codes.centroids], axis=1), axis=0).T
            runs.add(centroid.astype(np.uint64) * step, row, 1)
        write_posting_lists(out, runs)
        settings: dict[str, str | int | float] = {"encoder": encoder.name, "fingerprint": encoder.fingerprint}
        return out.finish(content, len(passages), {**settings, "dimension": encoder.dimension, "bits": bits})


def centroid_key_step(centroids: int) -> np.uint64:
    """Return the distance between the keys of consecutive centroids, which spreads them over all 64-bit numbers."""
    return np.uint64((2**64 - 1) // centroids)


def _encode_sample(
    passages: PassageRows, encoder: TokenEncoder, centroids: int | None, seed: int
) -> tuple[dict[int, Floats], int]:
    """Encode passages at random until there are enough tokens for training; return them by row, and the number of centroids."""
    sample: dict[int, Floats] = {}
    order = np.random.default_rng(seed).permutation(len(passages)).tolist()
    tokens, count = 0, centroids or 1
    for start in range(0, len(order), BATCH_PASSAGES):
        rows = order[start : start + BATCH_PASSAGES]
        vectors = encoder.encode([passage_text(passages.get(row)) for row in rows])
        sample.update(zip(rows, vectors, strict=True))
        tokens += sum(map(len, vectors))
        if centroids is None:
            expected = tokens / len(sample) * len(passages)
            count = min(MAX_CENTROIDS, 2 ** max(0, int(np.log2(max(1.0, CENTROIDS_PER_SQRT_TOKENS * np.sqrt(expected))))))
        if tokens >= count * MAX_VECTORS_PER_CENTROID:
            break
    return sample, count


def _encode_passages(
    passages: PassageRows, encoder: TokenEncoder, known: dict[int, Floats]
) -> Iterator[tuple[int, list[Floats]]]:
    """Yield the token vectors of all passages in order, batch by batch, with the first row of each batch."""
    for start in range(0, len(passages), BATCH_PASSAGES):
        rows = range(start, min(start + BATCH_PASSAGES, len(passages)))
        missing = [row for row in rows if row not in known]
        vectors = encoder.encode([passage_text(passages.get(row)) for row in missing]) if missing else []
        known.update(zip(missing, vectors, strict=True))
        yield start, [known.pop(row) for row in rows]


def is_late_part_current(part: IndexPart, encoder: TokenEncoder, bits: int) -> bool:
    """Return whether a part was built by this encoder with this number of bits."""
    settings = part.head.settings
    return (settings.get("fingerprint"), settings.get("bits")) == (encoder.fingerprint, bits)
