"""Overlap of two texts: content words in any form, and the facts that are compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.text.overlap import coverage, find_repeated, text_facts
from knowhalu.text.sentences import content_words


def test_coverage_counts_content_words_in_any_form():
    assert coverage("The cities voted", "a city that votes") == 1
    assert coverage("green cheese", "the moon") == 0
    assert coverage("of the", "anything") == 1


@given(st.text(max_size=200))
def test_a_text_covers_itself(text):
    assert coverage(text, text) == 1
    assert text_facts(text).numbers <= text_facts(text + " 17").numbers


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("The tablets hold vitamin K.", ["tablet", "hold", "vitamin", "k"]),
        ("Take vitamin D. It helps.", ["tak", "vitamin", "d", "help"]),
        ("Then came Plan A.", ["cam", "plan", "a"]),
        ("Ada S. Holt slept.", ["ada", "holt", "slept"]),
        ("Once Upon A Time I left.", ["upon", "tim", "left"]),
        ("It's what they'd say.", ["it", "they'd", "say"]),
    ],
)
def test_a_single_capital_counts_where_it_belongs_to_a_name(text, kept):
    assert content_words(text) == kept


@pytest.mark.parametrize(
    ("claim", "repeats"),
    [
        ("the old mill closed in 1911", True),
        ("The old mill closed in  1911!", True),
        ("The old mill closed in 1912.", False),
        ("It rained.", False),
        ("It was cold at -5 degrees.", False),
        ("Water froze at 5 degrees.", False),
    ],
)
def test_a_claim_is_repeated_word_for_word_and_needs_no_other_sentence(claim, repeats):
    found = find_repeated(
        claim, ["It rained.", "It was cold at -5 degrees.", "Water froze at -5 degrees.", "The old mill closed in 1911."]
    )
    assert (found is not None) == repeats
