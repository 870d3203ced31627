"""Fixtures of the report tests."""

import pytest

from knowhalu.report.content import make_report
from knowhalu.report.stored_results import find_runs
from tests.support.report_runs import labelled, write_outcomes, write_rows


@pytest.fixture
def reported(tmp_path):
    """Return a function that writes rows and outcomes and makes a report of them."""

    def make(samples=None, outcomes=None, *, rows=True, **options):
        if samples is None:
            samples, outcomes = labelled()
        path = write_outcomes(tmp_path / "said.jsonl", samples, outcomes)
        given = write_rows(tmp_path / "rows.jsonl", samples) if rows else None
        return make_report(find_runs([path], given), **options)

    return make
