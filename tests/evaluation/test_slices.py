"""Slices and subsets: names, metrics of their rows alone, and length matching."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.evaluation.bootstrap import draw_resamples, metrics_with_intervals
from knowhalu.evaluation.labelled_rows import row_traits
from knowhalu.evaluation.metrics import Predictions
from knowhalu.evaluation.runs import verdict_traits
from knowhalu.evaluation.slices import (
    BREAKDOWN_TITLES,
    MAX_SLICES,
    OTHER_SLICES,
    SLICE_METRICS,
    MatchingFeatures,
    Slicing,
    make_breakdowns,
    matched_pairs,
    matched_rows,
    matching_features,
    rows_by_part,
    slice_names,
)
from knowhalu.io.outcomes import format_outcome, read_outcome_table
from knowhalu.types import Judgment, Label, Sample
from tests.evaluation.test_runs import segment, verdict


def parting(**names):
    n = len(next(iter(names.values())))
    rng = np.random.default_rng(1)
    p = rng.random(n)
    said = Predictions(rng.random(n) < 0.5, p > 0.5, rng.random(n) < 0.1, p)
    return Slicing("m", said, np.arange(n) // 2, {**{key: ["one"] * n for key in BREAKDOWN_TITLES}, **names})


def test_slice_has_the_metrics_of_its_rows():
    names = ["a", "b", None, "b"] * 10
    one = parting(type=names)
    (found,) = make_breakdowns([one], draw_resamples(20))
    assert (found.key, found.title, found.results[0].method) == ("type", "Type of error", "m")
    a, b = found.results[0].parts
    assert (a.name, a.rows, b.name, b.rows) == ("a", 10, "b", 20)
    chosen = np.array([name == "b" for name in names])
    assert b.figures == metrics_with_intervals(
        one.predictions.rows(chosen), one.groups[chosen], draw_resamples(20), SLICE_METRICS
    )
    assert b.hallucinated == one.predictions.gold[chosen].sum()


def test_single_slice_is_no_breakdown_and_numbers_are_sorted():
    names = ["6 and more", "3 to 5", "0", "2"] * 2
    (found,) = make_breakdowns([parting(segments=names), parting(type=["x"] * 8)], draw_resamples(4))
    assert [p.name for p in found.results[0].parts] == ["0", "2", "3 to 5", "6 and more"]
    assert len(found.results) == 1


def test_lengths_are_divided_into_named_thirds():
    assert slice_names("words", [1, 2, 3, 4, 5, 60]) == ["1 to 2"] * 2 + ["3 to 4"] * 2 + ["5 to 60"] * 2
    assert set(slice_names("words", [7, 7, 7])) == {"7"}


def test_rarest_slices_are_combined_and_last():
    values = [f"t{i}" for i in range(MAX_SLICES)] * 2 + ["rare", "rarer", None]
    names = slice_names("type", values)
    assert names[-3:] == [OTHER_SLICES, OTHER_SLICES, None]
    (found,) = make_breakdowns([parting(type=names)], draw_resamples(22))
    assert found.results[0].parts[-1].name == OTHER_SLICES


def test_traits_of_rows_and_verdicts(tmp_path):
    assert row_traits(Sample(response="two words", meta={"type": "number", "set": 3})) == ("number", "3", 2, None)
    assert row_traits(Sample(response="word", meta={"type": ["a"], "set": " "})) == (None, None, 1, None)
    other = Judgment(label=Label.CORRECT, confidence=0.9, rationale="")
    verdicts = [
        verdict(),
        verdict(segment(0, 5), segment(5, 9, "CORRECT", supplement=other)),
        verdict(segment(0, 5, supplement=other)),
    ]
    lines = [format_outcome(v.model_copy(update={"id": f"r{i}", "seconds": {"total": 1.0}})) for i, v in enumerate(verdicts)]
    path = tmp_path / "outcomes.jsonl"
    path.write_text("\n".join(['{"run": {}}', *lines]) + "\n")
    assert verdict_traits(read_outcome_table(path, None)) == {
        "steps": [0, 0, 0], "segments": [0, 2, 1], "forms": ["only one was judged by", "agree", "disagree"],
    }  # fmt: skip


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
