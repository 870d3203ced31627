"""Factored Verification: each claim of a text judged alone, by all sources or by those it cites (sections 2.1 to 3.2).

The algorithm is independent of the reasoner, which lists the claims and judges them. The probabilities of the claims are
combined into one, which decides against theta.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from knowhalu.errors import StageError
from knowhalu.methods.common.attribution import evidence_for, keep_quoted_passages
from knowhalu.methods.common.combine import (
    RULE_NAMES,
    CombinationCalibration,
    CombinationRule,
    combine_probabilities,
    hallucination_probability,
)
from knowhalu.methods.common.sources import given_or_retrieved_passages
from knowhalu.methods.common.verdict import (
    NO_EVIDENCE,
    RELATION_BY_LABEL,
    error_relation,
    inconclusive_judgment,
    is_hallucinated,
    support_order,
)
from knowhalu.methods.factored.citations import (
    find_citations,
    matching_documents,
    mismatch_reason,
    source_documents,
    strip_citations,
)
from knowhalu.methods.options import FactoredOptions
from knowhalu.requests import Conversation
from knowhalu.results import Finding, Segment, Verdict
from knowhalu.text.probabilities import all_measured, complement, format_probability
from knowhalu.text.sentences import Span, sentences
from knowhalu.types import (
    Claim,
    Document,
    HallucinationKind,
    InconclusiveReason,
    Judgment,
    Label,
    Passage,
    Relation,
    Sample,
)

SUPPORT_THRESHOLD = 0.5
"""P(supported) from which a single claim is labelled supported."""
NO_PROBABILITIES_NOTE = (
    "P(supported) not measured, as the model gave no probabilities: the labels of the claims decide "
    "(llm.votes draws several judgments)"
)
LABEL_ORDER = {Label.INCORRECT: 0, Label.INCONCLUSIVE: 1, Label.CORRECT: 2}


class FactoredReasoner(Protocol):
    """The steps that a reasoner contributes to Factored Verification; each is a conversation."""

    @property
    def standard(self) -> CombinationCalibration:
        """Return the calibration of the combined probability."""

    def claims(self, sample: Sample, spans: Sequence[Span]) -> Conversation[list[tuple[Claim, ...]]]:
        """List the claims of each of these sentences of the response, worded so that each can be understood alone."""

    def supported(self, part: Sample, passages: Sequence[Passage], of: int) -> Conversation[Judgment]:
        """Judge the response of `part`, one of `of` claims of its text, by passages (one at least)."""


class SentenceSources(NamedTuple):
    """A sentence, the sample with the sources of its claims (None where they have none), and findings on its citations."""

    span: Span
    by: Sample | None
    citations: tuple[Finding, ...] = ()


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
    def scored(self) -> list[tuple[Label, float | None]]:
        """Return label and P(supported) of the claims with evidence, and of the citations that fit no source."""
        claims = [(j.judgment.label, j.judgment.p_supported) for j in self.judged if not j.is_open]
        return claims + [(c.label, c.p_supported) for c in self.citations if c.label is Label.INCORRECT]

    @property
    def why_open(self) -> list[InconclusiveReason]:
        """Return why claims and citations are inconclusive; a citation that fits no source counts as not retrieved."""
        claims = [j.judgment.inconclusive_reason or InconclusiveReason.NOTHING_RETRIEVED for j in self.judged if j.is_open]
        return claims + [InconclusiveReason.NOTHING_RETRIEVED for c in self.citations if c.label is Label.INCONCLUSIVE]


class Factored:
    """Check a text claim by claim: it is hallucinated if its combined probability of being supported is under theta."""

    name = "factored"

    def __init__(self, reasoner: FactoredReasoner, options: FactoredOptions | None = None) -> None:
        self.reasoner, self.options = reasoner, options or FactoredOptions()

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Check one sample."""
        spans = sentences(sample.response)
        sourced, notes = self.sourced(sample, spans)
        checked = [s.span for s in sourced if s.by is not None]
        claims: list[tuple[Claim, ...]] = []
        if self.options.claims == "sentences":
            claims = [(Claim(start=s.start, end=s.end, text=s.text),) for s in checked]
        elif checked:
            claims = yield from self.reasoner.claims(sample, checked)
        if empty := sum(not c for c in claims):
            notes = [*notes, f"{empty} of {len(spans)} sentences claim{'s' * (empty == 1)} nothing"]
        of, next_claims = sum(map(len, claims)), iter(claims)
        parts = []
        for span, by, citations in sourced:
            judged = () if by is None else (yield from self._judged(by, next(next_claims), of))
            if judged or citations:
                parts.append(SentenceJudgment(span, judged, citations))
        return combine_claims(sample, parts, self.reasoner.standard, self.options, notes, self.name)

    def sourced(self, sample: Sample, spans: Iterable[Span]) -> tuple[list[SentenceSources], list[str]]:
        """Return the sentences to check, each with its sources, and notes on the others."""
        return [SentenceSources(span, sample) for span in spans], []

    def worded(self, claim: str) -> str:
        """Return the wording of a claim that is judged."""
        return claim

    def _judged(self, by: Sample, claims: Iterable[Claim], of: int) -> Conversation[tuple[ClaimJudgment, ...]]:
        """Judge the claims of one sentence, each by all of its sources or by the chunks nearest to it."""
        limit, k = self.options.source_words, self.options.passages
        judged = []
        for claim in claims:
            part = by.model_copy(update={"response": self.worded(claim.text)})
            passages = yield from given_or_retrieved_passages(part, [part.response], words=limit, k=k)
            if passages:
                judgment = yield from self.reasoner.supported(part, passages, of)
            else:
                judgment = inconclusive_judgment(by.task, NO_EVIDENCE)
            judged.append(ClaimJudgment(claim, judgment))
        return tuple(judged)


