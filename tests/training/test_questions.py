"""Evading answers: each has its form, and neither truth nor length reveals them."""

import random
from statistics import mean

from knowhalu.training.examples import CONTRADICTED, NEUTRAL, SUPPORTED, TrainingExample, alone, delivery_example
from knowhalu.training.questions import EVASIONS, ask_detail, evasion_example, name_category, negate_answer, repeat_question

TEXT = (
    "Ada Lovelace was born in 1815 in London. Her father was Lord Byron, who left in 1816. She worked with Charles Babbage "
    "on his engine. She died in 1852 in Marylebone."
)
OTHER = {"text": "Cats sleep all day long. They are awake in the dark of the night."}


def questions(count=200):
    return [made for seed in range(count) if (made := ask_detail(TEXT, random.Random(seed))) is not None]


def test_no_evading_answer_contains_the_correct_one():
    for seed, made in enumerate(questions()):
        for way in EVASIONS:
            assert made.right not in way(made, random.Random(seed)), way.__name__


def test_each_evasion_has_its_form():
    made = questions()[0]
    rng = random.Random(1)
    assert set(repeat_question(made, rng).lower().split()) & set(made.question.lower().split())
    assert " not " in f" {negate_answer(made, rng).lower()} "
    assert not any(c.isdigit() for c in name_category(made, rng))


def test_evasion_examples_have_no_source_and_wrong_answers_are_on_target():
    found = [evasion_example({"text": TEXT}, OTHER, random.Random(seed)) for seed in range(400)]
    assert {e.premise for e in found} == {""}
    assert {e.target for e in found} == {SUPPORTED, NEUTRAL}
    assert 0.4 < sum(e.target == SUPPORTED for e in found) / len(found) < 0.6
    restored = [e.question.removesuffix("?").replace("which year", e.claim) for e in found if e.target == SUPPORTED]
    assert any(r not in TEXT for r in restored), "a wrong year delivers"
    sizes = {t: mean(len(e.claim.split()) for e in found if e.target == t) for t in (SUPPORTED, NEUTRAL)}
    assert max(sizes.values()) < 3 * min(sizes.values())


def test_wrong_written_answers_are_on_target_and_refusals_are_not():
    labels = {"1815": "correct", "1816": "fabricated", "Long ago.": "off_target", "I cannot say.": "refusal"}
    row = {"question": "When?", "answers": [{"text": t, "label": label} for t, label in labels.items()]}
    found = {(e.claim, e.target) for e in (delivery_example(row, row, random.Random(s)) for s in range(100))}
    assert found == {("1815", SUPPORTED), ("1816", SUPPORTED), ("Long ago.", NEUTRAL), ("I cannot say.", NEUTRAL)}


def test_only_a_long_answer_is_trained_on_without_its_question():
    short = TrainingExample("Ada was born in 1815.", "When was Ada born?", "1816", CONTRADICTED, ((0, 4),))
    long = short._replace(claim="Ada was born in the spring of 1816.", wrong=((30, 34),))
    assert alone(short) == short and alone(long) == long._replace(question="")
