"""Quotations in a rationale: whole sentences of the sources, verbatim."""

import pytest

from knowhalu.methods.common.attribution import evidence_for, quote_step
from knowhalu.text.sentences import Span
from knowhalu.types import NO_INFORMATION, Judgment, Label, Passage

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
    step = quote_step("The bridge closed in 1941.", rationale, PASSAGES, Label.INCORRECT, 0.1)
    assert [q.text for q in step.knowledge.quotes] == expected
    for q in step.knowledge.quotes:
        assert q.passage == "b" and q.text == TEXT[q.start : q.end] and (q.supported, q.contradicted) == (0.1, 0.9)
    assert step.knowledge.text == (" ".join(expected) or NO_INFORMATION)


def test_a_supported_claim_quotes_the_nearest_sentence_where_the_model_quotes_none():
    (quote,) = quote_step("The bridge opened in 1932.", "So it is.", PASSAGES, Label.CORRECT, 0.9).knowledge.quotes
    assert quote.text == "The bridge opened in 1932." and quote.relevance == 1.0
    assert quote_step("Pigs can fly.", "So it is.", PASSAGES, Label.CORRECT, 0.9).knowledge.is_empty
    assert quote_step("The bridge opened in 1932.", "So it is.", PASSAGES, Label.INCORRECT, 0.1).knowledge.is_empty


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("The bridge is 503 metres long.", ["The bridge opened in 1932. It is 503  metres long."]),
        ("It is 503 metres long.", ["It is 503  metres long."]),
    ],
)
def test_a_quote_that_opens_with_a_pronoun_is_evidence_with_the_sentence_that_names_its_subject(claim, expected):
    step = quote_step(claim, "It says “it is 503 metres long”.", PASSAGES, Label.CORRECT, 0.9)
    judgment = Judgment(label=Label.CORRECT, confidence=0.9, p_supported=0.9, rationale="", steps=(step,))
    found = evidence_for(Span(0, len(claim), claim), judgment)
    assert [e.quote for e in found] == expected == [TEXT[e.start : e.end] for e in found]


def test_a_quote_that_adds_nothing_to_the_sentence_before_it_is_no_evidence_beside_it():
    claim = "The bridge opened in 1932."
    step = quote_step(claim, "It says “The bridge opened in 1932. It is 503 metres”.", PASSAGES, Label.CORRECT, 0.9)
    quotes = tuple(q.model_copy(update={"relevance": 0.9}) for q in step.knowledge.quotes)
    step = step.model_copy(update={"knowledge": step.knowledge.model_copy(update={"quotes": quotes})})
    judgment = Judgment(label=Label.CORRECT, confidence=0.9, p_supported=0.9, rationale="", steps=(step,))
    assert [e.quote for e in evidence_for(Span(0, len(claim), claim), judgment)] == [claim]