class FactoredAcademic(Factored):
    """Check a summary of papers: the claims of a sentence must be supported by the papers that it cites.

    A citation that fits no source is a finding of its own; a sentence without citations is left out, or checked by all.
    """

    name = "factored-academic"

    def sourced(self, sample: Sample, spans: Iterable[Span]) -> tuple[list[SentenceSources], list[str]]:
        """Return the sentences with their cited sources; raises StageError where a sample brings no sources."""
        documents = source_documents(sample)
        if not documents:
            raise StageError("sources", "citations are checked by the cited texts: give them as documents, with author and year "
                             "in their titles or ids, or in the order of their numbers")  # fmt: skip
        whole = sample.model_copy(update={"knowledge": (), "documents": documents})
        sourced, uncited = [], 0
        for span in spans:
            cited, findings = self._cited(span, documents)
            if cited or findings:
                by = whole.model_copy(update={"documents": cited}) if cited else None
                sourced.append(SentenceSources(span, by, findings))
            elif self.options.uncited == "all":
                sourced.append(SentenceSources(span, whole))
            else:
                uncited += 1
        many = "1 sentence cites no source and was" if uncited == 1 else f"{uncited} sentences cite no source and were"
        return sourced, [f"{many} not checked (factored.uncited=all checks them too)"] if uncited else []

    def worded(self, claim: str) -> str:
        """Return a claim without its citations, which are checked apart."""
        return strip_citations(claim)

    def _cited(self, span: Span, documents: tuple[Document, ...]) -> tuple[tuple[Document, ...], tuple[Finding, ...]]:
        """Return the sources that a sentence cites, in their order, and findings on citations that fit none or several."""
        cited: list[Document] = []
        findings = []
        for citation in find_citations(span.text):
            fitting = matching_documents(citation, documents)
            cited += fitting
            if len(fitting) != 1:
                several = f"it fits {len(fitting)} sources, of which one is enough: {', '.join(d.id for d in fitting)}"
                made_up = Label.INCORRECT if self.options.unmatched == "hallucinated" else Label.INCONCLUSIVE
                findings.append(Finding(
                    unit="citation", start=span.start + citation.start, end=span.start + citation.end,
                    text=span.text[citation.start : citation.end], type=citation.style,
                    label=Label.CORRECT if fitting else made_up, relation=None if fitting else Relation.NEUTRAL,
                    p_supported=1.0 if fitting else 0.0,
                    reason=several if fitting else mismatch_reason(citation, documents),
                ))  # fmt: skip
        return tuple(d for d in documents if d in cited), tuple(dict.fromkeys(findings))


