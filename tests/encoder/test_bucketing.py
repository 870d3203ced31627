"""Batches by length: every row once, within the budget, with little padding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.encoder.backend import LengthBatch, batch_by_length, padded_length


def test_padding_is_at_most_an_eighth():
    assert [padded_length(n) for n in (1, 32, 33, 64, 65, 128, 129, 256, 257, 512)] == [
        32,
        32,
        40,
        64,
        72,
        128,
        144,
        256,
        288,
        512,
    ]
    assert all(n <= padded_length(n) < n + max(8, n / 8) for n in range(32, 513))


@pytest.mark.parametrize(
    ("lengths", "budget", "expected"),
    [
        ([], 100, []),
        ([20], 10, [LengthBatch([0], 32)]),
        ([90, 33, 12, 40, 96], 1000, [LengthBatch([2], 32), LengthBatch([1, 3], 40), LengthBatch([0, 4], 96)]),
        ([64, 64, 60], 128, [LengthBatch([2, 0], 64), LengthBatch([1], 64)]),
    ],
)
def test_batches_of_worked_examples(lengths, budget, expected):
    assert list(batch_by_length(lengths, budget)) == expected


@given(st.lists(st.integers(1, 512)), st.integers(1, 4096))
def test_every_row_is_in_one_batch_within_the_budget(lengths, budget):
    made = list(batch_by_length(lengths, budget))
    assert sorted(i for b in made for i in b.rows) == list(range(len(lengths)))
    assert all(b.length == padded_length(lengths[i]) for b in made for i in b.rows)
    assert all(len(b.rows) == 1 or len(b.rows) * b.length <= budget for b in made)
