"""An LLM as reasoner: answers KnowHalu's questions by prompts (KnowHalu, sections 3.1, 3.2 and appendix A)."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp

from knowhalu.errors import ReplyError, StageError
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.common.attribution import ground_statements
from knowhalu.methods.common.combine import Thresholds
from knowhalu.methods.common.labels import judge_knowledge
from knowhalu.methods.knowhalu.options import KnowHaluOptions
from knowhalu.prompts.book import KnowHaluPromptBook
from knowhalu.prompts.format import ASKED_FOR, ENTITY, GENERAL, KNOWLEDGE, REASON, SPECIFIC, THOUGHT, query_headings
from knowhalu.prompts.replies import (
    NONE_WORD,
    REFUSAL_WORD,
    SHORT_QUERY_HEADING,
    ExtractedAnswer,
    NextStep,
    ReplySections,
    complete_sentences,
    generate_with_retry,
    is_end_of_queries,
    read_extraction,
    read_next_step,
    read_sentences,
    read_triplets,
    reply_prefix,
    split_sections,
)
from knowhalu.requests import Completion, Conversation, Generate, UnsupportedSpan, ask
from knowhalu.text.sentences import STOPWORDS, words
from knowhalu.types import Extraction, Judgment, Knowledge, KnowledgeForm, Passage, Query, Sample, Step, Task, Triplet

GIVEN_THRESHOLDS, INDEX_THRESHOLDS, SUMMARY_THRESHOLDS = (
    Thresholds(0.986, 0.995),
    Thresholds(0.997, 0.999),
    Thresholds(0.999, 0.9994),
)
"""delta1 and delta2 where the source comes with the sample, from an index, and for summaries.

