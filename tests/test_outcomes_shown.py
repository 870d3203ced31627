"""Outcomes in Python: on one line, as HTML, as plain data, and a failure that is unwrapped."""

import json

import pytest

from knowhalu.errors import CheckFailed
from knowhalu.io.outcomes import parse_outcome
from knowhalu.results import Failure, SkippedSpan
from tests.support.revising import revise
from tests.support.scripted_checks import ScriptedChecker

VERDICT = ScriptedChecker().check(claim="wrong <b>", id="1", knowledge="k")
FAILURE = ScriptedChecker().check(claim="broken", id="2", knowledge="k")


def test_a_failure_decides_nothing_and_is_raised_by_unwrap():
    assert isinstance(FAILURE, Failure)
    assert (FAILURE.hallucinated, FAILURE.label, FAILURE.probability) == (None, None, None)
    with pytest.raises(CheckFailed, match="'2': judge: the reply has no label") as raised:
        FAILURE.unwrap()
    assert (raised.value.stage, raised.value.reason) == ("judge", "the reply has no label")
    assert VERDICT.unwrap() is VERDICT


def test_outcomes_show_themselves_on_one_line():
    assert repr(VERDICT) == str(VERDICT) == "Verdict('1': hallucinated (factual), P(hallucinated)=0.97, method='scripted')"
    assert repr(FAILURE) == "Failure('2': judge: the reply has no label)"
    assert repr(revise("Mars is red. It is wrong.")).startswith("Revision(")


def test_a_failure_that_quotes_a_server_controls_no_terminal():
    failure = Failure(id="1", stage="generate", reason="HTTP 500: \x1b[2J\nboom\u202e")
    assert repr(failure) == "Failure('1': generate: HTTP 500: \N{REPLACEMENT CHARACTER}[2J boom\N{REPLACEMENT CHARACTER})"
    with pytest.raises(CheckFailed) as raised:
        failure.unwrap()
    assert str(raised.value).isprintable() and raised.value.reason == failure.reason


def test_html_is_escaped_and_self_contained():
    html = VERDICT._repr_html_()
    assert "wrong &lt;b&gt;" in html and "<b>" not in html.replace("<b>Verdict", "")
    assert "contradicted by Planets" in html and "<script" not in html and "http" not in html
    assert "no label" in FAILURE._repr_html_() and "→" in revise("Mars is red. It is wrong.")._repr_html_()


def test_html_tells_what_was_not_checked():
    skipped = (SkippedSpan(start=0, end=3, text="Hi!", reason="a courtesy"),)
    assert "not checked: “Hi!” (a courtesy)" in VERDICT.model_copy(update={"skipped": skipped})._repr_html_()


def test_plain_data_reads_back():
    fields = json.loads(json.dumps(VERDICT.to_dict()))
    assert parse_outcome(json.dumps(fields)) == VERDICT and fields["label"] == "INCORRECT"
    assert FAILURE.to_dict() == {"id": "2", "stage": "judge", "reason": "the reply has no label", "reply": "gibberish"}
