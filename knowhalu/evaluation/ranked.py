"""Figures that follow from an order of the rows, for every resample of a bootstrap at once: ROC-AUC, PR-AUC, coverage.

Rows are put in order once; a resample only says how often each row counts. Rows of equal value are one step of the order.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.evaluation.figures import RANKED, Flags, Floats, Said

Weights = NDArray[np.number]


class Steps(NamedTuple):
    """An order, step by step: rows of the step, those of them that are marked, and both so far; arrays of shape (..., steps)."""

    size: Floats
    gain: Floats
    rows: Floats
    marked: Floats


def ranked(said: Said, weights: Weights | None = None, names: Collection[str] = RANKED) -> dict[str, Floats]:
    """Return the `RANKED` figures of these names, for whole row weights of shape (..., rows); 1 each without."""
    w = np.ones(len(said.gold), dtype=np.uint8) if weights is None else weights
    if not len(said.gold):
        return {name: np.full(w.shape[:-1], np.nan) for name in names}
    found = {}
    if "auc" in names or "pr_auc" in names:
        by_probability = _steps(-said.probability, said.gold, w)
        found = {"auc": _auc(by_probability), "pr_auc": _average_precision(by_probability)}
    if "coverage_area" in names:
        found["coverage_area"] = _area(_steps(-confidence(said), said.gold == said.settled, w))
    return {name: value for name, value in found.items() if name in names}


def confidence(said: Said) -> Floats:
    """Return how sure each verdict is: the distance of its probability from 0.5, and less than any where it abstains."""
    found: Floats = np.where(said.abstained, -1.0, np.abs(said.probability - 0.5))
    return found


def _steps(value: Floats, marked: Flags, weights: Weights) -> Steps:
    """Add up weights in the order of a value, and those of the marked rows."""
    order = np.argsort(value, kind="stable")
    ordered = value[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    size = np.take(weights, order, axis=-1).astype(np.float64)
    gain = size * marked[order]
    if len(starts) < len(order):
        size, gain = (np.add.reduceat(part, starts, axis=-1) for part in (size, gain))
    return Steps(size, gain, np.cumsum(size, axis=-1), np.cumsum(gain, axis=-1))


def _auc(found: Steps) -> Floats:
    """Count the pairs in which the marked row comes first, a tie as half a pair."""
    positives, total = found.marked[..., -1], found.rows[..., -1]
    first = _product(found.size - found.gain, found.marked) - _product(found.size - found.gain, found.gain) / 2
    return _ratio(first, positives * (total - positives))


def _average_precision(found: Steps) -> Floats:
    """Add up precision times the gain in recall, without interpolation."""
    return _ratio(_product(found.gain, found.marked / np.maximum(found.rows, 1)), found.marked[..., -1])


def _area(right: Steps) -> Floats:
    """Average the accuracy of the k surest verdicts over all k; inside a tie, over all its orders.

    With a rows (r of them right) before a tie and b after it, of which a share s is right, the expected accuracies of its
    k = a+1 ... b add up to (r - a s) (H(b) - H(a)) + (b - a) s, H being the harmonic numbers.
    """
    total = right.rows[..., -1]
    harmonic = np.r_[0.0, np.cumsum(1 / np.arange(1, int(np.max(total, initial=0)) + 1))]
    after, before = right.rows.astype(np.intp), (right.rows - right.size).astype(np.intp)
    share = right.gain / np.maximum(right.size, 1)
    offset = right.marked - right.gain - before * share
    return _ratio(_product(offset, harmonic[after] - harmonic[before]) + right.marked[..., -1], total)


def _product(one: Floats, other: Floats) -> Floats:
    found: Floats = np.einsum("...i,...i->...", one, other)
    return found


def _ratio(part: Floats, whole: Floats) -> Floats:
    missing = np.asarray(whole) == 0
    return np.where(missing, np.nan, part / np.where(missing, 1.0, whole))
