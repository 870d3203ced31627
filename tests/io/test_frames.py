"""Outcomes as flat rows and as a data frame."""

import sys

import pytest

from knowhalu.errors import MissingExtra
from knowhalu.io.frames import outcome_row, to_df
from tests.support.revising import revise
from tests.support.scripted_checks import ScriptedChecker

VERDICT = ScriptedChecker().check(claim="wrong <b>", id="1", knowledge="k")
FAILURE = ScriptedChecker().check(claim="broken", id="2", knowledge="k")


def test_flat_rows_have_the_same_columns_for_verdicts_and_failures():
    verdict, failure = outcome_row(VERDICT), outcome_row(FAILURE)
    assert list(verdict) == list(failure) and not any(isinstance(v, dict | list | tuple) for v in verdict.values())
    assert (verdict["hallucinated"], verdict["kind"], verdict["quote"], verdict["failed_stage"]) == (True, "factual", "k", None)
    assert (failure["id"], failure["hallucinated"], failure["failed_stage"]) == ("2", None, "judge")
    assert outcome_row(revise("Mars is red. It is wrong."))["status"] == "revised"


def test_a_data_frame_needs_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"knowhalu\[pandas\]"):
        to_df([VERDICT])


def test_a_data_frame_has_a_row_for_each_outcome():
    pandas = pytest.importorskip("pandas")
    frame = to_df([VERDICT, FAILURE])
    assert isinstance(frame, pandas.DataFrame) and list(frame["id"]) == ["1", "2"]
