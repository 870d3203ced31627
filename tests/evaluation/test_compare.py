"""Comparisons end to end with rules that need no model: rows, resuming, fitting, failures, tests and refusals."""

import json

import pytest

from knowhalu.errors import InputError, ResumeError
from knowhalu.evaluation import runs as running
from knowhalu.evaluation.compare import compare
from knowhalu.evaluation.metrics import METRICS
from knowhalu.evaluation.result_tables import (
    PROBABILITY_COLUMNS,
    QUALITY_COLUMNS,
    SPAN_COLUMNS,
    as_json,
    as_markdown,
    write_results,
)
from knowhalu.evaluation.runs import parse_specs
from knowhalu.io.outcomes import parse_outcome

LENGTH = "short=trivial-length[threshold=3]"


def row(i, words, label, **more):
    return {"id": f"r{i}", "claim": " ".join(["word"] * words), "knowledge": f"source {i}", "label": label, **more}


ROWS = [row(i, 2 + i % 5, "hallucinated" if i % 5 >= 2 or i == 0 else "faithful") for i in range(20)]
"""Words 2 and 3 are faithful but for one, 4 and more hallucinated."""
OTHERS = [{**r, "id": f"v{r['id']}", "knowledge": f"another {r['knowledge']}"} for r in ROWS]


@pytest.fixture
def job(tmp_path):
    """Write rows and return a function that compares by them."""

    def write_rows(name, rows):
        path = tmp_path / name
        path.write_text("".join(json.dumps(r) + "\n" for r in rows))
        return path

    def run(*methods, rows=ROWS, fit=None, **options):
        fit = None if fit is None else write_rows("fit.jsonl", fit)
        return compare(write_rows("in.jsonl", rows), parse_specs(methods), tmp_path / "out", fit=fit, **options)

    return run


def test_method_is_scored_together_with_every_trivial_rule(job):
    found = job(LENGTH)
    assert [r.name for r in found.results] == ["short", "trivial-length", "trivial-overlap", "trivial-novelty"]
    short = found.results[0]
    assert (found.rows, found.hallucinated, found.groups, short.rows) == (20, 13, 20, 20)
    assert short.figures["tpr"].value == pytest.approx(12 / 13)
    assert short.figures["tnr"].value == 1.0
    assert short.figures["average"].low < short.figures["average"].value <= short.figures["average"].high
    assert (short.fitted, short.cost["pairs"], short.cost["calls"]) == (None, 0, 0)
    assert short.cost["seconds"] > 0


def test_rules_without_a_threshold_are_fitted_on_the_compared_rows_as_an_upper_bound(job):
    found = job(LENGTH)
    assert found.results[1].figures["average"].value == found.results[0].figures["average"].value
    assert {r.fitted for r in found.results[1:]} == {"the same rows"}
    assert "trivial-length (upper bound)" in as_markdown(found)
    assert "fitted on the compared rows" in " ".join(found.notes)


def test_rules_are_fitted_on_validation_rows_only(job, tmp_path):
    turned = [{**r, "label": "faithful" if r["label"] == "hallucinated" else "hallucinated"} for r in OTHERS]
    found = job(LENGTH, fit=turned)
    rule = json.loads((tmp_path / "out/trivial.json").read_text())["trivial-length"]
    assert (rule["threshold"], rule["direction"], rule["rows"]) == (4.0, "under", 20)
    assert found.results[1].figures["average"].value < 0.2
    assert found.results[1].fitted.endswith("fit.jsonl") and not found.notes


def test_fitting_on_compared_rows_is_refused(job):
    with pytest.raises(InputError, match=r"fit.jsonl: 1 of its rows are compared too \(sample 'mine' is one\)"):
        job(LENGTH, fit=[*OTHERS, {**ROWS[3], "id": "mine"}])
    with pytest.raises(InputError, match=r"fit.jsonl: no row is faithful"):
        job(LENGTH, fit=[r for r in OTHERS if r["label"] == "hallucinated"])


