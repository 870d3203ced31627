"""The tables of the pages are those of the results."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("publish", ROOT / "benchmarks/publish.py")
assert _SPEC and _SPEC.loader
publish = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(publish)

FIRST = "| set | AUC |\n|---|---|\n| a | 0.1 |\n| b | 0.2 |\n"
OTHER = "| set | AUC |\n|---|---|\n| x | 0.3 |\n| y | 0.4 |\n"


@pytest.mark.parametrize("page", publish.PAGES, ids=lambda p: p.name)
def test_a_page_shows_its_tables_as_measured(page):
    text = page.read_text()
    assert publish.published(text, publish.measured(ROOT / "benchmarks/results")) == text, "run benchmarks/publish.py"


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks/results").iterdir()), ids=lambda p: p.name)
def test_a_result_names_no_folder_of_the_machine_that_measured_it(path):
    assert not re.findall(r'"(?:/|[A-Z]:\\)[^"]*"', path.read_text())


def test_publish_replaces_a_table_by_the_one_with_its_rows():
    page = "Before.\n\n" + OTHER.replace("0.3", "0.9") + "\nAfter.\n"
    assert publish.published(page, {"a.md": [FIRST, OTHER]}) == f"Before.\n\n{OTHER}\nAfter.\n"


def test_a_table_that_shares_no_row_with_a_result_is_left_alone():
    assert publish.published(FIRST, {"a.md": [OTHER]}) == FIRST


def test_a_table_that_no_result_has_is_left_alone():
    assert publish.published(f"# A\n\n{FIRST}", {"a.md": [OTHER.replace("AUC", "other")]}) == f"# A\n\n{FIRST}"


def test_a_mark_inserts_the_table_that_it_names():
    page = "<!-- table a.md 2 -->\nold\n<!-- end -->\n"
    assert publish.published(page, {"a.md": [FIRST, OTHER]}) == f"<!-- table a.md 2 -->\n{OTHER}<!-- end -->\n"


def test_a_mark_takes_columns_by_title_and_keeps_the_header_of_the_page():
    wide = "| set | AUC | rule | AUC |\n|---|---|---|---|\n| a | 0.1 | r | 0.2 |\n"
    page = "<!-- table a.md 1: set | AUC#2 -->\n| Set | Second |\n|---|---|\n{}<!-- end -->\n"
    assert publish.published(page.format("| a | 9 |\n"), {"a.md": [wide]}) == page.format("| a | 0.2 |\n")


@pytest.mark.parametrize("mark", ["b.md 1", "a.md 3", "a.md 1: set | F1"])
def test_a_mark_that_names_no_table_is_an_error(mark):
    with pytest.raises((KeyError, IndexError, ValueError)):
        publish.published(f"<!-- table {mark} -->\n| A | B |\n|---|---|\n<!-- end -->\n", {"a.md": [FIRST, OTHER]})
