"""KnowHalu: off-target check, step-wise queries, retrieval, knowledge in two forms, judgment and aggregation.

The algorithm of the KnowHalu paper (sections 3.1, 3.2, 4.3 and Algorithm 1), independent of the reasoner.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from knowhalu.errors import StageError
from knowhalu.methods.common.attribution import evidence_for
from knowhalu.methods.common.combine import Thresholds, aggregate_judgments, needs_second_opinion
from knowhalu.methods.common.evidence import META_CODE, META_CONTEXT
from knowhalu.methods.common.sources import given_passages, retrieve_passages, source_sentences
from knowhalu.methods.common.verdict import (
    combine_segments,
    error_relation,
    inconclusive_reason,
    nothing_to_check_verdict,
    reason_by_parts,
    resolve_inconclusive,
    span_finding,
    text_probability,
)
from knowhalu.methods.knowhalu.options import KnowHaluOptions
from knowhalu.methods.knowhalu.reasons import quoted
from knowhalu.requests import Conversation, UnsupportedSpan
from knowhalu.results import Segment, SkippedSpan, Verdict
from knowhalu.text.blocks import UnitKind
from knowhalu.text.claims import Claim, NoClaim, declines_as_well, find_claims
from knowhalu.text.clauses import clause_segments
from knowhalu.text.courtesies import is_assent
from knowhalu.text.probabilities import complement
from knowhalu.text.sentences import Span, word_count
from knowhalu.text.withheld import find_withheld_answer
from knowhalu.types import (
    META_ASKED,
    META_BEFORE,
    META_SINGLE_CLAIM,
    Extraction,
    HallucinationKind,
    InconclusiveReason,
    Judgment,
    Knowledge,
    KnowledgeForm,
    Label,
    Passage,
    Query,
    Sample,
    Step,
)


class KnowHaluReasoner(Protocol):
    """The steps that a reasoner contributes to KnowHalu; each is a conversation.

    `part` is a sample whose response is the segment in question.
    """

    def thresholds(self, sample: Sample) -> Thresholds:
        """Return the calibrated delta1 and delta2."""

    def extract(self, question: str, answer: str) -> Conversation[Extraction]:
        """Take from the answer what the question asks for."""

    def next_query(self, part: Sample, steps: Sequence[Step], form: KnowledgeForm) -> Conversation[tuple[str, Query] | None]:
        """Return the next thought and query, or None to stop."""

    def distill(
        self, part: Sample, query: Query, passages: Sequence[Passage], steps: Sequence[Step], form: KnowledgeForm
    ) -> Conversation[Knowledge]:
        """Distill the passages into knowledge about a query, in one form."""

    def judge(self, part: Sample, steps: Sequence[Step], form: KnowledgeForm) -> Conversation[Judgment]:
        """Judge the segment by the knowledge of all steps."""

    def unsupported_spans(self, part: Sample, judgment: Judgment) -> Conversation[tuple[UnsupportedSpan, ...]]:
        """Return the words of a segment judged INCORRECT that the knowledge does not support; empty where this is unknown."""


OTHER_FORM_FAILED_NOTE = "(the other form of knowledge gave no judgment: {})"
FALSE_REFUSAL = 0.8
"""P(hallucinated) of a refusal about sources that seem to have the answer."""
REFUSAL_NOTE = "the answer declines to answer"
MIN_OFF_TARGET_CONFIDENCE = 0.5
"""Probability from which an answer counts as off-target, or as a refusal; below it, its facts are checked."""
UNSURE_EXTRACTION_NOTE = "(this is not certain, so the facts were checked)"
MAX_FRAGMENT_WORDS = 4
"""A part of a longer answer of at most so many words is read with the question, like an answer of one part."""


class _Part(NamedTuple):
    """A part of a response: its place, the sample that asks about it alone, and the place of every character of its claim."""

    span: Span
    sample: Sample
    offsets: tuple[int, ...]


class KnowHalu:
    """Check answers, summaries, RAG responses and claims by the KnowHalu method."""

    name = "knowhalu"

    def __init__(self, reasoner: KnowHaluReasoner, options: KnowHaluOptions | None = None) -> None:
        self.reasoner, self.options = reasoner, options or KnowHaluOptions()

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Check one sample."""
        parts, skipped = self._split(sample)
        if not parts:
            return _judge_refusal(sample, _no_claims(sample, skipped, self.name))
        extraction = None
        if sample.question and self.options.off_target and len(parts) == 1 and not _declines_in_part(skipped, parts[0].span.text):
            extraction = yield from self.reasoner.extract(sample.question, _without_courtesies(sample.response, skipped))
            if extraction.refusal or extraction.is_none:
                if extraction.confidence is None or extraction.confidence >= MIN_OFF_TARGET_CONFIDENCE:
                    verdict = _without_facts(sample, extraction, skipped, self.name)
                    return _judge_refusal(sample, verdict) if extraction.refusal else verdict
                extraction = extraction.model_copy(update={"reason": f"{extraction.reason} {UNSURE_EXTRACTION_NOTE}"})
        segments = []
        for part in parts:
            segments.append((yield from self._segment(sample, part)))
        verdict = combine_segments(sample, segments, self.name, extraction=extraction, probability=text_probability(segments))
        return verdict.model_copy(update={"skipped": skipped, "reason": reason_by_parts(segments, verdict.reason)})

    def _split(self, sample: Sample) -> tuple[list["_Part"], tuple[SkippedSpan, ...]]:
        """Split a response into its claims, or into segments of words; what claims nothing is skipped, with the reason."""
        text = sample.response
        if self.options.segmentation == "words":
            spans = clause_segments(text, self.options.segment_words) if any(c.isalnum() for c in text) else []
            return [_Part(s, _piece(sample, s), tuple(range(s.start, s.end))) for s in spans], ()
        claims = find_claims(text)
        checked = [c for c in claims if c.no_claim is None]
        skipped = tuple(
            SkippedSpan(start=c.start, end=c.end, text=text[c.start : c.end], reason=c.no_claim.value)
            for c in claims
            if c.no_claim is not None and c.no_claim is not NoClaim.EMPTY
        )
        parts = []
        for c in checked:
            is_code = c.kind is UnitKind.CODE
            # beside half a refusal, the other half need not answer
            whole = len(checked) == 1 and not _declines_in_part(skipped, c.text)
            keeps = whole or (word_count(c.text) <= MAX_FRAGMENT_WORDS and not is_code)
            marks = {META_CODE: is_code, META_SINGLE_CLAIM: len(checked) == 1}
            meta: dict[str, Any] = {name: True for name, holds in marks.items() if holds}
            if c.context and not (keeps and sample.question):
                meta[META_CONTEXT] = c.context
            if not keeps and sample.question:
                meta[META_ASKED] = sample.question
            if before := _text_before(text, c, claims):
                meta[META_BEFORE] = before
            update = {"response": c.text, "question": sample.question if keeps else None, "meta": {**sample.meta, **meta}}
            parts.append(_Part(Span(c.start, c.end, text[c.start : c.end]), sample.model_copy(update=update), c.offsets))
        return parts, skipped

    def _segment(self, sample: Sample, piece: "_Part") -> Conversation[Segment]:
        """Judge one segment by the base form, and by the other where the first is not confident (Algorithm 1)."""
        span, part = piece.span, piece.sample
        base_form, options = self.options.base_form, self.options
        other_form = KnowledgeForm.STRUCTURED if base_form is KnowledgeForm.UNSTRUCTURED else KnowledgeForm.UNSTRUCTURED
        base = yield from self._judge_by(base_form, part)
        calibrated = self.reasoner.thresholds(part)
        limits = Thresholds(
            calibrated.delta1 if options.delta1 is None else options.delta1,
            calibrated.delta2 if options.delta2 is None else options.delta2,
        )
        supplement, final = None, base
        found = not base.steps or any(step.passages for step in base.steps)  # else the other form would only ask it all again
        needed = options.second_opinion == "needed" and found and needs_second_opinion(base, limits)
        if options.second_opinion == "always" or needed:
            try:
                supplement = yield from self._judge_by(other_form, part)
                final = aggregate_judgments(base, supplement, limits)
            except StageError as error:
                if error.retryable and base.label is Label.INCONCLUSIVE:
                    raise  # the other form would have decided, and may when it is asked again
                base = final = base.model_copy(update={"rationale": f"{base.rationale} {OTHER_FORM_FAILED_NOTE.format(error)}"})
        doubted = (yield from self.reasoner.unsupported_spans(part, final)) if final.label is Label.INCORRECT else ()
        unreadable = final.inconclusive_reason is InconclusiveReason.LANGUAGE
        label = final.label if unreadable else resolve_inconclusive(final.label, sample.task)
        evidence = evidence_for(span, base if base.label is final.label else final)  # the one whose reason is shown
        return Segment(
            start=span.start,
            end=span.end,
            text=span.text,
            label=label,
            probability=complement(final.p_supported),
            inconclusive_reason=inconclusive_reason(label, base, supplement),
            relation=error_relation(label, final, evidence=evidence),
            base=base,
            supplement=supplement,
            findings=tuple(span_finding(sample.response, piece.offsets, place) for place in doubted),
            evidence=evidence,
        )

    def _judge_by(self, form: KnowledgeForm, part: Sample) -> Conversation[Judgment]:
        """Query, retrieve and distill step by step, then judge by one form of knowledge."""
        steps: list[Step] = []
        while len(steps) < self.options.max_steps:
            hop = yield from self.reasoner.next_query(part, steps, form)
            if hop is None:
                break
            thought, query = hop
            passages = yield from self._retrieve(part, query)
            knowledge = yield from self.reasoner.distill(part, query, passages, steps, form)
            steps.append(Step(thought=thought, query=query, passages=passages, knowledge=knowledge))
        return (yield from self.reasoner.judge(part, steps, form))

    def _retrieve(self, part: Sample, query: Query) -> Conversation[tuple[Passage, ...]]:
        """Fetch the passages for both formulations, merged without duplicates; given knowledge is read as it is."""
        asked = {"specific": (query.specific,), "general": (query.general,), "combined": (query.specific, query.general)}
        k = self.options.passages or (3 if part.documents else 2)
        queries = tuple(q for q in asked[self.options.formulation] if q) or (query.specific or query.general,)
        return (yield from retrieve_passages(part, queries, k))


