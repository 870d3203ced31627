"""Scores and threshold rules against a simple, slow computation."""

from hypothesis import given
from hypothesis import strategies as st

from knowhalu.evaluation.metrics import fit_threshold_rule, score_labels


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
