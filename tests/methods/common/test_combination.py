"""The rules that combine claims, theta, and the probability of a verdict."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.methods.common.combine import (
    COMBINATION_RULES,
    combine_probabilities,
    fit_theta,
    hallucination_probability,
    soft_max_probability,
)

shares = st.floats(0.0, 1.0)
claims = st.lists(shares, min_size=1, max_size=12)
typical = st.floats(0.05, 1.0)
reference = st.floats(0.5, 20.0)


def test_worked_example_of_every_rule():
    found = combine_probabilities([0.9, 0.8, 0.5], 0.8, 2.0)
    assert found["product"] == pytest.approx(0.36)
    assert found["minimum"] == 0.5
    assert found["geometric"] == pytest.approx(0.36 ** (1 / 3))
    assert found["calibrated"] == pytest.approx(0.36 / 0.8)


@given(claims, typical, reference)
def test_every_rule_gives_a_probability(found, usual, usually):
    assert all(0.0 <= value <= 1.0 for value in combine_probabilities(found, usual, usually).values())


@given(claims, typical, reference, st.integers(0, 11), shares)
def test_every_rule_grows_with_each_claim(found, usual, usually, at, more):
    at %= len(found)
    better = [*found[:at], max(found[at], more), *found[at + 1 :]]
    low, high = combine_probabilities(found, usual, usually), combine_probabilities(better, usual, usually)
    assert all(high[rule] >= low[rule] - 1e-12 for rule in COMBINATION_RULES)


@given(typical, reference, st.integers(1, 60))
def test_typical_claims_get_the_same_calibrated_value_however_many_they_are(usual, usually, n):
    assert combine_probabilities([usual] * n, usual, usually)["calibrated"] == pytest.approx(min(1.0, usual**usually), rel=1e-6)


@given(claims, typical)
def test_at_the_usual_number_of_claims_the_calibrated_product_is_the_product(found, usual):
    values = combine_probabilities(found, usual, float(len(found)))
    assert values["calibrated"] == pytest.approx(values["product"], abs=1e-9)


@given(st.floats(0.01, 0.99), st.integers(1, 40))
def test_equal_claims_get_the_same_minimum_and_mean_however_many_they_are(p, n):
    values = combine_probabilities([p] * n, 0.9, 4.0)
    assert values["minimum"] == p and values["geometric"] == pytest.approx(p)


@given(claims, typical, reference)
def test_the_order_of_claims_does_not_matter(found, usual, usually):
    one, other = combine_probabilities(found, usual, usually), combine_probabilities(found[::-1], usual, usually)
    assert all(one[r] == pytest.approx(other[r], abs=1e-12) for r in COMBINATION_RULES)


def test_one_bad_claim_costs_a_long_text_as_much_as_a_short_one_only_in_the_calibrated_product():
    def cost(rule, n):
        return combine_probabilities([0.8] * (n - 1) + [0.1], 0.8, 3.0)[rule]

    assert cost("calibrated", 4) == pytest.approx(cost("calibrated", 12))
    assert cost("product", 12) < cost("product", 4) and cost("geometric", 12) > cost("geometric", 4)


def test_a_claim_with_zero_support_makes_the_product_zero():
    assert set(combine_probabilities([0.99] * 5 + [0.0], 0.9, 4.0).values()) == {0.0}


@given(shares, shares)
def test_the_probability_is_over_a_half_exactly_under_theta(p, theta):
    found = hallucination_probability(p, theta)
    assert 0.0 <= found <= 1.0 and (found > 0.5) == (p < theta)


@given(shares, shares, shares)
def test_the_probability_falls_with_support(p, q, theta):
    assert hallucination_probability(min(p, q), theta) >= hallucination_probability(max(p, q), theta) - 1e-15


@pytest.mark.parametrize(
    ("p", "theta", "expected"), [(0.0, 0.4, 1.0), (0.2, 0.4, 0.75), (0.4, 0.4, 0.5), (0.7, 0.4, 0.25), (1.0, 0.4, 0.0),
                                 (0.0, 0.0, 0.5), (1.0, 1.0, 0.5), (0.9, 1.0, 0.55)],
)  # fmt: skip
def test_worked_examples_of_the_probability(p, theta, expected):
    assert hallucination_probability(p, theta) == pytest.approx(expected)


def test_theta_is_the_midpoint_of_the_class_means():
    rows = [(0.9, True), (0.7, True), (0.8, True), (0.1, False), (0.3, False)]
    assert fit_theta(rows) == pytest.approx((0.8 + 0.2) / 2)


@given(st.lists(shares, min_size=1), st.lists(shares, min_size=1))
def test_theta_lies_between_the_class_means(faithful, wrong):
    theta = fit_theta([(p, True) for p in faithful] + [(p, False) for p in wrong])
    means = sorted((math.fsum(faithful) / len(faithful), math.fsum(wrong) / len(wrong)))
    assert means[0] - 1e-12 <= theta <= means[1] + 1e-12


@pytest.mark.parametrize("rows", [[], [(0.5, True)], [(0.5, False)]])
def test_theta_needs_both_classes(rows):
    with pytest.raises(ValueError, match="faithful and hallucinated"):
        fit_theta(rows)


def test_worked_example_of_the_soft_maximum():
    z = 2.0 + math.log((1 + math.exp(-4 * 1.0) + math.exp(-4 * 5.0)) / 3) / 4
    every = [1 / (1 + math.exp(-v)) for v in (2.0, 1.0, -3.0)]
    assert soft_max_probability(every[0], every) == pytest.approx(1 / (1 + math.exp(-z)))


@given(claims)
def test_soft_maximum_is_on_the_side_of_the_worst_segment_and_at_most_its_probability(found):
    worst = max(found)
    said = soft_max_probability(worst, found)
    assert 0.0 <= said <= worst + 1e-9 and (said > 0.5) is (worst > 0.5)
    assert soft_max_probability(worst, [worst] * len(found)) == worst


def test_a_text_barely_over_one_half_stays_over_it():
    barely = math.nextafter(0.5, 1)
    assert soft_max_probability(barely, [barely, 0.1]) > 0.5


@given(claims, st.integers(0, 11), shares)
def test_soft_maximum_grows_with_each_segment(found, at, more):
    at %= len(found)
    worse = [*found[:at], max(found[at], more), *found[at + 1 :]]
    assert soft_max_probability(max(worse), worse) >= soft_max_probability(max(found), found) - 1e-9


def test_one_error_shows_among_a_thousand_confident_segments():
    assert 0.5 < soft_max_probability(0.7, [0.7] + [0.01] * 999) < 0.7
    assert soft_max_probability(0.999, [0.999] + [0.01] * 999) > 0.99
