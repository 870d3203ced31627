"""Quotations in a rationale: whole sentences of the sources, verbatim."""

import pytest

from knowhalu.methods.common.attribution import quote_step
from knowhalu.types import NO_INFORMATION, Passage

TEXT = "The bridge opened in 1932. It is 503  metres long. The mayor cut the ribbon."
PASSAGES = (Passage(id="a", text="Nothing here."), Passage(id="b", title="Bridge", text=TEXT))


@pytest.mark.parametrize(
    ("rationale", "expected"),
    [
        ('It says "The bridge opened in 1932."', ["The bridge opened in 1932."]),
        ("It says “it is 503 metres long”, no more.", ["It is 503  metres long."]),  # case and line breaks do not matter
        ('It says "opened in 1932. It is 503".', ["The bridge opened in 1932.", "It is 503  metres long."]),
        ('It says "The bridge opened ... The mayor cut the ribbon".',
         ["The bridge opened in 1932.", "The mayor cut the ribbon."]),
        ('It says "the mayor opened the school" and "it is".', []),  # not there, and too short
        ("It says nothing.", []),
    ],
)  # fmt: skip
def test_the_sentences_of_quotations_are_kept(rationale, expected):
    step = quote_step("The bridge closed in 1941.", rationale, PASSAGES, 0.1)
    assert [q.text for q in step.knowledge.quotes] == expected
    for q in step.knowledge.quotes:
        assert q.passage == "b" and q.text == TEXT[q.start : q.end] and (q.supported, q.contradicted) == (0.1, 0.9)
    assert step.knowledge.text == (" ".join(expected) or NO_INFORMATION)


def test_a_supported_claim_quotes_the_nearest_sentence_where_the_model_quotes_none():
    (quote,) = quote_step("The bridge opened in 1932.", "So it is.", PASSAGES, 0.9).knowledge.quotes
    assert quote.text == "The bridge opened in 1932." and quote.relevance == 1.0
    assert quote_step("Pigs can fly.", "So it is.", PASSAGES, 0.9).knowledge.is_empty
    assert quote_step("The bridge opened in 1932.", "So it is.", PASSAGES, 0.1).knowledge.is_empty