def test_mcnemar_uses_discordant_rows_and_is_corrected_for_all_tests(job):
    found = job(LENGTH, "never=trivial-length[threshold=99]")
    never = found.tests[0]
    assert (never.name, never.rows, never.first_only, never.other_only) == ("never", 20, 12, 0)
    assert never.p == pytest.approx(2 / 2**12)
    assert never.holm >= never.p
    assert never.difference.value == pytest.approx(0.5 - (12 / 13 + 1) / 2)
    assert never.difference.low <= never.difference.value <= never.difference.high < 0


def test_no_row_is_checked_twice_and_times_of_all_runs_are_summed(job, monkeypatch):
    first = job(LENGTH).results[0]

    def unused(*args):
        raise AssertionError("a row was checked again")

    monkeypatch.setattr(running.TimedChecker, "stream", unused)
    monkeypatch.setattr("knowhalu.evaluation.compare._with_trivial", lambda chosen, *rest: chosen)
    assert job(LENGTH).results[0] == first


def test_other_settings_under_the_same_name_are_refused(job):
    job(LENGTH)
    with pytest.raises(ResumeError, match=r"short.jsonl: belongs to another run \(settings.trivial.threshold was 3.0, is 4.0"):
        job("short=trivial-length[threshold=4]")
    assert job("short=trivial-length[threshold=4]", restart=True).results[0].figures["tpr"].value == pytest.approx(8 / 13)


