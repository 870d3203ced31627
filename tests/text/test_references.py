"""What an opening pronoun stands for: only where one subject of the sentence before fits."""

import pytest

from knowhalu.text.claims import find_claims
from knowhalu.text.references import resolve_opening


@pytest.mark.parametrize(
    ("sentence", "before", "subject"),
    [
        ("She also drew the map.", "Greta Sommer built the mill of Ostermoor in 1921.", "Greta Sommer"),
        ("He also drew the map.", "The mill of Ostermoor was built in 1921 by Tom Arden.", "Tom Arden"),
        ("It has 43 rooms.", "The mill of Ostermoor was built in 1921 by Tom Arden.", "The mill of Ostermoor"),
        ("Its roof is red.", "The mill was built in 1921.", "The mill's"),
        ("Her book sold well.", "The novelist Ruth Callaghan won the prize.", "Ruth Callaghan's"),
        ("She left early.", "Greta Sommer met Tom Arden at the mill.", "Greta Sommer"),
        ("The latter is a judge.", "Tom Arden and Owen Pritchard live together.", "Owen Pritchard"),
        ("The former is a judge.", "Tom Arden and Owen Pritchard live together.", "Tom Arden"),
        ("He left early.", "At the mill Greta Sommer met Tom Arden.", None),
        ("It is known that mills burn.", "The mill was built in 1921.", None),
        ("It rained.", "The mill was built in 1921.", None),
        ("It was large.", "Tom Arden went home.", None),
        ("It costs 12 euros.", "The text has no price.", None),
        ("It has 43 rooms.", "The source of the river was closed.", "The source of the river"),
        ("The former is a judge.", "Three people live together.", None),
        ("The mill burnt.", "Tom Arden went home.", None),
    ],
)
def test_only_a_sure_reference_is_resolved(sentence, before, subject):
    found = resolve_opening(sentence, before)
    assert (found and found.subject) == subject


def test_a_claim_with_a_pronoun_names_its_subject_and_keeps_its_place():
    text = "The mill was built by Tom Arden. He also drew the bridge. He died in 1950."
    claims = find_claims(text)
    assert [c.text for c in claims[1:]] == ["Tom Arden also drew the bridge.", "Tom Arden died in 1950."]
    assert [text[c.start : c.end] for c in claims[1:]] == ["He also drew the bridge.", "He died in 1950."]
    assert all(len(c.text) == len(c.offsets) and c.offsets[0] == c.start for c in claims)
    assert "".join(text[i] for i in claims[1].offsets).endswith("e also drew the bridge.")
