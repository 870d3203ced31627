"""Tables of papers with our rows: matching runs, single forms of knowledge, and reasons for missing numbers."""

import json

import pytest
from click.testing import CliRunner

from knowhalu.cli.eval import paper as command
from knowhalu.errors import InputError
from knowhalu.evaluation.metrics import METRICS
from knowhalu.evaluation.paper import as_json, as_markdown, make_paper_table
from knowhalu.evaluation.paper_commands import RunPlace
from knowhalu.evaluation.past_runs import read_past_run, verdict_by_form
from knowhalu.evaluation.published import published_table
from knowhalu.io.outcomes import format_outcome
from knowhalu.results import Segment, Verdict
from knowhalu.settings import Settings
from knowhalu.types import Judgment, KnowledgeForm, Task

SET = "knowhalu-summarization"
FIRST, OTHER = KnowledgeForm.UNSTRUCTURED, KnowledgeForm.STRUCTURED


def judgment(form, label):
    return Judgment(form=form, label=label, confidence=0.9, p_supported=0.1 if label == "INCORRECT" else 0.8, rationale="")


def verdict(name, *labels):
    """Make a verdict of segments, each with a label by the first form and perhaps one by the other."""
    segments = tuple(
        Segment(
            start=i, end=i + 1, text="x", label=pair[0], probability=0.5, base=judgment(FIRST, pair[0]),
            supplement=judgment(OTHER, pair[1]) if len(pair) > 1 else None,
        )
        for i, pair in enumerate(labels)
    )  # fmt: skip
    return Verdict(
        id=name, task=Task.SUMMARY, method="knowhalu", label="CORRECT", hallucinated=False, kind=None, probability=0.1, reason="",
        segments=segments,
    )  # fmt: skip


SAID = [
    verdict("h1", ("CORRECT", "INCORRECT"), ("CORRECT", "CORRECT")), verdict("h2", ("INCORRECT", "INCORRECT")),
    verdict("f1", ("CORRECT", "INCONCLUSIVE")), verdict("f2", ("CORRECT", "CORRECT")),
]  # fmt: skip


def result(folder, name, method, *, reasoner="encoder", said=(), value=0.25, fitted=None, **options):
    settings = Settings(method=method, reasoner=reasoner, **options).model_dump_json(exclude={"retrieval"})
    head = json.dumps({"run": {"settings": settings}})
    (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in [head, *map(format_outcome, said)]))
    figures = {figure: {"value": value, "low": value - 0.1, "high": value + 0.1} for figure in METRICS}
    return {"name": name, "method": method, "reasoner": reasoner, "settings": [], "rows": 4, "figures": figures,
            "cost": {"seconds": 0.125}, "fitted": fitted}  # fmt: skip


