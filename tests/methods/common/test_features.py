"""Evidence features: numbers, names, coverage and negation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.methods.common.judgment_model import VerifierScores, claim_features, logit
from knowhalu.requests import Probabilities
from knowhalu.text.overlap import coverage, text_facts

EVEN = Probabilities(0.4, 0.3, 0.3)


def features(claim: str, source: str) -> dict[str, float]:
    return claim_features(claim, VerifierScores(EVEN, (EVEN,), (source,), EVEN.supported, EVEN), source)


def test_a_changed_number_is_missing_and_a_spelled_one_is_not():
    assert features("Fourteen voted for it, 8 against.", "The vote was 14 to 9.")["numbers_missing"] == 0.5
    assert features("Fourteen voted for it.", "The vote was 14 to 9.")["numbers_missing"] == 0


def test_a_name_that_is_not_in_the_source_is_missing():
    assert features("It was built by Anna Weiss.", "It was built by Anna Schwarz.")["names_missing"] == 0.5


def test_a_negation_on_one_side_differs():
    assert features("The bridge is not open.", "The bridge is open.")["negation_differs"] == 1
    assert features("The bridge is not open.", "The bridge never opened.")["negation_differs"] == 0


def test_covered_words_count_little_where_the_source_contradicts():
    exchanged = Probabilities(0.05, 0.9, 0.05)
    reading = VerifierScores(exchanged, (exchanged,), ("Ann phoned Ben.",), 0.05, exchanged)
    found = claim_features("Ben phoned Ann.", reading, "Ann phoned Ben.")
    assert (found["coverage"], found["coverage_open"]) == (1.0, pytest.approx(0.1))


def test_coverage_counts_content_words_in_any_form():
    assert coverage("The cities voted", "a city that votes") == 1
    assert coverage("green cheese", "the moon") == 0
    assert coverage("of the", "anything") == 1


@given(st.text(max_size=300), st.text(max_size=300))
def test_features_are_finite_for_any_text(claim, source):
    found = features(claim, source)
    assert all(-10 <= v <= 10 for v in found.values())


@given(st.text(max_size=200))
def test_a_text_covers_itself(text):
    assert coverage(text, text) == 1
    assert text_facts(text).numbers <= text_facts(text + " 17").numbers


@given(st.floats(0, 1))
def test_log_odds_are_odd_and_bounded(p):
    assert -6 <= logit(p) <= 6
    assert logit(p) == pytest.approx(-logit(1 - p), abs=1e-3)
