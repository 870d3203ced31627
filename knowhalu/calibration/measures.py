"""Measures of a calibration: rates of right and wrong verdicts, and errors of the probabilities.

All are computed from sums over rows, so that a bootstrap resamples whole groups at once.
"""

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from knowhalu.calibration.tunable import RowIndices
from knowhalu.evaluation.bootstrap import Estimate, draw_resamples, make_estimate, percentile_interval, resample_sums
from knowhalu.evaluation.metrics import BIASED_METRICS, Floats, Predictions, metrics_from_counts, row_counts, safe_ratio

MEASURES = ("average", "tpr", "tnr", "precision", "rest", "open", "brier", "ece")
MEASURE_TITLES = {
    "average": "Avg Acc", "tpr": "TPR", "tnr": "TNR", "precision": "precision of flagged", "rest": "Avg Acc of decided",
    "open": "left open", "brier": "Brier", "ece": "ECE",
}  # fmt: skip


def measures_with_intervals(predictions: Predictions, groups: RowIndices) -> dict[str, Estimate]:
    """Return every measure with its 95 % bootstrap interval over groups; an unknown one has no value."""
    single = row_counts(predictions)
    whole, drawn = measures_from_counts(single.sum(axis=0)), _resample_sums(single, groups)
    spread = None if drawn is None else measures_from_counts(drawn)
    return {
        n: make_estimate(whole[n], *(() if spread is None or n in BIASED_METRICS else percentile_interval(spread[n])))
        for n in MEASURES
    }


def measures_from_counts(total: Floats) -> dict[str, Floats]:
    """Return all measures of summed counts, an array of shape (..., columns of `row_counts`)."""
    known = metrics_from_counts(total)
    positives, negatives, found, passed, open_positives, open_negatives = np.moveaxis(total, -1, 0)[:6]
    alarms = negatives - open_negatives - passed
    return {
        "average": known["average"], "tpr": known["tpr"], "tnr": known["tnr"],
        "precision": safe_ratio(found, found + alarms),
        "rest": (safe_ratio(found, positives - open_positives) + safe_ratio(passed, negatives - open_negatives)) / 2,
        "open": known["inconclusive"], "brier": known["brier"], "ece": known["ece"],
    }  # fmt: skip


def estimate_ratio(part: NDArray[np.bool_], whole: NDArray[np.bool_], groups: RowIndices) -> Estimate:
    """Return the share of the rows in `whole` that are also in `part`, with its 95 % bootstrap interval over groups."""
    single = np.stack([part & whole, whole], axis=1).astype(np.float64)
    share = safe_ratio(*single.sum(axis=0))
    drawn = _resample_sums(single, groups)
    return (
        make_estimate(share)
        if drawn is None
        else make_estimate(share, *percentile_interval(safe_ratio(drawn[:, 0], drawn[:, 1])))
    )


def _resample_sums(single: Floats, groups: RowIndices) -> Floats | None:
    """Return the sums of every bootstrap resample of whole groups, an array of shape (draws, columns); None for one group."""
    numbers = np.unique(groups, return_inverse=True)[1]
    if len(numbers) < 2 or numbers.max() == 0:
        return None
    return resample_sums(single, numbers, draw_resamples(int(numbers.max()) + 1))


def group_folds(groups: RowIndices, most: int = 5, seed: int = 0) -> list[NDArray[np.bool_]]:
    """Divide rows into folds of whole groups and about equal size; return for every fold which rows are in it."""
    numbers, sizes = np.unique(groups, return_counts=True)
    if len(numbers) < 2:
        return []
    drawn = np.random.default_rng(seed).permutation(len(numbers))
    fold_of = np.empty(len(numbers), dtype=np.intp)
    filled = [(0, f) for f in range(min(most, len(numbers)))]
    for group in drawn[np.argsort(-sizes[drawn], kind="stable")]:
        rows, fold = heappop(filled)
        fold_of[group] = fold
        heappush(filled, (rows + int(sizes[group]), fold))
    fold_of_row = fold_of[np.searchsorted(numbers, groups)]
    return [fold_of_row == f for _, f in sorted(filled, key=lambda one: one[1])]


def error_rate_upper_limit(errors: int, rows: int, confidence: float = 0.95) -> float:
    """Return the exact upper limit of an error rate, one-sided (Clopper and Pearson 1934); 1 where there is no row."""
    from scipy.special import bdtri

    return 1.0 if errors >= rows else float(bdtri(errors, rows, 1 - confidence))


def is_error_rate_bounded(rate: float, errors: int, rows: int, confidence: float = 0.95) -> bool:
    """Tell whether the upper limit of the error rate is at most `rate`."""
    from scipy.special import bdtr

    return rate >= 1 or (rate > 0 and errors < rows and bool(bdtr(errors, rows, rate) <= 1 - confidence))
