"""WikiChat's check (Semnani et al. 2023; KnowHalu, appendix A.5.3): claims, evidence and a verdict for each.

The claims of the response are extracted, evidence is retrieved for each claim, each is judged by its evidence alone, and the
verdicts are combined.
"""

from collections.abc import Sequence
from dataclasses import replace

from knowhalu.llm.options import LLMOptions
from knowhalu.methods.baselines.judge import UNDISTILLED_NOTE, read_claim_list
from knowhalu.methods.common.attribution import assign_quote_scores, evidence_for, ground_statements
from knowhalu.methods.common.labels import generate_judgment, label_share, support_probability
from knowhalu.methods.common.sources import given_or_retrieved_passages
from knowhalu.methods.common.verdict import (
    NO_EVIDENCE,
    claim_finding,
    combine_segments,
    inconclusive_judgment,
    judged_segment,
    nothing_to_check_verdict,
    support_order,
)
from knowhalu.methods.options import BaselineOptions
from knowhalu.prompts.book import BASELINES, PromptBook
from knowhalu.prompts.format import CLAIM, format_passages, format_sample
from knowhalu.prompts.replies import generate_with_retry
from knowhalu.prompts.template import join_sections, section
from knowhalu.requests import Conversation
from knowhalu.results import Segment, SkippedSpan, Verdict
from knowhalu.text.clauses import locate_claim
from knowhalu.text.probabilities import all_measured
from knowhalu.text.sentences import Span, at_most_segments
from knowhalu.types import Judgment, KnowledgeForm, Label, Passage, Query, Sample, Step

MAX_PIECE_WORDS = 100
"""Words of a piece of the response whose claims are extracted in one request."""
NO_CLAIM = "it states no fact that can be checked"


class WikiChat:
    """Check a text claim by claim, each by its own evidence."""

    name = "wikichat"

    def __init__(self, reasoner: "WikiChatLLM", options: BaselineOptions | None = None) -> None:
        self.reasoner, self.options = reasoner, options or BaselineOptions()

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Check one sample."""
        segments: list[Segment] = []
        skipped: list[SkippedSpan] = []
        judged: dict[str, Judgment] = {}
        for piece in at_most_segments(sample.response, MAX_PIECE_WORDS, self.options.pieces):
            claims = yield from self.reasoner.claims(sample.model_copy(update={"response": piece.text}))
            for claim in claims:
                if claim not in judged:  # a claim of an earlier piece is not judged again
                    judged[claim] = yield from self._claim(sample, claim)
            if claims:
                segments.append(_segment(sample, piece, {claim: judged[claim] for claim in claims}))
            else:
                skipped.append(SkippedSpan(**piece._asdict(), reason=NO_CLAIM))
        if not segments:
            verdict = nothing_to_check_verdict(sample, self.name, NO_CLAIM)
        else:
            verdict = combine_segments(sample, segments, self.name)
        return verdict.model_copy(update={"skipped": tuple(skipped)})

    def _claim(self, sample: Sample, claim: str) -> Conversation[Judgment]:
        part = sample.model_copy(update={"response": claim})
        words, k = self.options.source_words, self.options.passages
        passages = yield from given_or_retrieved_passages(part, (claim,), words=words, k=k)
        return (yield from self.reasoner.verdict(part, passages)) if passages else inconclusive_judgment(sample.task, NO_EVIDENCE)


def _segment(sample: Sample, piece: Span, claims: dict[str, Judgment]) -> Segment:
    """Combine claims: one INCORRECT makes the piece INCORRECT, else one INCONCLUSIVE makes it INCONCLUSIVE."""
    worst = max(
        claims.values(),
        key=lambda j: (j.label is Label.INCORRECT, j.label is Label.INCONCLUSIVE, -support_order(j.label, j.p_supported)),
    )
    supported = all_measured(j.p_supported for j in claims.values())
    steps = tuple(step for j in claims.values() for step in j.steps)
    base = worst.model_copy(update={"p_supported": None if supported is None else min(supported), "steps": steps})
    findings = tuple(claim_finding(claim, judgment, piece) for claim, judgment in claims.items())
    evidence = (e for claim, judgment in claims.items() for e in evidence_for(locate_claim(claim, piece), judgment))
    return judged_segment(piece, base, sample.task, findings, tuple(evidence))


class WikiChatLLM:
    """Extract the claims of a text, and judge each by passages."""

    def __init__(self, options: LLMOptions | None = None, method: BaselineOptions | None = None) -> None:
        """Load the prompts; raises PromptError where one cannot be used."""
        self.options = options or LLMOptions()
        self.book = PromptBook(BASELINES, self.options, ("claims", "verdict"))

    def claims(self, part: Sample) -> Conversation[list[str]]:
        """List the claims of a piece of a response, the response of `part`, each in words that can be understood alone."""
        request = self.book.request("claims", part.task, sample=format_sample(part))
        again = replace(request, prefill="\n1.", max_tokens=2 * request.max_tokens)
        _, claims = yield from generate_with_retry(request, read_claim_list, lambda c: again, joins=True)
        return claims

    def verdict(self, part: Sample, passages: Sequence[Passage]) -> Conversation[Judgment]:
        """Judge a claim, the response of `part`, by the passages found for it."""
        query = Query(specific=part.response, general="")
        knowledge = ground_statements(KnowledgeForm.UNSTRUCTURED, [part.response], (), part, query, passages)
        if not knowledge.quotes:
            knowledge = knowledge.model_copy(update={"text": UNDISTILLED_NOTE, "unsupported": ""})
        step = Step(thought="", query=query, passages=tuple(passages), knowledge=knowledge)
        shown = join_sections(format_passages(passages))
        request = self.book.request("verdict", part.task, passages=shown, claim=section(CLAIM, part.response))
        judgment, shares = yield from generate_judgment(request, votes=self.options.votes)
        judgment = judgment.model_copy(update={"p_supported": support_probability(shares, part.task)})
        steps = assign_quote_scores((step,), judgment, contradicted=label_share(shares, Label.INCORRECT))
        return judgment.model_copy(update={"steps": steps})
