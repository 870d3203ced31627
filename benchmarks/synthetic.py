"""Clustered vectors without a model: a text that is a number stands for a vector, the same one on every machine.

Nothing is drawn from a generator: every coordinate is a hash of the number and its place, so vectors can be made in any order.
"""

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from knowhalu.ingest.sources import SourceRecord

SPREAD = 0.7
"""Length of what is a vector's own, where its cluster's centre has length 1."""
Floats = NDArray[np.float32]


def _noise(numbers: NDArray[np.uint64], dimension: int, salt: int) -> Floats:
    """Return a hash of each number as a row of about normal coordinates with length 1 on average (splitmix64)."""
    found = np.empty((len(numbers), dimension), np.float32)
    for start in range(0, len(numbers), 4096):
        part = numbers[start : start + 4096, None]
        mixed = part * np.uint64(dimension) + np.arange(dimension, dtype=np.uint64) + np.uint64(salt << 48)
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        halves = mixed.view(np.uint16).reshape(len(part), dimension, 4)
        # the sum of four even draws is close to a normal one
        found[start : start + 4096] = (halves.sum(axis=2, dtype=np.int64) - 4 * 32767.5) / 37837.0
    return found / np.float32(dimension**0.5)


class Synthetic:
    """An embedder of numbers: cluster centre plus noise, normalised; a text "5 again" is a query near vector 5."""

    symmetric = True
    name = "synthetic"

    def __init__(self, clusters: int, dimension: int = 384) -> None:
        self.clusters, self.dimension = clusters, dimension
        self.fingerprint = hashlib.sha256(f"synthetic {clusters} {dimension} {SPREAD}".encode()).hexdigest()

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Floats:
        """Return the vectors of some numbers."""
        numbers = np.array([int(t.partition(" ")[0]) for t in texts], np.uint64)
        found = _noise(numbers % np.uint64(self.clusters), self.dimension, 1) + SPREAD * _noise(numbers, self.dimension, 2)
        if any(t.endswith("again") for t in texts):
            found += 0.5 * SPREAD * _noise(numbers, self.dimension, 3)
        normed: Floats = found / np.linalg.norm(found, axis=1, keepdims=True)
        return normed


def numbered(count: int) -> Iterator[SourceRecord]:
    """Yield documents whose text is their number."""
    for i in range(count):
        yield SourceRecord(f"n{i}", "", str(i), "")