def _text_before(text: str, claim: Claim, claims: Sequence[Claim]) -> str:
    """Return a text up to a claim; "" where only courtesies come before it."""
    told = [c.end for c in claims if c.end <= claim.start and c.no_claim not in (NoClaim.COURTESY, NoClaim.EMPTY)]
    return text[: max(told, default=0)].strip()


def _piece(sample: Sample, span: Span) -> Sample:
    """Return the sample of a segment, with the text before it."""
    before = sample.response[: span.start].strip()
    meta = {**sample.meta, META_BEFORE: before} if before else sample.meta
    return sample.model_copy(update={"response": span.text, "meta": meta})


def _declines(skipped: Sequence[SkippedSpan]) -> bool:
    """Tell whether a part of the response declines to answer."""
    return any(s.reason == NoClaim.REFUSAL for s in skipped)


def _declines_in_part(skipped: Sequence[SkippedSpan], rest: str) -> bool:
    """Tell whether a part of the response declines to answer, and the rest says something."""
    return _declines(skipped) and not declines_as_well(rest)


def _without_courtesies(text: str, skipped: Sequence[SkippedSpan]) -> str:
    """Return a response without the courtesies that say neither yes nor no."""
    polite = [s for s in reversed(skipped) if s.reason == NoClaim.COURTESY and not is_assent(s.text)]
    for span in polite:
        text = f"{text[: span.start]} {text[span.end :]}"
    return text.strip() if polite else text


