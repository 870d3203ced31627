"""Around any method: its probability scaled and its label decided anew, as a profile says, for all texts or by their set."""

from collections.abc import Mapping
from typing import Any, Protocol

from knowhalu.decisions import Decision
from knowhalu.methods.concluding import hallucinated, why_undecided
from knowhalu.steps import Steps
from knowhalu.types import SET, Label, Sample
from knowhalu.verdicts import Verdict


class Checks(Protocol):
    """A method."""

    name: str

    def check(self, sample: Sample) -> Steps[Verdict]:
        """Check one sample."""


class Decided:
    """A method with a last step."""

    def __init__(self, method: Checks, decision: Decision) -> None:
        self.name, self.method, self.decision = method.name, method, decision

    def check(self, sample: Sample) -> Steps[Verdict]:
        """Check one sample."""
        return decided((yield from self.method.check(sample)), self.decision)


class BySet:
    """A method that is made otherwise for some sets; a text of no such set, or of none, is checked by `whole`."""

    def __init__(self, whole: Checks, sets: Mapping[str, Checks]) -> None:
        self.name, self.whole, self.sets = whole.name, whole, sets

    def check(self, sample: Sample) -> Steps[Verdict]:
        """Check one sample."""
        return (yield from self.sets.get(str(sample.meta.get(SET)), self.whole).check(sample))


def decided(verdict: Verdict, decision: Decision) -> Verdict:
    """Scale the probability of a verdict and decide it anew.

    What the method left open stays open: a border cannot tell what sources do not say. A hallucination that only the border
    found has no kind, and how the sources stand to it is not known.
    """
    if not decision.changes:
        return verdict
    p, was_open = float(decision.scaling(verdict.probability)), verdict.hallucinated is None
    found: dict[str, Any] = {"probability": p, "reason": f"{verdict.reason} ({_said(verdict, decision, p)})"}
    if decision.scaling.kind != "none":
        found["unscaled"] = verdict.probability
    if decision.low is not None and not was_open:
        said = decision.says(p)
        label = next(label for label in Label if hallucinated(label) is said)
        found |= {"label": label, "hallucinated": said, "kind": verdict.kind if said else None,
                  "relation": verdict.relation if said else None,
                  "open": why_undecided(verdict.segments) if said is None else None}  # fmt: skip
    return verdict.model_copy(update=found)


def _said(verdict: Verdict, decision: Decision, p: float) -> str:
    scaling = f", by {decision.scaling.kind} scaling of {verdict.probability:.3f}" if decision.scaling.kind != "none" else ""
    said = f"P(hallucinated) is {p:.3f}{scaling}"
    if decision.low is None or decision.high is None or verdict.hallucinated is None:
        return said
    if decision.low < p <= decision.high:
        return f"{said}, between {decision.low:.3f} and {decision.high:.3f}: left open"
    return f"{said}, over {decision.high:.3f}" if p > decision.high else f"{said}, not over {decision.low:.3f}"
