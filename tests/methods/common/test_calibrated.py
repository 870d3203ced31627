"""Calibrated methods, with scripted verdicts."""

import pytest

from knowhalu.methods.common.calibrated import DecisionRule, PerSetMethod, ProbabilityScaling, apply_decision_rule
from knowhalu.results import Verdict
from knowhalu.types import HallucinationKind, Label, Sample, Task

SAID = {True: Label.INCORRECT, False: Label.CORRECT, None: Label.INCONCLUSIVE}


def verdict(p, hallucinated, kind=None):
    return Verdict(
        id="1", task=Task.CLAIM, method="m", label=SAID[hallucinated], hallucinated=hallucinated, kind=kind, probability=p,
        reason="because",
    )  # fmt: skip


class Says:
    name = "says"

    def __init__(self, p):
        self.p = p

    def check(self, sample):
        yield from ()
        return verdict(self.p, self.p > 0.5)


@pytest.mark.parametrize(
    ("p", "before", "after"), [(0.4, False, True), (0.2, False, False), (0.25, False, None), (0.9, True, True)]
)
def test_the_label_is_decided_by_the_thresholds(p, before, after):
    found = apply_decision_rule(
        verdict(p, before, HallucinationKind.OFF_TARGET if before else None), DecisionRule(low=0.2, high=0.3)
    )
    assert (found.hallucinated, found.label, found.probability) == (after, SAID[after], p)
    assert found.kind is (HallucinationKind.OFF_TARGET if before else None)  # a border alone cannot tell the kind
    assert found.reason.startswith("because (P(hallucinated) is ") and found.unscaled is None


def test_an_inconclusive_verdict_stays_inconclusive():
    assert apply_decision_rule(verdict(0.9, None), DecisionRule(low=0.5, high=0.5)).hallucinated is None


def test_the_unscaled_probability_is_kept_and_without_thresholds_labels_stay():
    found = apply_decision_rule(verdict(0.9, True), DecisionRule(scaling=ProbabilityScaling(kind="temperature", slope=0.5)))
    assert (found.probability, found.unscaled, found.hallucinated) == (pytest.approx(0.75), 0.9, True)
    assert "by temperature scaling of 0.900" in found.reason
    assert apply_decision_rule(verdict(0.9, True), DecisionRule()) == verdict(0.9, True)


def test_a_text_is_checked_by_the_method_of_its_set_or_else_by_that_of_all():
    method = PerSetMethod(Says(0.1), {"news": Says(0.2), "7": Says(0.7)})

    def p(**meta):
        conversation = method.check(Sample(id="1", response="x", meta=meta))
        with pytest.raises(StopIteration) as end:
            next(conversation)
        return end.value.value.probability

    assert [p(), p(set="news"), p(set=7), p(set="other")] == [0.1, 0.2, 0.7, 0.1]


@pytest.mark.parametrize(
    ("hallucinated", "low", "high", "after"),
    [
        (True, 0.5, 0.5, True), (False, 0.5, 0.5, False), (True, 0.2, 0.8, None), (False, 0.2, 0.8, None),
        (True, 0.2, 0.4, True), (False, 0.6, 0.8, False), (False, 0.2, 0.4, None), (None, 0.5, 0.5, None),
    ],
)  # fmt: skip
def test_a_label_without_a_probability_is_kept_only_where_the_side_of_one_half_suffices(hallucinated, low, high, after):
    found = apply_decision_rule(verdict(None, hallucinated), DecisionRule(low=low, high=high))
    assert (found.hallucinated, found.label, found.probability) == (after, SAID[after], None)
    if hallucinated is not None:
        assert ("not measured" in found.reason) == (after is None)


def test_scaling_leaves_what_was_not_measured():
    scaling = ProbabilityScaling(kind="temperature", slope=0.5)
    assert apply_decision_rule(verdict(None, True), DecisionRule(scaling=scaling)) == verdict(None, True)
