"""Mined examples: the hardest of several tries, balanced, and soft targets from shortened premises."""

import gzip
import json
import random
from itertools import islice

import pytest
import torch

from knowhalu.errors import InputError
from knowhalu.training.examples import CONTRADICTED, SUPPORTED, UNSUPPORTED, TrainingExample, mined_example
from knowhalu.training.holdout import (
    MAX_HARD_PROBABILITY,
    MIN_HARD_PROBABILITY,
    MIN_LONG_WORDS,
    SHORT_VIEW_SENTENCES,
    example_row,
    mine_hard_examples,
    mine_soft_targets,
    shorten_premise,
    target_probability,
)
from knowhalu.training.recipes import RECIPES, Recipe, choose_recipes, draw_rows

LONG_TEXT = " ".join(
    f"Sentence {i} tells of the {w} of the town and of its long and quiet past." for i, w in enumerate("abcdefghij")
)


def tried(row, other, rng):
    target = rng.choice([SUPPORTED, CONTRADICTED])
    return TrainingExample("A source.", "", f"claim {rng.randrange(1000)}", target)


def doubtful(claim):
    """Give every claim a probability of its own between 0 and 1."""
    return int(claim.split()[1]) / 1000


def score(examples):
    """Find the target of `claim n` likely by n / 1000."""
    found = torch.zeros(len(examples), 3)
    for i, e in enumerate(examples):
        p = doubtful(e.claim)
        found[i] = torch.tensor([p, 1 - p, 0.0] if e.target == SUPPORTED else [1 - p, p, 0.0])
    return found


def endless():
    recipe = Recipe("tries", "none", (), tried, 1.0, "none")
    while True:
        yield recipe, {}, {}


def test_mining_takes_the_least_probable_target_where_the_verifier_errs():
    rows = list(islice(mine_hard_examples(endless(), score, tries=6, block=8), 40))
    first = [tried({}, {}, random.Random(f"0:0:0:{k}")) for k in range(6)]
    hardest = min(first, key=lambda e: doubtful(e.claim))
    assert not MIN_HARD_PROBABILITY <= doubtful(hardest.claim) <= MAX_HARD_PROBABILITY or hardest.claim in {
        r["claim"] for r in rows
    }
    assert all(MIN_HARD_PROBABILITY <= doubtful(r["claim"]) <= MAX_HARD_PROBABILITY for r in rows)
    assert sum(r["target"] == SUPPORTED for r in rows) == 20
    assert rows == list(islice(mine_hard_examples(endless(), score, tries=6, block=8), 40))


def test_soft_targets_come_from_correctly_judged_short_premises():
    wrong = Recipe(
        "wrong", "none", (), lambda row, other, rng: TrainingExample(LONG_TEXT, "", "claim 100", SUPPORTED), 1.0, "none"
    )
    right = Recipe(
        "right", "none", (), lambda row, other, rng: TrainingExample(LONG_TEXT, "", "claim 900", SUPPORTED), 1.0, "none"
    )
    brief = Recipe(
        "brief", "none", (), lambda row, other, rng: TrainingExample("A source.", "", "claim 900", SUPPORTED), 1.0, "none"
    )
    assert len(LONG_TEXT.split()) >= MIN_LONG_WORDS
    rows = list(mine_soft_targets([(r, {}, {}) for r in (wrong, right, brief)], score, block=2))
    assert [r["claim"] for r in rows] == ["claim 900"]
    assert rows[0]["soft"] == pytest.approx([0.9, 0.1, 0.0])
    assert rows[0]["source"] == LONG_TEXT


def test_a_shortened_premise_keeps_the_relevant_sentences_in_order():
    example = TrainingExample(
        "The mill burned. It rained. The bridge fell in May. Cows grazed. The mayor left.",
        "",
        "The mayor saw the mill and the bridge",
        0,
    )
    view = shorten_premise(example)
    assert view == "The mill burned. The bridge fell in May. The mayor left."
    assert SHORT_VIEW_SENTENCES == 3


def test_a_mined_row_restores_its_example():
    example = TrainingExample("A source.", "Who?", "He did.", UNSUPPORTED, ((0, 2),), (0.1, 0.6, 0.3))
    again = mined_example(json.loads(json.dumps(example_row(example, list(example.soft)))), {}, random.Random(0))
    assert again == example
    assert mined_example(example_row(example._replace(wrong=None, soft=None)), {}, random.Random(0)).soft is None


def test_unsupported_is_met_by_either_class():
    p = torch.tensor([0.2, 0.5, 0.3])
    assert target_probability(p, UNSUPPORTED) == pytest.approx(0.8)
    assert target_probability(p, CONTRADICTED) == pytest.approx(0.5)


def test_mined_files_are_drawn_and_recipes_are_left_out_by_name(data, tmp_path):
    path = tmp_path / "hard.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(example_row(TrainingExample(f"Source {i}.", "", f"claim {i}", 0))) + "\n" for i in range(40))
    every = {r.name for r in RECIPES} - {"WiCE"}
    recipes = choose_recipes(without=("WiCE",), mined=(str(path),))
    assert {r.name for r in recipes} == every | {"mined: hard.jsonl.gz"}
    assert recipes[-1].share == pytest.approx(0.1 * sum(r.share for r in recipes[:-1]))
    drawn = [row["claim"] for _, row, _ in islice(draw_rows(data, 0, (recipes[-1],)), 200)]
    assert set(drawn) <= {f"claim {i}" for i in range(40)} and len(set(drawn)) > 20


def test_leaving_out_an_unknown_recipe_is_refused():
    with pytest.raises(InputError, match="no recipe 'WICE'"):
        choose_recipes(without=("WICE",))
