"""Judges by one prompt, and self-consistency: the whole text is judged in one request.

HaluEval's three prompts (Li et al. 2023), zero-shot chain of thought, few-shot, the factored check in one reply (Factored
Verification, table 1), and the majority of many judgments (Wang et al. 2022; KnowHalu, section 4.1).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from knowhalu.errors import ReplyError
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.common.labels import (
    THREE_LABEL_SCHEME,
    LabelledRationale,
    LabelScheme,
    generate_bare_label,
    generate_judgment,
    generate_label,
    generate_labelled_rationale,
    support_probability,
)
from knowhalu.methods.common.sources import given_or_retrieved_passages
from knowhalu.methods.common.verdict import (
    NO_EVIDENCE,
    RELATION_BY_LABEL,
    combine_segments,
    inconclusive_judgment,
    judged_segment,
)
from knowhalu.methods.options import BaselineOptions
from knowhalu.prompts.book import BASELINES, BINARY_LABELS, PromptBook
from knowhalu.prompts.format import LABEL, JudgedClaim, format_judged_claims, format_passages, format_sample
from knowhalu.prompts.replies import generate_with_retry
from knowhalu.prompts.shielding import unshield
from knowhalu.prompts.template import join_sections, section
from knowhalu.requests import Completion, Conversation, Generate
from knowhalu.results import Finding, Verdict
from knowhalu.text.clauses import locate_claim
from knowhalu.text.sentences import Span, at_most_segments
from knowhalu.types import Judgment, Knowledge, KnowledgeForm, Label, Passage, Query, Sample, Step

MEMORY_JUDGES = frozenset({"halueval", "halueval-cot", "zero-shot-memory"})
"""The judges that see no knowledge; they see the documents of a text, which are part of its task."""
MAX_QUERY_WORDS, MAX_QUERIES = 30, 16
"""Maximum words of a query made of a response, and maximum number of queries."""


class Judge:
    """Judge a text by one prompt; `votes` judgments are drawn where there are votes."""

    def __init__(
        self, kind: str, reasoner: "LLMJudge", options: BaselineOptions | None = None, *, name: str = "",
        votes: int | None = None,
    ) -> None:  # fmt: skip
        self.kind, self.name, self.votes = kind, name or kind, votes
        self.reasoner, self.options = reasoner, options or BaselineOptions()

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Check one sample."""
        passages = yield from self._passages(sample)
        claims: Sequence[JudgedClaim] = ()
        if passages or (self.kind in MEMORY_JUDGES and not sample.documents):
            judgment, claims = yield from self.reasoner.judge(self.kind, sample, passages, self.votes)
        else:
            judgment = inconclusive_judgment(sample.task, NO_EVIDENCE)
        whole = Span(0, len(sample.response), sample.response)
        segment = judged_segment(whole, judgment, sample.task, tuple(_claim_findings(claims, whole)))
        return combine_segments(sample, (segment,), self.name, kind=None)

    def _passages(self, sample: Sample) -> Conversation[tuple[Passage, ...]]:
        if self.kind in MEMORY_JUDGES:
            sample = sample.model_copy(update={"knowledge": ()})
            if not sample.documents:
                return ()
        words, k = self.options.source_words, self.options.passages
        return (yield from given_or_retrieved_passages(sample, source_queries(sample), words=words, k=k))


def source_queries(sample: Sample) -> Iterable[str]:
    """Yield the queries for the sources: the question alone for an index, else also the segments of the response."""
    if sample.question:
        yield sample.question
        if not sample.documents and not sample.knowledge:
            return
    for piece in at_most_segments(sample.response, MAX_QUERY_WORDS, MAX_QUERIES):
        yield piece.text


def _claim_findings(claims: Iterable[JudgedClaim], whole: Span) -> Iterable[Finding]:
    """Make findings of claims that were judged in one reply: they have no measured probability."""
    for claim in claims:
        at = locate_claim(claim.text, whole)
        yield Finding(
            unit="claim", start=at.start, end=at.end, text=claim.text, label=claim.label, relation=RELATION_BY_LABEL[claim.label],
            p_supported=None, reason=f"judged {claim.label} in one reply with all other claims",
        )  # fmt: skip


