"""Probability scaling and decision rules: monotone curves, and thresholds with three outcomes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from knowhalu.methods.common.calibrated import DecisionRule, ProbabilityScaling

unit = st.floats(0, 1)
slopes = st.floats(0.01, 50)
curves = st.one_of(
    st.just(ProbabilityScaling()),
    st.builds(ProbabilityScaling, kind=st.just("temperature"), slope=slopes),
    st.builds(ProbabilityScaling, kind=st.just("platt"), slope=slopes, shift=st.floats(-20, 20)),
    st.lists(st.tuples(unit, unit), min_size=1, max_size=9).map(
        lambda points: ProbabilityScaling(kind="isotonic", x=sorted(x for x, _ in points), y=sorted(y for _, y in points))
    ),
)


@given(curves, st.lists(unit, min_size=1))
def test_a_scaling_never_falls_and_stays_a_probability(curve, ps):
    found = curve(sorted(ps))
    assert np.all((found >= 0) & (found <= 1)) and np.all(np.diff(found) >= 0)
    assert [float(curve(p)) for p in sorted(ps)] == found.tolist()


@given(unit)
def test_no_scaling_and_a_temperature_of_one_change_nothing(p):
    assert float(ProbabilityScaling()(p)) == p
    assert float(ProbabilityScaling(kind="temperature")(p)) == pytest.approx(p, abs=1e-5)


def test_a_temperature_of_two_halves_the_log_odds():
    assert float(ProbabilityScaling(kind="temperature", slope=0.5)(0.9)) == pytest.approx(0.75)  # odds of 9 become odds of 3
    assert float(ProbabilityScaling(kind="platt", slope=1.0, shift=np.log(3))(0.5)) == pytest.approx(0.75)


def test_isotonic_is_straight_between_its_points_and_level_outside():
    curve = ProbabilityScaling(kind="isotonic", x=(0.2, 0.4), y=(0.1, 0.5))
    assert curve([0.0, 0.2, 0.3, 0.4, 1.0]).tolist() == pytest.approx([0.1, 0.1, 0.3, 0.5, 0.5])


@pytest.mark.parametrize(
    "fields",
    [{"kind": "platt", "slope": 0.0}, {"kind": "platt", "slope": -1.0}, {"kind": "isotonic"},
     {"kind": "isotonic", "x": (0.1, 0.2), "y": (0.5, 0.4)}, {"kind": "isotonic", "x": (0.1,), "y": ()},
     {"x": (0.1,), "y": (0.1,)}],
)  # fmt: skip
def test_a_scaling_curve_that_falls_or_is_incomplete_is_refused(fields):
    with pytest.raises(ValidationError):
        ProbabilityScaling(**fields)


def test_two_thresholds_give_three_decisions_and_equal_ones_two():
    band, line = DecisionRule(low=0.2, high=0.6), DecisionRule(low=0.4, high=0.4)
    assert [band.says(p) for p in (0.2, 0.3, 0.6, 0.61)] == [False, None, None, True]
    assert [line.says(p) for p in (0.4, 0.41)] == [False, True]
    for wrong in ({"low": 0.5}, {"low": 0.6, "high": 0.5}):
        with pytest.raises(ValidationError):
            DecisionRule(**wrong)
