"""Questions: which ones rules can see answered, and which answers decline."""

import pytest

from knowhalu.text.questions import asking_part, declines_to_answer, is_checkable


@pytest.mark.parametrize(
    "question",
    [
        "Who built the tower?",
        "When did the bridge open?",
        "Where was she born?",
        "How many people visit it?",
        "How high is the tower?",
        "Which harbour is the largest?",
        "What year did it open?",
        "In what city does he live?",
        "Is the bridge open?",
        "Was it built before or after the war?",
        "who wrote it",
    ],
)
def test_questions_for_one_detail_can_be_checked(question):
    assert is_checkable(question)


@pytest.mark.parametrize(
    "question",
    [
        "What is blanching?",
        "What are tides?",
        "Why did the bridge close?",
        "How do I store potatoes?",
        "What should I do about rust?",
        "What happens if it rains?",
        "Tell me about the tower.",
        "Explain tides to a child.",
        "Summarise the report.",
        "Hello there",
        "",
    ],
)
def test_definitions_reasons_advice_and_requests_cannot(question):
    assert not is_checkable(question)


@pytest.mark.parametrize(
    ("text", "declines"),
    [
        ("I do not know.", True),
        ("I'm sorry, but I don't have any information about that.", True),
        ("The passage does not say who built it.", True),
        ("I do not know the day, but it opened in 1932.", False),
        ("The bridge does not open on Mondays.", False),
    ],
)
def test_only_an_answer_without_a_claim_declines(text, declines):
    assert declines_to_answer(text, in_other_words=True) is declines


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("My bike is broken. Can you mend it? Thanks.", "Can you mend it?"),
        ("Is St. Anne's open? Or shut?", "Is St. Anne's open? Or shut?"),
        ("Tell me about the mill.", "Tell me about the mill."),
    ],
)
def test_only_the_last_questions_of_a_message_ask(question, asks):
    assert asking_part(question) == asks
