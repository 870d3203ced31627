"""An LLM as reasoner of Factored Verification: lists claims, and says of each whether the sources support it (appendix A.1).

P(supported) is the probability of Yes among Yes and No; with `llm.votes` the share of Yes; where a backend gives no
probabilities, 1 or 0, as in the paper for such models.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from knowhalu.errors import ReplyError
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.common.attribution import quote_step
from knowhalu.methods.common.combine import COMBINATION_RULES, CombinationCalibration
from knowhalu.methods.factored.options import FactoredOptions
from knowhalu.prompts.book import NO, REASONING, SUPPORTED, YES, FactoredPromptBook, format_claims
from knowhalu.prompts.claim_replies import complete_claims, read_claims, read_supported, read_valid_lines
from knowhalu.prompts.generate import generate_with_retry, reply_prefix
from knowhalu.prompts.replies import complete_sentences, split_sections
from knowhalu.prompts.template import shield
from knowhalu.requests import Completion, Conversation, Generate
from knowhalu.text.clauses import locate_claim
from knowhalu.text.sentences import Span, word_count
from knowhalu.types import Claim, Judgment, Label, Passage, Relation, Sample

DEFAULT_CALIBRATION = CombinationCalibration(dict.fromkeys(COMBINATION_RULES, 0.5), typical=0.95, reference=4.0)
"""What claims are measured by where nothing was fitted: a text is hallucinated if it is so more likely than not.