@pytest.fixture
def runs(tmp_path):
    """Write a run and return a function that lays out a table by it."""
    folder = tmp_path / "runs" / SET
    (folder / "input").mkdir(parents=True)
    rows = [{"id": v.id, "summary": "x x", "document": f"d{v.id}", "label": "hallucinated" if "h" in v.id else "faithful"}
            for v in SAID]  # fmt: skip
    (folder / "input" / "rows.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))

    def laid(number, *results, paper="knowhalu"):
        if results:
            content = {"input": "elsewhere/rows.jsonl", "results": [result(folder, *a, **k) for a, k in results]}
            (folder / "comparison.json").write_text(json.dumps(content))
        return make_paper_table(published_table(paper, number), RunPlace(tmp_path / "runs"))

    return laid


def made(name, method, **more):
    return (name, method), more


def row(laid, label, by="encoder"):
    (found,) = [r for r in laid.rows if r.labels[-1] == label and r.by == by]
    return found


def test_rows_without_runs_give_their_needs_and_no_numbers(runs, tmp_path):
    laid = runs(3)
    assert [r.by for r in laid.rows] == ["published"] * 22 + ["llm"] * 5 + ["encoder", "llm"] * 3
    shown = as_markdown(laid)
    assert "| GPT-3.5 | KnowHalu (Aggregation) | published | 69 | 68 | 68.5 |" in shown
    assert "| ours | KnowHalu (Aggregation) | encoder | not run (6) | not run (6) | not run (6) |" in shown
    out = tmp_path / "runs/knowhalu-encoder-second_opinion-always"
    assert (
        f'- (6) has not been run: `knowhalu eval {SET} --data DATA -m "knowhalu:encoder[second_opinion=always]" -o {out}`'
        in shown
    )
    assert "needs an index of Wikipedia and a language model: `" in as_markdown(runs(2))


def test_a_reasoner_without_result_keeps_its_row_and_command_beside_one_with(runs):
    laid = runs(20, made("a", "knowhalu", knowhalu={"second_opinion": "always", "passages": 1}, said=SAID))
    filled = [r for r in laid.rows if r.labels == ("K = 1", "KnowHalu (Structured)") and r.by != "published"]
    assert [(r.by, bool(r.cells[0].command)) for r in filled] == [("encoder", False), ("llm", True)]


def test_runs_in_folders_of_their_own_are_found_and_the_one_with_most_rows_counts(runs, tmp_path):
    runs(3, made("a", "knowhalu", value=0.25))
    for name, rows, value in (("first", 9, 0.5), ("second", 3, 0.75)):
        folder = tmp_path / "runs" / name / SET
        folder.mkdir(parents=True)
        input_file = str(tmp_path / "runs" / SET / "input/rows.jsonl")
        content = {"input": input_file, "results": [{**result(folder, "a", "knowhalu", value=value), "rows": rows}]}
        (folder / "comparison.json").write_text(json.dumps(content))
    (cell, *_) = row(runs(3), "KnowHalu (Aggregation)").cells
    assert (cell.figure.value, cell.rows) == (50.0, 9)


def test_self_consistency_is_the_best_of_its_judges_once_all_have_run(runs):
    judged = [
        made(f"by-{judge}", "self-consistency", reasoner="llm", value=value, baselines={"votes_by": judge}, llm={"model": "Qwen"})
        for judge, value in (("halueval", 0.5), ("halueval-cot", 0.75))
    ]
    assert row(runs(3, judged[0]), "Self Consistency", "llm").cells[0].command
    assert row(runs(3, *judged), "Self Consistency", "llm:Qwen").cells[0].figure.value == 75.0


def test_model_is_named_as_the_run_has_stored_it(runs, tmp_path):
    runs(3, made("a", "knowhalu", reasoner="llm"))
    path = tmp_path / "runs" / SET / "a.jsonl"
    head = json.loads(path.read_text())
    head["run"]["llm"] = "Some Model 7B 0123456789abcdef"
    path.write_text(json.dumps(head) + "\n")
    assert row(runs(3), "KnowHalu (Aggregation)", "llm:Some Model 7B").cells[0].rows == 4


def test_run_with_default_settings_fills_the_row_with_its_origin(runs):
    by_model = made("b", "knowhalu", reasoner="llm", value=0.75, llm={"model": "Qwen"}, said=SAID)
    laid = runs(3, made("a", "knowhalu", said=SAID), by_model)
    cells = row(laid, "KnowHalu (Aggregation)").cells
    assert [(c.figure.value, c.figure.low, c.rows) for c in cells] == [(25.0, 15.0, 4)] * 3
    assert row(laid, "KnowHalu (Aggregation)", "llm:Qwen").cells[0].figure.value == 75.0
    assert "| ours | KnowHalu (Aggregation) | encoder | 25.0 [15.0, 35.0] |" in as_markdown(laid)
    assert f"on so many rows: {SET} 4." in as_markdown(laid)


def test_only_a_run_of_one_text_after_another_that_judged_no_more_than_necessary_gives_a_time(runs, tmp_path):
    (tmp_path / "runs" / SET).rename(tmp_path / "runs" / "knowhalu-qa")
    folder = tmp_path / "runs" / "knowhalu-qa"
    for second, alone, seconds in (("always", True, None), ("needed", False, None), ("needed", True, 0.125)):
        found = {**result(folder, "a", "knowhalu", knowhalu={"second_opinion": second}), "sequential": alone}
        (folder / "comparison.json").write_text(json.dumps({"input": "rows.jsonl", "results": [found]}))
        (cell,) = next(r for r in runs(7).rows if r.labels == ("KnowHalu", "given") and r.by == "encoder").cells
        assert cell.figure.value == seconds


def test_comparison_of_an_earlier_version_reports_missing_metrics(runs, tmp_path):
    runs(3, made("a", "knowhalu"))
    path = tmp_path / "runs" / SET / "comparison.json"
    fields = json.loads(path.read_text())
    del fields["results"][0]["figures"]["tnr"]
    path.write_text(json.dumps(fields))
    cells = row(runs(3), "KnowHalu (Aggregation)").cells
    assert [c.missing[:14] for c in cells] == ["", "the comparison", ""]


def test_runs_with_other_settings_do_not_count_except_for_thresholds(runs):
    other = made("a", "knowhalu", knowhalu={"passages": 4}, said=SAID)
    assert row(runs(3, other), "KnowHalu (Aggregation)").cells[0].command
    laid = runs(20, other, made("b", "knowhalu", value=0.5, knowhalu={"delta1": 0.9}, said=SAID))
    by_encoder = [r for r in laid.rows if r.labels[1:] == ("KnowHalu (Unstructured)",) and r.by == "encoder"]
    assert {r.labels[0] for r in by_encoder if not r.cells[0].command} == {"K = 4", "K = 3"}


def test_single_form_results_follow_from_complete_judgments(runs):
    always = made("a", "knowhalu", said=SAID, knowhalu={"second_opinion": "always"})
    laid = runs(3, always)
    assert [c.figure.value for c in row(laid, "KnowHalu (Unstructured)").cells] == [50.0, 100.0, 75.0]
    assert [c.figure.value for c in row(laid, "KnowHalu (Structured)").cells] == [100.0, 50.0, 75.0]
    needed = made("a", "knowhalu", said=[verdict("h1", ("INCORRECT",)), *SAID[1:]])
    laid = runs(3, needed)
    assert [c.figure.value for c in row(laid, "KnowHalu (Unstructured)").cells] == [100.0, 100.0, 100.0]
    assert row(laid, "KnowHalu (Structured)").cells[0].missing == "has not been run"


def test_texts_on_which_the_other_form_failed_are_left_out_of_its_row(runs):
    said = [verdict("h1", ("CORRECT",)), *SAID[1:]]
    laid = runs(3, made("a", "knowhalu", said=said, knowhalu={"second_opinion": "always"}))
    cells = row(laid, "KnowHalu (Structured)").cells
    assert [(c.figure.value, c.rows) for c in cells] == [(100.0, 3), (50.0, 3), (75.0, 3)]
    assert row(laid, "KnowHalu (Unstructured)").cells[0].rows == 4


def test_outcomes_of_other_rows_or_incomplete_ones_are_refused(runs, tmp_path):
    with pytest.raises(InputError, match=r"a.jsonl, line 2: the sample 'other' is not in .*rows.jsonl"):
        runs(3, made("a", "knowhalu", said=[verdict("other", ("CORRECT",))]))
    path = tmp_path / "runs" / SET / "a.jsonl"
    path.write_text(path.read_text().splitlines()[0] + '\n{"id": "h1", "ta')
    with pytest.raises(InputError, match=r"a.jsonl, line 2: is incomplete"):
        runs(3)


def test_run_of_one_form_is_not_the_aggregation(runs):
    laid = runs(3, made("a", "knowhalu", knowhalu={"second_opinion": "never", "base_form": "structured"}))
    assert row(laid, "KnowHalu (Structured)").cells[0].figure.value == 25.0
    for other in ("KnowHalu (Unstructured)", "KnowHalu (Aggregation)"):
        assert row(laid, other).cells[0].missing == "has not been run"


def test_one_form_alone_leaves_off_target_answers_and_needs_a_judgment_of_every_segment():
    assert verdict_by_form(verdict("a"), OTHER) == verdict("a")
    assert verdict_by_form(verdict("a", ("CORRECT", "CORRECT"), ("CORRECT",)), OTHER) is None
    alone = verdict_by_form(verdict("a", ("CORRECT", "CORRECT"), ("CORRECT", "INCONCLUSIVE")), OTHER)
    assert (alone.hallucinated, alone.probability) == (True, pytest.approx(0.2))  # in a summary, what is left open is wrong


def test_length_rule_is_shown_with_our_rows(runs):
    laid = runs(
        3, made("a", "knowhalu"), made("l", "trivial-length", reasoner="", fitted="the same rows", trivial={"threshold": 3})
    )
    assert laid.rows[-1].labels == ("ours", "trivial-length")
    assert laid.rows[-1].by == "rule (upper bound)"


def test_length_matched_results_are_shown_where_the_comparison_has_them(runs, tmp_path):
    runs(3, made("a", "knowhalu"), made("trivial-length", "trivial-length", reasoner="", trivial={"threshold": 3}))
    path = tmp_path / "runs" / SET / "comparison.json"
    fields = json.loads(path.read_text())
    shares = [
        {"name": r["name"], "rows": 2, "figures": {"tpr": {"value": 0.5, "low": None, "high": None}}} for r in fields["results"]
    ]
    path.write_text(json.dumps({**fields, "subsets": [{"name": "length-matched", "results": shares}]}))
    laid = runs(3)
    (cell, *_) = row(laid, "KnowHalu (Aggregation)", "encoder, length-matched").cells
    assert (cell.figure.value, cell.rows) == (50.0, 2)
    assert row(laid, "trivial-length", "rule, length-matched").cells[0].rows == 2
    assert row(laid, "KnowHalu (Aggregation)").cells[0].rows == 4
    assert not [r for r in runs(7).rows if "matched" in r.by]


def test_the_json_has_the_same_cells(runs):
    fields = as_json(runs(4))
    assert fields["columns"][1] == {"name": "ARP", "metric": "arp", "set": "knowhalu-qa-wikipedia"}
    assert fields["rows"][0]["cells"][:2] == [{"value": 57.4}, {"missing": "?"}]
    last = fields["rows"][-1]["cells"][0]
    assert last["not_run"] == "needs an index of Wikipedia and a language model" and last["command"] == fields["commands"][-1]
    *_, aggregation, _, rule = as_json(runs(3, made("a", "knowhalu")))["rows"]
    assert aggregation["cells"][0] == {"value": 25.0, "low": 15.0, "high": 35.0, "set": SET, "rows": 4}
    assert rule["labels"] == ["ours", "trivial-length"] and rule["cells"][0] == {"missing": "has not been run"}


def test_folder_without_a_comparison_is_refused(tmp_path):
    (tmp_path / "comparison.json").write_text('{"results": [{"method": "conli"}]}')
    with pytest.raises(InputError, match=r"comparison.json: not a comparison of this version \(KeyError: 'name'\)"):
        read_past_run(tmp_path)
    (tmp_path / "comparison.json").write_text('{"results": [{"method": "conli", "name": "gone"}]}')
    with pytest.raises(InputError, match=r"gone.jsonl: cannot be read"):
        read_past_run(tmp_path)


def test_the_command_prints_one_table_or_writes_all_and_overwrites_nothing(tmp_path):
    def run(*args):
        return CliRunner().invoke(command, [*args, "--runs", str(tmp_path)])

    assert run("--table", "7").stdout.count("**KnowHalu") == 1
    written = tmp_path / "t.json"
    assert run("--paper", "factored", "-o", str(written)).exit_code == 0
    assert [t["table"] for t in json.loads(written.read_text())] == [1, 2, 3]
    for args, said in (
        (("-o", str(written)), "exists"),
        (("-o", "t.txt"), "end in .md or .json"),
        (("--table", "9"), "table 9"),
    ):
        assert said in str(run(*args).exception)
