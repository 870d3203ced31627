"""Calibrated methods: P(hallucinated) is scaled and the label decided by a profile, for all texts or by data set."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from knowhalu.methods.common.protocol import Detector
from knowhalu.methods.common.verdict import is_hallucinated, undecided_reason
from knowhalu.requests import Conversation
from knowhalu.results import Verdict
from knowhalu.types import META_SET, Label, Record, Sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

ScalingKind = Literal["none", "temperature", "platt", "isotonic"]
MIN_PROBABILITY = 1e-6
"""Probabilities are clipped to at least this distance from 0 and 1, so that their log-odds are finite."""


class ProbabilityScaling(Record):
    """A monotone map from a method's P(hallucinated) to a calibrated one.

    Temperature and Platt: sigmoid(slope x log-odds + shift), with a shift of 0 for a temperature of 1 / slope. Isotonic:
    linear between the points (x, y), constant outside of them.
    """

    kind: ScalingKind = "none"
    slope: float = Field(1.0, gt=0.0)
    shift: float = 0.0
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()

    @model_validator(mode="after")
    def _rises(self) -> "ProbabilityScaling":
        never_falls = all(list(v) == sorted(v) for v in (self.x, self.y))
        if len(self.x) != len(self.y) or not never_falls or (self.kind == "isotonic") != bool(self.x):
            raise ValueError("an isotonic scaling, and no other, has as many x as y, and both never fall")
        return self

    def __call__(self, probability: "ArrayLike") -> "NDArray[np.float64]":
        """Return scaled probabilities, of the shape that they are given in."""
        import numpy as np  # here, so that settings are read without it

        p = np.asarray(probability, dtype=np.float64)
        if self.kind == "none":
            return p
        if self.kind == "isotonic":
            return np.clip(np.interp(p, self.x, self.y), 0.0, 1.0)
        z = self.slope * log_odds(p) + self.shift
        return np.asarray(1 / (1 + np.exp(-np.clip(z, -700.0, 700.0))))


class DecisionRule(Record):
    """Decide by the scaled probability: at most `low` is faithful, over `high` hallucinated, and between them inconclusive.

    Equal values are one threshold. Without them the labels of the method are kept. A label without a probability says no more
    than on which side of 0.5 it is: it is kept where that suffices, and else the text is inconclusive.
    """

    scaling: ProbabilityScaling = ProbabilityScaling()
    low: float | None = Field(None, ge=-1.0, le=1.0)
    high: float | None = Field(None, ge=-1.0, le=1.0)

    @model_validator(mode="after")
    def _in_order(self) -> "DecisionRule":
        if (self.low is None) != (self.high is None) or (self.low or 0.0) > (self.high or 0.0):
            raise ValueError("low and high are given together, and low is not over high")
        return self

    @property
    def changes(self) -> bool:
        """Tell whether anything is scaled or decided at all."""
        return self.scaling.kind != "none" or self.low is not None

    def says(self, scaled: float) -> bool | None:
        """Tell whether a scaled probability means a hallucination; None between the thresholds, which must be set."""
        low, high = self.low or 0.0, self.high or 0.0
        return True if scaled > high else False if scaled <= low else None

    def keeps(self, hallucinated: bool) -> bool:
        """Tell whether a label whose probability was not measured decides; the thresholds must be set."""
        return (self.high or 0.0) <= 0.5 if hallucinated else (self.low or 0.0) >= 0.5


def log_odds(p: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Return the natural log-odds of probabilities, cut off at `MIN_PROBABILITY`."""
    import numpy as np

    inside = np.clip(p, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    return np.asarray(np.log(inside / (1 - inside)))


class CalibratedMethod:
    """A method whose verdicts go through a decision rule."""

    def __init__(self, method: Detector, decision: DecisionRule) -> None:
        self.name, self.method, self.decision = method.name, method, decision

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Check one sample."""
        return apply_decision_rule((yield from self.method.check(sample)), self.decision)


class PerSetMethod:
    """A method with other settings for some data sets; a text of no such set is checked by `whole`."""

    def __init__(self, whole: Detector, sets: Mapping[str, Detector]) -> None:
        self.name, self.whole, self.sets = whole.name, whole, sets

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Check one sample."""
        return (yield from self.sets.get(str(sample.meta.get(META_SET)), self.whole).check(sample))


def apply_decision_rule(verdict: Verdict, decision: DecisionRule) -> Verdict:
    """Scale the probability of a verdict and decide its label by the rule.

    An inconclusive verdict stays so: a threshold adds no evidence. A hallucination that only the threshold found has no kind
    and no relation to the sources.
    """
    if not decision.changes:
        return verdict
    if verdict.probability is None:
        return _decide_unmeasured(verdict, decision)
    p, was_inconclusive = float(decision.scaling(verdict.probability)), verdict.hallucinated is None
    changes: dict[str, Any] = {"probability": p, "reason": f"{verdict.reason} ({_decision_reason(verdict, decision, p)})"}
    if decision.scaling.kind != "none":
        changes["unscaled"] = verdict.probability
    if decision.low is not None and not was_inconclusive:
        hallucinated = decision.says(p)
        label = next(label for label in Label if is_hallucinated(label) is hallucinated)
        changes |= {"label": label, "hallucinated": hallucinated, "kind": verdict.kind if hallucinated else None,
                  "relation": verdict.relation if hallucinated else None,
                  "inconclusive_reason": undecided_reason(verdict.segments) if hallucinated is None else None}  # fmt: skip
    return verdict.model_copy(update=changes)


def _decide_unmeasured(verdict: Verdict, decision: DecisionRule) -> Verdict:
    """Keep the label of a verdict without a probability where the thresholds allow it, else leave the text inconclusive."""
    if decision.low is None or verdict.hallucinated is None or decision.keeps(verdict.hallucinated):
        return verdict
    reason = f"{verdict.reason} (P(hallucinated) not measured, so its label cannot be held against the thresholds: left open)"
    return verdict.model_copy(update={
        "label": Label.INCONCLUSIVE, "hallucinated": None, "kind": None, "relation": None, "reason": reason,
        "inconclusive_reason": undecided_reason(verdict.segments),
    })  # fmt: skip


def _decision_reason(verdict: Verdict, decision: DecisionRule, p: float) -> str:
    scaling = f", by {decision.scaling.kind} scaling of {verdict.probability:.3f}" if decision.scaling.kind != "none" else ""
    reason = f"P(hallucinated) is {p:.3f}{scaling}"
    if decision.low is None or decision.high is None or verdict.hallucinated is None:
        return reason
    if decision.low < p <= decision.high:
        return f"{reason}, between {decision.low:.3f} and {decision.high:.3f}: left open"
    return f"{reason}, over {decision.high:.3f}" if p > decision.high else f"{reason}, not over {decision.low:.3f}"
