"""Curves, by hand and against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import roc_curve

from knowhalu.evaluation.curves import (
    Curve,
    histogram,
    log_bin_edges,
    make_risk_coverage_curve,
    make_roc_curve,
    reliability_bins,
    thin_curve,
)

LEVELS = [0.0, 0.11, 0.25, 0.31, 0.49, 0.50001, 0.93, 1.0]
"""None at a border of bins, which scikit-learn gives to the bin below."""
rows = st.lists(st.tuples(st.booleans(), st.sampled_from(LEVELS)), min_size=2, max_size=60)


def arrays(rows):
    gold, probability = zip(*rows, strict=True)
    return np.array(gold), np.array(probability, dtype=float)


@given(rows)
def test_roc_agrees_with_scikit_learn(rows):
    gold, p = arrays(rows)
    if len(set(gold)) < 2:
        assert make_roc_curve(gold, p) is None
        return
    x, y, _ = roc_curve(gold, p, drop_intermediate=False)
    mine = make_roc_curve(gold, p)
    assert (mine.x[0], mine.y[0], mine.x[-1], mine.y[-1]) == (0, 0, 1, 1)
    assert np.trapezoid(mine.y, mine.x) == pytest.approx(np.trapezoid(y, x))
    points = set(zip(x.round(12), y.round(12), strict=True))
    assert set(zip(mine.x.round(12), mine.y.round(12), strict=True)) <= points


def test_roc_omits_collinear_points():
    gold, p = np.array([True, True, False, True, False]), np.array([0.9, 0.8, 0.5, 0.5, 0.1])
    found = make_roc_curve(gold, p)
    assert found.x.tolist() == [0, 0, 0.5, 1]
    assert found.y.tolist() == [0, 2 / 3, 1, 1]


def test_risk_coverage_orders_by_confidence_and_excludes_abstentions():
    right = np.array([True, False, True, True, False, False])
    abstained = np.array([False, False, False, False, False, True])
    sure = np.array([0.9, 0.6, 0.8, 0.8, 0.7, 0.99])
    found = make_risk_coverage_curve(right, abstained, sure)
    np.testing.assert_allclose(found.x, [1 / 6, 3 / 6, 4 / 6, 5 / 6])
    np.testing.assert_allclose(found.y, [0, 0, 1 / 4, 2 / 5])
    assert make_risk_coverage_curve(right, np.ones(6, dtype=bool), sure) is None


@given(rows)
def test_reliability_agrees_with_scikit_learn(rows):
    gold, p = arrays(rows)
    found = reliability_bins(gold, p)
    if len(set(gold)) == 2:
        share, mean = calibration_curve(gold, p, n_bins=10)
        np.testing.assert_allclose(found.share, share)
        np.testing.assert_allclose(found.probability, mean)
    assert found.rows.sum() == len(gold)
    assert ((found.low <= found.probability + 1e-12) & (found.probability <= found.high + 1e-12)).all()


def test_calibration_error_of_bins_by_hand():
    found = reliability_bins(np.array([True, True, False, True]), np.array([0.92, 0.98, 0.32, 0.38]))
    assert found.rows.tolist() == [2, 2]
    assert found.ece == pytest.approx(0.5 * abs(0.35 - 0.5) + 0.5 * abs(0.95 - 1))
    assert reliability_bins(np.array([True, False]), np.array([0.2, 1.0])).low.tolist() == pytest.approx([0.2, 0.9])
    nothing = reliability_bins(np.zeros(0, dtype=bool), np.zeros(0))
    assert (nothing.ece, len(nothing.rows)) == (None, 0)


@given(st.lists(st.floats(1e-6, 1e5), min_size=1, max_size=50))
def test_histogram_includes_every_value(values):
    edges = log_bin_edges(np.array(values))
    assert histogram(np.array(values), edges).sum() == pytest.approx(1.0)
    assert (np.diff(edges) > 0).all()


def test_thinned_curve_keeps_its_ends():
    long = Curve(np.linspace(0, 1, 10_000), np.linspace(0, 1, 10_000) ** 2)
    short = thin_curve(long, 50)
    assert (len(short.x), short.x[0], short.x[-1], short.y[-1]) == (50, 0, 1, 1)
    assert thin_curve(short, 300).x.tolist() == short.x.tolist()
