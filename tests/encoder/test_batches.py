"""Batches of like lengths: every row once, within the budget, with little padding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.encoder.batches import Batch, batches


@pytest.mark.parametrize(
    ("lengths", "budget", "expected"),
    [
        ([], 100, []),
        ([20], 10, [Batch([0], 24)]),
        ([90, 20, 24, 100], 1000, [Batch([1, 2], 24), Batch([0, 3], 104)]),
        ([64, 64, 64], 128, [Batch([0, 1], 64), Batch([2], 64)]),
        ([160, 180, 181], 1000, [Batch([0, 1], 184), Batch([2], 184)]),
    ],
)
def test_worked_batches(lengths, budget, expected):
    assert list(batches(lengths, budget)) == expected


@given(st.lists(st.integers(1, 512)), st.integers(1, 4096))
def test_every_row_is_in_one_batch_that_keeps_the_budget_and_wastes_little(lengths, budget):
    made = list(batches(lengths, budget))
    assert sorted(i for b in made for i in b.rows) == list(range(len(lengths)))
    for rows, length in made:
        shortest, longest = min(lengths[i] for i in rows), max(lengths[i] for i in rows)
        assert longest <= length < longest + 8
        assert longest - shortest <= max(8, shortest / 8)
        assert len(rows) == 1 or len(rows) * length <= budget
