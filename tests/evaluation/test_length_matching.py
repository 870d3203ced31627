"""Length matching: expected pairs, nearest rows first, and balanced lengths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.evaluation.subsets import MatchingFeatures, matched_pairs, matched_rows, matching_features, rows_by_part
from knowhalu.types import Sample


def seen(*rows):
    """Rows as (hallucinated, words, pair)."""
    return MatchingFeatures([r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], [None] * len(rows))


def test_matched_pairs_have_both_labels_and_near_lengths():
    rows = seen(
        (False, 3, "a"), (True, 5, "a"), (False, 3, "b"), (True, 6, "b"), (False, 3, "c"), (False, 3, "c"),
        (True, 9, "d"), (True, 1, None), (False, 1, None), (True, 7, "e"), (False, 7, "e"), (False, 7, "e"),
    )  # fmt: skip
    assert matched_pairs(rows, 2).tolist() == [0, 1]
    assert matched_pairs(rows, 3).tolist() == [0, 1, 2, 3]


def test_unpaired_rows_are_matched_one_to_one():
    rows = seen(*((True, n, None) for n in (1, 10, 10)), *((False, n, None) for n in (3, 9, 30)))
    assert matched_rows(rows, 2).tolist() == [0, 1, 3, 4]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 8), st.none()), max_size=20), st.integers(0, 3))
def test_matching_takes_the_nearest_rows_and_is_maximal(rows, near):
    found = set(matched_rows(seen(*rows), near).tolist())
    right, wrong = ([(i in found, n) for i, (gold, n, _) in enumerate(rows) if gold is label] for label in (False, True))
    chosen = [sorted(n for taken, n in side if taken) for side in (right, wrong)]
    assert all(abs(a - b) <= near for a, b in zip(*chosen, strict=True))
    assert not any(abs(a - b) <= near for there, a in right if not there for taken, b in wrong if not taken)
    for n in range(9):
        equal = min(sum(own == n for _, own in side) for side in (right, wrong))
        assert all(side.count(n) >= equal for side in chosen)


@pytest.mark.parametrize("lengths", [(8, 9, 10, 11, 12), (8, 9, 11, 12), (8, 12)])
def test_length_does_not_predict_the_label_of_matched_rows(lengths):
    rows = [(False, n, None) for n in lengths for _ in range(40)] + [(True, 10, None)] * 30
    taken = [rows[i][:2] for i in matched_rows(seen(*rows), 2)]
    right, wrong = ([n for gold, n in taken if gold is label] for label in (False, True))
    assert len(right) == len(wrong) == 30 and sum(right) == sum(wrong)
    assert sum(n > 10 for n in right) == sum(n < 10 for n in right)


def test_parts_require_a_part_of_every_row_and_a_limited_number():
    def parts(*names):
        return {
            n: p.tolist() for n, p in rows_by_part(MatchingFeatures([True] * 3, [1] * 3, [None] * 3, list(names)), most=2).items()
        }

    assert parts("a", "b", "a") == {"a": [0, 2], "b": [1]}
    assert parts("a", "b", None) == parts("a", "b", "c") == parts("a", "a", "a") == {}


def test_matching_features_of_samples():
    made = [
        Sample(response="two words", label="hallucinated", meta={"pair": 7, "part": "p"}),
        Sample(response="one", label="faithful"),
    ]
    assert matching_features(made) == ([True, False], [2, 1], ["7", None], ["p", None])
