"""The off-target check: worked examples of every kind in the KnowHalu paper's table 1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.methods.knowhalu.off_target import extract_entity
from knowhalu.text.questions import AnswerType, expected_answer_type, general_query


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
        ("I live near the mill. Does the ferry take bicycles and dogs on board?", "People near the mill like it."),
        ("Can guests use the sauna of the hotel?", "The weather can be lovely here."),
    ],
)
def test_an_answer_without_what_is_asked_for_is_off_target(question, answer):
    found = extract_entity(question, answer)
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
        ("My pass is lost and the office is shut. Will you send another pass?", "We won't before May.", "before May"),
        ("Does the ferry take bicycles and dogs on board?", "They don't, except in May.", "except in May"),
        ("In which year was the fair not held?", "The fair was not held in 1940.", "1940"),
        ("Why was it closed?", "Because the roof was not safe.", "Because the roof was not safe"),
    ],
)
def test_a_right_or_wrong_specific_answer_is_on_target(question, answer, entity):
    found = extract_entity(question, answer)
    assert not found.is_none
    assert entity in (found.entity or "") or (found.entity or "") in entity


@pytest.mark.parametrize(
    "answer",
    [
        "I don't know.",
        "Sorry, the text does not say when.",
        "I'm not in a position to say that.",
        "There is not enough information here.",
        "There's too little here for me to go by.",
        "That isn't something I could tell from a menu.",
        "I have no way of dating it.",
        "My notes don't stretch to that.",
        "We lack the page with the dates.",
        "Dating it is more than I can do from this.",
    ],
)
def test_a_refusal_is_neither_on_nor_off_target(answer):
    found = extract_entity("When was it built?", answer)
    assert found.refusal and not found.is_none


@pytest.mark.parametrize(
    "answer",
    [
        "Sorry.",
        "Unknown.",
        "The passage does not say when it opened.",
        "Sorry, I cannot tell from this text. You may want to ask the museum.",
        "I'm sorry, but the passage does not say.",
        "The date of the opening is unknown to me.",
    ],
)
def test_regret_and_advice_beside_a_refusal_claim_nothing(answer):
    assert extract_entity("When did the bridge open?", answer).refusal


@pytest.mark.parametrize(
    "answer",
    [
        "The passage does not state when the bridge opened, but it opened in 1932.",
        "It is not clear who built it, but the bridge was paid for by the king.",
        "The cause was not known until the monk found it.",
        "The text does not say. The king built it.",
        "The builder, not known to most, was Gustave Eiffel.",
        "I don't know, I think it was the king.",
        "I guess it was the king.",
        "I'm afraid it was the king.",
        "Sorry, dogs stay outside.",
        "We walked over the mountain pass.",
        "She leaves me the house.",
        "No answer came from the crew.",
        "Too Little Too Late",
        "I Can't Get No Satisfaction",
        "Unknown Pleasures",
    ],
)
def test_a_hedge_followed_by_a_claim_is_no_refusal(answer):
    found = extract_entity("What is told of it?", answer)
    assert not found.refusal and not found.is_none


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("In which month was the treaty signed?", "In May."),
        ("Which country won the most medals?", "The US won the most medals."),
        ("Who declared the pandemic?", "The WHO declared the pandemic."),
        ("Which band recorded Baba O'Riley?", "The Who"),
        ("Which vitamin prevents night blindness?", "Vitamin A"),
        ("Who won the 2008 final between Federer and Nadal?", "Nadal won the 2008 final."),
        ("How many of the 12 jurors voted guilty?", "All 12."),
        ("What is the capital of Luxembourg?", "Luxembourg"),
        ("Which of lead and iron is heavier?", "Lead is the heavier of them."),
    ],
)
def test_an_answer_in_words_of_the_question_or_in_small_words_is_no_echo(question, answer):
    assert not extract_entity(question, answer).is_none


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When was Ada born?", AnswerType.TIME),
        ("In which year did it end?", AnswerType.TIME),
        ("How many people came?", AnswerType.NUMBER),
        ("Who wrote it?", AnswerType.PERSON),
        ("Where does it rise?", AnswerType.PLACE),
        ("Was she born in Rome?", AnswerType.YES_NO),
        ("Which is older, Rome or Athens?", AnswerType.CHOICE),
        ("Why did it fail?", AnswerType.REASON),
        ("What is still there when it is open?", AnswerType.THING),
    ],
)
def test_the_kind_of_answer_asked_for_is_read_from_the_question(question, kind):
    assert expected_answer_type(question) is kind


@pytest.mark.parametrize(
    ("claim", "general"),
    [
        ("The fair opened in 1912.", "The fair opened in what year?"),
        ("It has 30 rooms.", "It has how many rooms?"),
        ("The author was born in Warsaw.", "The author was born in what?"),
    ],
)
def test_the_general_formulation_leaves_out_the_detail(claim, general):
    assert general_query(claim) == general


@given(st.text(min_size=1), st.text(min_size=1))
def test_any_text_gets_an_extraction(question, answer):
    found = extract_entity(question, answer)
    assert 0 <= found.confidence <= 1 and (found.entity is not None or found.reason)
