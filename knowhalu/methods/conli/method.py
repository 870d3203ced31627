"""CoNLI: each sentence against the sources as natural language inference, then each entity of the sentences that pass.

The detection agent of the CoNLI paper (section 3.1, algorithm 1), independent of the reasoner. Contradicted and
neutral sentences both count as hallucinated.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from knowhalu.methods.common.attribution import evidence_for
from knowhalu.methods.common.sources import given_or_retrieved_passages
from knowhalu.methods.common.verdict import (
    NO_EVIDENCE,
    RELATION_BY_LABEL,
    error_relation,
    inconclusive_judgment,
    is_hallucinated,
    judged_segment,
)
from knowhalu.methods.conli.hypotheses import HypothesisSelection, select_hypotheses
from knowhalu.methods.options import ConliOptions
from knowhalu.requests import Conversation
from knowhalu.results import Evidence, Finding, Segment, SkippedSpan, Verdict
from knowhalu.text.sentences import Span
from knowhalu.types import Entity, HallucinationKind, InconclusiveReason, Judgment, Label, Passage, Sample

NO_CLAIM = "nothing to check: no sentence of the response claims anything"
NO_ENTITY = "no entity in it to judge"


class EntityHypothesis(NamedTuple):
    """A sentence of the response that the sources should entail; with a `focus`, only that entity is in question."""

    text: str
    focus: Entity | None = None


class ConliReasoner(Protocol):
    """The steps that a reasoner contributes to CoNLI; each is a conversation."""

    def detector(self, name: str) -> Callable[[str], Sequence[Entity]]:
        """Return the detector of entities."""

    def infer(
        self, sample: Sample, hypotheses: Sequence[EntityHypothesis], passages: Sequence[Passage], of: int
    ) -> Conversation[Sequence[Judgment]]:
        """Judge each hypothesis alone by the passages: CORRECT (entailment), INCORRECT (contradiction), INCONCLUSIVE (neutral).

        All of them have a focus, or none has. Their sentences are of a response with `of` hypotheses in all.
        """


class CoNLI:
    """Check the sentences of a response, and the entities of those that pass, by a chain of inferences."""

    name = "conli"

    def __init__(self, reasoner: ConliReasoner, options: ConliOptions | None = None) -> None:
        """Raise SettingsError, ModelError or MissingExtra where the entity detector of the options cannot be had."""
        self.reasoner, self.options = reasoner, options or ConliOptions()
        self.detect = (lambda text: ()) if self.options.levels == "sentence" else reasoner.detector(self.options.entities)

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Check one sample."""
        options = self.options
        chosen = select_hypotheses(sample.response, answers=bool(sample.question), keep_all=not options.select)
        unchecked = _skipped_spans(chosen)
        spans = list(chosen.hypotheses)
        if options.levels == "entity":
            bare = [s for s in spans if not self.detect(s.text)]
            unchecked += [SkippedSpan(**s._asdict(), reason=NO_ENTITY) for s in bare]
            spans = [s for s in spans if s not in bare]
        found: list[Segment] = []
        size = options.batch_size if options.batched else 1
        for i in range(0, len(spans), size):
            found += yield from self._group(sample, spans[i : i + size], len(spans))
        return _verdict(sample, found, sorted(unchecked, key=lambda u: u.start))

    def _group(self, sample: Sample, group: Sequence[Span], of: int) -> Conversation[list[Segment]]:
        """Judge several sentences by the same passages: as wholes, then by the entities of those that pass."""
        asked = [f"{sample.question} {s.text}" if sample.question else s.text for s in group]
        words, k = self.options.source_words, self.options.passages
        passages = yield from given_or_retrieved_passages(sample, asked, words=words, k=k)
        if not any(p.text.strip() for p in passages):
            no_evidence = inconclusive_judgment(sample.task, NO_EVIDENCE)
            return [judged_segment(s, no_evidence, sample.task) for s in group]
        bases: Sequence[Judgment | None] = [None] * len(group)
        if self.options.levels != "entity":
            bases = yield from self.reasoner.infer(sample, [EntityHypothesis(s.text) for s in group], passages, of)
        tagged = [
            (span, EntityHypothesis(span.text, entity))
            for span, base in zip(group, bases, strict=True) if base is None or base.label is Label.CORRECT
            for entity in self.detect(span.text)
        ]  # fmt: skip
        judgments: Sequence[Judgment] = ()
        if tagged:
            judgments = yield from self.reasoner.infer(sample, [h for _, h in tagged], passages, of)
        judged = [(s, h.focus, j) for (s, h), j in zip(tagged, judgments, strict=True) if h.focus is not None]
        return [_segment(s, b, [(e, j) for at, e, j in judged if at is s]) for s, b in zip(group, bases, strict=True)]


