"""Tuning and cross-validation: folds of whole groups, sets, and limits of error rates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from knowhalu.calibration.measures import (
    error_rate_upper_limit,
    estimate_ratio,
    group_folds,
    is_error_rate_bounded,
    measures_with_intervals,
)
from knowhalu.calibration.objectives import Goal
from knowhalu.calibration.tuning import Tuner, join_predictions
from knowhalu.errors import InputError
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
