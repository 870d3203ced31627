"""A cascade: rules, then the encoder, then a language model, each for the texts that the one before leaves undecided.

The encoder decides where its P(hallucinated) is at most `low` or over `high` and its verdict is not inconclusive. The language
model decides the rest; without it, texts between the two thresholds are inconclusive. Where the probability of that stage was
not measured, its label decides only where the thresholds allow it.
"""

from collections.abc import Mapping

from knowhalu.methods.common.calibrated import CalibratedMethod, DecisionRule
from knowhalu.methods.common.protocol import Detector
from knowhalu.methods.options import CascadeOptions
from knowhalu.requests import Conversation
from knowhalu.results import CascadeStage, Verdict
from knowhalu.types import Sample

RULES_STAGE, ENCODER_STAGE, LLM_STAGE = "rules", "encoder", "llm"


class Cascade:
    """Check by stages; `stages` are methods by the name of their reasoner, in order."""

    name = "cascade"

    def __init__(self, stages: Mapping[str, Detector], options: CascadeOptions | None = None) -> None:
        self.options = options or CascadeOptions()
        band = DecisionRule(low=self.options.low, high=self.options.high)
        self.stages = {
            name: CalibratedMethod(method, band) if name == ENCODER_STAGE else method for name, method in stages.items()
        }

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Check one sample."""
        verdicts: dict[str, Verdict] = {}
        by: str | None = None
        for name, method in self.stages.items():
            verdicts[name] = yield from method.check(sample)
            if by is None and (verdicts[name].hallucinated is not None or name == LLM_STAGE):
                by = name
            if by is not None and self.options.ask == "needed":
                break
        names = list(verdicts)
        decisive = verdicts[by or names[-1]]
        how = f"decided by {by}" if by else f"undecided, a language model (--reasoner llm) could decide; {names[-1]}"
        undecided = names[: names.index(by)] if by else []
        reasons = [f"{name} before: {verdicts[name].reason}" for name in undecided if name != RULES_STAGE]
        stages = tuple(
            CascadeStage(
                name=name, method=v.method, label=v.label, hallucinated=v.hallucinated, probability=v.probability,
                reason=v.reason, decided=name == by,
            )
            for name, v in verdicts.items()
        )  # fmt: skip
        reason = "; ".join([f"{how}: {decisive.reason}", *reasons])
        return decisive.model_copy(update={"method": self.name, "stages": stages, "reason": reason})
