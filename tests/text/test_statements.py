"""A short yes or no is read as the statement of its question; an answer that says more is not."""

import pytest

from knowhalu.text.statements import read_yes_no


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("Did the ferry sink in 1911?", "Yes.", ("The ferry sink in 1911.", True)),
        ("Did the ferry sink in 1911?", "No, it did not.", ("The ferry sink in 1911.", False)),
        ("Is the park open on Sundays?", "**No**", ("The park open on Sundays.", False)),
        ("Can dogs enter the park?", "No, they can't.", ("Dogs enter the park.", False)),
        ("Didn't the ferry sink?", "Yes, it did!", ("The ferry sink.", True)),
        ("Did the ferry not sink?", "No.", ("The ferry sink.", False)),
        ("Does it float?", "That's right.", ("It float.", True)),
        ("Did the ferry sink in 1911?", "No, the ferry did not sink in 1911.", ("The ferry did sink in 1911.", False)),
        ("Did the ferry sink in 1911?", "The ferry didn't sink in 1911.", ("The ferry did sink in 1911.", False)),
        ("Did the ferry sink in 1911?", "Yes, the ferry sank in 1911.", ("The ferry sank in 1911.", True)),
        ("Does the ferry carry cars?", "The ferry carries cars.", ("The ferry carries cars.", True)),
        ("Does the ferry carry cars?", "Yes, the ferry does not carry cars.", None),
    ],
)
def test_a_short_answer_affirms_or_denies_its_question(question, answer, expected):
    assert read_yes_no(question, answer) == expected


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Did the ferry sink in 1911?", "No, it sank in 1912."),
        ("Did the ferry sink in 1911?", "Yes, off the coast."),
        ("When did the ferry sink?", "Yes."),
        ("Could you explain what a ferry is?", "Yes."),
        ("Is it a ferry or a tram?", "Yes."),
    ],
)
def test_another_answer_is_no_short_yes_or_no(question, answer):
    assert read_yes_no(question, answer) is None
