"""From segments and findings to the verdict: which segment decides, and what a label means for each task."""

from collections.abc import Sequence

from knowhalu.methods.common.attribution import has_conflicting_quotes
from knowhalu.methods.common.combine import soft_max_probability
from knowhalu.requests import UnsupportedSpan
from knowhalu.results import Evidence, Finding, Segment, Verdict
from knowhalu.text.clauses import locate_claim
from knowhalu.text.marks import strip_marks
from knowhalu.text.probabilities import all_measured, complement
from knowhalu.text.sentences import Span, sanitize
from knowhalu.types import Extraction, HallucinationKind, InconclusiveReason, Judgment, Label, Relation, Sample, Step, Task

NO_EVIDENCE = "the sources do not mention it"
LABEL_SUPPORT = {Label.CORRECT: 1.0, Label.INCORRECT: 0.0, Label.INCONCLUSIVE: 0.5}
"""The place of a label without a probability among those that have one: it orders, and is never shown as a probability."""
UNSUPPORTED_WORDS = "the evidence does not support these words"
RELATION_BY_LABEL = {
    Label.CORRECT: Relation.ENTAILMENT, Label.INCORRECT: Relation.CONTRADICTION, Label.INCONCLUSIVE: Relation.NEUTRAL,
}  # fmt: skip
"""The relation of the sources to a text with this label."""


def resolve_inconclusive(label: Label, task: Task) -> Label:
    """Return the label of a segment: in a summary, INCONCLUSIVE counts as INCORRECT (KnowHalu, section 4.3)."""
    return Label.INCORRECT if label is Label.INCONCLUSIVE and task is Task.SUMMARY else label


def is_hallucinated(label: Label) -> bool | None:
    """Tell whether a label means a hallucination; None where it is left open."""
    return {Label.INCORRECT: True, Label.CORRECT: False, Label.INCONCLUSIVE: None}[label]


def inconclusive_judgment(task: Task, why: str) -> Judgment:
    """Make the judgment of a text without evidence: no model is asked, as it would answer from memory."""
    label = resolve_inconclusive(Label.INCONCLUSIVE, task)
    counts = label is Label.INCORRECT
    return Judgment(
        label=label, confidence=0.0, p_supported=0.0 if counts else 0.5, rationale=why, confidence_source="none",
        inconclusive_reason=InconclusiveReason.NOTHING_RETRIEVED, relation=Relation.NEUTRAL if counts else None,
    )  # fmt: skip


def judged_segment(
    span: Span, base: Judgment, task: Task, findings: tuple[Finding, ...] = (), evidence: tuple[Evidence, ...] = ()
) -> Segment:
    """Make the segment of a span from its only judgment."""
    label = resolve_inconclusive(base.label, task)
    return Segment(
        **span._asdict(), label=label, inconclusive_reason=inconclusive_reason(label, base),
        relation=error_relation(label, base, findings), probability=complement(base.p_supported), base=base, findings=findings,
        evidence=evidence,
    )  # fmt: skip


def nothing_to_check_verdict(sample: Sample, method: str, why: str = InconclusiveReason.NOTHING_TO_CHECK.description) -> Verdict:
    """Make the verdict on a text that claims nothing: INCONCLUSIVE whatever its task, as no source can contradict it."""
    return Verdict(
        id=sample.id, task=sample.task, method=method, label=Label.INCONCLUSIVE, hallucinated=None, kind=None, probability=0.5,
        inconclusive_reason=InconclusiveReason.NOTHING_TO_CHECK, reason=why,
    )  # fmt: skip


def missing_evidence_reason(steps: Sequence[Step]) -> InconclusiveReason:
    """Return why no step has any knowledge: nothing was retrieved, or nothing retrieved is on the topic."""
    return InconclusiveReason.OFF_TOPIC if any(step.passages for step in steps) else InconclusiveReason.NOTHING_RETRIEVED


def inconclusive_reason(label: Label, base: Judgment, supplement: Judgment | None = None) -> InconclusiveReason | None:
    """Return why a segment is INCONCLUSIVE; None for another label.

    Of two reasons, that of the judgment that got further counts. Quotes on both sides are a reason where a judge had none but
    that it was not sure.
    """
    if label is not Label.INCONCLUSIVE:
        return None
    if supplement is not None and supplement.label is not base.label:
        return InconclusiveReason.FORMS_DISAGREE
    found = {j.inconclusive_reason for j in (base, supplement) if j is not None}
    known = next(
        (r for r in (InconclusiveReason.UNSURE, InconclusiveReason.OFF_TOPIC, *InconclusiveReason) if r in found),
        InconclusiveReason.UNSURE,
    )
    unsure = known is InconclusiveReason.UNSURE and has_conflicting_quotes(j for j in (base, supplement) if j is not None)
    return InconclusiveReason.CONFLICTING if unsure else known


def undecided_reason(found: Sequence[Segment]) -> InconclusiveReason:
    """Return why a probability is between two thresholds, by the segment that decides."""
    if not found:
        return InconclusiveReason.UNSURE
    worst = deciding_segment(found)
    return inconclusive_reason(Label.INCONCLUSIVE, worst.base, worst.supplement) or InconclusiveReason.UNSURE


