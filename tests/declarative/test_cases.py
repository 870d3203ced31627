from pathlib import Path

import pytest

from knowhalu.declarative import declarative


def triples(name):
    """Read a file of prepared cases: question | answer | statement, NONE where there is none."""
    lines = (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
    return [tuple(part.strip() for part in line.split("|")) for line in lines if line and not line.startswith("#")]


CASES = triples("cases.txt")


def test_there_are_enough_cases():
    assert len(CASES) >= 200
    assert len({(q, a) for q, a, _ in CASES}) == len(CASES)


@pytest.mark.parametrize(("question", "answer", "expected"), CASES)
def test_a_prepared_case_is_stated_as_an_editor_would(question, answer, expected):
    assert (declarative(question, answer) or "NONE") == expected


@pytest.mark.parametrize(("question", "answer", "expected"), [c for c in CASES if c[2] != "NONE"])
def test_a_statement_stays_as_it_is(question, answer, expected):
    assert declarative(question, expected) == expected


def test_most_held_out_cases_are_stated_as_an_editor_would():
    held = triples("held_out.txt")
    assert sum((declarative(q, a) or "NONE") == expected for q, a, expected in held) >= 0.9 * len(held)