halueval = partial(Judge, "halueval")
halueval_knowledge = partial(Judge, "halueval-knowledge")
halueval_cot = partial(Judge, "halueval-cot")
zero_shot_cot = partial(Judge, "zero-shot-cot")
zero_shot_memory = partial(Judge, "zero-shot-memory")
few_shot = partial(Judge, "few-shot")
factored_single = partial(Judge, "factored-single")


def self_consistency(reasoner: "LLMJudge", options: BaselineOptions | None = None) -> Judge:
    """Make the judge that takes the majority of `votes` judgments of one of the others.

    Ties go to INCONCLUSIVE before INCORRECT before CORRECT. Probabilities are shares of the votes.
    """
    options = options or BaselineOptions()
    return Judge(options.votes_by, reasoner, options, name="self-consistency", votes=options.votes)


UNDISTILLED_NOTE = "The passages as they are."
"""The knowledge of a step whose passages were not distilled."""


class JudgePrompt(NamedTuple):
    """One kind of judge: the prompt, what asks for the label and what comes before it, and the labels to choose from.

    Without `think`, the claims of the text are judged first.
    """

    prompt: str
    think: Callable[[Generate, LabelScheme], Conversation[LabelledRationale]] | None
    scale: LabelScheme = THREE_LABEL_SCHEME


_BINARY_SCHEME = LabelScheme({str(label): label for label in BINARY_LABELS})
JUDGE_PROMPTS = {
    "halueval": JudgePrompt("halueval", generate_bare_label, _BINARY_SCHEME),
    "halueval-knowledge": JudgePrompt("halueval_knowledge", generate_bare_label, _BINARY_SCHEME),
    "halueval-cot": JudgePrompt("halueval_cot", generate_labelled_rationale, _BINARY_SCHEME),
    "zero-shot-cot": JudgePrompt("zero_shot_cot", generate_labelled_rationale, _BINARY_SCHEME),
    "zero-shot-memory": JudgePrompt("zero_shot_memory", generate_labelled_rationale, _BINARY_SCHEME),
    "few-shot": JudgePrompt("few_shot", generate_bare_label),
    "factored-single": JudgePrompt("factored_single", None),
}


class LLMJudge:
    """Judge a whole text by one prompt."""

    def __init__(self, options: LLMOptions | None = None, method: BaselineOptions | None = None) -> None:
        """Load the prompts of all judges; raises PromptError where one cannot be used."""
        self.options, self.method = options or LLMOptions(), method or BaselineOptions()
        self.book = PromptBook(BASELINES, self.options, [judge.prompt for judge in JUDGE_PROMPTS.values()])

    def judge(
        self, name: str, sample: Sample, passages: Sequence[Passage], votes: int | None = None
    ) -> Conversation[tuple[Judgment, tuple[JudgedClaim, ...]]]:
        """Judge by the judge `name`: once, or by a majority; claims come only from one that lists them.

        With `votes`, so many judgments are drawn at the method's temperature; `llm.votes` applies otherwise.
        """
        prompt, think, scale = JUDGE_PROMPTS[name]
        lists: list[tuple[Label, tuple[JudgedClaim, ...]]] = []
        generate_answer = think or partial(_ask_claims_then_label, lists=lists)
        judgment, shares = yield from generate_judgment(
            judge_request(self.book, prompt, sample, passages), None, votes or self.options.votes, scale,
            think=lambda request: generate_answer(request, scale),
            temperature=self.method.temperature if votes else 1.0,
        )  # fmt: skip
        steps: tuple[Step, ...] = ()
        if passages:
            query = Query(specific=sample.response, general=sample.question or "")
            knowledge = Knowledge(form=KnowledgeForm.UNSTRUCTURED, text=UNDISTILLED_NOTE)
            steps = (Step(thought="", query=query, passages=tuple(passages), knowledge=knowledge),)
        judged = judgment.model_copy(update={"p_supported": support_probability(shares, sample.task), "steps": steps})
        return judged, next((claims for label, claims in lists if label is judgment.label), ())


