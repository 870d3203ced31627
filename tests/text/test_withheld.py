"""Refusals about the sources: false only where a sentence surely has what is asked for."""

import pytest

from knowhalu.text.withheld import find_withheld_answer

NOT_GIVEN = "The text does not say."


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("When did the Sandrigg bridge open?", "The Sandrigg bridge opened in 1980."),
        ("Who leads the Ostermoor clinic?", "The Ostermoor clinic is led by Greta Sommer."),
        ("How many singers does the Hexby choir have?", "The Hexby choir has 83 singers."),
        ("Where was Tom Arden born?", "Tom Arden was born in Lyon."),
        ("How long may a Norvian stay without papers?", "Visitors from Norvia may stay for 30 days without papers."),
    ],
)
@pytest.mark.parametrize("refusal", [NOT_GIVEN, "That is not mentioned.", "I cannot answer that from the provided context."])
def test_a_refusal_is_false_where_a_sentence_answers_the_question(question, sentence, refusal):
    assert find_withheld_answer(question, refusal, ["It rained.", sentence]) == sentence


@pytest.mark.parametrize(
    ("question", "refusal", "sentence"),
    [
        ("When did the Sandrigg bridge open?", "I do not know.", "The Sandrigg bridge opened in 1980."),
        ("When did the Sandrigg bridge open?", NOT_GIVEN, "The Sandrigg bridge is open at night."),
        ("When did the Sandrigg bridge open?", NOT_GIVEN, "The Penmor bridge opened in 1980."),
        ("Who leads the Ostermoor clinic?", NOT_GIVEN, "The Ostermoor clinic has 80 beds."),
        ("How many beds does the clinic have?", NOT_GIVEN, "The clinic has beds since 1980."),
        ("How much does the Penmor 6 weigh?", NOT_GIVEN, "The Penmor 6 has 12 lamps."),
        ("Why did the Sandrigg bridge open?", NOT_GIVEN, "The Sandrigg bridge opened in 1980."),
        ("Did the Sandrigg bridge open?", NOT_GIVEN, "The Sandrigg bridge opened in 1980."),
    ],
)
def test_a_refusal_stands_where_nothing_surely_answers(question, refusal, sentence):
    assert find_withheld_answer(question, refusal, [sentence]) is None
