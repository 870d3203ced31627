"""Metrics against scikit-learn and by hand, and the scores of labels."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    f1_score,
    roc_auc_score,
)

from knowhalu.evaluation.bootstrap import Estimate, draw_resamples, metrics_with_intervals, resample_metrics
from knowhalu.evaluation.metrics import (
    ECE_BINS,
    METRICS,
    RANKING_METRICS,
    Predictions,
    fit_threshold_rule,
    metrics_from_counts,
    ranking_metrics,
    row_counts,
    score_labels,
)


def said(rows):
    """Make arrays of rows (gold, said or None, probability)."""
    gold, label, p = zip(*rows, strict=True)
    settled = [q > 0.5 if s is None else s for s, q in zip(label, p, strict=True)]
    return Predictions(np.array(gold), np.array(settled), np.array([s is None for s in label]), np.array(p))


def all_figures(one):
    return {**metrics_from_counts(row_counts(one).sum(axis=0)), **ranking_metrics(one)}


ROWS = [(True, True, 0.9), (True, None, 0.8), (True, False, 0.2), (True, None, 0.3),
        (False, False, 0.1), (False, True, 0.7), (False, None, 0.4), (False, False, 0.2)]  # fmt: skip


def test_metrics_by_hand():
    found = all_figures(said(ROWS))
    assert (found["tpr"], found["tnr"], found["average"]) == (1 / 4, 2 / 4, 3 / 8)
    assert (found["arp"], found["arn"], found["inconclusive"]) == (2 / 4, 1 / 4, 3 / 8)
    assert (found["accuracy"], found["balanced"]) == (3 / 8, (2 / 4 + 3 / 4) / 2)
    assert list(said(ROWS).right) == [True, False, False, False, True, False, False, True]


def test_calibration_error_by_hand():
    """0.9 and 0.8 stand in bins of their own, as do 0.1, 0.3, 0.4 and 0.7; 0.2 came true once in two."""
    found = all_figures(said(ROWS))
    assert found["ece"] == pytest.approx((0.1 + 0.2 + abs(0.4 - 1) + 0.7 + 0.1 + 0.7 + 0.4) / 8)
    sure = said([(True, True, 1.0), (True, True, 0.95), (False, True, 0.91)])
    assert all_figures(sure)["ece"] == pytest.approx((1.0 + 0.95 + 0.91 - 2) / 3)


def test_coverage_area_by_hand():
    """The surest first: right 0.9, right 0.1, then 0.2 wrong or right in either order, 0.7 wrong; abstentions come last."""
    rows = [(True, True, 0.9), (False, False, 0.12), (True, False, 0.2), (False, False, 0.2), (False, True, 0.7),
            (True, None, 0.99)]  # fmt: skip
    halves = (2 / 3 + 3 / 3) / 2
    assert all_figures(said(rows))["coverage_area"] == pytest.approx((1 + 1 + halves + 3 / 4 + 3 / 5 + 4 / 6) / 6)


rows = st.lists(
    st.tuples(st.booleans(), st.booleans(), st.sampled_from([0.0, 0.1, 0.5, 0.50001, 0.9, 1.0])), min_size=2, max_size=40
)
few = st.lists(st.tuples(st.booleans(), st.sampled_from([True, False, None]), st.sampled_from([0.1, 0.4, 0.9])), min_size=1,
               max_size=6)  # fmt: skip


@given(rows)
def test_metrics_agree_with_scikit_learn(rows):
    one = said(rows)
    if len(set(one.gold)) < 2:
        return
    found = all_figures(one)
    assert found["balanced"] == pytest.approx(balanced_accuracy_score(one.gold, one.settled))
    assert found["macro_f1"] == pytest.approx(f1_score(one.gold, one.settled, average="macro", zero_division=0))
    assert found["f1_hallucinated"] == pytest.approx(f1_score(one.gold, one.settled, zero_division=0))
    assert found["f1_faithful"] == pytest.approx(f1_score(one.gold, one.settled, pos_label=False, zero_division=0))
    assert found["accuracy"] == pytest.approx(accuracy_score(one.gold, one.settled))
    assert found["brier"] == pytest.approx(brier_score_loss(one.gold, one.probability))
    assert found["auc"] == pytest.approx(roc_auc_score(one.gold, one.probability))
    assert found["pr_auc"] == pytest.approx(average_precision_score(one.gold, one.probability))


@given(rows)
def test_calibration_error_is_the_weighted_gap_of_every_bin(rows):
    one = said(rows)
    number = np.minimum(np.floor(one.probability * ECE_BINS), ECE_BINS - 1)
    gaps = [abs(one.probability[number == b].mean() - one.gold[number == b].mean()) * (number == b).sum() for b in set(number)]
    assert all_figures(one)["ece"] == pytest.approx(sum(gaps) / len(rows))


@given(few)
def test_coverage_area_is_the_mean_over_all_orders_of_ties(rows):
    def sureness(row):
        return -1 if row[1] is None else abs(row[2] - 0.5)

    orders = [o for o in permutations(rows) if all(sureness(a) >= sureness(b) for a, b in zip(o, o[1:], strict=False))]
    rights = [np.cumsum(said(o).gold == said(o).settled) / np.arange(1, len(o) + 1) for o in orders]
    assert all_figures(said(rows))["coverage_area"] == pytest.approx(np.mean(rights))


@given(rows, st.integers(0, 99))
def test_resample_has_the_metrics_of_its_repeated_rows(rows, seed):
    one, groups = said(rows), np.arange(len(rows)) // 2
    one = one._replace(wrong=np.arange(len(rows)) % 3.0, characters=np.arange(3.0) + np.arange(len(rows))[:, None])
    drawn = draw_resamples(int(groups.max()) + 1, times=3, seed=seed)
    quick, by_order = resample_metrics(one, groups, drawn), ranking_metrics(one, drawn[:, groups])
    for i, times in enumerate(drawn):
        written = one.rows(np.repeat(np.arange(len(rows)), times[groups]))
        slow = all_figures(written)
        assert slow.keys() == set(METRICS)
        for name in slow:
            np.testing.assert_allclose({**quick, **by_order}[name][i], slow[name])


def test_single_class_leaves_metrics_of_the_other_undefined():
    one = said([(True, True, 0.9), (True, False, 0.1)])._replace(wrong=np.array([2.0, 1.0]), characters=np.ones((2, 3)))
    found = metrics_with_intervals(one, np.array([0, 1]), draw_resamples(2))
    assert {name for name in METRICS if found[name].value is None} == {
        "tnr", "average", "balanced", "macro_f1", "auc", "arn", "f1_faithful", "wrong_faithful",
    }  # fmt: skip
    assert found["tnr"] == Estimate(None, None, None)
    assert found["tpr"] == Estimate(0.5, 0.0, 1.0)
    assert found["wrong_hallucinated"] == Estimate(1.5, 1.0, 2.0)


def test_characters_are_summed_over_texts_and_unknown_without_gold_spans():
    one = said([(True, True, 0.9), (True, True, 0.8), (False, True, 0.7)])
    known = one._replace(characters=np.array([[3, 6, 4], [0, 0, 4], [0, 2, 0]]))
    found = all_figures(known)
    assert (found["span_precision"], found["span_recall"]) == (3 / 8, 3 / 8)
    assert found["span_f1"] == pytest.approx(2 * 3 / (8 + 8))
    assert np.isnan([all_figures(one)[name] for name in ("span_precision", "span_recall", "span_f1")]).all()


def test_only_requested_metrics_are_returned():
    found = metrics_with_intervals(said(ROWS), np.arange(8), draw_resamples(8), ("tpr", "auc"))
    whole = metrics_with_intervals(said(ROWS), np.arange(8), draw_resamples(8))
    assert found == {name: whole[name] for name in ("tpr", "auc")}
    assert set(RANKING_METRICS) < set(whole)


def test_absent_groups_do_not_change_intervals():
    part = np.array([0, 1, 4, 5])
    drawn = draw_resamples(8)
    found = metrics_with_intervals(said(ROWS).rows(part), part, drawn)
    assert found == metrics_with_intervals(said(ROWS).rows(part), np.arange(4), drawn[:, part])


def test_resamples_without_rows_of_a_slice_are_left_out():
    found = metrics_with_intervals(
        said(ROWS).rows(np.array([0, 4])), np.array([0, 4]), np.array([[0] * 8, [1] * 8], dtype=np.uint8)
    )
    assert found["coverage_area"] == found["auc"] == found["accuracy"] == Estimate(1.0, 1.0, 1.0)


def test_no_rows_give_no_metrics():
    nothing = Predictions(*(np.zeros(0, dtype=t) for t in (bool, bool, bool, float)))
    assert set(metrics_with_intervals(nothing, np.zeros(0, dtype=int), draw_resamples(3)).values()) == {Estimate(None)}


def test_abstention_counts_as_neither_label():
    found = score_labels([(True, True), (True, None), (False, False), (False, True), (False, None), (False, False)])
    assert (found.tpr, found.tnr, found.arp, found.arn) == (1 / 2, 2 / 4, 1 / 2, 1 / 4)


def test_rates_without_rows_are_none():
    found = score_labels([(True, True)])
    assert (found.tpr, found.tnr, found.average, found.arn) == (1.0, None, None, None)
    assert fit_threshold_rule([(True, 3)]) is None


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 8)), max_size=30))
def test_fitted_threshold_is_optimal(rows):
    if len({gold for gold, _ in rows}) < 2:
        return
    rule = fit_threshold_rule(rows)
    every = [score_labels((g, w > t) for g, w in rows).average for t in range(-1, 10)]
    every += [score_labels((g, w < t) for g, w in rows).average for t in range(-1, 10)]
    assert rule.score.average == max(every)
    assert rule.score == score_labels((g, w > rule.at if rule.over else w < rule.at) for g, w in rows)
