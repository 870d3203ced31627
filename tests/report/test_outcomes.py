"""Outcome files: columns, later outcomes, incomplete and foreign lines, and changed rows."""

import numpy as np
import pytest

from knowhalu.errors import InputError
from knowhalu.evaluation.labelled_rows import read_labelled_rows
from knowhalu.evaluation.runs import table_predictions
from knowhalu.io.outcomes import (
    FAILED,
    FAITHFUL,
    HALLUCINATED,
    INCONCLUSIVE,
    read_outcome_table,
    read_outcomes_at,
)
from knowhalu.report.items import ITEM_STATES, choose_items, item_states
from tests.support.report_runs import RUN, failure, sample, verdict, write_outcomes, write_rows

ROWS = [sample(0), sample(1, label="faithful"), sample(2), sample(3, label=None)]
SAID = [verdict(ROWS[0], 0.9, agree=False), verdict(ROWS[1], 0.7, hallucinated=None), failure(ROWS[2]), verdict(ROWS[3], 0.2)]


def rows_of(path):
    return read_labelled_rows(path, require_labels=False)


@pytest.fixture
def files(tmp_path):
    return write_outcomes(tmp_path / "said.jsonl", ROWS, SAID), write_rows(tmp_path / "rows.jsonl", ROWS)


def test_outcome_lines_become_columns(files):
    found = read_outcome_table(files[0], rows_of(files[1]).row_index)
    assert found.run == RUN and found.method == "knowhalu" and not found.torn
    assert found.label.tolist() == [HALLUCINATED, INCONCLUSIVE, FAILED, FAITHFUL]
    assert found.settled.tolist()[:2] == [True, True]
    assert found.agree.tolist() == [0, -1, -1, -1]
    assert (found.steps.tolist(), found.failures) == ([1, 1, 0, 1], {"judge: the reply has no label": 1})
    assert (found.usage["pairs"], found.usage["cached_tokens"]) == (9, 180)
    entries, said = table_predictions(found, rows_of(files[1]))
    assert entries.tolist() == [0, 1]  # the third failed, the fourth has no label
    assert said.gold.tolist() == [True, False] and said.abstained.tolist() == [False, True]


def test_outcome_is_read_again_at_its_offset(files):
    found = read_outcome_table(files[0], None)
    assert [outcome.id for _, _, outcome in read_outcomes_at(files[0], found.offset[[3, 1]].tolist())] == ["r1", "r3"]


def test_later_outcome_counts_and_incomplete_end_is_reported(files):
    whole = files[0].read_bytes()
    again = write_outcomes(files[0].with_name("again.jsonl"), [ROWS[2]], [verdict(ROWS[2], 0.95)]).read_bytes().split(b"\n", 1)[1]
    files[0].write_bytes(whole + again + again[:50])
    with pytest.raises(InputError, match="line 7: is incomplete"):
        read_outcome_table(files[0], None)
    found = read_outcome_table(files[0], rows_of(files[1]).row_index, allow_torn=True)
    assert (found.label.tolist(), found.failures, found.torn) == (
        [HALLUCINATED, INCONCLUSIVE, HALLUCINATED, FAITHFUL],
        {},
        True,
    )
    assert found.offset[2] == len(whole)


@pytest.mark.parametrize(("change", "said"), [
    (lambda b: b.split(b"\n", 1)[1], "line 1: does not say which run this is"),
    (lambda b: b + b'{"id": "r9", "status": "revised"}\n', "line 6: not an outcome of a check"),
    (lambda b: b + b"[1]\n", "line 6: not an outcome of a check"),
    (lambda b: b + b'{"id": "\\ud800", "stage": "s", "reason": "r"}\n', "line 6: not an outcome of a check"),
])  # fmt: skip
def test_invalid_outcome_file_is_refused_with_its_line(files, change, said):
    files[0].write_bytes(change(files[0].read_bytes()))
    with pytest.raises(InputError, match=said):
        read_outcome_table(files[0], None)


def test_missing_or_changed_rows_are_refused(files):
    with pytest.raises(InputError, match=r"said.jsonl, line 3: the sample 'r1' is not in .*other.jsonl"):
        read_outcome_table(files[0], rows_of(write_rows(files[1].with_name("other.jsonl"), ROWS[:1])).row_index)
    changed = [ROWS[0].model_copy(update={"response": "It is 330 metres high."}), *ROWS[1:]]
    with pytest.raises(InputError, match=r"line 2: the sample 'r0' has changed in"):
        read_outcome_table(files[0], rows_of(write_rows(files[1], changed)).row_index)


def test_states_follow_from_gold_or_else_from_the_verdict(files):
    texts = rows_of(files[1])
    states = item_states(read_outcome_table(files[0], texts.row_index), texts).tolist()
    assert states == [
        "right",
        "abstained",
        "failed",
        "faithful",
    ]
    assert item_states(read_outcome_table(files[0], None), None).tolist() == ["hallucinated", "abstained", "failed", "faithful"]


def test_items_begin_with_confident_errors_and_include_every_state():
    states = np.array(["wrong"] * 50 + ["abstained"] * 50 + ["failed"] * 50 + ["right"] * 50)
    sureness = np.tile(np.arange(50) / 100, 4)
    sureness[150:] = sureness[150:][::-1]
    chosen = choose_items(states, sureness, 16)
    assert states[chosen].tolist() == ["wrong"] * 8 + ["abstained"] * 4 + ["failed"] * 2 + ["right"] * 2
    assert chosen[:2] == [49, 48]
    assert chosen[-2:] == [199, 198]  # right, but the least sure
    assert choose_items(states[:100], sureness[:100], 80)[:50] == list(range(49, -1, -1))
    assert len(choose_items(states, sureness, 3)) == 3 and choose_items(states, sureness, 0) == []
    assert sorted(choose_items(states, sureness, 999)) == list(range(200))
    assert set(states) <= set(ITEM_STATES)
