"""Label cues: length, overlap and negation do not reveal the label of training data."""

import math
from itertools import islice

import pytest

from knowhalu.training.examples import CONTRADICTED, NEUTRAL, SUPPORTED, TrainingExample
from knowhalu.training.holdout import cue_aucs, draw_examples
from knowhalu.training.recipes import OWN_DATA, RECIPES, read_recipe_rows

BY_HAND = ("written claims", "written inference", "written plain claims on invented passages")


def example(claim, target, premise="The bridge in Rome was built in 1887."):
    return TrainingExample(premise, "", claim, target)


def test_a_cue_is_the_auc_of_its_feature():
    found = cue_aucs(
        [
            example("The bridge was built.", SUPPORTED),
            example("The bridge in Rome was built in 1887.", SUPPORTED),
            example("The bridge was not built.", CONTRADICTED),
            example("The ferry was never painted by anybody in any year.", NEUTRAL, premise="A ferry."),
        ]
    )
    assert found["negation"] == 0.0, "only the wrong ones have one"
    assert found["length"] == 0.25, "of four pairs the longer is supported in one"
    assert found["overlap"] > 0.5
    assert found["length of the source"] == 0.75


def test_cues_are_nan_for_a_single_label():
    assert all(math.isnan(v) for v in cue_aucs([example("The bridge was built.", SUPPORTED)] * 3).values())


@pytest.mark.parametrize("name", BY_HAND)
def test_written_sets_have_weak_label_cues(name):
    recipe = next(r for r in RECIPES if r.name == name)
    rows = list(islice(read_recipe_rows(recipe, OWN_DATA, held=False), 4000))
    found = cue_aucs(list(islice(draw_examples(recipe, lambda _: rows), 1500)))
    assert all(0.42 < found[cue] < 0.58 for cue in ("length", "negation")), found
    assert 0.35 < found["overlap"] < 0.6, f"word overlap must not speak for a claim: {found}"
