"""Bootstrap intervals: groups of dependent rows are resampled, and every metric is computed for each resample."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.evaluation.metrics import (
    BIASED_METRICS,
    METRICS,
    RANKING_METRICS,
    Flags,
    Floats,
    Predictions,
    metrics_from_counts,
    ranking_metrics,
    row_counts,
)
from knowhalu.types import META_GROUP, META_PAIR, Sample

RESAMPLES, SEED = 2000, 0
PERCENTILES = (2.5, 97.5)
MAX_CELLS = 1_000_000
"""Numbers of resamples held in memory at a time, at most."""


class Estimate(NamedTuple):
    """A value with its 95 % bootstrap interval; unknown numbers are None."""

    value: float | None
    low: float | None = None
    high: float | None = None


def draw_resamples(groups: int, *, times: int = RESAMPLES, seed: int = SEED) -> NDArray[np.uint8]:
    """Draw as many groups as there are, with replacement; return how often each was drawn, of shape (times, groups)."""
    rng = np.random.default_rng(seed)
    counts = np.empty((times, groups), dtype=np.uint8)
    for drawn in counts:
        drawn[:] = np.bincount(rng.integers(0, groups, groups), minlength=groups)
    return counts


def metrics_with_intervals(
    predictions: Predictions, groups: NDArray[np.intp], drawn: NDArray[np.uint8], names: Sequence[str] = METRICS
) -> dict[str, Estimate]:
    """Return metrics of some rows, each with its percentile interval.

    `groups` has the group number of each row, `drawn` how often each group was drawn. With fewer than two groups among the rows
    there is no interval, nor is there one for the `BIASED_METRICS`.
    """
    by_order = [name for name in names if name in RANKING_METRICS]
    whole = {**metrics_from_counts(row_counts(predictions).sum(axis=0)), **ranking_metrics(predictions, names=by_order)}
    present, numbers = np.unique(groups, return_inverse=True)
    if len(present) < 2:
        return {name: make_estimate(whole[name]) for name in names}
    times = drawn if len(present) == drawn.shape[1] else drawn[:, present]
    spread = {**resample_metrics(predictions, numbers, times), **_resample_ranking_metrics(predictions, numbers, times, by_order)}
    return {n: make_estimate(whole[n], *(percentile_interval(spread[n]) if n not in BIASED_METRICS else ())) for n in names}


def resample_metrics(predictions: Predictions, groups: NDArray[np.intp], drawn: NDArray[np.uint8]) -> dict[str, Floats]:
    """Return the metrics of every resample that follow from counts."""
    return metrics_from_counts(resample_sums(row_counts(predictions), groups, drawn))


def resample_sums(columns: Floats, groups: NDArray[np.intp], drawn: NDArray[np.uint8]) -> Floats:
    """Return the sums over the rows of every resample, of shape (draws, columns); `columns` has shape (rows, columns)."""
    by_group = np.zeros((drawn.shape[1], columns.shape[1]))
    np.add.at(by_group, groups, columns)
    return np.concatenate([part.astype(np.float64) @ by_group for part in _batches_of_draws(drawn, drawn.shape[1])])


def percentile_interval(values: Floats) -> tuple[float | None, float | None]:
    """Return the ends of the 95 % interval; resamples without a value (NaN) are left out."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None, None
    low, high = np.percentile(known, PERCENTILES)
    return float(low), float(high)


def _resample_ranking_metrics(
    predictions: Predictions, groups: NDArray[np.intp], drawn: NDArray[np.uint8], names: Sequence[str]
) -> dict[str, Floats]:
    if not names:
        return {}
    batches = [ranking_metrics(predictions, batch[:, groups], names) for batch in _batches_of_draws(drawn, len(groups))]
    return {name: np.concatenate([metrics[name] for metrics in batches]) for name in names}


def _batches_of_draws(drawn: NDArray[np.uint8], rows: int) -> Iterator[NDArray[np.uint8]]:
    step = max(1, MAX_CELLS // max(1, rows))
    return (drawn[i : i + step] for i in range(0, len(drawn), step))


def make_estimate(value: Floats | float, low: float | None = None, high: float | None = None) -> Estimate:
    """Return an estimate, without a value or an interval where the value is NaN."""
    return Estimate(None) if np.isnan(value) else Estimate(float(value), low, high)


def group_numbers(keys: Iterable[Sequence[Hashable]]) -> NDArray[np.intp]:
    """Return a group number for every row, from 0 on: rows that share a key, directly or through others, are one group."""
    parent: list[int] = []
    first: dict[Hashable, int] = {}
    for row, names in enumerate(keys):
        parent.append(row)
        for name in names:
            parent[_root(parent, row)] = _root(parent, first.setdefault(name, row))
    roots = [_root(parent, row) for row in range(len(parent))]
    numbers = {root: i for i, root in enumerate(dict.fromkeys(roots))}
    return np.array([numbers[root] for root in roots], dtype=np.intp)


def group_keys(sample: Sample) -> list[Hashable]:
    """Return the keys that a row may share with others: its groups, or else its pair, its question and each of its sources."""
    if (given := sample.meta.get(META_GROUP)) is not None:
        return [hash((META_GROUP, str(name))) for name in (given if isinstance(given, list | tuple) else [given])]
    pair = [str(sample.meta[META_PAIR])] if sample.meta.get(META_PAIR) is not None else []
    question = [sample.question] if sample.question else []
    sources = [*(d.text for d in sample.documents), *sample.knowledge]
    kinds = ((META_PAIR, pair), ("question", question), ("source", sources))
    return [hash((kind, text)) for kind, texts in kinds for text in texts]


def _root(parent: list[int], row: int) -> int:
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = parent[row]
    return row


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
