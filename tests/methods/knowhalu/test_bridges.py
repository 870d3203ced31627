"""Claims over two sources: which steps are read, and how they support a claim together."""

import pytest

from knowhalu.methods.common.evidence import ReadSentence
from knowhalu.methods.knowhalu.bridges import best_bridge, find_bridges
from knowhalu.requests import Probabilities
from knowhalu.types import Sample

SURE, OPEN, NO = Probabilities(0.9, 0.05, 0.05), Probabilities(0.2, 0.1, 0.7), Probabilities(0.05, 0.9, 0.05)
SOURCES = ("Blue Lamp was written by Ilse Brand.", "Ilse Brand was born in Sandvik.", "Sandvik is a town in Norway.")


def steps_of(response, question=None, sources=SOURCES):
    read = [ReadSentence(str(i), str(i), text, OPEN, 0.5) for i, text in enumerate(sources)]
    bridges = find_bridges(Sample(response=response, question=question), read)
    return [(b.name, b.first.premise, b.first.claim, b.second.premise, b.second.question, b.second.claim) for b in bridges]


@pytest.mark.parametrize("response", ["The author of Blue Lamp was born in Sandvik.", "Blue Lamp's author was born in Sandvik."])
def test_an_entity_is_put_in_place_of_its_description(response):
    assert steps_of(response) == [
        ("Ilse Brand", SOURCES[0], "Ilse Brand is the author of Blue Lamp.", SOURCES[1], None, "Ilse Brand was born in Sandvik.")
    ]


def test_a_short_answer_is_read_with_its_question_about_the_entity():
    (step,) = steps_of("In Sandvik.", "Where was the author of Blue Lamp born?")
    assert step[3:] == (SOURCES[1], "Where was Ilse Brand born?", "In Sandvik.")


def test_a_place_is_put_in_place_of_the_larger_one_that_it_is_in():
    assert steps_of("Ilse Brand was born in Norway.") == [
        ("Sandvik", SOURCES[1], "Ilse Brand was born in Sandvik.", SOURCES[2], None, "Sandvik is in Norway.")
    ]


@pytest.mark.parametrize(
    ("response", "sources"),
    [
        ("The author of Blue Lamp was born in Sandvik.", SOURCES[:1]),
        ("The author of Red Door was born in Sandvik.", SOURCES),
        ("Ilse Brand was born in Sandvik.", SOURCES[:2]),
        ("It rained.", SOURCES),
    ],
)
def test_nothing_is_bridged_without_two_sentences_on_one_entity(response, sources):
    assert steps_of(response, sources=sources) == []


@pytest.mark.parametrize(
    ("alias", "claim", "read"),
    [
        ("Zemol is a brand of ferrin.", "Zemol must be kept dry.", "Ferrin must be kept dry."),
        ("Zemol, also known as ferrin, is old.", "Ferrin must be kept dry.", "Zemol must be kept dry."),
    ],
)
def test_what_is_said_of_a_thing_under_another_name_is_read(alias, claim, read):
    ((_, first, _, second, _, claimed),) = steps_of(claim, sources=(alias, read, "Rain fell."))
    assert (first, second, claimed.lower()) == (alias, read, read.lower())


def test_what_is_true_of_a_brand_alone_is_not_said_of_its_kind():
    assert steps_of("Ferrin costs 12 euros.", sources=("Zemol is a brand of ferrin.", "Zemol costs 12 euros.")) == []


def test_steps_refute_where_every_sure_first_one_has_a_second_that_does_not_hold():
    read = [ReadSentence(str(i), str(i), text, OPEN, 0.5) for i, text in enumerate(SOURCES)]
    bridges = find_bridges(Sample(response="The author of Blue Lamp was born in Sandvik."), read) * 2
    found = [best_bridge(bridges, scores) for scores in ([SURE, NO, OPEN, OPEN], [SURE, NO, SURE, OPEN], [OPEN, NO, OPEN, NO])]
    assert [by and by.refutes for by in found] == [True, False, False]


def test_the_weaker_step_counts_and_the_best_pair():
    read = [ReadSentence(str(i), str(i), text, OPEN, 0.5) for i, text in enumerate(SOURCES)]
    bridges = find_bridges(Sample(response="The author of Blue Lamp was born in Sandvik."), read) * 2
    best = best_bridge(bridges, [SURE, NO, SURE, OPEN])
    assert best is not None and best.name == "Ilse Brand" and best.supported == OPEN.supported and not best.settles
    assert best_bridge([], []) is None
