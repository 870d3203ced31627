"""Judges by one prompt, and self-consistency: the whole text is judged at once.

HaluEval's three prompts (Li et al. 2023), zero-shot chain of thought, few-shot, the factored check in one reply (Factored
Verification, table 1), and the majority of many judgments (Wang et al. 2022; KnowHalu, section 4.1).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple, Protocol

from knowhalu.methods.common.labels import LABELS, Scale, Think, Thought, decided, labelled, reasoned, supported
from knowhalu.methods.common.sources import whole_or_retrieved
from knowhalu.methods.common.verdict import NOTHING, RELATIONS, conclude, how_wrong, left_open, settled, why_open
from knowhalu.prompts.book import BINARY, BaselineBook
from knowhalu.prompts.claim_replies import JudgedClaim, listed, read_judged_claims
from knowhalu.prompts.format import LABEL
from knowhalu.prompts.generate import asked_twice
from knowhalu.prompts.template import section
from knowhalu.requests import Generate, Steps
from knowhalu.results import Finding, Segment, Verdict
from knowhalu.settings import BaselineOptions, LLMOptions
from knowhalu.text.clauses import place
from knowhalu.text.sentences import Span, few_segments
from knowhalu.types import Form, Judgment, Knowledge, Label, Passage, Query, Sample, Step

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


AS_THEY_ARE = "The passages as they are."
"""Stands as knowledge where passages are judged by without being distilled first."""
NO_REASONS = "No reasons were asked for."


class JudgePrompt(NamedTuple):
    """One way to ask: the prompt, what comes before the label, and the labels to choose from."""

    prompt: str
    before: Literal["nothing", "reasons", "claims"]
    scale: Scale = LABELS


_BINARY = Scale({str(label): label for label in BINARY})
JUDGES = {
    "halueval": JudgePrompt("halueval", "nothing", _BINARY),
    "halueval-knowledge": JudgePrompt("halueval_knowledge", "nothing", _BINARY),
    "halueval-cot": JudgePrompt("halueval_cot", "reasons", _BINARY),
    "zero-shot-cot": JudgePrompt("zero_shot_cot", "reasons", _BINARY),
    "few-shot": JudgePrompt("few_shot", "nothing"),
    "factored-single": JudgePrompt("factored_single", "claims"),
}


class PromptJudge:
    """Judge a whole text by one prompt."""

    def __init__(self, options: LLMOptions | None = None, method: BaselineOptions | None = None) -> None:
        """Load the prompts of all judges; raises PromptError where one cannot be used."""
        self.options, self.method = options or LLMOptions(), method or BaselineOptions()
        self.book = BaselineBook(self.options, [judge.prompt for judge in JUDGES.values()])

    def judge(
        self, name: str, sample: Sample, passages: Sequence[Passage], votes: int | None = None
    ) -> Steps[tuple[Judgment, tuple[JudgedClaim, ...]]]:
        """Judge by the judge `name`: once, or by a majority; claims come only from one that lists them.

        With `votes`, so many judgments are drawn at the method's temperature; else `llm.votes` holds.
        """
        how = JUDGES[name]
        lists: list[tuple[Label, tuple[JudgedClaim, ...]]] = []
        think: Think = {
            "nothing": partial(_at_once, scale=how.scale),
            "reasons": partial(reasoned, scale=how.scale),
            "claims": partial(_by_claims, scale=how.scale, lists=lists),
        }[how.before]
        judgment, shares = yield from decided(
            self.book.judge(how.prompt, sample, passages), None, votes or self.options.votes, how.scale, think=think,
            temperature=self.method.temperature if votes else 1.0,
        )  # fmt: skip
        steps = (read_whole(sample, passages),) if passages else ()
        said = judgment.model_copy(update={"supported": supported(shares, sample.task), "steps": steps})
        return said, next((claims for label, claims in lists if label is judgment.label), ())


def read_whole(sample: Sample, passages: Sequence[Passage]) -> Step:
    """Show passages that were judged by as they are."""
    query = Query(specific=sample.response, general=sample.question or "")
    knowledge = Knowledge(form=Form.UNSTRUCTURED, text=AS_THEY_ARE)
    return Step(thought="", query=query, passages=tuple(passages), knowledge=knowledge)


def _at_once(request: Generate, scale: Scale) -> Steps[Thought]:
    """Ask for the label alone; at a temperature, the label that was drawn is the vote."""
    label, shares = yield from labelled(request, "\n", scale, draw=request.temperature > 0)
    return NO_REASONS, label, shares


def _by_claims(request: Generate, scale: Scale, lists: list[tuple[Label, tuple[JudgedClaim, ...]]]) -> Steps[Thought]:
    """Ask for the claims with a label each, then for the label of the whole; every list goes to `lists` with its label."""
    again = replace(request, begun="\n1.", max_tokens=2 * request.max_tokens)
    _, claims = yield from asked_twice(request, read_judged_claims, lambda c: again, joins=True)
    label, shares = yield from labelled(request, f"\n{listed(claims)}\n{section(LABEL)}\n", scale)
    lists.append((label, tuple(claims)))
    return f"{sum(c.label is label for c in claims)} of {len(claims)} claims are {label}.", label, shares
