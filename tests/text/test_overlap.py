"""Overlap of two texts: content words in any form, and the facts that are compared."""

from hypothesis import given
from hypothesis import strategies as st

from knowhalu.text.overlap import coverage, text_facts


def test_coverage_counts_content_words_in_any_form():
    assert coverage("The cities voted", "a city that votes") == 1
    assert coverage("green cheese", "the moon") == 0
    assert coverage("of the", "anything") == 1


@given(st.text(max_size=200))
def test_a_text_covers_itself(text):
    assert coverage(text, text) == 1
    assert text_facts(text).numbers <= text_facts(text + " 17").numbers
