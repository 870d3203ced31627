"""Rows of different lengths in batches: near neighbours in length together, so that little of a batch is padding."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

STEP = 8
"""Padded lengths are multiples of this, so that there are few of them: CPU kernels are prepared anew for every shape."""
SPREAD = 8
"""The longest row of a batch is longer than its shortest by at most the shortest's length divided by this, or by one step."""


class Batch(NamedTuple):
    """The numbers of the rows of a batch, shortest first, and the length that they are padded to."""

    rows: list[int]
    length: int


def batches(lengths: Sequence[int], budget: int) -> Iterator[Batch]:
    """Yield batches of at most `budget` tokens with their padding; a row that is longer stands alone."""
    rows: list[int] = []
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if rows and not (_near(lengths[rows[0]], lengths[i]) and (len(rows) + 1) * _padded(lengths[i]) <= budget):
            yield Batch(rows, _padded(lengths[rows[-1]]))
            rows = []
        rows.append(i)
    if rows:
        yield Batch(rows, _padded(lengths[rows[-1]]))


def _near(shortest: int, longest: int) -> bool:
    return longest - shortest <= max(shortest // SPREAD, STEP)


def _padded(length: int) -> int:
    return -(-length // STEP) * STEP
