"""Examples of rows: the premise supports supported claims and no others."""

import random

import pytest

from knowhalu.training.data_files import text_of
from knowhalu.training.examples import (
    CONTRADICTED,
    NEUTRAL,
    SUPPORTED,
    UNSUPPORTED,
    changed_spans,
    fever_example,
    own_sentence_example,
    summary_example,
)
from knowhalu.training.questions import detail_example
from tests.training.conftest import document

ROW, OTHER = {"text": document(7)}, {"text": "Cats sleep all day long. They are awake in the dark of the night."}


def many(make, row, other=OTHER, count=300):
    return [make(row, other, random.Random(seed)) for seed in range(count)]


def test_own_sentences_are_supported_falsified_and_missing():
    made = many(own_sentence_example, ROW)
    shares = {t: sum(e.target == t for e in made) / len(made) for t in range(4)}
    assert 0.3 < shares[SUPPORTED] < 0.6
    assert 0.15 < shares[NEUTRAL] < 0.4
    assert shares[CONTRADICTED] + shares[UNSUPPORTED] > 0.15


def test_supported_own_sentences_are_often_paraphrased():
    true = [e for e in many(own_sentence_example, ROW) if e.target == SUPPORTED]
    verbatim = sum(all(s in e.premise for s in e.claim.split(". ")) for e in true)
    assert 0.1 < verbatim / len(true) < 0.9


def test_a_missing_sentence_is_not_in_its_premise():
    for example in many(own_sentence_example, ROW):
        if example.target == NEUTRAL:
            assert example.claim not in example.premise


def test_both_sides_of_a_summary_pair_are_drawn_equally():
    row = {
        "document": document(7), "right_summary": "<t> it opened in 1807 . </t> <t> it is 7 metres long . </t>",
        "hallucinated_summary": "<t> it opened in 1807 . </t> <t> it is 9 metres long . </t>",
    }  # fmt: skip
    made = many(summary_example, row)
    assert 0.4 < sum(e.target == SUPPORTED for e in made) / len(made) < 0.6
    for example in made:
        assert (("9" in example.claim) or example.target == SUPPORTED) and "<t>" not in example.claim
    assert any(e.claim == "It is 9 metres long." for e in made), "the telling sentence alone"


def test_a_detail_question_is_answered_by_the_removed_detail():
    row = {"text": "Ada Lovelace was born in 1815 in London. Her father was Lord Byron. She died in 1852 in Marylebone."}
    for example in many(detail_example, row):
        if example.question and example.target == SUPPORTED:
            assert example.claim in row["text"]
            restored = example.question.removesuffix("?")
            assert any(restored.replace(kind, example.claim) in row["text"] for kind in ("who or what", "which year")) or (
                example.claim.endswith(".")
            )
        elif example.question and example.target != NEUTRAL:
            assert example.claim not in example.question


@pytest.mark.parametrize(
    ("label", "yes", "no"), [("supported", SUPPORTED, CONTRADICTED), ("contradicted", CONTRADICTED, SUPPORTED)]
)
def test_yes_and_no_answers_follow_the_label_of_the_claim(label, yes, no):
    row = {"source": document(7), "claim": "The bridge is 7 metres long.", "label": label}
    asked_rows = [e for e in many(fever_example, row, {"source": text_of(OTHER)}) if e.question]
    assert {e.claim for e in asked_rows} == {"Yes", "No"}
    assert all(e.target == (yes if e.claim == "Yes" else no) for e in asked_rows)


def test_the_wrong_spans_of_an_edit_are_its_changed_words():
    after = "It opened in 1809, after the great flood."
    assert [after[a:b] for a, b in changed_spans("It opened in 1807, after the flood.", after)] == ["1809,", "great"]
    assert changed_spans("It opened in 1807.", "Nobody knows when the harbour was built.") is None


def test_supported_examples_have_no_wrong_span():
    assert all(e.marks == () for e in many(own_sentence_example, ROW) if e.target == SUPPORTED)
