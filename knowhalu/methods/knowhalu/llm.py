"""An LLM as reasoner: answers KnowHalu's questions by prompts (KnowHalu, sections 3.1, 3.2 and appendix A)."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp

from knowhalu.errors import ReplyError
from knowhalu.methods.common.attribution import grounded
from knowhalu.methods.common.combine import Thresholds
from knowhalu.methods.common.labels import judged
from knowhalu.prompts.book import PromptBook
from knowhalu.prompts.format import ASKED_FOR, ENTITY, GENERAL, KNOWLEDGE, REASON, SPECIFIC, THOUGHT, asked
from knowhalu.prompts.generate import asked_twice, begun
from knowhalu.prompts.replies import (
    QUERY,
    Hop,
    Piece,
    Sections,
    is_end,
    read_hop,
    read_piece,
    read_sentences,
    read_triplets,
    sections,
    whole_sentences,
)
from knowhalu.requests import Completion, Doubtful, Steps
from knowhalu.settings import KnowHaluOptions, LLMOptions
from knowhalu.text.sentences import words
from knowhalu.types import Extraction, Form, Judgment, Knowledge, Passage, Query, Sample, Step, Task, Triplet

GIVEN, INDEX, SUMMARY = Thresholds(0.986, 0.995), Thresholds(0.997, 0.999), Thresholds(0.999, 0.9994)
"""delta1 and delta2 where the source comes with the sample, from an index, and for summaries.

