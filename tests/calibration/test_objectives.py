"""Goals: reached as well as any threshold can, or refused with the reachable value."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from knowhalu.calibration.measures import measures_with_intervals
from knowhalu.calibration.objectives import MIN_FLAGGED, Goal, fit_decision_thresholds
from knowhalu.calibration.tuning import decide_predictions
from knowhalu.errors import InputError
from knowhalu.methods.common.calibrated import DecisionRule
from tests.support.stored_runs import said

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
