"""Scalings against scikit-learn, and refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.calibration.scaling import fit_isotonic, fit_logistic, fit_scaling
from knowhalu.errors import InputError
from knowhalu.methods.common.calibrated import log_odds

levels = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.5, 0.75, 0.9, 1.0])


def drawn(rows=4000, slope=0.5, shift=0.7):
    """Draw probabilities whose log-odds are `1 / slope` times too large, and shifted."""
    rng = np.random.default_rng(0)
    p = rng.random(rows)
    return p, rng.random(rows) < 1 / (1 + np.exp(-(slope * log_odds(p) + shift)))


def test_platt_finds_slope_and_shift_and_a_temperature_the_slope():
    platt = fit_scaling("platt", *drawn())
    assert (platt.slope, platt.shift) == (pytest.approx(0.5, abs=0.05), pytest.approx(0.7, abs=0.08))
    assert fit_scaling("temperature", *drawn(shift=0.0)).slope == pytest.approx(0.5, abs=0.05)


def test_logistic_fit_agrees_with_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    p, gold = drawn(500)
    x = np.r_[log_odds(p), log_odds(p)]
    n, positives = len(gold), gold.sum()
    high, low = (positives + 1) / (positives + 2), 1 / (n - positives + 2)
    target = np.where(gold, high, low)  # a row with a target of t is a share t of both labels
    fit = LogisticRegression(C=1e9, tol=1e-10, max_iter=1000)
    fit.fit(x[:, None], np.r_[np.ones(n), np.zeros(n)], np.r_[target, 1 - target])
    assert fit_logistic(log_odds(p), gold, shifts=True) == pytest.approx((fit.coef_[0, 0], fit.intercept_[0]), abs=1e-4)


@given(st.lists(st.tuples(levels, st.booleans()), min_size=1, max_size=40))
def test_isotonic_fit_agrees_with_scikit_learn(rows):
    from sklearn.isotonic import IsotonicRegression

    x, y = np.array([x for x, _ in rows]), np.array([float(y) for _, y in rows])
    ours, theirs = fit_isotonic(x, y), IsotonicRegression(out_of_bounds="clip").fit(x, y)
    at = np.linspace(0, 1, 21)
    assert np.interp(at, *ours) == pytest.approx(theirs.predict(at), abs=1e-9)


@pytest.mark.parametrize("kind", ["temperature", "platt", "isotonic"])
@pytest.mark.parametrize("gold", [[0, 0, 1, 1], [0, 1, 0, 1]])
def test_fitted_scaling_is_monotone_for_separable_labels(kind, gold):
    curve = fit_scaling(kind, np.array([0.0, 0.4, 0.6, 1.0]), np.array(gold, dtype=bool))
    assert np.all(np.diff(curve(np.linspace(0, 1, 50))) >= 0)


@pytest.mark.parametrize("kind", ["temperature", "platt"])
def test_reversed_probabilities_and_a_single_label_are_refused(kind):
    with pytest.raises(InputError, match="no higher where rows are hallucinated.*--scaling none"):
        fit_scaling(kind, np.array([0.1, 0.2, 0.8, 0.9]), np.array([True, True, False, False]))
    with pytest.raises(InputError, match="rows of both labels"):
        fit_scaling(kind, np.array([0.1, 0.2]), np.array([True, True]))
