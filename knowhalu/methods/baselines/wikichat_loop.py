"""WikiChat's pipeline (Semnani et al. 2023), asked whether a text is hallucinated (KnowHalu, appendix A.5.3).

One search and its facts; a judgment with reasons from the model's memory; its claims, each checked by evidence of its own; then
the judgment by those facts and the claims that hold. The `wikichat` method checks the claims of the text itself instead.
"""

from collections.abc import Sequence
from dataclasses import replace

from knowhalu.errors import ReplyError
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.baselines.judge import UNDISTILLED_NOTE, LLMJudge, read_claim_list
from knowhalu.methods.baselines.wikichat import MAX_PIECE_WORDS, WikiChatLLM
from knowhalu.methods.common.sources import given_or_retrieved_passages
from knowhalu.methods.common.verdict import NO_EVIDENCE, combine_segments, inconclusive_judgment, judged_segment
from knowhalu.methods.options import BaselineOptions
from knowhalu.prompts.book import BASELINES, PromptBook
from knowhalu.prompts.format import format_passages, format_sample
from knowhalu.prompts.replies import generate_with_retry, one_line
from knowhalu.prompts.template import join_sections
from knowhalu.requests import Completion, Conversation
from knowhalu.results import Verdict
from knowhalu.text.sentences import Span, at_most_segments
from knowhalu.types import Judgment, Knowledge, KnowledgeForm, Label, Passage, Query, Sample, Step

OPINION, FINAL = "halueval-cot", "few-shot"
"""The judges that write the first judgment, from memory, and the last one, by what was established."""
FACTS = "facts"


class WikiChatLoop:
    """Judge a text, check the claims of that judgment by evidence, and judge again by what holds."""

    name = "wikichat-loop"

    def __init__(self, reasoner: "WikiChatLoopLLM", options: BaselineOptions | None = None) -> None:
        self.reasoner, self.options = reasoner, options or BaselineOptions()

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Check one sample."""
        query = yield from self.reasoner.search_query(sample)
        passages = yield from self._passages(sample, query)
        facts = (yield from self.reasoner.facts(sample, passages)) if passages else []
        opinion = yield from self.reasoner.opinion(sample, passages)
        checked = yield from self._checked_claims(sample, opinion)
        known = [*facts, *(claim for claim, step in checked.items() if step is not None)]
        step = Step(thought=opinion, query=Query(specific=query, general=""), passages=passages, knowledge=_knowledge(facts))
        if known:
            judgment = yield from self.reasoner.final(sample, known)
        else:
            judgment = inconclusive_judgment(sample.task, NO_EVIDENCE)
        judgment = judgment.model_copy(update={"steps": (step, *filter(None, checked.values()))})
        whole = Span(0, len(sample.response), sample.response)
        return combine_segments(sample, (judged_segment(whole, judgment, sample.task),), self.name, kind=None)

    def _passages(self, sample: Sample, query: str) -> Conversation[tuple[Passage, ...]]:
        return (
            yield from given_or_retrieved_passages(sample, (query,), words=self.options.source_words, k=self.options.passages)
        )

    def _checked_claims(self, sample: Sample, opinion: str) -> Conversation[dict[str, Step | None]]:
        """Return the claims of a judgment, each with the step that supports it, or None where its evidence does not."""
        steps: dict[str, Step | None] = {}
        for piece in at_most_segments(opinion, MAX_PIECE_WORDS, self.options.pieces):
            claims = yield from self.reasoner.claims(sample, piece.text)
            for claim in (c for c in claims if c not in steps):
                passages = yield from self._passages(sample, claim)
                supported = bool(passages) and (yield from self.reasoner.supports(sample, claim, passages))
                query = Query(specific=claim, general="")
                steps[claim] = Step(thought="", query=query, passages=passages, knowledge=_knowledge([])) if supported else None
        return steps


def _knowledge(facts: Sequence[str]) -> Knowledge:
    return Knowledge(form=KnowledgeForm.UNSTRUCTURED, text=" ".join(facts) or UNDISTILLED_NOTE)


class WikiChatLoopLLM:
    """Write the query, the facts and the judgments, and check claims as WikiChat's check does."""

    def __init__(self, options: LLMOptions | None = None, method: BaselineOptions | None = None) -> None:
        """Load the prompts; raises PromptError where one cannot be used."""
        self.book = PromptBook(BASELINES, options, ("search_query", FACTS))
        self.judge, self.checker = LLMJudge(options, method), WikiChatLLM(options, method)

    def search_query(self, sample: Sample) -> Conversation[str]:
        """Write one search query for a text."""
        request = self.book.request("search_query", sample.task, sample=format_sample(sample))
        _, query = yield from generate_with_retry(request, _read_query, lambda c: replace(request, stop=("\n### ",)))
        return query

    def facts(self, sample: Sample, passages: Sequence[Passage]) -> Conversation[list[str]]:
        """List what the passages say on the matter; empty where they say nothing of it."""
        shown = join_sections(format_passages(passages))
        request = self.book.request(FACTS, sample.task, passages=shown, sample=format_sample(sample))
        again = replace(request, prefill="\n1.", max_tokens=2 * request.max_tokens)
        _, facts = yield from generate_with_retry(request, read_claim_list, lambda c: again, joins=True)
        return facts

    def opinion(self, sample: Sample, passages: Sequence[Passage]) -> Conversation[str]:
        """Judge from memory, and return the reasons with the judgment; the documents of a text are part of its task."""
        shown = passages if sample.documents else ()
        judgment, _ = yield from self.judge.judge(OPINION, sample, shown)
        return judgment.rationale

    def claims(self, sample: Sample, text: str) -> Conversation[list[str]]:
        """List the claims of a piece of a judgment."""
        return (yield from self.checker.claims(sample.model_copy(update={"response": text})))

    def supports(self, sample: Sample, claim: str, passages: Sequence[Passage]) -> Conversation[bool]:
        """Tell whether the evidence supports a claim."""
        judgment = yield from self.checker.verdict(sample.model_copy(update={"response": claim}), passages)
        return judgment.label is Label.CORRECT

    def final(self, sample: Sample, known: Sequence[str]) -> Conversation[Judgment]:
        """Judge the text by what was established."""
        text = " ".join(known)
        established = Passage(id=FACTS, document=FACTS, title="", text=text, start=0, end=len(text))
        judgment, _ = yield from self.judge.judge(FINAL, sample, (established,))
        return judgment


def _read_query(reply: Completion) -> str:
    query = one_line(reply.text)
    if not any(c.isalnum() for c in query):
        raise ReplyError("query", "the model wrote no query", reply=reply.text)
    return query
