"""Curves of predictions against gold labels, as numbers: ROC, risk and coverage, reliability, and the distribution of times.

Probabilities are those of being hallucinated; a hallucination is a positive.
"""

from typing import NamedTuple

import numpy as np

from knowhalu.evaluation.metrics import Flags, Floats

CURVE_BINS = 10
MAX_POINTS = 300
"""Points of a drawn curve, at most."""


class Curve(NamedTuple):
    """Points of a line: arrays of equal length, from left to right."""

    x: Floats
    y: Floats


class ReliabilityBins(NamedTuple):
    """Bins of probability that hold rows: their limits, rows, mean probability and share of hallucinated; and the ECE.

    ECE is the expected calibration error: the mean distance of share and mean probability, weighted by rows.
    """

    low: Floats
    high: Floats
    rows: Floats
    probability: Floats
    share: Floats
    ece: float | None


def make_roc_curve(gold: Flags, probability: Floats) -> Curve | None:
    """Return the true positive rate over the false positive rate, one point for each threshold.

    Rows of equal probability share a point. None where one of the labels is missing.
    """
    if gold.all() or not gold.any():
        return None
    order = np.argsort(-probability, kind="stable")
    last = np.flatnonzero(np.r_[np.diff(probability[order]) != 0, True])
    hits, alarms = np.cumsum(gold[order])[last], np.cumsum(~gold[order])[last]
    return _corners(Curve(np.r_[0.0, alarms / alarms[-1]], np.r_[0.0, hits / hits[-1]]))


def make_risk_coverage_curve(right: Flags, abstained: Flags, confidence: Floats) -> Curve | None:
    """Return the error rate of the most confident verdicts over their share of all rows.

    Verdicts of equal confidence share a point. An abstention is no verdict, so the curve ends at the share of rows that have
    one. None without any. (El-Yaniv and Wiener 2010, section 2.)
    """
    decided = ~abstained
    if not decided.any():
        return None
    order = np.argsort(-confidence[decided], kind="stable")
    last = np.flatnonzero(np.r_[np.diff(confidence[decided][order]) != 0, True])
    wrong = np.cumsum(~right[decided][order])[last]
    return Curve((last + 1) / len(decided), wrong / (last + 1))


def reliability_bins(gold: Flags, probability: Floats, bins: int = CURVE_BINS) -> ReliabilityBins:
    """Compare probability and share of hallucinated in bins of equal width; a bin without rows is left out.

    A bin holds its lower end, the last also 1. (Guo et al. 2017, section 2, of the probability of one class.)
    """
    edges = np.linspace(0.0, 1.0, bins + 1)
    place = np.minimum((probability * bins).astype(np.intp), bins - 1)
    rows = np.bincount(place, minlength=bins).astype(float)
    held = rows > 0
    mean = np.bincount(place, weights=probability, minlength=bins)[held] / rows[held]
    share = np.bincount(place, weights=gold.astype(float), minlength=bins)[held] / rows[held]
    ece = float((rows[held] * np.abs(mean - share)).sum() / rows.sum()) if len(gold) else None
    return ReliabilityBins(edges[:-1][held], edges[1:][held], rows[held], mean, share, ece)


def histogram(values: Floats, edges: Floats) -> Floats:
    """Return the share of values in each bin; the last bin holds its upper limit too."""
    counts, _ = np.histogram(values, edges)
    return counts / max(1, len(values))


def log_bin_edges(values: Floats, bins: int = 16) -> Floats:
    """Return limits of bins that are equally wide on a logarithmic scale and hold all positive values."""
    positive = values[values > 0]
    if not len(positive):
        return np.array([1e-3, 1.0])
    low, high = float(positive.min()), float(positive.max())
    edges = np.geomspace(low, max(high, 1.1 * low), bins + 1)
    edges[0], edges[-1] = low, max(high, 1.1 * low)  # geomspace may miss them by a rounding, and lose a value
    return edges


def thin_curve(curve: Curve, most: int = MAX_POINTS) -> Curve:
    """Return a curve of at most so many points, its ends among them."""
    chosen = np.unique(np.linspace(0, len(curve.x) - 1, min(most, len(curve.x))).round().astype(int))
    return Curve(curve.x[chosen], curve.y[chosen])


def _corners(curve: Curve) -> Curve:
    """Leave out points in the middle of a straight line."""
    dx, dy = np.diff(curve.x), np.diff(curve.y)
    bends = ~np.isclose(dx[1:] * dy[:-1], dx[:-1] * dy[1:], rtol=1e-9, atol=1e-15)
    corners = np.r_[True, bends, True]
    return Curve(curve.x[corners], curve.y[corners])
