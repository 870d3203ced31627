"""McNemar's test and Holm's correction, against scipy and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, chi2

from knowhalu.evaluation.mcnemar import EXACT, McNemar, holm, mcnemar


def flags(text):
    return np.array([c == "1" for c in text], dtype=bool)


def test_only_rows_on_which_they_differ_count():
    assert mcnemar(flags("1110001"), flags("1001000")) == McNemar(3, 1, pytest.approx(0.625))
    assert mcnemar(flags("10"), flags("10")).p == 1.0


@given(st.integers(0, 60), st.integers(0, 60))
def test_few_differences_get_the_exact_binomial_p(ours, theirs):
    found = mcnemar(flags("1" * ours + "0" * theirs), flags("0" * ours + "1" * theirs))
    assert found.p == pytest.approx(binomtest(ours, ours + theirs, 0.5).pvalue if ours + theirs else 1.0)


def test_many_get_chi_squared_which_is_close_to_the_exact_p():
    ours, theirs = EXACT // 2 + 60, EXACT // 2 - 30
    found = mcnemar(flags("1" * ours + "0" * theirs), flags("0" * ours + "1" * theirs))
    assert found.p == pytest.approx(chi2.sf((ours - theirs - 1) ** 2 / (ours + theirs), 1))
    assert found.p == pytest.approx(binomtest(ours, ours + theirs, 0.5).pvalue, rel=0.02)


def test_holm_multiplies_the_smallest_most_and_keeps_the_order():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
