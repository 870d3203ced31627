"""Judges by one prompt, and self-consistency: the whole text is judged at once.

HaluEval's three prompts (Li et al. 2023), zero-shot chain of thought, few-shot, the factored check in one reply (Factored
Verification, table 1), and the majority of many judgments (Wang et al. 2022; KnowHalu, section 4.1).
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Protocol

from knowhalu.methods.claims import place
from knowhalu.methods.concluding import NOTHING, RELATIONS, conclude, how_wrong, left_open, settled, why_open
from knowhalu.methods.sources import whole_or_retrieved
from knowhalu.options import BaselineOptions
from knowhalu.steps import Steps
from knowhalu.text import Span, few_segments
from knowhalu.types import Judgment, Label, Passage, Sample
from knowhalu.verdicts import Finding, Segment, Verdict

FROM_MEMORY = frozenset({"halueval", "halueval-cot"})
"""The judges that see no knowledge; documents that a text was made from are part of what is asked, so these they see."""
QUERY_WORDS, QUERIES = 30, 16
"""Words of a query that is made of a response, and how many are made at most."""
STANDS = {Label.CORRECT: 1.0, Label.INCORRECT: 0.0, Label.INCONCLUSIVE: 0.5}


class Claimed(Protocol):
    """A claim that a judge listed, and what it said of it."""

    text: str
    label: Label


class JudgeReasoner(Protocol):
    """The question that a judge asks whoever thinks."""

    def judge(
        self, name: str, sample: Sample, passages: Sequence[Passage], votes: int | None = None
    ) -> Steps[tuple[Judgment, Sequence[Claimed]]]:
        """Judge a text as the judge `name` does, or by the majority of `votes` judgments; with the claims it listed."""


class Judge:
    """Judge a text by one prompt; `votes` judgments are drawn where there are votes."""

    def __init__(
        self, kind: str, reasoner: JudgeReasoner, options: BaselineOptions | None = None, *, name: str = "",
        votes: int | None = None,
    ) -> None:  # fmt: skip
        self.kind, self.name, self.votes = kind, name or kind, votes
        self.reasoner, self.options = reasoner, options or BaselineOptions()

    def check(self, sample: Sample) -> Steps[Verdict]:
        """Check one sample."""
        passages = yield from self._passages(sample)
        claims: Sequence[Claimed] = ()
        if passages or (self.kind in FROM_MEMORY and not sample.documents):
            judgment, claims = yield from self.reasoner.judge(self.kind, sample, passages, self.votes)
        else:
            judgment = left_open(sample.task, NOTHING)
        whole = Span(0, len(sample.response), sample.response)
        label, findings = settled(judgment.label, sample.task), tuple(_findings(claims, whole))
        segment = Segment(
            start=0, end=whole.end, text=whole.text, label=label, open=why_open(label, judgment),
            relation=how_wrong(label, judgment, findings), probability=1 - judgment.supported, base=judgment, findings=findings,
        )  # fmt: skip
        return conclude(sample, (segment,), self.name, kind=None)

    def _passages(self, sample: Sample) -> Steps[tuple[Passage, ...]]:
        if self.kind in FROM_MEMORY:
            sample = sample.model_copy(update={"knowledge": ()})
            if not sample.documents:
                return ()
        words, k = self.options.source_words, self.options.passages
        return (yield from whole_or_retrieved(sample, queries(sample), words=words, k=k))


def queries(sample: Sample) -> Iterable[str]:
    """Return what the sources are searched by: the question alone in an index, and the response's pieces elsewhere."""
    if sample.question:
        yield sample.question
        if not sample.documents and not sample.knowledge:
            return
    for piece in few_segments(sample.response, QUERY_WORDS, QUERIES):
        yield piece.text


def _findings(claims: Iterable[Claimed], whole: Span) -> Iterable[Finding]:
    """Make findings of claims that were judged in one reply: no probability of theirs was measured."""
    for claim in claims:
        at = place(claim.text, whole)
        yield Finding(
            unit="claim", start=at.start, end=at.end, text=claim.text, label=claim.label, relation=RELATIONS[claim.label],
            supported=STANDS[claim.label], reason=f"judged {claim.label} in one reply with all other claims",
        )  # fmt: skip


halueval = partial(Judge, "halueval")
halueval_knowledge = partial(Judge, "halueval-knowledge")
halueval_cot = partial(Judge, "halueval-cot")
zero_shot_cot = partial(Judge, "zero-shot-cot")
few_shot = partial(Judge, "few-shot")
factored_single = partial(Judge, "factored-single")


def self_consistency(reasoner: JudgeReasoner, options: BaselineOptions | None = None) -> Judge:
    """Make the judge that takes the majority of `votes` judgments of one of the others.

    Ties go to the more careful label: INCONCLUSIVE before INCORRECT before CORRECT. P is the share of the votes.
    """
    options = options or BaselineOptions()
    return Judge(options.votes_by, reasoner, options, name="self-consistency", votes=options.votes)
