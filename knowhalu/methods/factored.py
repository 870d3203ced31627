"""Factored Verification: the claims of a text, each judged alone, and their probabilities combined (sections 2.1 to 2.3).

The algorithm is written once; a reasoner lists the claims and judges them.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from knowhalu.combination import Standard
from knowhalu.methods.concluding import NOTHING, left_open
from knowhalu.methods.factored_verdict import Judged, Part, concluded
from knowhalu.methods.sources import whole_or_retrieved
from knowhalu.options import FactoredOptions
from knowhalu.steps import Steps
from knowhalu.text import Span, sentences
from knowhalu.types import Claim, Judgment, Passage, Sample
from knowhalu.verdicts import Finding, Verdict


class FactoredReasoner(Protocol):
    """The questions that Factored Verification asks whoever thinks; each answer is a conversation of its own."""

    @property
    def standard(self) -> Standard:
        """Return what the combined probability is measured by."""

    def claims(self, sample: Sample, spans: Sequence[Span]) -> Steps[list[tuple[Claim, ...]]]:
        """List the claims of each of these sentences of the response, worded so that each can be understood alone."""

    def supported(self, part: Sample, passages: Sequence[Passage], of: int) -> Steps[Judgment]:
        """Judge the response of `part`, one of `of` claims of its text, by passages (one at least)."""


class Sourced(NamedTuple):
    """A sentence, the sample that has the sources of its claims (None: they have none), and what its citations are worth."""

    span: Span
    by: Sample | None
    citations: tuple[Finding, ...] = ()


class Factored:
    """Check a text claim by claim: it is hallucinated if its combined probability of being supported is under theta."""

    name = "factored"

    def __init__(self, reasoner: FactoredReasoner, options: FactoredOptions | None = None) -> None:
        self.reasoner, self.options = reasoner, options or FactoredOptions()

    def check(self, sample: Sample) -> Steps[Verdict]:
        """Check one sample."""
        spans = sentences(sample.response)
        sourced, notes = self.sourced(sample, spans)
        checked = [s for s in sourced if s.by is not None]
        listed = yield from self._listed(sample, [s.span for s in checked])
        if empty := sum(not claims for claims in listed):
            notes = [*notes, f"{empty} of {len(spans)} sentences claim{'s' * (empty == 1)} nothing"]
        of, claims = sum(map(len, listed)), iter(listed)
        parts = []
        for one in sourced:
            judged = () if one.by is None else (yield from self._judged(one.by, next(claims), of))
            if judged or one.citations:
                parts.append(Part(one.span, judged, one.citations))
        return concluded(sample, parts, self.reasoner.standard, self.options, notes, self.name)

    def sourced(self, sample: Sample, spans: Iterable[Span]) -> tuple[list[Sourced], list[str]]:
        """Return the sentences to be checked, each with its sources, and what is to be said of the others."""
        return [Sourced(span, sample) for span in spans], []

    def worded(self, claim: str) -> str:
        """Return a claim as it is judged."""
        return claim

    def _listed(self, sample: Sample, spans: Sequence[Span]) -> Steps[list[tuple[Claim, ...]]]:
        if self.options.claims == "sentences":
            return [(Claim(start=s.start, end=s.end, text=s.text),) for s in spans]
        return (yield from self.reasoner.claims(sample, spans)) if spans else []

    def _judged(self, by: Sample, claims: Iterable[Claim], of: int) -> Steps[tuple[Judged, ...]]:
        """Judge the claims of one sentence, each by all of its sources or by the chunks nearest to it."""
        found = []
        for claim in claims:
            part = by.model_copy(update={"response": self.worded(claim.text)})
            passages = yield from whole_or_retrieved(
                part, [part.response], words=self.options.source_words, k=self.options.passages
            )
            judgment = (yield from self.reasoner.supported(part, passages, of)) if passages else left_open(by.task, NOTHING)
            found.append(Judged(claim, judgment))
        return tuple(found)
