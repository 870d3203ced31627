"""From judged claims to the verdict of Factored Verification: findings, segments, and the combined probability against theta."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from knowhalu.methods.common.attribution import evidence_for, keep_quoted_passages
from knowhalu.methods.common.combine import RULE_NAMES, CombinationCalibration, combine_probabilities, hallucination_probability
from knowhalu.methods.common.verdict import NO_EVIDENCE, RELATION_BY_LABEL, error_relation
from knowhalu.methods.options import FactoredOptions
from knowhalu.results import Finding, Segment, Verdict
from knowhalu.text.sentences import Span
from knowhalu.types import Claim, HallucinationKind, InconclusiveReason, Judgment, Label, Sample

SUPPORT_THRESHOLD = 0.5
"""P(supported) from which a single claim is labelled supported."""
NO_PROBABILITIES_NOTE = "the model gave no probabilities, so each claim counts as 0 or 1 (llm.votes draws several judgments)"
LABEL_ORDER = {Label.INCORRECT: 0, Label.INCONCLUSIVE: 1, Label.CORRECT: 2}


class ClaimJudgment(NamedTuple):
    """A claim and its judgment."""

    claim: Claim
    judgment: Judgment

    @property
    def is_open(self) -> bool:
        """Tell whether there was no evidence for it."""
        return self.judgment.label is Label.INCONCLUSIVE and self.judgment.rationale == NO_EVIDENCE


class SentenceJudgment(NamedTuple):
    """A sentence of the response, its judged claims, and findings on its citations."""

    span: Span
    judged: tuple[ClaimJudgment, ...]
    citations: tuple[Finding, ...] = ()

    @property
    def probabilities(self) -> list[float]:
        """Return P(supported) of the claims with evidence, and of the citations that fit no source."""
        claims = [j.judgment.p_supported for j in self.judged if not j.is_open]
        return claims + [c.p_supported for c in self.citations if c.label is Label.INCORRECT]

    @property
    def why_open(self) -> list[InconclusiveReason]:
        """Return why claims and citations are inconclusive; a citation that fits no source counts as not retrieved."""
        claims = [j.judgment.inconclusive_reason or InconclusiveReason.NOTHING_RETRIEVED for j in self.judged if j.is_open]
        return claims + [InconclusiveReason.NOTHING_RETRIEVED for c in self.citations if c.label is Label.INCONCLUSIVE]


def combine_claims(
    sample: Sample,
    parts: Sequence[SentenceJudgment],
    standard: CombinationCalibration,
    options: FactoredOptions,
    notes: Sequence[str],
    method: str,
) -> Verdict:
    """Combine all claims of a text; under theta it is hallucinated, else one inconclusive claim makes it inconclusive."""
    common: dict[str, Any] = {"id": sample.id, "task": sample.task, "method": method}
    counted = [p for part in parts for p in part.probabilities]
    theta = standard.thetas[options.rule] if options.theta is None else options.theta
    features: dict[str, float] = {"claims": float(len(counted)), "theta": theta}
    if counted:
        features |= {str(k): v for k, v in combine_probabilities(counted, standard.typical, standard.reference).items()}
    segments = tuple(_segment(sample.response, part, features) for part in parts)
    why = next(iter(why for part in parts for why in part.why_open), InconclusiveReason.NOTHING_TO_CHECK)
    if not counted:
        reason = "; ".join(
            ["nothing could be checked" if parts else "there is nothing to check", *_inconclusive_note(segments), *notes]
        )
        return Verdict(**common, label=Label.INCONCLUSIVE, hallucinated=None, inconclusive_reason=why, kind=None, probability=0.5,
                       reason=reason, segments=segments)  # fmt: skip
    value = features[options.rule]
    hallucinated, left, worst = value < theta, _inconclusive_note(segments), _least_supported(segments)
    how = worst.relation if worst.label is Label.INCORRECT else None
    label = Label.INCORRECT if hallucinated else Label.INCONCLUSIVE if left else Label.CORRECT
    return Verdict(
        **common,
        label=label,
        hallucinated=None if label is Label.INCONCLUSIVE else hallucinated,
        inconclusive_reason=why if label is Label.INCONCLUSIVE else None,
        relation=how if hallucinated else None,
        kind=HallucinationKind.FACTUAL if hallucinated else None,
        probability=0.5 if label is Label.INCONCLUSIVE else hallucination_probability(value, theta),
        reason="; ".join(
            [
                _probability_reason(value, theta, parts, options),
                *_least_supported_note(worst),
                *left,
                *_no_probabilities_note(parts),
                *notes,
            ]
        ),
        segments=segments,
    )


def _probability_reason(value: float, theta: float, parts: Sequence[SentenceJudgment], options: FactoredOptions) -> str:
    made_up = sum(c.label is Label.INCORRECT for p in parts for c in p.citations)
    claims = sum(len(p.probabilities) for p in parts) - made_up
    over = [f"{n} {what}{'s' * (n > 1)}" for n, what in ((claims, "claim"), (made_up, "unmatched citation")) if n]
    many = f"{RULE_NAMES[options.rule]} over {' and '.join(over)}" if claims + made_up > 1 else f"that of {over[0]}"
    return f"P(supported) = {value:.3g}, {many}, is {'under' if value < theta else 'not under'} theta {theta:.3g}"


def _least_supported(segments: Iterable[Segment]) -> Finding:
    """Return the least supported finding."""
    found = [f for s in segments for f in s.findings if f.label is not Label.INCONCLUSIVE]
    return min(found, key=lambda f: f.p_supported)


def _least_supported_note(worst: Finding) -> list[str]:
    return [f"least supported ({worst.p_supported:.2f}): “{worst.text}” ({worst.reason})"]


def _inconclusive_note(segments: Iterable[Segment]) -> list[str]:
    found = [f for s in segments for f in s.findings if f.label is Label.INCONCLUSIVE]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return [f"left open: “{found[0].text}” ({found[0].reason}){more}"] if found else []


def _no_probabilities_note(parts: Iterable[SentenceJudgment]) -> list[str]:
    unmeasured = any(
        j.judgment.confidence_source == "none" and j.judgment.rationale != NO_EVIDENCE for p in parts for j in p.judged
    )
    return [NO_PROBABILITIES_NOTE] if unmeasured else []


def _segment(response: str, part: SentenceJudgment, features: dict[str, float]) -> Segment:
    """Make a segment of a sentence: it gets the worst label of its findings. Its features are those of the text."""
    span = part.span
    findings = (*map(_finding, part.judged), *part.citations)
    worst = min(findings, key=lambda f: (LABEL_ORDER[f.label], f.p_supported))
    supported = min([*part.probabilities, *([0.5] if worst.label is Label.INCONCLUSIVE else [])], default=worst.p_supported)
    sure = {Label.CORRECT: supported, Label.INCORRECT: 1 - supported, Label.INCONCLUSIVE: 0.0}[worst.label]
    judgments = [keep_quoted_passages(j.judgment) for j in part.judged]
    how = {j.confidence_source for j in judgments} | ({"none"} if worst.label is Label.INCONCLUSIVE else set())
    base = Judgment(
        label=worst.label, confidence=sure, p_supported=supported, rationale=f"“{worst.text}”: {worst.reason}", features=features,
        inconclusive_reason=part.why_open[0] if worst.label is Label.INCONCLUSIVE else None,
        relation=worst.relation if worst.label is Label.INCORRECT else None,
        confidence_source="none" if "none" in how else "votes" if "votes" in how else "probability",
        steps=tuple(step for j in judgments for step in j.steps),
    )  # fmt: skip
    pairs = [
        pair for j, judgment in zip(part.judged, judgments, strict=True)
        for pair in evidence_for(Span(j.claim.start, j.claim.end, response[j.claim.start : j.claim.end]), judgment)
    ]  # fmt: skip
    return Segment(
        start=span.start, end=span.end, text=span.text, label=worst.label, inconclusive_reason=base.inconclusive_reason,
        relation=base.relation, probability=1 - supported, base=base, findings=findings, evidence=tuple(dict.fromkeys(pairs)),
    )  # fmt: skip


def _finding(judged: ClaimJudgment) -> Finding:
    claim, judgment = judged
    label = Label.CORRECT if judgment.p_supported >= SUPPORT_THRESHOLD else Label.INCORRECT
    label = Label.INCONCLUSIVE if judged.is_open else label
    relation = error_relation(label, judgment) if label is Label.INCORRECT else RELATION_BY_LABEL[label]
    return Finding(
        unit="claim", start=claim.start, end=claim.end, text=claim.text, label=label, relation=relation,
        p_supported=judgment.p_supported, reason=judgment.rationale,
    )  # fmt: skip