def test_limit_selects_whole_groups_and_a_higher_limit_only_adds_rows(job, tmp_path):
    rows = [{**r, "meta": {"pair": i // 2}} for i, r in enumerate(ROWS)]

    def ids():
        return [parse_outcome(line).id for line in (tmp_path / "out/short.jsonl").read_text().splitlines()[1:]]

    assert job(LENGTH, rows=rows, limit=6).rows == 6
    few = ids()
    assert sorted(int(i[1:]) // 2 for i in few) == [p for p in sorted({int(i[1:]) // 2 for i in few}) for _ in range(2)]
    assert job(LENGTH, rows=rows, limit=10).groups == 5
    assert set(few) < set(ids())


def test_limit_does_not_write_to_the_input(tmp_path):
    path = tmp_path / "out/input/rows.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(before := "".join(json.dumps(r) + "\n" for r in ROWS))
    with pytest.raises(InputError, match="is the input, .* Give another folder"):
        compare(path, parse_specs([LENGTH]), tmp_path / "out", limit=10)
    assert path.read_text() == before


@pytest.mark.parametrize("there", [json.dumps({**ROWS[0], "meta": {"note": "by hand"}}), "no rows at all"])
def test_limit_does_not_overwrite_other_rows(job, tmp_path, there):
    job(LENGTH, limit=6)
    job(LENGTH, limit=6)
    path = tmp_path / "out/input/rows.jsonl"
    path.write_text(there)
    with pytest.raises(InputError, match=r"rows.jsonl: has rows that are not in .*in.jsonl.*Give another folder, or delete it"):
        job(LENGTH, limit=6)
    assert path.read_text() == there


def test_rows_without_a_label_are_refused_with_a_remedy(job):
    with pytest.raises(InputError, match=r"in.jsonl, sample 'r20': has no label.*Give every row a label.*knowhalu detect"):
        job(LENGTH, rows=[*ROWS, {**row(20, 3, None)}])


def test_rows_without_sources_exclude_rules_that_read_them_and_refuse_methods_that_need_them(job, tmp_path):
    rows = [*ROWS[:-1], {n: value for n, value in ROWS[-1].items() if n != "knowledge"}]
    found = job(LENGTH, rows=rows)
    assert [r.name for r in found.results] == ["short", "trivial-length"]
    assert "trivial-overlap and trivial-novelty left out: there are rows without sources." in found.notes
    with pytest.raises(InputError, match="knowhalu needs sources. Rows with neither documents nor knowledge: 1"):
        job("other=trivial-length[threshold=2]", "knowhalu", rows=rows)
    assert not (tmp_path / "out/other.jsonl").exists()


def test_rows_of_one_label_note_the_undefined_metrics(job):
    found = job(LENGTH, rows=[r for r in ROWS if r["label"] == "hallucinated"])
    assert [r.name for r in found.results] == ["short"]
    assert found.notes[0].startswith("No row is faithful: TNR, Avg Acc, balanced accuracy, macro F1 and ROC-AUC cannot be given")
    assert (found.results[0].figures["tpr"].value, found.results[0].figures["average"].value) == (pytest.approx(12 / 13), None)


def test_failures_are_counted_and_change_no_metric(job):
    found = job("selfcheck:encoder", LENGTH, rows=ROWS[:6])  # of a claim no other responses can be drawn
    broken, short = found.results[:2]
    assert (broken.rows, sum(broken.failures.values()), short.rows) == (0, 6, 6)
    assert all(f.value is None for f in broken.figures.values())
    assert {t.rows for t in found.tests} == {0}
    assert any("Rows without a verdict" in note for note in found.notes)
    assert "no verdict" in as_markdown(found)


def test_single_group_gives_no_intervals(job):
    found = job(LENGTH, rows=[{**r, "knowledge": "one"} for r in ROWS])
    assert found.results[0].figures["tpr"].low is None
    assert any("no intervals" in note for note in found.notes)


def test_every_metric_has_a_table():
    assert {*QUALITY_COLUMNS, *PROBABILITY_COLUMNS, *SPAN_COLUMNS} == set(METRICS)


def test_comparison_survives_writing_and_reading(job, tmp_path):
    found = job(LENGTH)
    places = write_results(found, tmp_path)
    fields = json.loads(places[0].read_text())
    assert fields == json.loads(json.dumps(as_json(found)))
    assert set(fields["results"][0]["figures"]["auc"]) == {"value", "low", "high"}
    shown = places[1].read_text()
    assert shown.count("| short |") == 8  # quality, cost, probabilities, what is found, the oracle, and three parts by length
    assert "**Words of the text**" in shown


def test_marked_spans_and_types_of_error_are_measured_where_rows_have_them(job):
    """The rule calls texts of over 3 words wrong, marking all of them; the gold spans are their first words."""
    marks = [{"meta": {"type": "long" if i % 2 else "short", "spans": [[0, 4]]}} if r["label"] != "faithful" else {}
             for i, r in enumerate(ROWS)]  # fmt: skip
    found = job(LENGTH, rows=[{**r, **m} for r, m in zip(ROWS, marks, strict=True)])
    short = found.results[0].figures
    marked = sum(len(r["claim"]) for r in ROWS if len(r["claim"].split()) > 3)
    assert short["span_precision"].value == pytest.approx(12 * 4 / marked)
    assert short["span_recall"].value == pytest.approx(12 / 13)
    assert (short["wrong_hallucinated"].value, short["wrong_faithful"].value) == (pytest.approx(12 / 13), 0)
    by = {b.key: b for b in found.breakdowns}
    assert set(by) == {"type", "words"}
    parts = by["type"].results[0].parts
    assert [(p.name, p.rows, p.hallucinated) for p in parts] == [("long", 6, 6), ("short", 7, 7)]
    assert parts[1].figures["tpr"].value == pytest.approx(6 / 7)
    assert parts[1].figures["tnr"].value is None


def test_invalid_spans_are_refused_before_any_check(job, tmp_path):
    with pytest.raises(InputError, match=r"in.jsonl, sample 'r2', field 'meta.spans'"):
        job(LENGTH, rows=[{**r, **({"meta": {"spans": [[0, 999]]}} if r["id"] == "r2" else {})} for r in ROWS])
    assert not (tmp_path / "out").exists()


def test_a_password_in_the_settings_of_a_method_is_not_stored(job, tmp_path):
    comparison = job("short=trivial-length[threshold=3,retrieval.mode=http,retrieval.url=http://me:secret@host]")
    write_results(comparison, tmp_path / "out")
    files = [path.read_text() for path in (tmp_path / "out").iterdir() if path.is_file()]
    assert files and any("http://host" in text for text in files) and not any("secret" in text for text in files)


def test_time_is_sequential_only_where_every_row_was_checked_alone(job):
    alone = ("engine.in_flight=1",)
    assert job(LENGTH, limit=4, pairs=alone).results[0].sequential
    assert job(LENGTH, pairs=alone).results[0].sequential
    assert not job(LENGTH, restart=True, limit=4).results[0].sequential
    assert not job(LENGTH, pairs=alone).results[0].sequential