def _no_claims(sample: Sample, skipped: tuple[SkippedSpan, ...], method: str) -> Verdict:
    """Decide a text that claims nothing: a refusal is no hallucination, anything else leaves nothing to check."""
    verdict = nothing_to_check_verdict(sample, method)
    if _declines(skipped):
        told = {"label": Label.CORRECT, "hallucinated": False, "probability": 0.05, "reason": REFUSAL_NOTE}
        verdict = verdict.model_copy(update={**told, "inconclusive_reason": None})
    return verdict.model_copy(update={"skipped": skipped})


def _judge_refusal(sample: Sample, verdict: Verdict) -> Verdict:
    """Return the verdict on a refusal, which is false if it denies that the given sources have what they have."""
    if verdict.hallucinated is not False or not sample.question:
        return verdict
    read = [s.view for s in source_sentences(given_passages(sample))]
    answer = find_withheld_answer(sample.question, sample.response, read)
    if answer is None:
        return verdict
    told = f"the sources give what the answer says they do not: {quoted(answer)}"
    wrong = {"label": Label.INCORRECT, "hallucinated": True, "kind": HallucinationKind.FACTUAL, "probability": FALSE_REFUSAL}
    return verdict.model_copy(update={**wrong, "reason": told})


def _without_facts(sample: Sample, extraction: Extraction, skipped: tuple[SkippedSpan, ...], method: str) -> Verdict:
    """Decide a refusal (no hallucination) or an off-target answer; facts need no checking then (section 3.1)."""
    off = extraction.is_none
    return Verdict(
        id=sample.id,
        task=sample.task,
        method=method,
        label=Label.INCORRECT if off else Label.CORRECT,
        hallucinated=off,
        kind=HallucinationKind.OFF_TARGET if off else None,
        probability=extraction.confidence if off else complement(extraction.confidence),
        reason=extraction.reason,
        extraction=extraction,
        skipped=skipped,
    )