def error_relation(
    label: Label, decisive: Judgment, findings: Sequence[Finding] = (), evidence: Sequence[Evidence] = ()
) -> Relation | None:
    """Return whether the sources contradict a segment that is INCORRECT, or are silent; None where this is unknown.

    The findings on its parts count first, then the judgment of the whole, then the quotes.
    """
    if label is not Label.INCORRECT or decisive.kind is HallucinationKind.OFF_TARGET:
        return None
    relations = {f.relation for f in findings if f.label is Label.INCORRECT} & {Relation.CONTRADICTION, Relation.NEUTRAL}
    if relations:
        return Relation.CONTRADICTION if Relation.CONTRADICTION in relations else Relation.NEUTRAL
    if decisive.relation is not None or decisive.label is Label.INCONCLUSIVE or decisive.inconclusive_reason is not None:
        return decisive.relation or Relation.NEUTRAL
    return Relation.CONTRADICTION if any(e.relation == "contradicts" for e in evidence) else None


def span_finding(response: str, offsets: Sequence[int], place: UnsupportedSpan) -> Finding:
    """Make the finding of unsupported words of a claim; `offsets` are the places of its characters in the response."""
    start, end = offsets[place.start], offsets[place.end - 1] + 1
    return Finding(
        unit="words", start=start, end=end, text=response[start:end], label=Label.INCORRECT,
        p_supported=1 - place.probability, reason=UNSUPPORTED_WORDS,
    )  # fmt: skip


def deciding_segment(found: Sequence[Segment]) -> Segment:
    """Return the segment that decides a text: an INCORRECT one, else an INCONCLUSIVE one, of these the least supported."""

    def order(segment: Segment) -> tuple[bool, bool, float]:
        p = 1 - LABEL_SUPPORT[segment.label] if segment.probability is None else segment.probability
        return segment.label is Label.INCORRECT, segment.label is Label.INCONCLUSIVE, p

    return max(found, key=order)


def support_order(label: Label, p_supported: float | None) -> float:
    """Return P(supported), or the place of the label where it was not measured, to order by."""
    return LABEL_SUPPORT[label] if p_supported is None else p_supported


def text_probability(found: Sequence[Segment]) -> float | None:
    """Return P(hallucinated) of a text from all its segments; None where that of one was not measured."""
    every, deciding = all_measured(s.probability for s in found), deciding_segment(found).probability
    return None if every is None or deciding is None else soft_max_probability(deciding, every)


def combine_segments(
    sample: Sample,
    found: Sequence[Segment],
    method: str,
    *,
    extraction: Extraction | None = None,
    kind: HallucinationKind | None = HallucinationKind.FACTUAL,
    probability: float | None = None,
) -> Verdict:
    """Put segments together: one INCORRECT makes the text hallucinated, else one INCONCLUSIVE makes it inconclusive.

    `kind` is used where the deciding judgment names no kind; a method that cannot tell kinds gives None. `probability` is
    P(hallucinated) of the text, by default that of the deciding segment; it is None where that of a segment was not measured.
    """
    worst = deciding_segment(found)
    decisive = worst.base if worst.supplement is None or worst.base.label is worst.label else worst.supplement
    unmeasured = all_measured(s.probability for s in found) is None
    return Verdict(
        id=sample.id, task=sample.task, method=method, label=worst.label, hallucinated=is_hallucinated(worst.label),
        inconclusive_reason=worst.inconclusive_reason, relation=worst.relation,
        kind=(decisive.kind or kind) if worst.label is Label.INCORRECT else None,
        probability=None if unmeasured else worst.probability if probability is None else probability,
        reason=decisive.rationale, extraction=extraction, segments=tuple(found),
    )  # fmt: skip


MAX_QUOTED_SEGMENT = 80
"""Characters of a segment that the reason of its text quotes."""


def reason_by_parts(found: Sequence[Segment], reason: str) -> str:
    """Return the reason of a text of several parts: which part decides, how many are like it, and `reason`, why it does."""
    if len(found) == 1:
        return reason
    worst = deciding_segment(found)
    line = " ".join(sanitize(strip_marks(worst.text, 0, len(worst.text))[0]).split())
    quote = f"“{line if len(line) <= MAX_QUOTED_SEGMENT else f'{line[: MAX_QUOTED_SEGMENT - 1]}…'}”"
    if worst.label is Label.CORRECT:
        return f"all {len(found)} parts are supported. The least certain is {quote}: {reason}"
    count = sum(s.label is worst.label for s in found)
    what = "not supported" if worst.label is Label.INCORRECT else "left open"
    return f"{count} of {len(found)} parts {'is' if count == 1 else 'are'} {what}. {quote}: {reason}"


def claim_finding(claim: str, judgment: Judgment, piece: Span) -> Finding:
    """Make the finding of a claim that was judged alone."""
    at = locate_claim(claim, piece)
    return Finding(
        unit="claim", start=at.start, end=at.end, text=claim, label=judgment.label,
        relation=judgment.relation or RELATION_BY_LABEL[judgment.label], p_supported=judgment.p_supported,
        reason=judgment.rationale,
    )  # fmt: skip
