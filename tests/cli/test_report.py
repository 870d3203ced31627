"""`knowhalu report`: what it writes, and what it never overwrites."""

import json
import sys

import pytest

from tests.support.report_runs import labelled, write_outcomes, write_rows


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    samples, outcomes = labelled()
    return write_outcomes(tmp_path / "said.jsonl", samples, outcomes), write_rows(tmp_path / "rows.jsonl", samples)


def test_report_writes_html_markdown_and_json_and_replaces_them(knowhalu, files, tmp_path):
    for _ in range(2):
        result = knowhalu(
            "report", "said.jsonl", "--rows", "rows.jsonl", "-o", "new/r.html", "--markdown", "r.md", "--json", "r.json"
        )
        assert (result.exit_code, result.stdout) == (0, "written: new/r.html, r.md, r.json\n"), result.output
    assert (tmp_path / "new/r.html").read_text().startswith("<!DOCTYPE html>")
    assert "# said" in (tmp_path / "r.md").read_text()
    assert json.loads((tmp_path / "r.json").read_text())["sets"][0]["rows"] == 12


@pytest.mark.parametrize(("args", "said"), [
    (("-o", "said.jsonl"), "said.jsonl: is an input. Nothing was changed"),
    (("-o", "rows.jsonl", "--rows", "rows.jsonl"), "rows.jsonl: is an input. Nothing was changed"),
    (("-o", "mine.txt"), "mine.txt: exists and is not a report of KnowHalu as html. Nothing was changed"),
    (("-o", "r.html", "--json", "r.html"), "r.html: is named for two forms"),
    (("-o", "r.html", "--profile", "mine.txt"), "mine.txt: not the figures of a calibration"),
    (("-o", "x.md"), "x.md: --out writes an HTML page, which does not fit the suffix. For Markdown: --markdown x.md."),
    (("-o", "x.JSON"), "x.JSON: --out writes an HTML page, which does not fit the suffix. For JSON: --json x.JSON."),
    (("-o", "r.html", "--markdown", "x.html"), "For an HTML page: --out x.html. For Markdown, give --markdown a file of another"),
    (("-o", "r.html", "--json", "x.md"), "x.md: --json writes JSON, which does not fit the suffix. For Markdown: --markdown"),
])  # fmt: skip
def test_report_overwrites_no_input(knowhalu, files, tmp_path, args, said):
    (tmp_path / "mine.txt").write_text("my notes")
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    result = knowhalu("report", "said.jsonl", *args)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert said in result.stderr
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_a_path_that_is_no_run_is_refused_with_the_valid_kinds(knowhalu, files, tmp_path):
    (tmp_path / "empty").mkdir()
    result = knowhalu("report", "empty", "-o", "r.html")
    assert result.exit_code == 2
    assert "empty: neither it nor a folder in it holds a comparison.json. Give a folder of `knowhalu compare`" in result.stderr


def test_a_missing_library_is_reported_with_its_extra(knowhalu, files, monkeypatch):
    for name in ("matplotlib", "jinja2"):
        with monkeypatch.context() as gone:
            gone.setitem(sys.modules, name, None)
            result = knowhalu("report", "said.jsonl", "-o", "r.html")
        assert f"{name} is not installed. Run: pip install 'knowhalu[report]'" in result.stderr