The paper fits theta for each model on 1,000 texts and gives no figures. `factored.theta` wins; `fit_theta` in
`knowhalu.methods.common.combine` makes one of labelled rows.
"""
MAX_BATCH_SENTENCES, MAX_BATCH_WORDS, CONTEXT_WORDS = 8, 160, 100
"""Sentences and words that are taken apart in one request, and words of the text before them that are shown."""
MAX_LABEL_TOKENS = 8
RATIONALE_OPENING = " Each detail is held against the sources in turn."
"""How reasons begin that the model did not begin itself."""
NO_REASONS_NOTE = "judged without reasons"


class FactoredLLM:
    """Think with an instruct or completion model, by prompts and worked examples."""

    def __init__(self, options: LLMOptions | None = None, method: FactoredOptions | None = None) -> None:
        """Load all prompts; raises PromptError where one cannot be used."""
        self.options, self.method = options or LLMOptions(), method or FactoredOptions()
        self.book = FactoredPromptBook(self.options, reasons=self.method.reasons)
        self.standard = DEFAULT_CALIBRATION

    def claims(self, sample: Sample, spans: Sequence[Span]) -> Conversation[list[tuple[Claim, ...]]]:
        """List the claims of sentences, several sentences at a time."""
        found: list[tuple[Claim, ...]] = []
        answers = sample.question is not None
        for batch in _batches(spans):
            listed = yield from self._listed(sample, [s.text for s in batch], _last_words(sample.response[: batch[0].start]))
            for span, claims in zip(batch, listed, strict=True):
                whole = complete_claims(span.text, claims, answers=answers)
                found.append(tuple(Claim(start=at.start, end=at.end, text=c) for c in whole for at in [locate_claim(c, span)]))
        return found

    def _listed(self, sample: Sample, texts: Sequence[str], before: str) -> Conversation[list[list[str]]]:
        told = " ".join((sample.question or "", before, *texts))
        request = self.book.claims(sample.question, before, texts)
        _, listed = yield from generate_with_retry(
            request,
            lambda c: read_claims(_complete_part(c), texts, told, c.text),
            lambda c: _resume_request(request, c, len(texts)),
            joins=True,
        )
        return listed

    def supported(self, part: Sample, passages: Sequence[Passage], of: int) -> Conversation[Judgment]:
        """Judge one claim: the reasons first, then Yes or No under constraint."""
        request = self.book.supported(part.question, part.response, passages)
        votes = self.options.votes
        if votes > 1:
            rationale, p = yield from self._voted(request, votes)
            measured = "votes"
        else:
            rationale, says, probability = yield from self._said(request)
            p = float(says) if probability is None else probability
            measured = "none" if probability is None else "probability"
        step = quote_step(part.response, rationale, passages, p)
        against = Relation.CONTRADICTION if step.knowledge.quotes else Relation.NEUTRAL  # silence cannot be quoted
        return Judgment(
            label=Label.CORRECT if p >= 0.5 else Label.INCORRECT, p_supported=p, rationale=rationale, confidence_source=measured,
            confidence=0.0 if measured == "none" else max(p, 1 - p), relation=None if p >= 0.5 else against, steps=(step,),
        )  # fmt: skip

    def _voted(self, request: Generate, votes: int) -> Conversation[tuple[str, float]]:
        """Draw several judgments at temperature 1; returns the reasons of the first of the majority, and the share of Yes."""
        drawn: list[tuple[str, bool]] = []
        for i in range(votes):
            rationale, says, _ = yield from self._said(replace(request, temperature=1.0, seed=request.seed + i))
            drawn.append((rationale, says))
        share = sum(says for _, says in drawn) / votes
        rationale = next(r for r, says in drawn if says == (share >= 0.5))
        return f"{rationale} ({sum(says for _, says in drawn)} of {votes} votes for it)", share

    def _said(self, request: Generate) -> Conversation[tuple[str, bool, float | None]]:
        """Ask for reasons and label; returns both, and P(Yes) where the backend gives it."""
        rationale, lead = NO_REASONS_NOTE, "\n"
        if self.method.reasons:
            reply, rationale = yield from generate_with_retry(
                request, _rationale, lambda c: replace(request, prefill=RATIONALE_OPENING)
            )
            lead = reply_prefix(reply.text, rationale, then=SUPPORTED) + "\n"
        ask = replace(request, prefill=lead, stop=(), max_tokens=MAX_LABEL_TOKENS, choices=(YES, NO))
        restated = replace(ask, prefill=f"{lead}{YES} or {NO}:\n")
        draw = ask.temperature > 0 and not self.method.reasons  # else all votes would be the likelier one
        reply, (says, p) = yield from generate_with_retry(ask, lambda c: _label(c, draw), lambda c: restated)
        return rationale, says, p


def _batches(spans: Sequence[Span]) -> Iterator[list[Span]]:
    """Put neighbouring sentences together while their number and words stay within bounds."""
    batch: list[Span] = []
    for span in spans:
        if batch and (len(batch) == MAX_BATCH_SENTENCES or sum(word_count(s.text) for s in (*batch, span)) > MAX_BATCH_WORDS):
            yield batch
            batch = []
        batch.append(span)
    if batch:
        yield batch


def _last_words(text: str) -> str:
    return " ".join(text.split()[-CONTEXT_WORDS:])


def _complete_part(reply: Completion) -> str:
    """Return what is whole of a reply; where it was cut off, more may have been to come of its last sentence."""
    if reply.finish_reason != "length":
        return reply.text
    lines = read_valid_lines(reply.text)
    return format_claims((n, shield(claim)) for n, claim in lines if n != lines[-1][0])


def _resume_request(request: Generate, reply: Completion, count: int) -> Generate:
    """Begin a reply anew with all that could be read of it, up to the first sentence that is missing."""
    lines = read_valid_lines(_complete_part(reply))
    have = {number for number, _ in lines}
    missing = next((i for i in range(1, count + 1) if i not in have), 1)
    kept = format_claims((n, shield(claim)) for n, claim in lines if n < missing)
    return replace(request, prefill=f"\n{kept}\n{missing}:" if kept else f"\n{missing}:", max_tokens=2 * request.max_tokens)


def _rationale(reply: Completion) -> str:
    text = split_sections(reply.text, REASONING, (SUPPORTED,)).texts.get(REASONING, "")
    if not any(c.isalnum() for c in text):
        raise ReplyError("supported", "the reply gives no reasons", reply=reply.text)
    return (complete_sentences(text) or text) if reply.finish_reason == "length" else text


def _label(reply: Completion, draw: bool) -> tuple[bool, float | None]:
    """Return the more probable of Yes and No with P(Yes); with `draw`, or without probabilities, what the reply says."""
    given = {} if draw else {name: p for name, p in reply.choices.items() if name in (YES, NO)}
    total = sum(given.values())
    if all(p >= 0 for p in given.values()) and 0 < total < float("inf"):
        p = given.get(YES, 0.0) / total
        return p >= 0.5, p
    return read_supported(reply.text, reply.text), None
