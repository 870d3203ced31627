"""Evaluation of data sets end to end with rules that need no model: baselines, subsets, warnings and refusals."""

import json

import pytest

from knowhalu.cli.eval_run import show_evaluation
from knowhalu.cli.show import make_console
from knowhalu.datasets.loading import open_dataset
from knowhalu.errors import InputError, KnowHaluError, ResumeError, StageError
from knowhalu.evaluation.dataset import FitSource, evaluate_dataset
from knowhalu.evaluation.result_tables import as_json, as_markdown, write_results
from knowhalu.evaluation.runs import parse_specs
from knowhalu.methods.baselines.rules import TrivialBaseline
from tests.datasets.test_forms import CLAIM

SHORT = "short=trivial-length[threshold=3]"


def pair(i, right, wrong, split="test"):
    return {
        "id": f"p{split}{i}", "knowledge": f"source {split} {i}", "question": f"What is {split} {i}?", "split": split,
        "right_answer": " ".join(["aye"] * right), "hallucinated_answer": " ".join(["nope"] * wrong),
    }  # fmt: skip


PAIRS = [pair(i, 2, 8) for i in range(6)] + [pair(i, 3, 3) for i in range(6, 10)]
"""Ten pairs: length tells six of them apart, and nothing of the other four."""


@pytest.fixture
def job(tmp_path):
    def run(name, rows, *methods, split=None, data="d.jsonl", **options):
        path = tmp_path / data
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return evaluate_dataset(
            open_dataset(name, path, split), path, parse_specs(methods or [SHORT]), tmp_path / "out", **options
        )

    return run


def average(found, name, subset=None):
    results = found.comparison.results if subset is None else next(s for s in found.subsets if s.name == subset).results
    return next(r for r in results if r.name == name).figures["average"].value


def test_every_figure_is_shown_with_rules_and_length_matched_rows(job):
    found = job("halueval-qa", PAIRS)
    assert [r.name for r in found.comparison.results] == [
        "short", "trivial-length", "trivial-overlap", "trivial-novelty", "response-only"
    ]  # fmt: skip
    assert average(found, "short") == pytest.approx((0.6 + 1.0) / 2)
    (matched,) = found.subsets
    assert (matched.name, matched.rows, matched.hallucinated) == ("length-matched", 8, 4)
    assert average(found, "short", "length-matched") == 0.5
    beside = found.beside["short"]
    assert beside.rule == "response-only" and beside.rule_average.value == 1.0
    assert (beside.length_average.value, beside.matched_average.value) == (pytest.approx(0.8), 0.5)


def test_halueval_figures_are_never_shown_without_length_rule_and_matched_rows(job, tmp_path):
    found = job("halueval-qa", PAIRS)
    fields = as_json(found)
    for result in fields["results"]:
        assert result["beside"]["length_average"]["value"] is not None
        assert result["beside"]["matched_average"]["value"] is not None
    lines = [line for line in as_markdown(found).splitlines() if line.startswith("| short | 20 |")]
    assert len(lines) == 1
    cells = [cell.strip() for cell in lines[0].strip("|").split("|")]
    assert cells[5].startswith("80.0 [") and cells[7:9] == ["80.0", "50.0 [50.0, 50.0]"]
    assert "HaluEval, whose wrong responses were generated" in " ".join(found.warnings)


def test_halueval_rows_without_a_length_matched_pair_are_refused_before_any_check(job, tmp_path):
    with pytest.raises(InputError, match="among 12 rows none are length-matched, and a figure of HaluEval is not given without"):
        job("halueval-qa", PAIRS[:6])
    assert not (tmp_path / "out" / "short.jsonl").exists()
    found = job("qa-pairs", PAIRS[:6])
    assert any("No pair of these rows is length-matched" in warning for warning in found.warnings)


def test_halueval_figures_without_verdicts_on_matched_rows_are_withheld(job, monkeypatch):
    """A method that fails on all rows of which length tells nothing would otherwise be given by the others alone."""
    usual = TrivialBaseline.check

    def check(self, sample):
        if self.threshold == 3 and int(sample.id[5]) > 5:
            raise StageError("judge", "it fell over")
        return (yield from usual(self, sample))

    monkeypatch.setattr(TrivialBaseline, "check", check)
    found = job("halueval-qa", PAIRS)
    short, length = found.comparison.results[:2]
    assert short.rows == 12
    assert all(figure.value is None for figure in short.figures.values()) and length.figures["average"].value is not None
    assert "short: figures withheld, since it has no verdict on the length-matched rows of a label." in found.warnings
    assert average(job("qa-pairs", PAIRS, restart=True), "short") == 1.0


def test_unpaired_halueval_rows_are_matched_over_all_rows(job):
    rows = [
        {"question": f"q{i}", "answer": "w " * (1 + i % 4), "knowledge": f"k{i}", "hallucination": ["no", "yes"][i % 2]}
        for i in range(12)
    ]
    found = job("halueval-qa", rows)
    assert found.subsets[0].name == "length-matched"
    assert found.beside["short"].matched_average.value is not None


def test_rules_are_fitted_on_the_validation_split_if_there_is_one(job, tmp_path):
    validation = [pair(i, 8, 2, "val") for i in range(4)]
    found = job("qa-pairs", [*PAIRS, *validation])
    assert {r.fitted.rpartition("/")[2] for r in found.comparison.results[1:]} == {"validation.jsonl"}
    assert average(found, "trivial-length") == pytest.approx(0.2)
    assert len((tmp_path / "out/input/validation.jsonl").read_text().splitlines()) == 8


