"""Theta of Factored Verification: replayed verdicts equal those of the method."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.calibration.tunable import hallucination_probabilities, read_tunable_theta
from knowhalu.errors import InputError
from knowhalu.methods.common.combine import CombinationCalibration, hallucination_probability
from knowhalu.methods.common.verdict import NO_EVIDENCE
from knowhalu.methods.factored.method import ClaimJudgment, SentenceJudgment, combine_claims
from knowhalu.methods.options import FactoredOptions
from knowhalu.text.sentences import Span
from knowhalu.types import Claim, Judgment, Label, Sample

shares = st.floats(0, 1)
claims = st.lists(st.one_of(shares, st.none()), max_size=4)
STANDARD = CombinationCalibration({"product": 0.5, "minimum": 0.5}, 0.9, 2.0)
SAMPLE = Sample(id="1", response="x", knowledge="y")


def verdict(values, theta, rule):
    """Check a text of one sentence with these P(supported) of its claims; None is left open."""
    judged = tuple(
        ClaimJudgment(
            Claim(start=0, end=1, text=str(i)),
            Judgment(label=Label.INCONCLUSIVE, confidence=0.0, rationale=NO_EVIDENCE) if p is None
            else Judgment(label=Label.CORRECT, confidence=p, p_supported=p, rationale="so"),
        )
        for i, p in enumerate(values)
    )  # fmt: skip
    parts = [SentenceJudgment(Span(0, 1, "x"), judged)] if judged else []
    return combine_claims(SAMPLE, parts, STANDARD, FactoredOptions(rule=rule, theta=theta), (), "factored")


@given(st.lists(claims, min_size=1, max_size=5), st.floats(0.001, 1), st.sampled_from(["product", "minimum"]))
def test_replayed_theta_equals_the_method(texts, theta, rule):
    lines = [(i, verdict(values, 0.5, rule).model_dump(mode="json")) for i, values in enumerate(texts)]
    found = read_tunable_theta(lines, np.ones(len(texts), bool), rule).predict({"factored": {"theta": theta}})
    for i, values in enumerate(texts):
        own = verdict(values, theta, rule)
        assert found.abstained[i] == (own.hallucinated is None)
        assert found.abstained[i] or found.settled[i] == own.hallucinated
        assert found.probability[i] == pytest.approx(own.probability, abs=1e-12)


@given(st.lists(shares, min_size=1), shares)
def test_vectorised_probabilities_equal_the_scalar_ones(values, theta):
    assert hallucination_probabilities(np.array(values), theta).tolist() == [hallucination_probability(v, theta) for v in values]


def test_theta_is_the_midpoint_of_the_class_means():
    lines = [(i, verdict([p], 0.5, "product").model_dump(mode="json")) for i, p in enumerate((0.9, 0.7, 0.3, 0.1))]
    told = read_tunable_theta(lines, np.array([False, False, True, True]), "product")
    assert told.fit(np.arange(4))["factored"]["theta"] == pytest.approx(0.5)
    assert told.fit(np.array([0, 2]))["factored"]["theta"] == pytest.approx(0.6)
    with pytest.raises(InputError, match="Give rows of both labels"):
        told.fit(np.array([0, 1]))
