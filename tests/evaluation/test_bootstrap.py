"""Bootstrap: intervals of metrics, groups of rows, and paired tests."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import binomtest

from knowhalu.evaluation.bootstrap import (
    Estimate,
    McNemar,
    draw_resamples,
    group_keys,
    group_numbers,
    holm,
    mcnemar,
    metrics_with_intervals,
)
from knowhalu.evaluation.metrics import Predictions
from knowhalu.types import Sample


def coins(n, seed=0):
    """Right with a chance of 0.8, on hallucinated and faithful rows in turn."""
    gold = np.arange(n) % 2 == 0
    right = np.random.default_rng(seed).random(n) < 0.8
    settled = gold == right
    return Predictions(gold, settled, np.zeros(n, dtype=bool), settled.astype(float))


def test_interval_of_a_share_has_the_width_of_its_standard_error():
    said = coins(2000)
    found = metrics_with_intervals(said, np.arange(2000), draw_resamples(2000))["tpr"]
    error = np.sqrt(found.value * (1 - found.value) / 1000)
    assert (found.high - found.low) / (2 * 1.96 * error) == pytest.approx(1, abs=0.1)
    assert found.low < found.value < found.high


def test_rows_of_one_group_count_as_one_observation():
    said = coins(200)
    many = said.rows(np.repeat(np.arange(200), 10))
    alone = metrics_with_intervals(said, np.arange(200), draw_resamples(200))
    grouped = metrics_with_intervals(many, np.repeat(np.arange(200), 10), draw_resamples(200))
    loose = metrics_with_intervals(many, np.arange(2000), draw_resamples(2000))
    assert grouped["average"] == alone["average"]
    assert loose["average"].high - loose["average"].low < 0.5 * (grouped["average"].high - grouped["average"].low)


def test_resamples_depend_on_the_seed_alone():
    assert (draw_resamples(50) == draw_resamples(50)).all()
    assert (draw_resamples(50).sum(axis=1) == 50).all()
    assert draw_resamples(50).shape == (2000, 50)
    assert not (draw_resamples(50, seed=1) == draw_resamples(50)).all()


def test_intervals_have_their_nominal_coverage():
    """Scores are normal and shared within pairs, so the truth is known: TPR and Avg Acc are P(z < 0.75), AUC is P(z < 1.06)."""
    rng, pairs, shift = np.random.default_rng(0), 80, 1.5
    truth = {"tpr": ndtr(shift / 2), "average": ndtr(shift / 2), "accuracy": ndtr(shift / 2), "auc": ndtr(shift / np.sqrt(2))}
    gold, groups, drawn = np.arange(2 * pairs) % 2 == 0, np.arange(2 * pairs) // 2, draw_resamples(pairs, times=300)
    held, times = dict.fromkeys(truth, 0), 400
    for _ in range(times):
        score = 0.7 * rng.normal(size=pairs)[groups] + np.sqrt(0.51) * rng.normal(size=2 * pairs) + np.where(gold, 0.75, -0.75)
        said = Predictions(gold, score > 0, np.zeros(2 * pairs, dtype=bool), ndtr(score))
        for name, found in metrics_with_intervals(said, groups, drawn, tuple(truth)).items():
            held[name] += found.low <= truth[name] <= found.high
    assert all(0.9 <= count / times <= 0.98 for count in held.values()), held


def test_calibration_error_is_given_without_an_interval():
    said = coins(100)  # of probability 0 or 1, so that every wrong verdict is off by 1
    found = metrics_with_intervals(said, np.arange(100), draw_resamples(100), ("ece", "brier"))
    assert found["ece"] == Estimate(pytest.approx(1 - said.right.mean()), None, None)
    assert found["brier"].low is not None


def test_one_group_has_no_interval():
    found = metrics_with_intervals(coins(10), np.zeros(10, dtype=int), draw_resamples(1))["average"]
    assert found.value is not None and (found.low, found.high) == (None, None)


def test_rows_that_share_a_source_question_or_pair_are_one_group_transitively():
    rows = [
        Sample(response="a", documents="D"), Sample(response="b", documents="E"),
        Sample(response="c", knowledge="D", question="q"),
        Sample(response="d", question="q", documents="F"), Sample(response="e", meta={"pair": 1}),
        Sample(response="f", meta={"pair": "1"}), Sample(response="g"), Sample(response="h", meta={"group": "x"}, documents="D"),
        Sample(response="i", meta={"group": "x"}), Sample(response="j", meta={"group": ["y", "x"]}),
    ]  # fmt: skip
    assert list(group_numbers(group_keys(s) for s in rows)) == [0, 1, 0, 0, 2, 2, 3, 4, 4, 4]


def flags(text):
    return np.array([c == "1" for c in text], dtype=bool)


def test_mcnemar_counts_discordant_rows_only():
    assert mcnemar(flags("1110001"), flags("1001000")) == McNemar(3, 1, pytest.approx(0.625))
    assert mcnemar(flags("10"), flags("10")).p == 1.0


@given(st.integers(0, 600), st.integers(0, 600))
def test_mcnemar_p_is_that_of_the_exact_binomial_test(ours, theirs):
    found = mcnemar(flags("1" * ours + "0" * theirs), flags("0" * ours + "1" * theirs))
    assert found.p == pytest.approx(binomtest(ours, ours + theirs, 0.5).pvalue if ours + theirs else 1.0)


def test_holm_corrects_in_order():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
