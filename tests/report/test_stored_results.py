"""Published figures in the report: taken from the package, as shares, with their source."""

from types import SimpleNamespace

import pytest

from knowhalu.report import stored_results as here
from knowhalu.report.content import make_report
from knowhalu.report.page import report_as_html
from knowhalu.report.stored_results import find_runs
from knowhalu.report.write import report_as_markdown
from tests.support.report_runs import Page, labelled, write_outcomes


def number(labels, column, value, metric="average", table=1):
    return SimpleNamespace(paper="p", table=table, labels=labels, column=column, set="my-set", metric=metric, value=value)


@pytest.fixture
def book(monkeypatch):
    numbers = [number(("Ours", "7B"), "Avg Acc", 80.7), number(("Them",), "GPT", 70.0), number(("Them",), "Llama", 60.0),
               number(("Them",), "TPR", 75.0, "tpr"), number(("Them",), "s", 8.0, "seconds")]  # fmt: skip
    sets = {"my-set": SimpleNamespace(folders=("my-set", "said"))}
    known = SimpleNamespace(sets=sets, papers={"p": SimpleNamespace(title="A Paper: on things")})
    monkeypatch.setattr(here.book, "read_published", lambda: known)
    monkeypatch.setattr(here.book, "published_numbers", lambda set: [n for n in numbers if n.set == set])


def test_published_row_with_several_columns_of_one_metric_names_them(book):
    assert here.published_scores("my-set") == here.published_scores("said") == (
        ("Ours, 7B", "average", 0.807, "A Paper, table 1"), ("Them, GPT", "average", 0.7, "A Paper, table 1"),
        ("Them, Llama", "average", 0.6, "A Paper, table 1"), ("Them", "tpr", 0.75, "A Paper, table 1"),
    )  # fmt: skip
    assert here.published_scores("another") == ()


def test_published_figures_are_shown_next_to_ours(book, reported):
    report = reported()
    page = Page(report_as_html(report))
    for part in ("Beside published figures", "measured here", "published", "80.7", "A Paper, table 1", "Ours, 7B (published)"):
        assert part in page.text(), part
    assert "| Them | published | - | 75.0 | A Paper, table 1 |" in report_as_markdown(report).replace("\\", "")


def test_paper_figures_are_shown_for_runs_on_their_sets():
    assert ("average", 0.8070) in {(p.figure, round(p.value, 4)) for p in here.published_scores("knowhalu-qa")}


def test_a_password_in_the_settings_of_an_old_outcome_file_is_not_shown(tmp_path):
    samples, outcomes = labelled()
    run = {"version": "0", "settings": '{"retrieval":{"url":"http://me:secret@host"}}'}
    path = write_outcomes(tmp_path / "old.jsonl", samples, outcomes, run)
    page = report_as_html(make_report(find_runs([path])))
    assert "http://host" in page and "secret" not in page
