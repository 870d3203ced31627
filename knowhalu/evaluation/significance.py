"""McNemar's test of two methods on the same rows, and Holm's correction for several tests."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from knowhalu.evaluation.metrics import Flags


class McNemar(NamedTuple):
    """The rows on which only the first or only the other was right, and the two-sided p of the difference."""

    first_only: int
    other_only: int
    p: float


def mcnemar(first: Flags, other: Flags) -> McNemar:
    """Compare two methods by whether each was right, row by row: the exact binomial test."""
    from scipy.special import bdtr

    ours, theirs = int(np.sum(first & ~other)), int(np.sum(~first & other))
    p = 1.0 if ours == theirs else min(1.0, 2 * float(bdtr(min(ours, theirs), ours + theirs, 0.5)))
    return McNemar(ours, theirs, p)


def holm(values: Sequence[float]) -> list[float]:
    """Return the p-values corrected for their number (Holm 1979), in the order given."""
    corrected, largest = [0.0] * len(values), 0.0
    for rank, i in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        largest = max(largest, min(1.0, (len(values) - rank) * values[i]))
        corrected[i] = largest
    return corrected
