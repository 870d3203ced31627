"""The page: figures of the run, escaped texts, no network, and a bounded size."""

import base64
import hashlib
import json
import re
import shutil

import pytest

from knowhalu.errors import InputError
from knowhalu.evaluation.compare import compare
from knowhalu.evaluation.result_tables import write_results
from knowhalu.evaluation.runs import parse_specs
from knowhalu.evaluation.tables import format_percent
from knowhalu.report import layout
from knowhalu.report.content import make_report
from knowhalu.report.page import report_as_html
from knowhalu.report.stored_results import find_runs
from knowhalu.report.write import report_as_json, report_as_markdown
from knowhalu.results import SkippedSpan
from tests.support.report_runs import Page, failure, labelled, sample, verdict, write_outcomes, write_rows

HOSTILE = (
    "</script></style></details><script>alert(1)</script><img src=x onerror=alert(1)>"
    "'\"&amp;<!-- \u202eevil\u2066 \x1b[2J \x00 `|](http://x)"
)
SHORT = "a=trivial-length[threshold=5],b=trivial-length[threshold=7]"


def compared(folder, prefix="", n=20, **more):
    rows = [
        sample(f"{prefix}{i}", f"{prefix} {'word ' * (1 + i % 9)}", ["faithful", "hallucinated"][i % 9 > 4], **more)
        for i in range(n)
    ]
    found = compare(write_rows(folder / "rows.jsonl", rows), parse_specs([SHORT]), folder)
    write_results(found, folder)
    return found


def test_report_has_the_figures_of_the_comparison(tmp_path):
    found = compared(tmp_path / "set")
    report = make_report(find_runs([tmp_path / "set"]))
    text, fields = report_as_html(report), json.loads(report_as_json(report))
    for result in found.results:
        for name in ("tpr", "tnr", "average", "auc"):
            value, _, rest = format_percent(result.figures[name]).partition(" [")
            assert f'<td>{value}<span class="rest"> [{rest}</span></td>' in text
    kept = json.loads((tmp_path / "set/comparison.json").read_text())
    assert fields["sets"][0]["comparison"]["results"] == kept["results"]
    assert f"| a | 20 | 0 | {format_percent(found.results[0].figures['tpr'])}".replace("[", "\\[") in report_as_markdown(
        report
    ).replace("\\]", "]")


