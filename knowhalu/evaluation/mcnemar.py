"""McNemar's test: whether, of the rows on which two methods differ, one is right more often than by chance."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from knowhalu.evaluation.figures import Flags

EXACT = 1000
"""Differing rows up to which the binomial distribution is summed; beyond, chi-squared with continuity correction is as good."""


class McNemar(NamedTuple):
    """Rows on which only the first, or only the other was right, and the two-sided p of such a difference by chance."""

    first_only: int
    other_only: int
    p: float


def mcnemar(first: Flags, other: Flags) -> McNemar:
    """Compare two methods by whether each was right, row by row."""
    ours, theirs = int(np.sum(first & ~other)), int(np.sum(~first & other))
    return McNemar(ours, theirs, _p(ours, theirs))


def holm(values: Sequence[float]) -> list[float]:
    """Return the p-values corrected for their number (Holm 1979), in the order given."""
    found, largest = [0.0] * len(values), 0.0
    for rank, i in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        largest = max(largest, min(1.0, (len(values) - rank) * values[i]))
        found[i] = largest
    return found


def _p(ours: int, theirs: int) -> float:
    differing, fewer = ours + theirs, min(ours, theirs)
    if not differing or ours == theirs:
        return 1.0
    if differing <= EXACT:
        tail: int = sum(math.comb(differing, k) for k in range(fewer + 1))
        return min(1.0, 2 * tail / (1 << differing))
    return math.erfc(math.sqrt((abs(ours - theirs) - 1) ** 2 / differing / 2))
