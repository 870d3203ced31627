"""McNemar's test and Holm's correction, against scipy and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from knowhalu.evaluation.significance import McNemar, holm, mcnemar


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