def test_outcomes_that_changed_since_the_comparison_are_refused(tmp_path):
    compared(tmp_path)
    lines = (tmp_path / "a.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "a.jsonl").write_text("".join(lines[:-1]))
    with pytest.raises(InputError, match=r"comparison.json: is older than the outcomes of a. Run the same"):
        make_report(find_runs([tmp_path]))


def test_several_sets_are_sections_with_an_overview(tmp_path):
    compared(tmp_path / "runs/one", "x")
    compared(tmp_path / "runs/two", "y")
    report = make_report(find_runs([tmp_path / "runs"]))
    page = Page(report_as_html(report))
    assert [s.name for s in report.sections] == ["one", "two"]
    assert page.text().count("The trivial rules are fitted on the compared rows") >= 3  # above all, and in each section
    assert "one, two" in page.texts["span"]
    assert "Avg Acc of all sets" in page.text() and len(page.all("section", id="s2")) == 1
    assert {a["data-run"] for a in page.all("details", class_="item")} == {"one", "two"}


def test_the_overview_of_many_sets_and_methods_has_sets_as_lines_and_no_table_is_wide(tmp_path):
    compared(tmp_path / "runs/first")
    path = tmp_path / "runs/first/comparison.json"
    fields = json.loads(path.read_text())
    one, *rules = fields["results"]
    fields["results"] = [{**one, "name": f"m{i}", "method": "knowhalu"} for i in range(7)] + rules
    for i in range(17):
        folder = tmp_path / f"runs/set{i}"
        folder.mkdir()
        for file in (tmp_path / "runs/first").glob("*.jsonl"):
            shutil.copy(file, folder)
        for k in range(7):
            shutil.copy(folder / f"{one['name']}.jsonl", folder / f"m{k}.jsonl")
        (folder / "comparison.json").write_text(json.dumps({**fields, "input": str(folder / "rows.jsonl")}))
    shutil.rmtree(tmp_path / "runs/first")
    report = make_report(find_runs([tmp_path / "runs"]), items=0)
    two, three = layout.overview_tables(report)
    assert two.head == ("", "rows", "m0", "m1", "m2", "best trivial rule")
    assert three.head[2:-1] == ("m3", "m4", "m5", "m6")
    assert [row[0] for row in two.rows] == sorted(f"set{i}" for i in range(17))
    assert "(trivial-length" in two.rows[0][-1]
    lines = report_as_markdown(report).splitlines()
    assert (
        max(line.count(" | ") for line in lines[: lines.index("## set0")] if line.startswith("|"))
        <= layout.MAX_METHODS_ACROSS + 2
    )
    assert Page(report_as_html(report)).text().count("Avg Acc of all sets, ") == 2


def test_report_without_items_does_not_mention_them(reported):
    report = reported(items=0)
    page = Page(report_as_html(report))
    assert "Items" not in page.text() and "to look at" not in page.text() and not page.all("section", id="items")
    assert not page.all("a", href="#items") and not page.all("form") and not page.all("script")
    assert "Items" not in report_as_markdown(report)
    fields = json.loads(report_as_json(report))
    assert fields["items"] == [] and fields["sample"] is None


def test_hostile_texts_are_escaped(reported):
    one = sample(0, f"It is 300 {HOSTILE}", meta={"note": HOSTILE, "type": HOSTILE}).model_copy(
        update={"question": HOSTILE, "id": HOSTILE}
    )
    two = sample(1, "fine", "faithful")
    bad = verdict(one, 0.3, title=HOSTILE, quote=HOSTILE, rationale=HOSTILE, agree=False)
    report = reported([one, two], [bad, failure(two, HOSTILE)], title=HOSTILE)
    text = report_as_html(report)
    page = Page(text)
    assert not page.open
    assert len(page.all("script")) == len(page.all("style")) == 1 and not page.all("img")
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert "alert(1)" not in "".join(page.texts["script"]) and "</script><img" not in text.replace("&lt;", "")
    assert page.text("script", "style").count("<script>alert(1)</script>") > 8
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text)
    assert "<script>" not in report_as_markdown(report) and "\x1b" not in report_as_markdown(report)
    assert json.loads(report_as_json(report))["title"] == HOSTILE


def test_lone_surrogates_do_not_stop_the_page(reported, tmp_path):
    samples, outcomes = labelled(4)
    reported(samples, [*outcomes[:3], failure(samples[3], "REASON")])
    path = tmp_path / "said.jsonl"
    path.write_text(path.read_text().replace("REASON", r"half \ud800 of it"))
    report = make_report(find_runs([path], tmp_path / "rows.jsonl"), items=0)
    for text in (report_as_html(report), report_as_markdown(report), report_as_json(report)):
        assert "half" in text and text.encode("utf-8")