def judge_request(book: PromptBook, name: str, sample: Sample, passages: Iterable[Passage]) -> Generate:
    """Render the request for the judgment of a sample, with the passages above it."""
    return book.request(name, sample.task, sample=join_sections([*format_passages(passages), format_sample(sample)]))


def _ask_claims_then_label(
    request: Generate, scale: LabelScheme, lists: list[tuple[Label, tuple[JudgedClaim, ...]]]
) -> Conversation[LabelledRationale]:
    """Ask for the claims with a label each, then for the label of the whole; append both to `lists`."""
    again = replace(request, prefill="\n1.", max_tokens=2 * request.max_tokens)
    _, claims = yield from generate_with_retry(request, read_judged_claims, lambda c: again, joins=True)
    label, shares = yield from generate_label(request, f"\n{format_judged_claims(claims)}\n{section(LABEL)}\n", scale)
    lists.append((label, tuple(claims)))
    return f"{sum(c.label is label for c in claims)} of {len(claims)} claims are {label}.", label, shares


_LIST_ITEM = re.compile(r"\s*(?:[*_]{0,2}\(?(?P<number>\d{1,3})[*_]{0,2}[.):][*_]{0,2}|[-*\u2022])\s+(?P<text>.*\S)")
"""The blank after a number matters: a model that continues a given "1." begins with one, another repeats the number."""
_JUDGED_CLAIM = re.compile(
    r"(?P<text>.*\w.*?)\s*[:.(|\[=>\u2013\u2014-]+\s*[*_\"']*(?P<label>CORRECT|INCORRECT|INCONCLUSIVE)\b\W*"
)
_NO_CLAIMS = re.compile(r"\W*(?:none|no claims?)\b[\w\s]{0,30}\W*", re.IGNORECASE)


def read_claim_list(reply: Completion) -> list[str]:
    """Return the claims of a reply, each once; an empty list where it states that there are none.

    Raises ReplyError where it has no list, or was cut off, as a lost claim would stay unchecked.
    """
    items = _items(reply, "claims")
    if not items and _NO_CLAIMS.fullmatch(reply.text):
        return []
    _check_complete(reply, items, "claims")
    return list(dict.fromkeys(items))


def read_judged_claims(reply: Completion) -> list[JudgedClaim]:
    """Return the claims of a reply with their labels; raises ReplyError where one has none, or the reply was cut off."""
    items = _items(reply, "judge")
    _check_complete(reply, items, "judge")
    claims = []
    for item in items:
        match = _JUDGED_CLAIM.fullmatch(item)
        if match is None:
            raise ReplyError("judge", f"the claim {item[:80]!r} has no label", reply=reply.text)
        claims.append(JudgedClaim(match["text"].strip(), Label(match["label"])))
    return claims


def _items(reply: Completion, stage: str) -> list[str]:
    """Return the items of a list; raises ReplyError where a number is missing, as a claim is lost then."""
    lines = unshield(reply.text).splitlines()
    matches = [m for line in lines if (m := _LIST_ITEM.fullmatch(line)) and any(map(str.isalnum, m["text"]))]
    numbers = [int(m["number"]) for m in matches if m["number"]]
    for due, number in enumerate(numbers, 1):
        if number != due:
            raise ReplyError(stage, f"the list of claims has number {number} where {due} is due", reply=reply.text)
    return [m["text"] for m in matches]


def _check_complete(reply: Completion, items: list[str], stage: str) -> None:
    if not items:
        raise ReplyError(stage, "the reply lists no claims", reply=reply.text)
    if reply.finish_reason == "length":
        raise ReplyError(stage, "the reply was cut off before its list of claims ended", reply=reply.text)