def combine_claims(
    sample: Sample,
    parts: Sequence[SentenceJudgment],
    standard: CombinationCalibration,
    options: FactoredOptions,
    notes: Sequence[str],
    method: str,
) -> Verdict:
    """Combine all claims of a text; under theta it is hallucinated, else one inconclusive claim makes it inconclusive."""
    scored = [score for part in parts for score in part.scored]
    measured = all_measured(p for _, p in scored) is not None
    theta = standard.thetas[options.rule] if options.theta is None else options.theta
    features: dict[str, float] = {"claims": float(len(scored)), "theta": theta}
    combined: dict[CombinationRule, float] = {}
    if scored:
        claims = [support_order(*score) for score in scored]  # for the label, an unmeasured claim counts as 0 or 1
        combined = combine_probabilities(claims, standard.typical, standard.reference)
        features |= {str(rule): value for rule, value in combined.items() if measured}
    segments = tuple(_segment(sample.response, part, features) for part in parts)
    open_findings = [f for s in segments for f in s.findings if f.label is Label.INCONCLUSIVE]
    left_open = [_open_note(open_findings)] if open_findings else []
    label, relation, probability = Label.INCONCLUSIVE, None, 0.5 if measured else None
    if scored:
        value = combined[options.rule]
        decided = (f for s in segments for f in s.findings if f.label is not Label.INCONCLUSIVE)
        worst = min(decided, key=lambda f: support_order(f.label, f.p_supported))
        if value < theta:
            label, relation = Label.INCORRECT, worst.relation if worst.label is Label.INCORRECT else None
        elif not open_findings:
            label = Label.CORRECT
        if measured and label is not Label.INCONCLUSIVE:
            probability = hallucination_probability(value, theta)
        reasons = [
            _probability_reason(value, theta, parts, options) if measured else NO_PROBABILITIES_NOTE,
            f"least supported ({format_probability(worst.p_supported)}): “{worst.text}” ({worst.reason})",
            *left_open,
        ]
    else:
        reasons = ["nothing could be checked" if parts else "there is nothing to check", *left_open]
    why = next((why for part in parts for why in part.why_open), InconclusiveReason.NOTHING_TO_CHECK)
    return Verdict(
        id=sample.id, task=sample.task, method=method, label=label, hallucinated=is_hallucinated(label),
        inconclusive_reason=why if label is Label.INCONCLUSIVE else None, relation=relation,
        kind=HallucinationKind.FACTUAL if label is Label.INCORRECT else None, probability=probability,
        reason="; ".join([*reasons, *notes]), segments=segments,
    )  # fmt: skip


def _probability_reason(value: float, theta: float, parts: Sequence[SentenceJudgment], options: FactoredOptions) -> str:
    made_up = sum(c.label is Label.INCORRECT for p in parts for c in p.citations)
    claims = sum(len(p.scored) for p in parts) - made_up
    over = [f"{n} {what}{'s' * (n > 1)}" for n, what in ((claims, "claim"), (made_up, "unmatched citation")) if n]
    many = f"{RULE_NAMES[options.rule]} over {' and '.join(over)}" if claims + made_up > 1 else f"that of {over[0]}"
    return f"P(supported) = {value:.3g}, {many}, is {'under' if value < theta else 'not under'} theta {theta:.3g}"


def _open_note(findings: Sequence[Finding]) -> str:
    more = f" and {len(findings) - 1} more" if len(findings) > 1 else ""
    return f"left open: “{findings[0].text}” ({findings[0].reason}){more}"


def _segment(response: str, part: SentenceJudgment, features: dict[str, float]) -> Segment:
    """Make a segment of a sentence: it gets the worst label of its findings. Its features are those of the text."""
    span = part.span
    findings = (*map(_finding, part.judged), *part.citations)
    worst = min(findings, key=lambda f: (LABEL_ORDER[f.label], support_order(f.label, f.p_supported)))
    known = all_measured([*(p for _, p in part.scored), *([0.5] if worst.label is Label.INCONCLUSIVE else [])])
    supported = None if known is None else min(known, default=worst.p_supported)
    sure = {Label.CORRECT: supported, Label.INCORRECT: complement(supported), Label.INCONCLUSIVE: 0.0}[worst.label]
    judgments = [keep_quoted_passages(j.judgment) for j in part.judged]
    confidences = {j.confidence_source for j in judgments} | ({"none"} if worst.label is Label.INCONCLUSIVE else set())
    base = Judgment(
        label=worst.label, confidence=sure, p_supported=supported, rationale=f"“{worst.text}”: {worst.reason}", features=features,
        inconclusive_reason=part.why_open[0] if worst.label is Label.INCONCLUSIVE else None,
        relation=worst.relation if worst.label is Label.INCORRECT else None,
        confidence_source="none" if "none" in confidences else "votes" if "votes" in confidences else "probability",
        steps=tuple(step for j in judgments for step in j.steps),
    )  # fmt: skip
    evidence = (
        pair for (claim, _), judgment in zip(part.judged, judgments, strict=True)
        for pair in evidence_for(Span(claim.start, claim.end, response[claim.start : claim.end]), judgment)
    )  # fmt: skip
    return Segment(
        start=span.start, end=span.end, text=span.text, label=worst.label, inconclusive_reason=base.inconclusive_reason,
        relation=base.relation, probability=complement(supported), base=base, findings=findings,
        evidence=tuple(dict.fromkeys(evidence)),
    )  # fmt: skip


def _finding(judged: ClaimJudgment) -> Finding:
    claim, judgment = judged
    supported = support_order(judgment.label, judgment.p_supported)
    label = Label.CORRECT if supported >= SUPPORT_THRESHOLD else Label.INCORRECT
    label = Label.INCONCLUSIVE if judged.is_open else label
    relation = error_relation(label, judgment) if label is Label.INCORRECT else RELATION_BY_LABEL[label]
    return Finding(
        unit="claim", start=claim.start, end=claim.end, text=claim.text, label=label, relation=relation,
        p_supported=judgment.p_supported, reason=judgment.rationale,
    )  # fmt: skip
