"""Bootstrap intervals: whole groups of rows are drawn again and again, and every figure is computed of every resample at once."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.evaluation.figures import BIASED, FIGURES, RANKED, Floats, Said, counts, figures
from knowhalu.evaluation.ranked import ranked

DRAWS, SEED = 2000, 0
LIMITS = (2.5, 97.5)
CELLS = 1_000_000
"""Numbers of a resample held at a time, at most."""


class Figure(NamedTuple):
    """A value with its 95 % bootstrap interval; what cannot be given is None."""

    value: float | None
    low: float | None = None
    high: float | None = None


def draws(groups: int, *, times: int = DRAWS, seed: int = SEED) -> NDArray[np.uint8]:
    """Draw as many groups as there are, with replacement: how often each one came, in an array of shape (times, groups)."""
    rng = np.random.default_rng(seed)
    found = np.empty((times, groups), dtype=np.uint8)
    for drawn in found:
        drawn[:] = np.bincount(rng.integers(0, groups, groups), minlength=groups)
    return found


def with_intervals(
    said: Said, groups: NDArray[np.intp], drawn: NDArray[np.uint8], names: Sequence[str] = FIGURES
) -> dict[str, Figure]:
    """Return figures of some rows, each with its percentile interval.

    `groups` has the group number of each row, `drawn` how often each group came; with less than two groups among the rows there
    is no interval, nor is there one for the `BIASED`.
    """
    by_order = [name for name in names if name in RANKED]
    whole = {**figures(counts(said).sum(axis=0)), **ranked(said, names=by_order)}
    present, numbers = np.unique(groups, return_inverse=True)
    if len(present) < 2:
        return {name: Figure(_number(whole[name])) for name in names}
    times = drawn if len(present) == drawn.shape[1] else drawn[:, present]
    spread = {**resampled(said, numbers, times), **_resampled_ranks(said, numbers, times, by_order)}
    return {n: Figure(_number(whole[n]), *(limits(spread[n]) if n not in BIASED else ())) for n in names}


def resampled(said: Said, groups: NDArray[np.intp], drawn: NDArray[np.uint8]) -> dict[str, Floats]:
    """Return the figures of every resample that follow from counts."""
    single = counts(said)
    by_group = np.zeros((drawn.shape[1], single.shape[1]))
    np.add.at(by_group, groups, single)
    total = np.concatenate([part.astype(np.float64) @ by_group for part in _parts(drawn, drawn.shape[1])])
    return figures(total)


def limits(values: Floats) -> tuple[float | None, float | None]:
    """Return the ends of the 95 % interval; resamples of which a figure cannot be given are left out."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None, None
    low, high = np.percentile(known, LIMITS)
    return float(low), float(high)


def _resampled_ranks(said: Said, groups: NDArray[np.intp], drawn: NDArray[np.uint8], names: Sequence[str]) -> dict[str, Floats]:
    found = [ranked(said, part[:, groups], names) for part in _parts(drawn, len(groups))] if names else []
    return {name: np.concatenate([part[name] for part in found]) for name in names}


def _parts(drawn: NDArray[np.uint8], rows: int) -> Iterator[NDArray[np.uint8]]:
    step = max(1, CELLS // max(1, rows))
    return (drawn[i : i + step] for i in range(0, len(drawn), step))


def _number(value: Floats) -> float | None:
    return None if np.isnan(value) else float(value)
