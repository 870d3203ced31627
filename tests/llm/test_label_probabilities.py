"""Label probabilities, against the exhaustive enumeration of tokens of random models with random tokenizations."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.llm.label_probabilities import LabelProbabilitySearch, TokenLogprobs, pick_label

LABELS = ("CORRECT", "INCORRECT", "INCONCLUSIVE")
SETS = (LABELS, ("yes", "no"), ("1", "10", "100"), ("ab", "abc", "abd"), ("A", "B", "C", "D"))


def position(token, **top):
    likely = {t.replace("_", " "): p for t, p in top.items()}
    return TokenLogprobs(token, math.log(likely[token]), tuple((t, math.log(p)) for t, p in likely.items()))


def test_labels_that_share_their_first_token_are_distinguished():
    walk = LabelProbabilitySearch(LABELS)
    assert walk.next() == ""
    walk.read("", [position("IN", IN=0.5, CORRECT=0.4, The=0.1), position("CORRECT", CORRECT=0.7, CON=0.3)])
    assert walk.next() is None
    found = walk.probabilities()
    assert found == pytest.approx({"CORRECT": 0.4 / 0.9, "INCORRECT": 0.35 / 0.9, "INCONCLUSIVE": 0.15 / 0.9})


def test_a_shared_prefix_outside_the_reply_is_expanded():
    walk = LabelProbabilitySearch(LABELS)
    walk.read("", [position(" CORRECT", _CORRECT=0.6, _IN=0.4)])
    assert walk.next() == " IN"
    walk.read(" IN", [position("CON", CORRECT=0.25, CON=0.75)])
    assert walk.next() is None
    assert walk.probabilities() == pytest.approx({"CORRECT": 0.6, "INCORRECT": 0.1, "INCONCLUSIVE": 0.3})


def test_a_shared_prefix_below_the_floor_is_divided_evenly():
    walk = LabelProbabilitySearch(LABELS)
    walk.read("", [position("CORRECT", CORRECT=0.99992, IN=0.00008)])
    assert walk.next() is None
    assert walk.probabilities()["INCORRECT"] == pytest.approx(0.00004)


def test_tokens_of_equal_text_are_added_and_the_generated_one_counts_once():
    walk = LabelProbabilitySearch(("yes", "no"))
    top = (("yes", math.log(0.3)), ("yes", math.log(0.1)), ("no", math.log(0.4)))
    walk.read("", [TokenLogprobs("yes", math.log(0.3), top)])
    assert walk.probabilities() == pytest.approx({"yes": 0.5, "no": 0.5})
    other = LabelProbabilitySearch(("yes", "no"))
    other.read("", [TokenLogprobs("yes", math.log(0.1), (("no", math.log(0.9)),))])
    assert other.probabilities() == pytest.approx({"yes": 0.1, "no": 0.9})


def test_a_choice_that_is_a_prefix_of_another_gets_the_remaining_mass():
    walk = LabelProbabilitySearch(("1", "10"))
    walk.read("", [position("1", **{"1": 0.9, "2": 0.1}), position("</s>", **{"</s>": 0.5, "0": 0.2})])
    assert walk.probabilities() == pytest.approx({"1": 0.8, "10": 0.2})


def test_text_after_a_label_does_not_change_it():
    walk = LabelProbabilitySearch(LABELS)
    walk.read("", [position("CORRECT.", **{"CORRECT.": 0.8, "INCORRECT\n": 0.2})])
    assert walk.probabilities() == pytest.approx({"CORRECT": 0.8, "INCORRECT": 0.2, "INCONCLUSIVE": 0.0})


def test_without_log_probabilities_there_are_no_probabilities():
    walk = LabelProbabilitySearch(LABELS)
    assert walk.probabilities() == {}
    walk.read("", [])
    assert (walk.next(), walk.probabilities()) == (None, {})
    walk = LabelProbabilitySearch(LABELS)
    walk.read("", [position("The", The=0.9, A=0.1)])
    assert (walk.next(), walk.probabilities()) == (None, {})


def test_a_label_below_the_minimum_mass_has_no_probability():
    walk = LabelProbabilitySearch(LABELS)
    walk.read("", [TokenLogprobs("CORRECT", -12.0, (("The", -0.1), ("A", -3.0)))])
    assert walk.probabilities() == {}


def test_mass_that_leads_to_no_label_counts_for_none():
    walk = LabelProbabilitySearch(LABELS)
    walk.read("", [position("CORRECT", CORRECT=0.6, IN=0.4)])
    walk.read("IN", [position("SUFFICIENT", SUFFICIENT=0.75, CORRECT=0.25)])
    assert walk.next() is None
    assert walk.probabilities() == pytest.approx({"CORRECT": 6 / 7, "INCORRECT": 1 / 7, "INCONCLUSIVE": 0.0})


def test_the_number_of_requests_is_bounded():
    walk = LabelProbabilitySearch(LABELS, floor=0.0, max_requests=5)
    asked = []
    while (text := walk.next()) is not None:
        asked.append(text)
        walk.read(text, [position(" ", _=0.5, IN=0.25, CORRECT=0.25)] if not text.strip() else [position("X", X=1.0)])
    assert len(asked) == 5
    assert sum(walk.probabilities().values()) == pytest.approx(1.0)


def test_a_choice_is_sampled_by_its_probability_and_the_seed():
    probabilities = {"a": 0.7, "b": 0.3}
    assert pick_label(probabilities, 0.0, 5) == "a"
    drawn = [pick_label(probabilities, 1.0, seed) for seed in range(500)]
    assert drawn == [pick_label(probabilities, 1.0, seed) for seed in range(500)]
    assert 300 < drawn.count("a") < 400
    assert {pick_label(probabilities, 0.01, seed) for seed in range(50)} == {"a"}


class RandomModel:
    """A random distribution over random tokens after every text; "" is the end."""

    def __init__(self, choices, seed):
        draw = random.Random(seed)
        pieces = {c[i:j] for c in choices for i in range(len(c)) for j in range(i + 1, len(c) + 1)}
        kept = draw.sample(sorted(pieces), min(len(pieces), draw.randint(3, 14)))
        blanks = [f" {p}" for p in kept if draw.random() < 0.3]
        self.tokens = sorted({*kept, *blanks, *{p + "!" for p in kept[:2]}, choices[0][0], "x", ""})
        self.seed = seed

    def after(self, text):
        draw = random.Random(f"{self.seed}|{text}")
        weights = {t: draw.random() ** 4 for t in self.tokens}
        total = sum(weights.values())
        return {t: w / total for t, w in weights.items()}

    def write(self, text, draw, length):
        """Return positions along a path that the model might take, with all tokens in each."""
        positions = []
        for _ in range(length):
            after = self.after(text)
            token = draw.choices(list(after), list(after.values()))[0]
            positions.append(TokenLogprobs(token, math.log(after[token]), tuple((t, math.log(p)) for t, p in after.items())))
            if not token:
                break
            text += token
        return positions


def followed(model, choices):
    """Return the share of each choice by following every sequence of tokens until it can be only one."""
    found = dict.fromkeys(choices, 0.0)

    def follow(text, mass):
        for token, p in model.after(text).items():
            said = (text + token).lstrip()
            begun = [c for c in choices if c.startswith(said)]
            over = [c for c in choices if said.startswith(c) and (said != c or not token)]
            if not token:
                if said in choices:
                    found[said] += mass * p
            elif begun and (len(begun) > 1 or over):
                follow(text + token, mass * p)
            elif begun:
                found[begun[0]] += mass * p
            elif over:
                found[max(over, key=len)] += mass * p

    follow("", 1.0)
    total = sum(found.values())
    return {c: p / total for c, p in found.items()} if total else {}


@given(st.sampled_from(SETS), st.integers(0, 2**32), st.integers(1, 6))
def test_probabilities_are_exact_for_any_tokenization_and_order_of_requests(choices, seed, length):
    model, draw = RandomModel(choices, seed), random.Random(seed)
    walk = LabelProbabilitySearch(choices, floor=0.0, min_mass=0.0, max_requests=10_000)
    while (text := walk.next()) is not None:
        walk.read(text, model.write(text, draw, length))
    assert walk.probabilities() == pytest.approx(followed(model, choices), abs=1e-9)


@given(st.sampled_from(SETS), st.integers(0, 2**32))
def test_the_error_of_a_floor_is_at_most_the_mass_below_it(choices, seed):
    model, draw = RandomModel(choices, seed), random.Random(seed)
    walk = LabelProbabilitySearch(choices, floor=1e-3, min_mass=0.0, max_requests=10_000)
    while (text := walk.next()) is not None:
        walk.read(text, model.write(text, draw, 3))
    left = len(walk._distribute()[1]) * 1e-3
    assert walk.probabilities() == pytest.approx(followed(model, choices), abs=2 * left + 1e-9)


@given(st.sampled_from(SETS), st.integers(0, 2**32), st.integers(1, 4))
def test_the_error_of_top_k_tokens_is_at_most_the_mass_left_out(choices, seed, k):
    model, draw = RandomModel(choices, seed), random.Random(seed)
    walk, missing = LabelProbabilitySearch(choices, floor=0.0, min_mass=0.0, max_requests=10_000), 0.0
    while (text := walk.next()) is not None:
        positions = []
        for full in model.write(text, draw, 1):
            top = sorted(full.top, key=lambda t: -t[1])[:k]
            missing += 1.0 - sum(math.exp(p) for _, p in top)
            positions.append(full._replace(top=tuple(top)))
        walk.read(text, positions)
    found, exact = walk.probabilities(), followed(model, choices)
    reached = sum(walk._distribute()[0].values())
    assert not found or all(abs(found[c] - exact[c]) <= missing / max(reached, 1e-12) + 1e-9 for c in choices)
