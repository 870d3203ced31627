"""Verdicts without probabilities, in every place that reads or shows them: null, shown as such, and never 0 or 1."""

import json

import numpy as np
import pytest

from knowhalu.cli.show import make_console, show_outcome
from knowhalu.evaluation.curves import make_risk_coverage_curve
from knowhalu.evaluation.labelled_rows import read_labelled_rows
from knowhalu.evaluation.runs import read_run_result
from knowhalu.io.frames import outcome_row
from knowhalu.io.outcomes import format_outcome, parse_outcome, read_outcome_table
from knowhalu.methods.options import ReviseOptions
from knowhalu.methods.revise.edits import editable_spans, flagged_sentences
from knowhalu.report.chart_data import make_chart_data
from knowhalu.report.content import make_report
from knowhalu.report.page import report_as_html
from knowhalu.report.stored_results import find_runs
from knowhalu.report.write import report_as_json, report_as_markdown
from knowhalu.results import CascadeStage, Finding
from knowhalu.types import Extraction
from tests.support.report_runs import Page, labelled, sample, verdict, write_outcomes, write_rows
from tests.support.unmeasured import without_probabilities

NOT = "P(hallucinated) not measured"


@pytest.fixture
def unmeasured():
    """Return an INCORRECT verdict with everything that may have a probability, and none of them."""
    one = verdict(sample(1), 0.9, agree=True)
    finding = Finding(unit="claim", start=0, end=2, text="It", label="INCORRECT", p_supported=0.1, reason="-")
    stage = CascadeStage(name="llm", method="m", label="INCORRECT", hallucinated=True, probability=0.9, reason="-", decided=True)
    extraction = Extraction(entity="300", asked_for="a height", reason="-", confidence=0.9)
    segment = one.segments[0].model_copy(update={"findings": (finding,)})
    whole = one.model_copy(update={"segments": (segment,), "stages": (stage,), "extraction": extraction})
    return without_probabilities(whole)


@pytest.fixture
def half(tmp_path):
    """Return the files of rows and outcomes of which every second has no probability, and those outcomes."""
    samples, outcomes = labelled()
    outcomes = [without_probabilities(o) if i % 4 > 1 else o for i, o in enumerate(outcomes)]
    return write_rows(tmp_path / "rows.jsonl", samples), write_outcomes(tmp_path / "said.jsonl", samples, outcomes), outcomes


def test_json_has_nulls_and_reads_back(unmeasured):
    fields = unmeasured.to_dict()
    assert [fields["probability"], fields["segments"][0]["base"]["confidence"], fields["stages"][0]["probability"]] == [None] * 3
    assert parse_outcome(format_outcome(unmeasured)) == unmeasured


def test_the_command_line_shows_what_was_not_measured(unmeasured, capsys):
    show_outcome(make_console(), sample(1), unmeasured, steps=True)
    output = capsys.readouterr().out
    assert output.startswith(f"✗ HALLUCINATED  factual error  {NOT}\n") and f"segment 1: INCORRECT, {NOT}" in output
    for part in ("P(supported) not measured", "“300” (not measured)", "characters 0-29, not measured", f"INCORRECT    {NOT}"):
        assert part in output
    assert "None" not in output and "nan" not in output


def test_the_notebook_the_text_form_and_flat_rows_show_it(unmeasured):
    assert NOT in repr(unmeasured) and "(not measured): “" in unmeasured._repr_html_()
    assert outcome_row(unmeasured)["probability"] is None and outcome_row(unmeasured)["quote"]


def test_outcome_tables_hold_it_as_missing_and_labels_decide(half):
    rows, said, outcomes = half
    table = read_outcome_table(said, read_labelled_rows(rows).row_index)
    assert np.isnan(table.probability).tolist() == [o.probability is None for o in outcomes]
    assert table.settled.tolist() == [o.hallucinated for o in outcomes]


def test_metrics_of_probabilities_are_those_of_the_measured_rows(half, tmp_path):
    rows, said, outcomes = half
    given = read_labelled_rows(rows)
    result = read_run_result(said, given)
    assert int((~result.predictions.measured).sum()) == 6 and len(result.places) == 12
    report = make_report(find_runs([said], rows))
    (section,) = report.sections
    some, name = section.comparison.results[0], section.entrants[0].name
    assert (some.rows, some.unmeasured) == (12, 6) and any(f"{name} 6 of 12" in note for note in section.comparison.notes)
    kept = [i for i, o in enumerate(outcomes) if o.probability is not None]
    only = write_outcomes(tmp_path / "kept/said.jsonl", [labelled()[0][i] for i in kept], [outcomes[i] for i in kept])
    alone = make_report(find_runs([only], rows)).sections[0].comparison.results[0]
    for metric in ("auc", "pr_auc", "ece", "brier", "coverage_area"):
        assert some.figures[metric].value == pytest.approx(alone.figures[metric].value)
    assert some.figures["average"].value == pytest.approx(2 / 3)  # of all rows


def test_without_any_probability_their_metrics_and_curves_are_null_and_labels_count(tmp_path):
    samples, outcomes = labelled()
    said = write_outcomes(tmp_path / "said.jsonl", samples, [without_probabilities(o) for o in outcomes])
    report = make_report(find_runs([said], write_rows(tmp_path / "rows.jsonl", samples)))
    figures = report.sections[0].comparison.results[0].figures
    assert {figures[n].value for n in ("auc", "pr_auc", "ece", "brier", "coverage_area")} == {None}
    assert figures["average"].value == pytest.approx(2 / 3)
    name = report.sections[0].entrants[0].name
    drawn = report.sections[0].drawn
    assert not any(name in curves for curves in (drawn.roc, drawn.risk, drawn.reliability))
    page, text = Page(report_as_html(report)).text("style", "script"), report_as_markdown(report)
    assert NOT in page and "not measured" in text and "nan" not in text
    assert json.loads(report_as_json(report))["sets"][0]["comparison"]["results"][0]["unmeasured"] == 12


def test_the_report_shows_each_missing_number(unmeasured, tmp_path):
    said = write_outcomes(tmp_path / "said.jsonl", [sample(1)], [unmeasured])
    text = Page(report_as_html(make_report(find_runs([said])))).text("style", "script")
    assert NOT in text and "P(supported) not measured" in text and "None" not in text


def test_curves_are_of_the_measured_rows(half):
    rows, said, outcomes = half
    given = read_labelled_rows(rows)
    table = read_outcome_table(said, given.row_index)
    drawn = make_chart_data({"m": table}, {"m": table}, given)
    measured = np.array([o.probability is not None for o in outcomes])
    p = np.array([0.0 if o.probability is None else o.probability for o in outcomes])[measured]
    right = (np.array([o.hallucinated for o in outcomes]) == given.gold)[measured]
    expected = make_risk_coverage_curve(right, np.zeros(6, dtype=bool), np.abs(p - 0.5))
    assert drawn.risk["m"].y.tolist() == expected.y.tolist() and drawn.reliability["m"].rows.sum() == 6


def test_an_unmeasured_segment_is_revised_by_its_label(unmeasured):
    text = sample(1).response
    (flagged,) = flagged_sentences(editable_spans(text), unmeasured, ReviseOptions(threshold=0.99))
    assert flagged.probability is None