def test_compared_rows_are_excluded_from_fitting(job, tmp_path):
    twin = {**PAIRS[0], "id": "twin", "split": "val"}
    job("qa-pairs", [*PAIRS, twin, pair(1, 2, 8, "val")], fit=FitSource(split="val"))
    assert len((tmp_path / "out/input/validation.jsonl").read_text().splitlines()) == 2


def test_rules_are_fitted_on_a_file_of_the_same_or_another_layout(job, tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_text("".join(json.dumps(pair(i, 2, 8, "val")) + "\n" for i in range(3)))
    assert average(job("qa-pairs", PAIRS, fit=FitSource(other)), "trivial-length") == pytest.approx(0.8)
    rows = [{"claim": "nope " * n, "knowledge": f"z{n}", "label": ["faithful", "hallucinated"][n > 4]} for n in (2, 3, 7, 8)]
    other.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert average(job("qa-pairs", PAIRS, fit=FitSource(other)), "trivial-length") == pytest.approx(0.8)


def test_warnings_name_rules_that_solve_a_set_and_methods_below_them(job):
    said = " ".join(job("qa-pairs", PAIRS).warnings)
    assert "Trivial rules solve this set: response-only 100.0 %, " in said
    assert "short does not beat response-only: 80.0 % against 100.0 % average accuracy." in said
    assert "The length-matched rows are solved by other rules: response-only 100.0 %" in said


def test_unsolved_set_with_sources_has_no_warnings(job):
    rows = [{"source": f"source {i // 2} says so", "claim": f"claim {i // 2}", "label": ["supported", "unsupported"][i % 2]}
            for i in range(40)]  # fmt: skip
    found = job("claims", rows, "short=trivial-length[threshold=1]")
    assert [w for w in found.warnings if not w.startswith("short does not")] == []


def test_names_of_splits_and_parts_are_escaped(job, capsys):
    wild = "x\x1b[2J|\n# y"
    rows = [{**CLAIM, "id": str(i), "domain": f"{wild}{i % 2}", "split": wild, "source": f"s{i}"} for i in range(8)]
    rows = [{**row, "label": ["supported", "unsupported"][i // 2 % 2]} for i, row in enumerate(rows)]
    found = job("claims", rows)
    assert len(found.subsets) == 3
    assert "\n# y" not in as_markdown(found)
    show_evaluation(make_console(), found)
    assert "\x1b[2J" not in capsys.readouterr().out


def test_rows_without_sources_are_counted(job):
    rows = [{"claim": f"c{i} " * (1 + i % 3), "label": ["no", "yes"][i % 2]} for i in range(6)]
    assert any(w.startswith("6 rows bring no sources") for w in job("samples", rows).warnings)


def test_parts_of_a_set_are_reported_with_their_mean(job):
    rows = [{"dataset": "AB"[i % 2], "doc": f"d{i}", "claim": "w " * (1 + i), "label": int(i < 4 + i % 2)} for i in range(12)]
    found = job("llm-aggrefact", rows)
    assert [s.name for s in found.subsets] == ["A", "B", "mean of the parts"]
    a, b = (average(found, "short", part) for part in "AB")
    assert average(found, "short", "mean of the parts") == pytest.approx((a + b) / 2)
    assert "| mean of the parts |" in as_markdown(found)


def test_result_files_have_the_documented_names(job, tmp_path):
    found = job("qa-pairs", PAIRS)
    write_results(found, tmp_path / "out")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "input", "short.jsonl", "trivial-length.jsonl", "trivial-overlap.jsonl", "trivial-novelty.jsonl", "response-only.jsonl",
        "trivial.json", "seconds.json", "comparison.json", "comparison.md",
    }  # fmt: skip
    fields = json.loads((tmp_path / "out/comparison.json").read_text())
    assert {"input", "rows", "hallucinated", "groups", "results", "tests", "notes"} < fields.keys()
    told = fields["dataset"]
    assert (told["name"], told["split"], told["rows"], told["licence"]) == ("qa-pairs", "test", 20, "not stated")
    assert told["path"].endswith("d.jsonl") and len(told["sha256"]) == 64
    first = json.loads((tmp_path / "out/input/all.jsonl").read_text().splitlines()[0])
    assert first["meta"]["pair"] == "line-1" and first["label"] == "faithful"


def test_no_row_is_checked_twice_and_changed_rows_are_refused(job, monkeypatch):
    before = job("qa-pairs", PAIRS)
    asked = []

    def unused(self, samples):
        asked.append(self.settings.trivial.threshold)
        yield from ()

    monkeypatch.setattr("knowhalu.evaluation.runs.TimedChecker.stream", unused)
    with pytest.raises(KnowHaluError, match="got no outcome"):
        job("qa-pairs", PAIRS)
    assert asked == [None]  # a rule that is fitted anew is asked again, the method that was done is not
    monkeypatch.undo()
    assert job("qa-pairs", PAIRS).comparison.results[0].figures == before.comparison.results[0].figures
    with pytest.raises(ResumeError, match="has changed in"):
        job("qa-pairs", [{**PAIRS[0], "right_answer": "other"}, *PAIRS[1:]])


def test_limit_selects_whole_pairs_and_reports_the_total(job):
    found = job("qa-pairs", PAIRS, limit=6)
    assert (found.comparison.rows, found.comparison.hallucinated, found.dataset.rows) == (6, 3, 20)


def test_data_in_the_output_folder_is_refused_and_unchanged(job, tmp_path):
    path = tmp_path / "out/input/rows.jsonl"
    path.parent.mkdir(parents=True)
    with pytest.raises(InputError, match="is in the folder to which its rows would be written.*Give another folder"):
        job("qa-pairs", PAIRS, data=path, limit=6)
    assert len(path.read_text().splitlines()) == len(PAIRS)
