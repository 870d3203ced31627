"""Published numbers: complete tables, values in range and as printed."""

import pytest
from pydantic import ValidationError

from knowhalu.errors import SettingsError
from knowhalu.evaluation.metrics import METRICS
from knowhalu.evaluation.published import UNSCALED_METRICS, PublishedTable, published_numbers, published_table, read_published
from knowhalu.evaluation.runs import parse_specs

ODD = 48.15
"""The paper prints this mean of 44.1 and 55.2."""


def test_every_promised_table_exists_once():
    there = [(t.paper, t.number) for t in read_published().table]
    assert there == [
        *(("knowhalu", n) for n in (2, 3, 4, 5, 6, 7, 17, 18, 19, 20, 21)), *(("conli", n) for n in (2, 3, 4, 5)),
        *(("factored", n) for n in (1, 2, 3)),
    ]  # fmt: skip


def test_rows_are_unique_and_values_in_range():
    for table in read_published().table:
        labels = [table.labels_of(row) for row in table.rows]
        assert len(labels) == len(set(labels)), table.number
        assert len(table.columns) == len({c.name for c in table.columns})
    for number in published_numbers():
        assert 0 < number.value <= (30 if number.metric in UNSCALED_METRICS else 100), number


def test_average_accuracy_is_the_mean_of_both_rates():
    checked = 0
    for table in read_published().table:
        where = {(c.metric, c.set): i for i, c in enumerate(table.columns)}
        for row in table.rows:
            values = table.values_of(row)
            for (metric, rows), i in where.items():
                if metric == "average" and isinstance(values[i], float) and values[i] != ODD:
                    mean = (values[where["tpr", rows]] + values[where["tnr", rows]]) / 2
                    assert values[i] == pytest.approx(mean, abs=0.051), (table.number, row)
                    checked += 1
    assert checked == 129


@pytest.mark.parametrize(
    "paper, number, labels, column, value",
    [
        ("knowhalu", 2, ("Starling-7B", "KnowHalu (Aggregation)"), "Avg Acc, given", 80.70),
        ("knowhalu", 2, ("GPT-3.5", "KnowHalu (Unstructured)"), "inconclusive, given", 14.50),
        ("knowhalu", 2, ("Mistral-7B", "Self Consistency"), "TPR, given", 55.0),
        ("knowhalu", 3, ("GPT-3.5", "KnowHalu (Aggregation)"), "Avg Acc", 68.5),
        ("knowhalu", 5, ("K = 3", "KnowHalu (Structured)"), "ARP", 7.8),
        ("knowhalu", 6, ("Facts only (Unstructured)",), "TNR, given", 88.1),
        ("knowhalu", 7, ("SelfCheckGPT", "none"), "seconds", 23.89),
        ("knowhalu", 17, ("gpt-3.5-turbo-0613", "KnowHalu (Structured)"), "TPR, given", 70.4),
        ("knowhalu", 18, ("Specific", "KnowHalu (Structured)"), "ARP", 12.8),
        ("knowhalu", 19, ("General", "KnowHalu (Structured)"), "TNR", 34.2),
        ("knowhalu", 20, ("K = 5", "KnowHalu (Unstructured)"), "TPR", 58.8),
        ("knowhalu", 21, ("QA", "Starling-7B", "given", "General", "Unstructured"), "delta2", 0.995475),
        ("factored", 1, ("GPT-4",), "Factored", 76.2),
        ("factored", 2, ("Claude 2",), "adjusted, after", 0.95),
        ("factored", 3, ("GPT-4", "GPT-4", "GPT-4"), "% with any", 29.5),
    ],
)
def test_numbers_equal_the_printed_ones(paper, number, labels, column, value):
    found = [n for n in published_numbers(paper=paper) if (n.table, n.labels, n.column) == (number, labels, column)]
    assert [n.value for n in found] == [value]


def test_numbers_are_found_by_set_and_metric():
    found = list(published_numbers(set="knowhalu-qa", metric="average"))
    assert {n.table for n in found} == {2, 6, 17, 18}
    assert max(n.value for n in found) == 80.70
    assert {n.metric for n in published_numbers(set="halueval-summarization")} == {"accuracy"}


def test_illegible_cells_are_not_numbers():
    assert not list(published_numbers(paper="conli"))
    assert not [n for n in published_numbers(metric="arp") if n.table == 4]


def test_own_rows_name_known_methods_and_metrics():
    for table in read_published().table:
        for ours in table.ours:
            assert len(table.labels) - len(ours.labels) in (0, 1)
            for column in table.columns:
                for spec in parse_specs(ours.best_of or [ours.method or column.method]):
                    spec._replace(reasoner="llm").settings(None, ())
                assert column.metric in (*METRICS, "seconds")
        assert table.ours or table.needs


def test_a_set_is_written_to_a_folder_that_its_table_reads():
    for name, known in read_published().sets.items():
        assert not known.dataset or known.dataset in known.folders, name


def test_unknown_tables_and_incomplete_rows_are_refused():
    with pytest.raises(SettingsError, match="table 9 of factored is not known. Known: 1, 2, 3"):
        published_table("factored", 9)
    with pytest.raises(SettingsError, match="no tables of 'other' are known. Papers: knowhalu, conli, factored"):
        published_table("other", 1)
    fields = {"paper": "knowhalu", "number": 1, "about": "", "labels": ["a"], "columns": [{"name": "x", "metric": "tpr"}]}
    for row in (["m"], ["m", 1.0, 2.0], [3.0, 1.0], ["m", "many"]):
        with pytest.raises(ValidationError, match="table 1 of knowhalu"):
            PublishedTable.model_validate({**fields, "rows": [row]})
