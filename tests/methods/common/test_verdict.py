"""Locating claims in the response."""

import pytest

from knowhalu.methods.common.verdict import claim_finding, judged_segment, reason_by_parts
from knowhalu.text.clauses import locate_claim
from knowhalu.text.sentences import Span
from knowhalu.types import Judgment, Label, Relation, Task

TEXT = "Well. Metropolis is an old film by Fritz Lang. He was born in Vienna. It rained."
PIECE = Span(6, 70, TEXT[6:70])


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("Fritz Lang was born in Vienna.", "He was born in Vienna."),
        ("Metropolis is by Fritz Lang.", "Metropolis is an old film by Fritz Lang."),
        ("He was born in Vienna!", "He was born in Vienna"),  # word for word
        ("by Fritz Lan", "Metropolis is an old film by Fritz Lang."),  # a part of a word is none
        ("Penguins swim.", PIECE.text),  # nothing of it is said: the whole piece
        ("", PIECE.text),
    ],
)
def test_a_claim_is_located_in_the_most_similar_sentence(claim, expected):
    at = locate_claim(claim, PIECE)
    assert at.text == expected == TEXT[at.start : at.end]


def test_a_finding_has_the_relation_of_the_sources_to_the_claim():
    judgment = Judgment(label=Label.INCORRECT, confidence=0.9, p_supported=0.05, rationale="It says Graz.")
    found = claim_finding("Fritz Lang was born in Vienna.", judgment, PIECE)
    assert (found.relation, found.p_supported, found.reason) == (Relation.CONTRADICTION, 0.05, "It says Graz.")
    assert TEXT[found.start : found.end] == "He was born in Vienna."


def test_a_reason_quotes_a_part_without_marks_of_layout():
    judgment = Judgment(label=Label.INCORRECT, confidence=0.9, p_supported=0.05, rationale="It says Graz.")
    parts = [judged_segment(Span(2, 24, "Rent:** paid *in May*"), judgment, Task.QA)] * 2
    assert "“Rent: paid in May”" in reason_by_parts(parts, "it says June")
