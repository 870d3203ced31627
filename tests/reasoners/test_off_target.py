"""The off-target check: worked examples of every kind in the KnowHalu paper's table 1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.reasoners.off_target import extract
from knowhalu.reasoners.questions import Asked, asked_for, general_form


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the longest river of Peru?", "A long river."),
        ("When did the ferry sink?", "It sank at sea."),
        ("How many moons has Mars?", "Mars has moons."),
        ("What is the title of the poet's first book?", "The title of the poet's first book."),
        ("Who painted the altar?", "It was not painted by Titian."),
        ("Which films did she direct?", "Several different kinds of films."),
        ("Is the bridge open to buses on Sunday mornings in winter?", "Many people like walking by rivers."),
    ],
)
def test_an_answer_without_what_is_asked_for_is_off_target(question, answer):
    found = extract(question, answer)
    assert found.is_none and not found.refusal and found.reason


@pytest.mark.parametrize(
    ("question", "answer", "entity"),
    [
        ("When did the ferry sink?", "It sank in 1912.", "1912"),
        ("How many moons has Mars?", "Two", "Two"),
        ("Who painted the altar?", "It was painted by Titian.", "Titian"),
        ("Who painted the altar?", "Not Titian but Giorgione.", "Not Titian but Giorgione"),
        ("Was it Titian or Giorgione who painted the altar?", "Giorgione", "Giorgione"),
        ("Is C# a language?", "Yes", "Yes"),
        ("In which year was the fair not held?", "The fair was not held in 1940.", "1940"),
        ("Why was it closed?", "Because the roof was not safe.", "Because the roof was not safe"),
    ],
)
def test_a_right_or_wrong_specific_answer_is_on_target(question, answer, entity):
    found = extract(question, answer)
    assert not found.is_none
    assert entity in (found.entity or "") or (found.entity or "") in entity


@pytest.mark.parametrize(
    "answer",
    [
        "I don't know.",
        "Sorry, the text does not say when.",
        "I'm not in a position to say that.",
        "There is not enough information here.",
    ],
)
def test_a_refusal_is_neither_on_nor_off_target(answer):
    found = extract("When was it built?", answer)
    assert found.refusal and not found.is_none


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When was Ada born?", Asked.TIME), ("In which year did it end?", Asked.TIME), ("How many people came?", Asked.NUMBER),
        ("Who wrote it?", Asked.PERSON), ("Where does it rise?", Asked.PLACE), ("Was she born in Rome?", Asked.YES_NO),
        ("Which is older, Rome or Athens?", Asked.CHOICE), ("Why did it fail?", Asked.REASON),
        ("What is still there when it is open?", Asked.THING),
    ],
)  # fmt: skip
def test_the_kind_of_answer_asked_for_is_read_from_the_question(question, kind):
    assert asked_for(question) is kind


@pytest.mark.parametrize(
    ("claim", "general"),
    [
        ("The fair opened in 1912.", "The fair opened in what year?"),
        ("It has 30 rooms.", "It has how many rooms?"),
        ("The author was born in Warsaw.", "The author was born in what?"),
    ],
)
def test_the_general_formulation_leaves_out_the_detail(claim, general):
    assert general_form(claim) == general


@given(st.text(min_size=1), st.text(min_size=1))
def test_any_text_gets_an_extraction(question, answer):
    found = extract(question, answer)
    assert 0 <= found.confidence <= 1 and (found.entity is not None or found.reason)
