"""Which rows are matched by length: by hand, and as many as there can be."""

from hypothesis import given
from hypothesis import strategies as st

from knowhalu.evaluation.matching import Seen, by_part, look, matched_pairs, matched_rows
from knowhalu.types import Sample


def seen(*rows):
    """Rows as (hallucinated, words, pair)."""
    return Seen([r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], [None] * len(rows))


def test_pairs_count_within_the_border_and_only_one_right_with_one_hallucinated():
    rows = seen(
        (False, 3, "a"), (True, 5, "a"), (False, 3, "b"), (True, 6, "b"), (False, 3, "c"), (False, 3, "c"),
        (True, 9, "d"), (True, 1, None), (False, 1, None), (True, 7, "e"), (False, 7, "e"), (False, 7, "e"),
    )  # fmt: skip
    assert matched_pairs(rows, 2).tolist() == [0, 1]
    assert matched_pairs(rows, 3).tolist() == [0, 1, 2, 3]


def test_rows_that_are_no_pairs_are_matched_one_to_one():
    rows = seen(*((True, n, None) for n in (1, 10, 10)), *((False, n, None) for n in (3, 9, 30)))
    assert matched_rows(rows, 2).tolist() == [0, 1, 3, 4]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 8), st.none()), max_size=9), st.integers(0, 3))
def test_no_other_matching_has_more_rows(rows, near):
    found = matched_rows(seen(*rows), near).tolist()
    right, wrong = ([i for i in found if rows[i][0] is label] for label in (False, True))
    assert len(right) == len(wrong) == most([w for g, w, _ in rows if not g], [w for g, w, _ in rows if g], near)
    pairs = zip(sorted(rows[i][1] for i in right), sorted(rows[i][1] for i in wrong), strict=True)
    assert all(abs(a - b) <= near for a, b in pairs)


def most(right, wrong, near):
    """Count the largest matching by trying all."""
    if not wrong:
        return 0
    tried = (1 + most(right[:i] + right[i + 1 :], wrong[1:], near) for i, w in enumerate(right) if abs(w - wrong[0]) <= near)
    return max([most(right, wrong[1:], near), *tried])


def test_parts_are_those_of_every_row_and_not_too_many():
    def parts(*names):
        return {n: p.tolist() for n, p in by_part(Seen([True] * 3, [1] * 3, [None] * 3, list(names)), most=2).items()}

    assert parts("a", "b", "a") == {"a": [0, 2], "b": [1]}
    assert parts("a", "b", None) == parts("a", "b", "c") == parts("a", "a", "a") == {}


def test_what_is_looked_at():
    made = [
        Sample(response="two words", label="hallucinated", meta={"pair": 7, "part": "p"}),
        Sample(response="one", label="faithful"),
    ]
    assert look(made) == ([True, False], [2, 1], ["7", None], ["p", None])
