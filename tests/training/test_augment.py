"""Varied examples: another form with the same label, without losing what determines it."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.text.sentences import content_words
from knowhalu.training.batches import as_triplets, make_example, vary_example
from knowhalu.training.examples import CONTRADICTED, TrainingExample, labelled_example
from knowhalu.training.recipes import SYNTHETIC_RECIPES, Recipe

OTHER = "The ferry to the island was sold in spring. Nobody knows its new owner. It had carried cars."
EXAMPLE = TrainingExample(
    "The firm was founded on 3 May 1990 by two doctors.", "", "The firm was started by two physicians.", CONTRADICTED
)


def forms(example, other=OTHER, share=1.0):
    return {vary_example(example, other, share, random.Random(i)) for i in range(60)}


def test_varied_examples_reword_texts_and_add_distractors():
    found = forms(EXAMPLE)
    assert {f.target for f in found} == {CONTRADICTED} and len(found) > 20
    assert any("May 3, 1990" in f.premise for f in found) and any("2 physicians" in f.claim for f in found)
    assert any(f.premise.startswith("Nobody knows its new owner.") for f in found)
    assert any(f.premise.endswith("It had carried cars.") for f in found)
    assert all("1990" in f.premise and "the firm" in f.claim.lower().replace("company", "firm") for f in found)


def test_sentences_that_share_words_with_the_claim_are_no_distractors():
    assert all(len(f.premise.split()) < 13 for f in forms(EXAMPLE, "Two physicians started the firm long ago."))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The hall was built by Mario Rossi in 1974.", "The hall was built by Mario Rossi. The hall was built in 1974."),
        ("It closed, but the ferry was sold in 1990.", "It closed. the ferry was sold in 1990."),
        ("The bridge was sold.", None),
        ("Cold weather.", None),
        ("", None),
    ],
)
def test_a_text_becomes_triplets_unless_nothing_changes(text, said):
    assert as_triplets(text) == said


@given(st.text(max_size=120))
def test_no_word_is_lost_in_a_triplet(text):
    said = as_triplets(text)
    assert said is None or set(content_words(text)) <= set(content_words(said))


def test_premises_and_claims_become_triplets():
    example = TrainingExample(
        "The hall was built by Mario Rossi in 1974.", "", "The hall was sold by Ada Lund in 1980.", CONTRADICTED
    )
    found = forms(example)
    assert any("The hall was built in 1974." in f.premise for f in found)
    assert any(f.claim == "The hall was sold by Ada Lund. The hall was sold in 1980." for f in found)


def test_claims_with_wrong_spans_questions_and_empty_premises_stay():
    marked = EXAMPLE._replace(wrong=((4, 14),))
    asked = EXAMPLE._replace(question="Who started the firm?")
    assert {f.claim for f in forms(marked)} == {f.claim for f in forms(asked)} == {EXAMPLE.claim}
    assert forms(EXAMPLE._replace(premise="")) == {EXAMPLE._replace(premise="")}
    assert forms(EXAMPLE, share=0.0) == {EXAMPLE}


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80), st.integers(0, 99))
def test_any_texts_can_be_varied(premise, claim, other, seed):
    found = vary_example(TrainingExample(premise, "", claim, CONTRADICTED), other, 1.0, random.Random(seed))
    assert (found.target, found.question) == (CONTRADICTED, "")


@pytest.mark.parametrize(("name", "changes"), [("any labelled set", True), (SYNTHETIC_RECIPES[0], False)])
def test_only_rows_of_labelled_sets_are_varied(name, changes):
    row = {"source": EXAMPLE.premise, "claim": EXAMPLE.claim, "label": "contradicted"}
    recipe = Recipe(name, "", (), labelled_example, 1.0, "")
    found = {make_example(recipe, row, {"source": OTHER}, 1.0, random.Random(i)) for i in range(9)}
    assert (len(found) > 1) is changes
