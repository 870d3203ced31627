"""Outcomes of older versions, whose fields had other names."""

import json

import pytest

from knowhalu.calibration.tunable import read_verdict_lines
from knowhalu.evaluation.labelled_rows import read_labelled_rows
from knowhalu.io.outcomes import REASONS, parse_outcome, read_outcome_table
from knowhalu.results import Finding, SkippedSpan
from tests.support.scripted_checks import ScriptedChecker

OLD_NAMES = {
    "inconclusive_reason": "open", "p_supported": "supported", "confidence_source": "measured", "unsupported": "unfounded",
    "skipped": "unchecked",
}  # fmt: skip


def as_written_before(value):
    """Return plain data with the field names of older versions."""
    if isinstance(value, dict):
        return {OLD_NAMES.get(name, name): as_written_before(item) for name, item in value.items()}
    return [as_written_before(item) for item in value] if isinstance(value, list) else value


@pytest.fixture
def old(tmp_path):
    """Return a verdict, and a file that holds it in the form of older versions."""
    found = ScriptedChecker().check(claim="unsure", id="1", knowledge="k")
    base = found.segments[0].base.model_copy(update={"confidence_source": "none", "p_supported": 0.4})
    finding = Finding(unit="claim", start=0, end=1, text="u", label="CORRECT", p_supported=0.7, reason="-")
    segment = found.segments[0].model_copy(update={"findings": (finding,), "base": base})
    skipped = (SkippedSpan(start=0, end=1, text="u", reason="-"),)
    verdict = found.model_copy(update={"segments": (segment,), "skipped": skipped})
    line = json.dumps(as_written_before(verdict.to_dict())).replace('"measured": "none"', '"measured": "nowhere"')
    assert all(f'"{name}":' in line for name in OLD_NAMES.values()) and '"nowhere"' in line
    file = tmp_path / "out.jsonl"
    file.write_text(json.dumps({"run": {"version": "1"}}) + f"\n{line}\n")
    return verdict, file


def test_verdicts_of_older_versions_are_read_and_written_with_todays_field_names(old):
    verdict, file = old
    read = parse_outcome(file.read_text().splitlines()[1])
    assert read == verdict and not set(OLD_NAMES.values()) & {*read.to_dict(), *read.to_dict()["segments"][0]["base"]}


def test_files_of_older_versions_are_read_for_reports_and_for_calibration(old, tmp_path):
    verdict, file = old
    assert [REASONS[why] for why in read_outcome_table(file, None).why] == [verdict.inconclusive_reason]
    rows = tmp_path / "in.jsonl"
    rows.write_text('{"id": "1", "claim": "unsure", "knowledge": "k", "label": "faithful"}\n')
    ((place, fields),) = read_verdict_lines(file, read_labelled_rows(rows))
    assert (place, fields["segments"][0]["base"]["p_supported"]) == (0, 0.4)