def _skipped_spans(chosen: HypothesisSelection) -> list[SkippedSpan]:
    return [SkippedSpan(**d.span._asdict(), reason=d.reason) for d in chosen.dropped]


def _segment(span: Span, base: Judgment | None, judged: Sequence[tuple[Entity, Judgment]]) -> Segment:
    """Merge the judgments of a sentence: it passes only if the whole and all of its entities do."""
    findings = tuple(_finding(span, entity, judgment) for entity, judgment in judged)
    whole = base or min((j for _, j in judged), key=lambda j: j.p_supported)
    passes = all(j.label is Label.CORRECT for j in (whole, *(j for _, j in judged)))
    label = Label.CORRECT if passes else Label.INCORRECT
    return Segment(
        **span._asdict(), label=label, relation=error_relation(label, whole, findings),
        probability=1 - min(whole.p_supported, *(f.p_supported for f in findings), 1.0), base=whole, findings=findings,
        evidence=_evidence(span, whole, judged, passes=passes),
    )  # fmt: skip


def _finding(span: Span, entity: Entity, judgment: Judgment) -> Finding:
    return Finding(
        unit="entity", start=span.start + entity.start, end=span.start + entity.end, text=entity.text, type=entity.type,
        label=Label.CORRECT if judgment.label is Label.CORRECT else Label.INCORRECT, relation=RELATION_BY_LABEL[judgment.label],
        p_supported=judgment.p_supported, reason=judgment.rationale,
    )  # fmt: skip


def _evidence(span: Span, base: Judgment, judged: Sequence[tuple[Entity, Judgment]], *, passes: bool) -> tuple[Evidence, ...]:
    """Pair the entities that failed, or else the sentence, with quotes that contradict."""
    failed = [(e, j) for e, j in judged if j.label is not Label.CORRECT]
    if passes or not failed:
        return evidence_for(span, base)
    return tuple(
        pair for e, j in failed for pair in evidence_for(Span(span.start + e.start, span.start + e.end, e.text), j, limit=1)
    )


def _verdict(sample: Sample, found: Sequence[Segment], unchecked: Sequence[SkippedSpan]) -> Verdict:
    """Combine sentences: one that fails makes the text hallucinated, else one that is inconclusive makes it inconclusive."""
    label, probability, reason = Label.INCONCLUSIVE, 0.5, NO_CLAIM
    why, relation = None if found else InconclusiveReason.NOTHING_TO_CHECK, None
    if found:
        worst = max(found, key=lambda s: (s.label is Label.INCORRECT, s.label is Label.INCONCLUSIVE, s.probability))
        label, probability, reason = worst.label, max(s.probability for s in found), _reason(worst)
        why, relation = worst.inconclusive_reason, worst.relation
    return Verdict(
        id=sample.id,
        task=sample.task,
        method=CoNLI.name,
        label=label,
        hallucinated=is_hallucinated(label),
        inconclusive_reason=why,
        relation=relation,
        kind=HallucinationKind.FACTUAL if label is Label.INCORRECT else None,
        probability=probability,
        reason=reason,
        segments=tuple(found),
        skipped=tuple(unchecked),
    )


def _reason(worst: Segment) -> str:
    """Return the reason of the least supported part of a sentence, of those that failed where any did."""
    units = [(worst.base.label is not Label.CORRECT, worst.base.p_supported, worst.base.rationale)]
    units += [(f.label is not Label.CORRECT, f.p_supported, f"“{f.text}”: {f.reason}") for f in worst.findings]
    return min(units, key=lambda u: (not u[0], u[1]))[2]
