"""Written scenarios: the rows are sound, every slot is filled, and the drawn values keep the labels true."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.training.data_files import read_training_rows
from knowhalu.training.examples import CONTRADICTED, SUPPORTED
from knowhalu.training.recipes import CONVERSATIONS_FILE, OWN_DATA, REPLIES_FILE, TEXTS_FILE
from knowhalu.training.scenarios import SLOT, draw_values, fill, scenario_example
from knowhalu.training.slots import POOLS

FILES = (CONVERSATIONS_FILE, TEXTS_FILE, REPLIES_FILE)
ROW = {
    "slots": {"a": "person", "b": "person", "n": "count", "thing": ["ladder", "bike", "drill"]},
    "text": "{a}: Can you bring the {thing}?\n{b}: No. {n} people asked me today!",
    "claims": [{"text": "{a} asks {b} for the {thing}.", "label": "supported"}],
}


def texts(row):
    return [row["text"], *(c[k] for c in row["claims"] for k in ("text", "question", "before") if c.get(k))]


@pytest.mark.parametrize("file", FILES)
def test_every_row_is_sound(file):
    for row in read_training_rows(OWN_DATA / file):
        used = {m[1] for text in texts(row) for m in SLOT.finditer(text)}
        assert used <= set(row["slots"]), row["id"]
        assert all(pool in POOLS if isinstance(pool, str) else len(set(pool)) >= 3 for pool in row["slots"].values()), row["id"]
        assert not any("{" in SLOT.sub("", text) for text in texts(row)), row["id"]
        labels = Counter(c["label"] for c in row["claims"])
        assert set(labels) <= {"supported", "contradicted", "neutral"}, row["id"]
        assert 0.3 < labels["supported"] / labels.total() < 0.7, row["id"]


@pytest.mark.parametrize("file", FILES)
def test_length_does_not_reveal_the_label(file):
    sizes = {True: [], False: []}
    for row in read_training_rows(OWN_DATA / file):
        for c in row["claims"]:
            sizes[c["label"] == "supported"].append(len(c["text"].split()))
    assert abs(sum(sizes[True]) / len(sizes[True]) - sum(sizes[False]) / len(sizes[False])) < 0.5


@given(st.integers(0, 10_000))
def test_an_example_has_no_slot_left_and_depends_on_the_seed_alone(seed):
    example = scenario_example(ROW, ROW, random.Random(seed))
    assert example == scenario_example(ROW, ROW, random.Random(seed))
    assert "{" not in example.premise + example.claim and example.target == SUPPORTED


@given(st.sampled_from(sorted(POOLS)), st.integers(0, 100_000))
def test_another_value_is_none_of_the_forms_of_a_value(pool, seed):
    value = POOLS[pool](random.Random(seed))
    assert value.text not in value.others and not set(value.forms) & set(value.others)


@given(st.integers(0, 100_000))
def test_values_of_one_scenario_share_no_name(seed):
    slots = {"a": "full_name", "b": "full_name", "c": "person", "d": "small", "e": "small", "f": "company"}
    values = list(draw_values(slots, random.Random(seed)).values())
    assert sum(len(v.keys) for v in values) == len(set().union(*(v.keys for v in values)))


def test_slots_give_forms_other_values_and_pronouns():
    values = draw_values({"a": "person", "n": "length"}, random.Random(3))
    metres = values["n"].text.removesuffix(" metres")
    assert values["n"].text == f"{metres} metres"
    assert fill("{n~}", values, random.Random(1)) in values["n"].forms
    assert fill("{n!}", values, random.Random(1)) in values["n"].others
    assert fill("{a:He} saw {a:him}.", values, random.Random(1)) in ("He saw him.", "She saw her.")


def test_a_contradicted_claim_has_its_target():
    row = {**ROW, "claims": [{"text": "{b} brings it.", "label": "contradicted", "question": "Who brings it?"}]}
    example = scenario_example(row, ROW, random.Random(0))
    assert example.target == CONTRADICTED and example.question == "Who brings it?"