Values of the paper's calibration for 7B models with unstructured knowledge as base (table 21). They depend on the model: a
calibration on one's own labelled rows is better, and `knowhalu.delta1` and `knowhalu.delta2` override them. With votes, a single
dissenting one suffices for a second opinion.
"""
ASKED_FOR_OPENING, THOUGHT_OPENING, KNOWLEDGE_OPENING = (
    "what the question asks for",
    "Begin with the first detail.",
    " In the words of the passages:",
)
"""Begin a reply that the model could not begin itself."""
FOREIGN_HEADINGS = ("Answer", "Claim", "Summary", "Passage", "Judgment", "Label")
"""Headings of other stages, with which models go on after a query; what follows belongs to no query."""
NO_PROBABILITY_NOTE = "(the model gave no probability for this)"
MAX_ENTITY_TOKENS, MAX_OPENING_WORDS, ROUNDING_TOLERANCE = 64, 24, 1e-3


class KnowHaluLLM:
    """Answer with an instruct or completion model, by prompts and demonstrations."""

    name = "llm"

    def __init__(self, options: LLMOptions | None = None, method: KnowHaluOptions | None = None) -> None:
        """Load all prompts; raises PromptError where one cannot be used."""
        self.options = options or LLMOptions()
        self.formulation = (method or KnowHaluOptions()).formulation
        self.book = KnowHaluPromptBook(self.options, self.formulation)

    def thresholds(self, sample: Sample) -> Thresholds:
        """Return delta1 and delta2 for the kind of source that a sample has."""
        if sample.task is Task.SUMMARY:
            return SUMMARY_THRESHOLDS
        return GIVEN_THRESHOLDS if sample.documents or sample.knowledge else INDEX_THRESHOLDS

    def extract(self, question: str, answer: str) -> Conversation[Extraction]:
        """Extract what the question asks for from the answer: first the reason, then the words, with their probability."""
        request = self.book.extract(question, answer)
        reply, (asked_for, reason) = yield from generate_with_retry(
            request, _reason, lambda c: replace(request, prefill=reply_prefix(c.text, ASKED_FOR_OPENING, then=REASON)), joins=True
        )
        lead = reply_prefix(reply.text, asked_for, (REASON, reason), then=ENTITY)
        first = replace(request, prefill=lead, stop=("\n### ",), max_tokens=MAX_ENTITY_TOKENS)
        restated = replace(first, prefill=f"{lead[:-1]} (the answer's own words, NONE or REFUSAL):")
        reply, piece = yield from generate_with_retry(first, lambda c: _read_extraction(c, answer), lambda c: restated)
        p = _probability(reply)
        if piece.entity is None:
            p = yield from _share_of(REFUSAL_WORD if piece.refusal else NONE_WORD, first, answer, p)
        return Extraction(
            entity=piece.entity, asked_for=asked_for, reason=f"{reason} {NO_PROBABILITY_NOTE}" if p is None else reason,
            confidence=p, refusal=piece.refusal,
        )  # fmt: skip

    def next_query(self, part: Sample, steps: Sequence[Step], form: KnowledgeForm) -> Conversation[tuple[str, Query] | None]:
        """Return the next thought and query; None where the model is done, or repeats a query."""
        request, number = self.book.query(part, steps, form), len(steps) + 1
        _, hop = yield from generate_with_retry(
            request,
            lambda c: self._hop(c, first=not steps),
            lambda c: replace(request, prefill=self._up_to_query(c, number)),
            joins=True,
        )
        if hop.query is None or _query_key(hop.query) in {_query_key(step.query) for step in steps}:
            return None
        return hop.thought, hop.query

    def _hop(self, reply: Completion, *, first: bool) -> NextStep:
        hop = read_next_step(_complete_sections(reply), query_headings(self.formulation), reply.text)
        if first and hop.query is None:
            raise ReplyError("query", "the model asked nothing at all", reply=reply.text)
        return hop

    def _up_to_query(self, reply: Completion, number: int) -> str:
        """Return the beginning of a second reply: the readable part of the first one, up to the first missing query."""
        texts = _complete_sections(reply).texts
        have: list[tuple[str, str]] = []
        for name in query_headings(self.formulation):
            if name not in texts or is_end_of_queries(texts[name]):
                return reply_prefix(
                    reply.text, texts.get(THOUGHT, "") if number > 1 else THOUGHT_OPENING, *have, then=f"{name} {number}"
                )
            have.append((f"{name} {number}", texts[name]))
        return reply_prefix(reply.text, THOUGHT_OPENING, then=f"{query_headings(self.formulation)[0]} {number}")

    def distill(
        self, part: Sample, query: Query, passages: Sequence[Passage], steps: Sequence[Step], form: KnowledgeForm
    ) -> Conversation[Knowledge]:
        """Distill the passages into sentences or triplets about a query; without passages no request is made."""
        if not passages:
            return Knowledge(form=form)
        request = self.book.knowledge(part, query, passages, form)
        if form is KnowledgeForm.UNSTRUCTURED:
            again = replace(request, prefill=KNOWLEDGE_OPENING, max_tokens=2 * request.max_tokens)
            _, statements = yield from generate_with_retry(request, _sentences, lambda c: again)
            return ground_statements(form, statements, (), part, query, passages)
        again = replace(request, prefill=" (", max_tokens=2 * request.max_tokens)
        _, facts = yield from generate_with_retry(request, _triplets, lambda c: again, joins=True)
        return ground_statements(form, [str(t) for t in facts], facts, part, query, passages)

    def judge(self, part: Sample, steps: Sequence[Step], form: KnowledgeForm) -> Conversation[Judgment]:
        """Judge by queries and knowledge: first the reasons, then a label out of three; thoughts are left out."""
        return (yield from judge_knowledge(self.book.judge(part, steps, form), part, steps, form, self.options.votes))

    def unsupported_spans(self, part: Sample, judgment: Judgment) -> Conversation[tuple[UnsupportedSpan, ...]]:
        """Return no words: the quotes of contradicting evidence show which words they concern."""
        yield from ()
        return ()


def _reason(reply: Completion) -> tuple[str, str]:
    texts = split_sections(reply.text, ASKED_FOR, (REASON, ENTITY)).texts
    if REASON not in texts:
        raise ReplyError("extract", "the reply gives no reason", reply=reply.text)
    return texts.get(ASKED_FOR, ""), texts[REASON]


def _probability(reply: Completion) -> float | None:
    """Return the probability of the reply; None where the backend gave none that can be used."""
    total = sum(reply.logprobs)
    return min(1.0, exp(total)) if reply.logprobs and total < ROUNDING_TOLERANCE else None


def _share_of(word: str, request: Generate, answer: str, p: float | None) -> Conversation[float | None]:
    """Return the probability of NONE or REFUSAL where the reply may also begin with a word of the answer.

    That of the reply alone, `p`, is small for a rare word, even where it is likelier than all pieces together. It is returned
    where the choice cannot be measured.
    """
    try:
        reply = yield from ask(replace(request, stop=(), choices=(NONE_WORD, REFUSAL_WORD, *_opening_words(answer))))
    except StageError as error:
        if error.retryable:
            raise
        return p
    return reply.choices.get(word, p)


def _opening_words(answer: str) -> list[str]:
    """Return the words with which a piece of an answer may begin; of many, those with content first."""
    found = list(dict.fromkeys(w.text for w in words(answer) if w.text not in (NONE_WORD, REFUSAL_WORD)))
    if len(found) > MAX_OPENING_WORDS:
        found.sort(key=lambda w: w.lower() in STOPWORDS)
    return found[:MAX_OPENING_WORDS]


def _read_extraction(reply: Completion, answer: str) -> ExtractedAnswer:
    return read_extraction(split_sections(reply.text, ENTITY, ()).texts.get(ENTITY, ""), answer, reply.text)


def _complete_sections(reply: Completion) -> ReplySections:
    """Split a reply into sections; where it was cut off, drop the last one, unless that is the thought."""
    wanted = (THOUGHT, SPECIFIC, GENERAL, SHORT_QUERY_HEADING, KNOWLEDGE, *FOREIGN_HEADINGS)
    found = split_sections(reply.text, THOUGHT, wanted)
    return found.without_last() if reply.finish_reason == "length" and found.last != THOUGHT else found


def _query_key(query: Query) -> str:
    """Return the words of a query without case and punctuation, by which repeated queries are recognised."""
    return " ".join(w.text.casefold() for w in words(query.specific or query.general))


def _sentences(reply: Completion) -> list[str]:
    text = complete_sentences(reply.text) if reply.finish_reason == "length" else reply.text
    return read_sentences(text, reply.text)


def _triplets(reply: Completion) -> list[Triplet]:
    text = reply.text[: reply.text.rfind(")") + 1] if reply.finish_reason == "length" else reply.text
    return read_triplets(text, reply.text)
