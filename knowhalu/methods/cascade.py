"""A cascade: rules, then the encoder, then a language model, each for the texts that the one before leaves undecided.

The encoder decides where its P(hallucinated) is at most `low` or over `high` and its verdict is not inconclusive. The language
model decides the rest; without it, texts between the two thresholds are inconclusive.
"""

from collections.abc import Mapping, Sequence

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
        return self._concluded(verdicts, by)

    def _concluded(self, verdicts: Mapping[str, Verdict], by: str | None) -> Verdict:
        stages = tuple(_make_stage(name, verdict, decided=name == by) for name, verdict in verdicts.items())
        last = verdicts[by or stages[-1].name]
        before = [f"{s.name} before: {s.reason}" for s in stages if _is_undecided(s, stages)]
        how = f"decided by {by}" if by else f"undecided, a language model (--reasoner llm) could decide; {stages[-1].name}"
        return last.model_copy(
            update={"method": self.name, "stages": stages, "reason": "; ".join([f"{how}: {last.reason}", *before])}
        )


def _make_stage(name: str, verdict: Verdict, *, decided: bool) -> CascadeStage:
    return CascadeStage(
        name=name, method=verdict.method, label=verdict.label, hallucinated=verdict.hallucinated,
        probability=verdict.probability, reason=verdict.reason, decided=decided,
    )  # fmt: skip


def _is_undecided(stage: CascadeStage, stages: Sequence[CascadeStage]) -> bool:
    """Tell whether a stage left the decision to a later one; rules are not reported."""
    later = stages[stages.index(stage) + 1 :]
    return stage.name != RULES_STAGE and any(s.decided for s in later)
