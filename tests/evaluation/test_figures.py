"""Figures and their resamples against scikit-learn, and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

from knowhalu.evaluation.figures import FIGURES, Said, auc, counts, figures
from knowhalu.evaluation.intervals import Figure, draws, resampled, with_intervals


def said(rows):
    """Make arrays of rows (gold, said or None, probability)."""
    gold, label, p = zip(*rows, strict=True)
    settled = [q > 0.5 if s is None else s for s, q in zip(label, p, strict=True)]
    return Said(np.array(gold), np.array(settled), np.array([s is None for s in label]), np.array(p))


def test_figures_by_hand():
    rows = [(True, True, 0.9), (True, None, 0.8), (True, False, 0.2), (True, None, 0.3),
            (False, False, 0.1), (False, True, 0.7), (False, None, 0.4), (False, False, 0.2)]  # fmt: skip
    found = figures(counts(said(rows)).sum(axis=0))
    assert (found["tpr"], found["tnr"], found["average"]) == (1 / 4, 2 / 4, 3 / 8)
    assert (found["arp"], found["arn"]) == (2 / 4, 1 / 4)
    assert found["balanced"] == (2 / 4 + 3 / 4) / 2
    assert list(said(rows).right) == [True, False, False, False, True, False, False, True]


rows = st.lists(
    st.tuples(st.booleans(), st.booleans(), st.sampled_from([0.0, 0.1, 0.5, 0.50001, 0.9, 1.0])), min_size=2, max_size=40
)


@given(rows)
def test_they_are_those_of_scikit_learn(rows):
    one = said(rows)
    if len(set(one.gold)) < 2:
        return
    found = {**figures(counts(one).sum(axis=0)), "auc": auc(one)}
    assert found["balanced"] == pytest.approx(balanced_accuracy_score(one.gold, one.settled))
    assert found["macro_f1"] == pytest.approx(f1_score(one.gold, one.settled, average="macro", zero_division=0))
    assert found["auc"] == pytest.approx(roc_auc_score(one.gold, one.probability))


@given(rows, st.integers(0, 99))
def test_a_resample_has_the_figures_of_its_rows_written_out(rows, seed):
    one, groups = said(rows), np.arange(len(rows)) // 2
    drawn = draws(int(groups.max()) + 1, times=3, seed=seed)
    quick, ranked = resampled(one, groups, drawn), auc(one, drawn[:, groups].astype(float))
    for i, times in enumerate(drawn):
        written = one.rows(np.repeat(np.arange(len(rows)), times[groups]))
        slow = figures(counts(written).sum(axis=0))
        for name in slow:
            np.testing.assert_allclose(quick[name][i], slow[name])
        np.testing.assert_allclose(ranked[i], auc(written))


def test_one_class_leaves_out_what_needs_the_other():
    found = with_intervals(said([(True, True, 0.9), (True, False, 0.1)]), np.array([0, 1]), draws(2))
    assert {name for name in FIGURES if found[name].value is None} == {"tnr", "average", "balanced", "macro_f1", "auc", "arn"}
    assert found["tnr"] == Figure(None, None, None)
    assert found["tpr"] == Figure(0.5, 0.0, 1.0)


def test_no_rows_have_no_figures():
    nothing = Said(*(np.zeros(0, dtype=t) for t in (bool, bool, bool, float)))
    assert set(with_intervals(nothing, np.zeros(0, dtype=int), draws(3)).values()) == {Figure(None)}
