"""Factored Verification: each claim of a text judged alone, by all sources or by those it cites (sections 2.1 to 3.2).

The algorithm is independent of the reasoner, which lists the claims and judges them.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from knowhalu.errors import StageError
from knowhalu.methods.common.combine import CombinationCalibration
from knowhalu.methods.common.sources import given_or_retrieved_passages
from knowhalu.methods.common.verdict import NO_EVIDENCE, inconclusive_judgment
from knowhalu.methods.factored.citations import (
    find_citations,
    matching_documents,
    mismatch_reason,
    source_documents,
    strip_citations,
)
from knowhalu.methods.factored.verdict import ClaimJudgment, SentenceJudgment, combine_claims
from knowhalu.methods.options import FactoredOptions
from knowhalu.requests import Conversation
from knowhalu.results import Finding, Verdict
from knowhalu.text.sentences import Span, sentences
from knowhalu.types import Claim, Document, Judgment, Label, Passage, Relation, Sample


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


class Factored:
    """Check a text claim by claim: it is hallucinated if its combined probability of being supported is under theta."""

    name = "factored"

    def __init__(self, reasoner: FactoredReasoner, options: FactoredOptions | None = None) -> None:
        self.reasoner, self.options = reasoner, options or FactoredOptions()

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Check one sample."""
        spans = sentences(sample.response)
        sourced, notes = self.sourced(sample, spans)
        checked = [s for s in sourced if s.by is not None]
        listed = yield from self._listed(sample, [s.span for s in checked])
        if empty := sum(not claims for claims in listed):
            notes = [*notes, f"{empty} of {len(spans)} sentences claim{'s' * (empty == 1)} nothing"]
        of, claims = sum(map(len, listed)), iter(listed)
        parts = []
        for sentence in sourced:
            judged = () if sentence.by is None else (yield from self._judged(sentence.by, next(claims), of))
            if judged or sentence.citations:
                parts.append(SentenceJudgment(sentence.span, judged, sentence.citations))
        return combine_claims(sample, parts, self.reasoner.standard, self.options, notes, self.name)

    def sourced(self, sample: Sample, spans: Iterable[Span]) -> tuple[list[SentenceSources], list[str]]:
        """Return the sentences to check, each with its sources, and notes on the others."""
        return [SentenceSources(span, sample) for span in spans], []

    def worded(self, claim: str) -> str:
        """Return the wording of a claim that is judged."""
        return claim

    def _listed(self, sample: Sample, spans: Sequence[Span]) -> Conversation[list[tuple[Claim, ...]]]:
        if self.options.claims == "sentences":
            return [(Claim(start=s.start, end=s.end, text=s.text),) for s in spans]
        return (yield from self.reasoner.claims(sample, spans)) if spans else []

    def _judged(self, by: Sample, claims: Iterable[Claim], of: int) -> Conversation[tuple[ClaimJudgment, ...]]:
        """Judge the claims of one sentence, each by all of its sources or by the chunks nearest to it."""
        found = []
        for claim in claims:
            part = by.model_copy(update={"response": self.worded(claim.text)})
            passages = yield from given_or_retrieved_passages(
                part, [part.response], words=self.options.source_words, k=self.options.passages
            )
            judgment = (
                (yield from self.reasoner.supported(part, passages, of))
                if passages
                else inconclusive_judgment(by.task, NO_EVIDENCE)
            )
            found.append(ClaimJudgment(claim, judgment))
        return tuple(found)


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
        found, uncited = [], 0
        for span in spans:
            named, findings = self._cited(span, documents)
            if named or findings:
                by = whole.model_copy(update={"documents": named}) if named else None
                found.append(SentenceSources(span, by, findings))
            elif self.options.uncited == "all":
                found.append(SentenceSources(span, whole))
            else:
                uncited += 1
        return found, [f"{_count_phrase(uncited)} not checked (factored.uncited=all checks them too)"] if uncited else []

    def worded(self, claim: str) -> str:
        """Return a claim without its citations, which are checked apart."""
        return strip_citations(claim)

    def _cited(self, span: Span, documents: tuple[Document, ...]) -> tuple[tuple[Document, ...], tuple[Finding, ...]]:
        """Return the sources that a sentence cites, in their order, and findings on citations that fit none or several."""
        named: list[Document] = []
        findings = []
        for citation in find_citations(span.text):
            fitting = matching_documents(citation, documents)
            named += fitting
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
        return tuple(d for d in documents if d in named), tuple(dict.fromkeys(findings))


def _count_phrase(count: int) -> str:
    return "1 sentence cites no source and was" if count == 1 else f"{count} sentences cite no source and were"