def test_page_runs_its_own_script_only_and_loads_nothing(reported):
    text = report_as_html(reported())
    page = Page(text)
    (policy,) = [a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    for tag in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256("".join(page.texts[tag]).encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy and "unsafe" not in policy
    for tag, attributes in page.elements:
        assert "style" not in attributes, tag
        for name in ("href", "src", "action", "data", "srcset", "poster", "xlink:href"):
            assert attributes.get(name, "#").startswith("#"), (tag, attributes)
    assert "http" not in "".join(page.texts["style"]) + "".join(page.texts["script"])
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert {a["href"][1:] for a in page.all("a")} <= set(ids)


def test_marked_response_links_to_its_evidence(reported):
    text = report_as_html(reported([sample(0), sample(1, label="faithful")], [verdict(sample(0), 0.9), verdict(sample(1), 0.2)]))
    assert '<b class="flag">✗</b>It is <span class="contradicted">300</span><sup><a href="#i2e1">1</a></sup> metres high.' in text
    evidence = text[text.index('id="i2e1"') :][:600]
    assert "The tower is 330 metres high." in evidence and "Tower" in evidence and "characters 0–29" in evidence


def test_failures_are_counted_with_their_reasons_and_shown(reported):
    samples, outcomes = labelled(9)
    page = Page(report_as_html(reported(samples, [failure(samples[0]), failure(samples[1], "down"), *outcomes[2:]])))
    assert "2 rows have no verdict: 1 x judge: the reply has no label, and 1 other reasons" in page.text()
    assert len(page.all("details", class_="item", **{"data-state": "failed"})) == 2
    assert "I cannot say <b>that</b>" in page.text()


def test_what_was_not_checked_is_shown_with_the_reason(reported):
    one = sample(0, "Sure! It is 300 metres high. <b>Any more?</b>")
    skipped = (
        SkippedSpan(start=0, end=5, text="Sure!", reason="a courtesy"),
        SkippedSpan(start=29, end=45, text="<b>Any more?</b>", reason="a question"),
    )
    html = report_as_html(reported([one], [verdict(one, 0.9).model_copy(update={"skipped": skipped})]))
    told = [re.sub(r"<[^>]+>", "", line) for line in html.splitlines() if "Not checked" in line]
    assert [t[t.index("Not checked") :] for t in told] == [
        "Not checked: “Sure!”: a courtesyNot checked: “&lt;b&gt;Any more?&lt;/b&gt;”: a question"
    ]


def test_without_gold_there_are_counts_and_items_only(reported):
    samples = [sample(i, label=None) for i in range(6)]
    report = reported(samples, [verdict(s, 0.1 + 0.15 * i) for i, s in enumerate(samples)])
    page = Page(report_as_html(report))
    assert report.sections[0].comparison is None and not report.sections[0].drawn.roc
    assert "No row has a gold label" in page.text() and "Avg Acc" not in page.text("script")
    assert {a["data-state"] for a in page.all("details", class_="item")} == {"hallucinated", "faithful"}


def test_without_rows_the_response_is_that_of_the_verdict(reported):
    page = Page(report_as_html(reported(rows=False)))
    assert "It is " in page.text() and "metres high." in page.text()
    assert "How high is tower" not in page.text()


def test_a_run_without_an_outcome_yet_is_shown_as_that(reported, tmp_path):
    path = write_outcomes(tmp_path / "none.jsonl", [], [])
    report = make_report(find_runs([path], write_rows(tmp_path / "all.jsonl", labelled()[0])))
    assert "none: 12 of 12 rows have no outcome yet." in " ".join(report.sections[0].warnings)
    assert "have no outcome yet" in Page(report_as_html(report)).text() and report_as_markdown(report) and report_as_json(report)
    assert report_as_html(make_report(find_runs([path])))


def test_much_evidence_is_cut_off_with_its_links_and_large_outcomes_lose_their_steps(reported):
    one = sample(0, "It is 300 metres high.")
    said = verdict(one, 0.9, rationale="long " * 25_000)
    (segment,) = said.segments
    many = said.model_copy(update={"segments": (segment.model_copy(update={"evidence": segment.evidence * 70}),)})
    page = Page(report_as_html(reported([one], [many])))
    links = {a["href"][1:] for a in page.all("a")}
    assert "i1e60" in links and "i1e61" not in links
    assert links <= {a["id"] for _, a in page.elements if "id" in a}
    assert "and 10 more, in the outcome file" in page.text() and "its steps are in said.jsonl, byte " in page.text()


def test_rows_that_are_partly_labelled_are_scored_where_they_are_and_this_is_said(reported):
    samples, outcomes = labelled(8)
    samples = [*samples[:6], *(s.model_copy(update={"label": None}) for s in samples[6:])]
    report = reported(samples, outcomes)
    assert report.sections[0].comparison.results[0].rows == 6
    assert "Figures are of the 6 rows with a gold label; 2 have none." in report.sections[0].warnings
    assert report.sections[0].comparison.results[1].fitted == "the same rows"


def test_unfinished_run_has_a_warning(reported, tmp_path):
    samples, outcomes = labelled(6)
    path = write_outcomes(tmp_path / "part.jsonl", samples[:4], outcomes[:4])
    report = make_report(find_runs([path], write_rows(tmp_path / "all.jsonl", samples)))
    assert "part: 2 of 6 rows have no outcome yet. The run has not finished." in report.sections[0].warnings


def test_report_is_deterministic(reported):
    for form in (report_as_html, report_as_markdown, report_as_json):
        assert form(reported()) == form(reported())


def test_page_size_is_bounded(reported):
    few, many = (report_as_html(reported(*labelled(n), items=50)) for n in (500, 5000))
    assert len(many) < 1.2 * len(few) + 20_000
    assert "50 of 5,000 outcomes" in many


def test_breakdowns_of_the_comparison_take_precedence(tmp_path):
    compared(tmp_path, meta={"type": "date"})
    path = tmp_path / "comparison.json"
    fields = json.loads(path.read_text())
    figures = {n: {"value": v, "low": None, "high": None} for n, v in (("tpr", 0.4321), ("tnr", None))}
    part = {"name": "mine", "rows": 7, "hallucinated": 7, "figures": figures}
    own = [{"key": "k", "title": "By what I like", "results": [{"method": "a", "parts": [part]}]}]
    path.write_text(json.dumps({**fields, "breakdowns": own}))
    page = Page(report_as_html(make_report(find_runs([tmp_path]))))
    assert "By what I like" in page.text() and "43.2 / -" in page.text() and "Words of the text" not in page.text()
    path.write_text(json.dumps({**fields, "breakdowns": [{"title": "x", "results": [{}]}]}))
    with pytest.raises(InputError, match="its breakdowns cannot be read"):
        make_report(find_runs([tmp_path]))


def test_evaluated_data_set_is_shown_with_facts_warnings_and_parts(tmp_path):
    compared(tmp_path)
    path = tmp_path / "comparison.json"
    figure = {"value": 0.614, "low": 0.5, "high": 0.7}
    subset = {"name": "length-matched", "about": "4 pairs", "rows": 8,
              "results": [{"name": "a", "rows": 8, "figures": {"average": figure}}]}  # fmt: skip
    more = {"dataset": {"name": "MySet", "about": "a set of mine", "split": "test"}, "warnings": ["Length solves it."],
            "subsets": [subset, {**subset, "name": "part one"}]}  # fmt: skip
    path.write_text(json.dumps({**json.loads(path.read_text()), **more}))
    report = make_report(find_runs([tmp_path]))
    page = Page(report_as_html(report))
    for part in ("a set of mine · Split: test", "Length solves it.", "length-matched: 4 pairs", "61.4", "part one (8)"):
        assert part in page.text(), part


def test_breakdowns_by_hand(reported):
    samples = [
        sample(i, "x " * (1 + i), ["faithful", "hallucinated"][i % 2], meta={"type": "date"} if i in (1, 3) else {})
        for i in range(6)
    ]
    said = [0.2, 0.9, 0.9, 0.1, 0.2, 0.9]
    report = reported(samples, [verdict(s, p, agree=i < 3 or None) for i, (s, p) in enumerate(zip(samples, said, strict=True))])
    found = {b.title: {name: part["said"] for name, part in b.parts.items()} for b in report.sections[0].breakdowns}
    assert found["Words of the text"] == {"1 to 2": (2, 1.0, 1.0), "3 to 4": (2, 0.0, 0.0), "5 to 6": (2, 1.0, 1.0)}
    assert found["Forms of knowledge"] == {"agree": (3, 1.0, 0.5), "only one was judged by": (3, 0.5, 1.0)}
    assert "Type of error" not in found  # one type is no breakdown


def test_cost_has_the_share_of_cached_tokens_and_the_time_of_single_checks(reported):
    table = layout.cost_table(reported().sections[0])
    row = dict(zip(table.head, table.rows[0], strict=True))
    assert (row["prompt tokens"], row["of them cached"], row["cached share"]) == ("100.0", "60.0", "60.0 %")
    assert (row["median time, s"], row["95 % under, s"]) == ("0.500", "0.500")
