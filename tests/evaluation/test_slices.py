"""Slices: names of the slice of each row, and metrics of its rows alone."""

import numpy as np

from knowhalu.evaluation.bootstrap import draw_resamples, metrics_with_intervals
from knowhalu.evaluation.metrics import Predictions
from knowhalu.evaluation.slices import (
    BREAKDOWN_TITLES,
    MAX_SLICES,
    OTHER_SLICES,
    SLICE_METRICS,
    Slicing,
    make_breakdowns,
    row_traits,
    slice_names,
    verdict_traits,
)
from knowhalu.io.outcomes import format_outcome, read_outcome_table
from knowhalu.types import Judgment, Label, Sample
from tests.evaluation.test_spans import segment, verdict


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
