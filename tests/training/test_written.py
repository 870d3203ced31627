"""Claims and answers on passages: passages are found by the hash of their text."""

import random

import pytest

from knowhalu.errors import InputError
from knowhalu.training.data_files import is_held_out, join_texts, text_key
from knowhalu.training.examples import CONTRADICTED, NEUTRAL, SUPPORTED, passage_answer, passage_claim
from knowhalu.training.recipes import PASSAGES_FILE, RECIPES, read_recipe_rows
from tests.training.conftest import SENTENCES, document, rows

RECIPE = next(r for r in RECIPES if r.file == PASSAGES_FILE)


def test_a_passage_is_cut_from_the_text_of_its_hash(data):
    found = {row["id"]: row for held in (True, False) for row in read_recipe_rows(RECIPE, data, held=held)}
    assert found["p7"]["document"] == SENTENCES[0].format(n=7) and found["p7"]["source"] == document(7)
    assert len(found) == len(rows()[PASSAGES_FILE])


def test_a_passage_is_held_out_with_its_text(data):
    held = {row["id"] for row in read_recipe_rows(RECIPE, data, held=True)}
    assert held == {f"p{i}" for i in range(60) if is_held_out(document(i))}


def test_a_text_missing_from_all_files_is_an_error(data):
    here, gone = ({"id": f"p{n}", "of": text_key(text), "start": 0, "end": 4} for n, text in enumerate((document(1), "gone")))
    with pytest.raises(InputError, match=r"p1: its text \w{16} is not in mix.jsonl.gz; use the unchanged files"):
        next(join_texts([here, gone], [data / "train/mix.jsonl.gz"]))


def test_a_true_claim_with_another_passage_is_neutral():
    row = {"document": "Ann phoned Ben.", "claims": [{"text": "Ben was phoned.", "label": "supported", "wrong": None}]}
    other = {"document": "It rained.", "claims": []}
    made = {passage_claim(row, other, random.Random(n))[::3] for n in range(200)}
    assert made == {("Ann phoned Ben.", SUPPORTED), ("It rained.", NEUTRAL)}


def test_a_short_answer_on_a_passage_keeps_its_question():
    right, wrong = (
        {"text": t, "label": s, "wrong": w} for t, s, w in (("Ann", "supported", None), ("Ben", "contradicted", "Ben"))
    )
    row = {"document": "Ann phoned Ben.", "question": "Who phoned Ben?", "answers": [right, wrong]}
    made = {passage_answer(row, {"document": "It rained."}, random.Random(n)) for n in range(300)}
    assert {e[:4] for e in made if e.premise == "It rained."} == {("It rained.", "Who phoned Ben?", "Ann", NEUTRAL)}
    assert {e[1:4] for e in made if e.premise == "Ann phoned Ben."} == {
        ("Who phoned Ben?", "Ann", SUPPORTED), ("Who phoned Ben?", "Ben", CONTRADICTED),
    }  # fmt: skip
    assert all(e.wrong == ((0, 3),) for e in made if e.target == CONTRADICTED)


def test_a_long_answer_on_a_passage_is_often_shown_without_its_question():
    answer = {"text": "It was Ann who phoned Ben last night.", "label": "supported", "wrong": None}
    row = {"document": "Ann phoned Ben.", "question": "Who phoned Ben?", "answers": [answer]}
    examples = [passage_answer(row, {"document": "It rained."}, random.Random(n)) for n in range(200)]
    questions = {e.question for e in examples if e.premise == "Ann phoned Ben."}
    assert questions == {"", "Who phoned Ben?"}