Values that the paper's calibration gave 7B models with unstructured knowledge as base (table 21). They depend on the model: a
calibration on labelled rows of one's own is better, and `knowhalu.delta1` and `knowhalu.delta2` win. With votes, a single one
that dissents is enough to ask the other form too.
"""
ASKED, FIRST, PASSAGES_SAY = "what the question asks for", "Begin with the first detail.", " In the words of the passages:"
"""How a reply begins that the model could not begin itself."""
UNMEASURED = "(the model gave no probability for this)"
ENTITY_TOKENS, ROUNDING = 64, 1e-3


class LLMReasoner:
    """Think with an instruct or completion model, by prompts and demonstrations."""

    name = "llm"

    def __init__(self, options: LLMOptions | None = None, method: KnowHaluOptions | None = None) -> None:
        """Load all prompts; raises PromptError where one cannot be used."""
        self.options = options or LLMOptions()
        self.formulation = (method or KnowHaluOptions()).formulation
        self.book = PromptBook(self.options, self.formulation)

    def thresholds(self, sample: Sample) -> Thresholds:
        """Return delta1 and delta2 for the kind of source that a sample has."""
        if sample.task is Task.SUMMARY:
            return SUMMARY
        return GIVEN if sample.documents or sample.knowledge else INDEX

    def extract(self, question: str, answer: str) -> Steps[Extraction]:
        """Take from the answer what the question asks for: first the reason, then the piece, whose probability is measured."""
        request = self.book.extract(question, answer)
        reply, (asked_for, reason) = yield from asked_twice(
            request, _reason, lambda c: replace(request, begun=begun(c.text, ASKED, then=REASON)), joins=True
        )
        lead = begun(reply.text, asked_for, (REASON, reason), then=ENTITY)
        ask = replace(request, begun=lead, stop=("\n### ",), max_tokens=ENTITY_TOKENS)
        restated = replace(ask, begun=f"{lead[:-1]} (the answer's own words, NONE or REFUSAL):")
        reply, piece = yield from asked_twice(ask, lambda c: _piece(c, answer), lambda c: restated)
        p = _probability(reply)
        return Extraction(
            entity=piece.entity, asked_for=asked_for, reason=f"{reason} {UNMEASURED}" if p is None else reason,
            confidence=1.0 if p is None else p, refusal=piece.refusal,
        )  # fmt: skip

    def next_query(self, part: Sample, steps: Sequence[Step], form: Form) -> Steps[tuple[str, Query] | None]:
        """Return the next thought and query; None where the model is done, or asks again what it has asked."""
        request, number = self.book.query(part, steps, form), len(steps) + 1
        _, hop = yield from asked_twice(
            request,
            lambda c: self._hop(c, first=not steps),
            lambda c: replace(request, begun=self._up_to_query(c, number)),
            joins=True,
        )
        if hop.query is None or _same(hop.query) in {_same(step.query) for step in steps}:
            return None
        return hop.thought, hop.query

    def _hop(self, reply: Completion, *, first: bool) -> Hop:
        hop = read_hop(_whole(reply), asked(self.formulation), reply.text)
        if first and hop.query is None:
            raise ReplyError("query", "the model asked nothing at all", reply=reply.text)
        return hop

    def _up_to_query(self, reply: Completion, number: int) -> str:
        """Begin a reply anew: with what could be read of the first one, up to the first query that it lacks."""
        texts = _whole(reply).texts
        have: list[tuple[str, str]] = []
        for name in asked(self.formulation):
            if name not in texts or is_end(texts[name]):
                return begun(reply.text, texts.get(THOUGHT, "") if number > 1 else FIRST, *have, then=f"{name} {number}")
            have.append((f"{name} {number}", texts[name]))
        return begun(reply.text, FIRST, then=f"{asked(self.formulation)[0]} {number}")

    def distill(
        self, part: Sample, query: Query, passages: Sequence[Passage], steps: Sequence[Step], form: Form
    ) -> Steps[Knowledge]:
        """Put what the passages say of a query into sentences or triplets; nothing is asked where there are no passages."""
        if not passages:
            return Knowledge(form=form)
        request = self.book.knowledge(part, query, passages, form)
        if form is Form.UNSTRUCTURED:
            again = replace(request, begun=PASSAGES_SAY, max_tokens=2 * request.max_tokens)
            _, told = yield from asked_twice(request, _sentences, lambda c: again)
            return grounded(form, told, (), part, query, passages)
        again = replace(request, begun=" (", max_tokens=2 * request.max_tokens)
        _, facts = yield from asked_twice(request, _triplets, lambda c: again, joins=True)
        return grounded(form, [str(t) for t in facts], facts, part, query, passages)

    def judge(self, part: Sample, steps: Sequence[Step], form: Form, of: int) -> Steps[Judgment]:
        """Judge by queries and knowledge: first the reasons, then a label out of three; thoughts are left out."""
        return (yield from judged(self.book.judge(part, steps, form), part, steps, form, self.options.votes))

    def doubted(self, part: Sample, judgment: Judgment) -> Steps[tuple[Doubtful, ...]]:
        """Mark nothing: where the evidence contradicts, its quotes say which words of the text they speak of."""
        yield from ()
        return ()


def _reason(reply: Completion) -> tuple[str, str]:
    texts = sections(reply.text, ASKED_FOR, (REASON, ENTITY)).texts
    if REASON not in texts:
        raise ReplyError("extract", "the reply gives no reason", reply=reply.text)
    return texts.get(ASKED_FOR, ""), texts[REASON]


def _probability(reply: Completion) -> float | None:
    """Return how probable the reply was among all; None where the backend gave nothing that can be used."""
    total = sum(reply.logprobs)
    return min(1.0, exp(total)) if reply.logprobs and total < ROUNDING else None


def _piece(reply: Completion, answer: str) -> Piece:
    return read_piece(sections(reply.text, ENTITY, ()).texts.get(ENTITY, ""), answer, reply.text)


def _whole(reply: Completion) -> Sections:
    """Part a reply of a step; of one that was cut off, the last query is not whole, but the thought is good enough."""
    found = sections(reply.text, THOUGHT, (THOUGHT, SPECIFIC, GENERAL, QUERY, KNOWLEDGE))
    return found.without_last() if reply.finish_reason == "length" and found.last != THOUGHT else found


def _same(query: Query) -> str:
    """Return what makes a query the same as another: its words, without case and marks."""
    return " ".join(w.text.casefold() for w in words(query.specific or query.general))


def _sentences(reply: Completion) -> list[str]:
    text = whole_sentences(reply.text) if reply.finish_reason == "length" else reply.text
    return read_sentences(text, reply.text)


def _triplets(reply: Completion) -> list[Triplet]:
    text = reply.text[: reply.text.rfind(")") + 1] if reply.finish_reason == "length" else reply.text
    return read_triplets(text, reply.text)
