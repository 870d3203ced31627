"""Rows of different lengths in batches: like lengths together, so that little of a batch is padding.

A row is always padded to the shape of its own length, so neither its neighbours nor its batch change what is said of it; and
there are few shapes, since CPU kernels are prepared anew for every one.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

MIN_PADDED_LENGTH = 32
"""Shorter rows are padded to this length."""


class LengthBatch(NamedTuple):
    """The numbers of the rows of a batch, shortest first, and the length that they are padded to."""

    rows: list[int]
    length: int


def batch_by_length(lengths: Sequence[int], budget: int) -> Iterator[LengthBatch]:
    """Yield batches of at most `budget` tokens with their padding; a row that is longer stands alone."""
    groups: dict[int, list[int]] = defaultdict(list)
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        groups[padded_length(lengths[i])].append(i)
    for length, rows in groups.items():
        size = max(1, budget // length)
        yield from (LengthBatch(rows[a : a + size], length) for a in range(0, len(rows), size))


def padded_length(length: int) -> int:
    """Return the shape of a length: at most an eighth longer, rounded up to a multiple of 8, 16 over 128, 32 over 256."""
    step = max(8, 1 << (length - 1).bit_length() >> 4)
    return max(MIN_PADDED_LENGTH, -(-length // step) * step)
