"""Labelled rows of a user: drawn with their share and question, and refused with their line where they are incomplete."""

import json
from itertools import islice

import pytest

from knowhalu.errors import InputError
from knowhalu.training.examples import CONTRADICTED, SUPPORTED, user_example
from knowhalu.training.recipes import RECIPES, check_added, choose_recipes, draw_rows

ROWS = [
    {"source": f"Source {i}.", "question": f"Which source is number {i}?", "claim": f"Source {i}", "label": "supported"}
    for i in range(40)
]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in ROWS))
    return path


def test_added_rows_get_their_share_of_all_draws(file, data):
    check_added(file)
    recipes = choose_recipes(added=((str(file), 0.25),))
    assert [r.name for r in recipes] == [r.name for r in RECIPES] + ["added: mine.jsonl"]
    assert recipes[-1].share / sum(r.share for r in recipes) == pytest.approx(0.25)
    recipe, row, other = next(islice(draw_rows(data, 0, recipes[-1:]), 5, None))
    example = recipe.make(row, other, None)
    assert (example.premise, example.question, example.target) == (row["source"], row["question"], SUPPORTED)


def test_a_row_without_a_question_is_a_claim():
    assert user_example({"source": "A.", "claim": "B.", "label": "contradicted"}, {}, None) == (
        "A.",
        "",
        "B.",
        CONTRADICTED,
        None,
        None,
    )


NOT_WHOLE = [
    '{"source": "A.", "claim": "B."}', '{"source": "A.", "claim": " ", "label": "supported"}',
    '{"source": "A.", "claim": "B.", "label": "true"}', '{"source": "A.", "claim": "B.", "label": "neutral", "question": ["C?"]}',
    '{"source": "A.", "claim": "B.", "label": ["supported"]}',
]  # fmt: skip


@pytest.mark.parametrize("bad", NOT_WHOLE)
def test_an_incomplete_added_row_is_reported_with_its_line(file, bad):
    file.write_text(file.read_text() + bad + "\n")
    with pytest.raises(InputError, match=r'mine\.jsonl:41: a training row needs "source", "claim" and "label" \(supported'):
        check_added(file)


def test_half_a_character_and_an_empty_file_are_refused(file):
    file.write_text('{"source": "A \\ud83d.", "claim": "B.", "label": "supported"}\n')
    with pytest.raises(InputError, match=r"mine\.jsonl:1: a text holds half a character"):
        check_added(file)
    file.write_text("")
    with pytest.raises(InputError, match=r"mine\.jsonl: there are no rows"):
        check_added(file)


def test_added_rows_are_read_by_their_own_label():
    row = {"source": "A.", "claim": "B.", "label": "contradicted", "label3": "refutes"}
    assert user_example(row, {}, None).target == CONTRADICTED


def test_added_shares_that_take_all_draws_are_refused(file):
    with pytest.raises(InputError, match="sum is below 1"):
        choose_recipes(added=((str(file), 0.6), (str(file), 0.4)))
