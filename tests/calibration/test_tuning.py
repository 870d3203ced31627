"""Tuning: goals, thresholds, scaling, sets and cross-validation."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from knowhalu.calibration.measures import (
    error_rate_upper_limit,
    estimate_ratio,
    group_folds,
    is_error_rate_bounded,
    measures_with_intervals,
)
from knowhalu.calibration.tuning import (
    MIN_FLAGGED,
    Goal,
    Tuner,
    decide_predictions,
    fit_decision_thresholds,
    fit_isotonic,
    fit_logistic,
    fit_scaling,
    join_predictions,
)
from knowhalu.errors import InputError
from knowhalu.methods.common.calibrated import DecisionRule, log_odds
from tests.support.stored_runs import fixed, said


@given(st.lists(st.integers(0, 12), min_size=1, max_size=60))
def test_folds_divide_rows_by_whole_groups(groups):
    groups = np.array(groups)
    parts = group_folds(groups)
    kinds = len(np.unique(groups))
    assert len(parts) == (0 if kinds == 1 else min(5, kinds))
    if parts:
        assert np.sum(parts, axis=0).tolist() == [1] * len(groups)
        assert all(not set(groups[part]) & set(groups[~part]) for part in parts)


@given(st.integers(1, 300), st.data())
def test_upper_limit_is_that_of_clopper_and_pearson(rows, data):
    errors = data.draw(st.integers(0, rows))
    expected = stats.beta.ppf(0.95, errors + 1, rows - errors) if errors < rows else 1.0
    assert error_rate_upper_limit(errors, rows) == pytest.approx(expected, abs=1e-6)
    for risk in (0.01, 0.05, 0.3):
        assert is_error_rate_bounded(risk, errors, rows) == (expected <= risk)


def test_no_rows_bound_no_risk():
    assert error_rate_upper_limit(0, 0) == 1.0 and not is_error_rate_bounded(0.5, 0, 0)


def test_held_out_rows_are_not_tuned_on():
    """Noise is fitted perfectly by a scaling of as many steps as rows, and not at all where rows are held out."""
    rng = np.random.default_rng(0)
    p, gold = rng.random(400), rng.random(400) < 0.5
    chooser = Tuner(fixed(p, gold), gold, np.arange(400), Goal("average"), "isotonic")
    everything = np.arange(400)
    inside = measures_with_intervals(chooser.predict(chooser.choose(everything)), everything)
    held = join_predictions([(mask, chooser.predict(choice)) for mask, choice in chooser.crossed()])
    assert measures_with_intervals(held, everything)["average"].value < 0.5 + 0.06 < inside["average"].value + 0.06
    assert measures_with_intervals(held, everything)["brier"].value > 0.25 > inside["brier"].value
    assert inside["ece"].value < 1e-5 < 0.03 < measures_with_intervals(held, everything)["ece"].value


def test_sets_with_enough_rows_get_their_own_thresholds():
    p = np.r_[np.linspace(0, 1, 40), np.linspace(0, 1, 40), [0.2, 0.9]]
    gold = np.r_[np.linspace(0, 1, 40) > 0.25, np.linspace(0, 1, 40) > 0.75, [True, True]]
    sets = ("low",) * 40 + ("high",) * 40 + ("few",) * 2
    chooser = Tuner(fixed(p, gold), gold, np.arange(82), Goal("average"), "none", sets)
    choice = chooser.choose(np.arange(82))
    assert {name: round(chosen.decision.low, 2) for name, chosen in choice.sets.items()} == {"low": 0.24, "high": 0.76}
    assert chooser.predict(choice).right[:80].all()


def test_set_with_an_unreachable_goal_is_named():
    gold = np.array([True, False] * 30)
    sets = ("a",) * 30 + ("b",) * 30
    p = np.where(np.arange(60) < 30, gold * 0.9, 0.5)
    with pytest.raises(InputError, match="set 'b': a precision of 0.9 cannot be reached"):
        Tuner(fixed(p, gold), gold, np.arange(60), Goal("precision", 0.9), "none", sets).choose(np.arange(60))


def test_measures_by_hand():
    told = said([0.95, 0.85, 0.15, 0.65, 0.05], [1, 0, 0, 1, 1], open_=[3])
    found = measures_with_intervals(told, np.arange(5))
    assert {n: found[n].value for n in ("tpr", "tnr", "average", "precision", "open")} == pytest.approx(
        {"tpr": 1 / 3, "tnr": 1 / 2, "average": 5 / 12, "precision": 1 / 2, "open": 1 / 5}
    )
    assert found["rest"].value == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert found["brier"].value == pytest.approx((0.05**2 + 0.85**2 + 0.15**2 + 0.35**2 + 0.95**2) / 5)
    assert found["ece"].value == pytest.approx((0.05 + 0.85 + 0.15 + 0.35 + 0.95) / 5)
    assert found["average"].low <= found["average"].value <= found["average"].high
    assert measures_with_intervals(told, np.zeros(5, int))["average"].low is None
    some = estimate_ratio(np.array([True, False, True]), np.array([True, True, False]), np.arange(3))
    assert (some.value, some.low, some.high) == (0.5, 0.0, 1.0)


shares = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.8, 1.0])
rows = st.lists(st.tuples(shares, st.booleans(), st.booleans()), min_size=2, max_size=24)


def made(drawn):
    gold = [g for _, g, _ in drawn]
    open_ = [i for i, (*_, left) in enumerate(drawn) if left]
    assume(any(gold) and not all(gold) and len(open_) < len(drawn))
    return said([p for p, *_ in drawn], gold, open_)


def figure(told, low, high, name):
    return measures_with_intervals(decide_predictions(told, DecisionRule(low=low, high=high)), np.zeros(len(told.gold), int))[
        name
    ].value


LINES = [-1.0, 0.05, 0.2, 0.4, 0.6, 0.9, 1.0]
"""A border in each gap between the P that are drawn."""


@given(rows)
def test_threshold_has_the_best_average_accuracy(drawn):
    told = made(drawn)
    low, high = fit_decision_thresholds(Goal("average"), told)
    assert low == high
    best = max(figure(told, line, line, "average") for line in LINES)
    assert figure(told, low, high, "average") == pytest.approx(best)


@settings(max_examples=30)
@given(rows, st.sampled_from([0.0, 0.25, 0.5]))
def test_abstention_band_is_optimal(drawn, most):
    told = made(drawn)
    assume(told.abstained.mean() <= most)
    bands = [(a, b) for a in LINES for b in LINES if a <= b and figure(told, a, b, "open") <= most + 1e-9]
    known = [v for v in (figure(told, a, b, "rest") for a, b in bands) if v is not None]
    assume(known)
    low, high = fit_decision_thresholds(Goal("abstain", most), told)
    assert figure(told, low, high, "open") <= most + 1e-9
    assert figure(told, low, high, "rest") >= 0.5 * max(known)
    widest = [v for a, b in bands if (v := figure(told, a, b, "rest")) is not None and _is_widest(told, a, b, most)]
    assert figure(told, low, high, "rest") == pytest.approx(max(widest))


def _is_widest(told, low, high, most):
    """Tell whether no band that begins at the same place leaves more open and still few enough."""
    return not any(
        figure(told, low, b, "open") > figure(told, low, high, "open") for b in LINES
        if b >= low and figure(told, low, b, "open") <= most + 1e-9
    )  # fmt: skip


MANY = said(np.linspace(0, 1, 100), [i >= 50 and i != 70 for i in range(100)])
"""The faithful up to 0.5, the hallucinated over it, and one faithful row at 0.7."""


def test_precision_goal_flags_as_many_rows_as_possible():
    low, high = fit_decision_thresholds(Goal("precision", 1.0), MANY)
    assert low == high == pytest.approx(0.71, abs=0.01)
    low, _ = fit_decision_thresholds(Goal("precision", 0.97), MANY)
    assert low == pytest.approx(0.5, abs=0.01)


def test_unreachable_precision_is_refused_with_the_highest():
    wrong = said([0.9] * 20 + [0.1] * 20, [1, 1, 1, 0] * 5 + [0] * 20)
    with pytest.raises(InputError, match=r"precision of 0.9 cannot be reached on these rows: the highest is 0.750, of 20"):
        fit_decision_thresholds(Goal("precision", 0.9), wrong)
    with pytest.raises(InputError, match=f"of {MIN_FLAGGED} flagged rows at least, and only 4 are decided"):
        fit_decision_thresholds(Goal("precision", 0.9), said([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]))


def test_method_that_abstains_more_than_the_goal_is_refused():
    with pytest.raises(InputError, match="the method itself leaves 50.0% of these rows open, more than 10.0%"):
        fit_decision_thresholds(Goal("abstain", 0.1), said([0.1, 0.9, 0.2, 0.8], [0, 1, 0, 1], open_=[0, 1]))


def test_single_label_is_refused_and_own_labels_need_no_threshold():
    with pytest.raises(InputError, match="both labels"):
        fit_decision_thresholds(Goal("average"), said([0.1, 0.9], [1, 1]))
    with pytest.raises(InputError, match="was inconclusive on all rows"):
        fit_decision_thresholds(Goal("average"), said([0.1, 0.9], [0, 1], open_=[0, 1]))
    assert fit_decision_thresholds(Goal("labels"), MANY) is None


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
