"""How the encoder tells whether passages bear out a statement: read, gathered and judged in one step."""

from collections.abc import Sequence
from pathlib import Path

from knowhalu.methods.knowhalu.encoder import KnowHaluEncoder, unsupported_relation
from knowhalu.requests import Conversation
from knowhalu.types import Judgment, KnowledgeForm, Passage, Query, Relation, Sample, Step


class EntailmentJudge:
    """Judge statements by passages with the small verifier and its calibrated model."""

    def __init__(self, folder: Path) -> None:
        self.reasoner = KnowHaluEncoder(folder)

    def judge(self, part: Sample, passages: Sequence[Passage], of: int = 1) -> Conversation[Judgment]:
        """Judge the response of `part`, one of `of` statements of its text, by passages; its step holds their quotes."""
        query = Query(specific=part.response, general=part.question or "")
        form = KnowledgeForm.UNSTRUCTURED
        knowledge = yield from self.reasoner.distill(part, query, passages, (), form)
        step = Step(thought="", query=query, passages=tuple(passages), knowledge=knowledge)
        return (yield from self.reasoner.judge(part, (step,), form, of))


def inference_relation(judgment: Judgment) -> Relation:
    """Read a judgment as natural language inference: what is not entailed is contradicted, or else neutral."""
    if judgment.p_supported >= 0.5:
        return Relation.ENTAILMENT
    return unsupported_relation(judgment.features)
