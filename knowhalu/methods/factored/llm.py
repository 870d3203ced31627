"""An LLM as reasoner of Factored Verification: lists claims and judges whether the sources support each (appendix A.1).

P(supported) is the probability of Yes among Yes and No; with `llm.votes` the share of Yes; where a backend gives no
probabilities, 1 or 0, as in the paper for such models.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from knowhalu.errors import ReplyError
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.common.attribution import quote_step
from knowhalu.methods.common.combine import DEFAULT_CALIBRATION
from knowhalu.methods.common.labels import LabelScheme, generate_bare_label, generate_labelled_rationale, measure_label
from knowhalu.methods.options import FactoredOptions
from knowhalu.prompts.book import PromptBook, factored_family
from knowhalu.prompts.format import (
    CLAIM,
    NO,
    QUESTION,
    REASONING,
    SUPPORTED,
    YES,
    format_claims,
    format_sentences,
    format_sources,
)
from knowhalu.prompts.replies import generate_with_retry, one_line
from knowhalu.prompts.shielding import shield
from knowhalu.prompts.template import join_sections, section
from knowhalu.requests import Completion, Conversation, Generate
from knowhalu.text.clauses import claims_nothing, locate_claim
from knowhalu.text.overlap import coverage, text_facts
from knowhalu.text.quantities import number_value
from knowhalu.text.sentences import Span, word_count, words
from knowhalu.types import Claim, Judgment, Label, Passage, Relation, Sample

MAX_BATCH_SENTENCES, MAX_BATCH_WORDS, CONTEXT_WORDS = 8, 160, 100
"""Sentences and words that one request splits into claims, and words of the text before them that are shown."""


class FactoredLLM:
    """Answer with an instruct or completion model, by prompts and worked examples."""

    def __init__(self, options: LLMOptions | None = None, method: FactoredOptions | None = None) -> None:
        """Load all prompts; raises PromptError where one cannot be used."""
        self.options, self.method = options or LLMOptions(), method or FactoredOptions()
        self.book = PromptBook(factored_family(reasons=self.method.reasons), self.options)
        self.standard = DEFAULT_CALIBRATION

    def claims(self, sample: Sample, spans: Sequence[Span]) -> Conversation[list[tuple[Claim, ...]]]:
        """List the claims of sentences, several sentences at a time."""
        claims: list[tuple[Claim, ...]] = []
        for batch in _batches(spans):
            texts = [s.text for s in batch]
            for span, listed in zip(batch, (yield from self._list_claims(sample, texts, batch[0].start)), strict=True):
                whole = complete_claims(span.text, listed, answers=sample.question is not None)
                places = [locate_claim(c, span) for c in whole]
                claims.append(tuple(Claim(start=at.start, end=at.end, text=c) for c, at in zip(whole, places, strict=True)))
        return claims

    def _list_claims(self, sample: Sample, texts: Sequence[str], start: int) -> Conversation[list[list[str]]]:
        before = " ".join(sample.response[:start].split()[-CONTEXT_WORDS:])
        shown = " ".join((sample.question or "", before, *texts))
        request = claims_request(self.book, sample.question, before, texts)
        _, claims = yield from generate_with_retry(
            request,
            lambda c: read_claims(_complete_part(c), texts, shown, c.text),
            lambda c: _resume_request(request, c, len(texts)),
            joins=True,
        )
        return claims

    def supported(self, part: Sample, passages: Sequence[Passage], of: int) -> Conversation[Judgment]:
        """Judge one claim: the reasons first, then Yes or No under constraint."""
        heading = REASONING if self.method.reasons else SUPPORTED
        request = support_request(self.book, part.question, part.response, passages, heading)
        think = generate_labelled_rationale if self.method.reasons else generate_bare_label
        rationale, label, shares, source = yield from measure_label(
            request, self.options.votes, SUPPORT_SCHEME, think=partial(think, scale=SUPPORT_SCHEME)
        )
        p = shares.get(Label.CORRECT, 0.0) if shares else None
        if p is not None:
            label = Label.CORRECT if p >= 0.5 else Label.INCORRECT
        step = quote_step(part.response, rationale, passages, label, p)
        against = Relation.CONTRADICTION if step.knowledge.quotes else Relation.NEUTRAL  # silence cannot be quoted
        return Judgment(
            label=label, p_supported=p, rationale=rationale, confidence_source=source,
            confidence=None if p is None else max(p, 1 - p), relation=None if label is Label.CORRECT else against, steps=(step,),
        )  # fmt: skip


def claims_request(book: PromptBook, question: str | None, before: str, sentences: Sequence[str]) -> Generate:
    """Ask for the claims of sentences; `before` is the text that they follow."""
    return book.request("claims", text=format_sentences(question or "", before, sentences))


def support_request(book: PromptBook, question: str | None, claim: str, passages: Iterable[Passage], heading: str) -> Generate:
    """Ask whether passages support a claim; `heading` is what the reply begins with: the reasons, or the label."""
    lines = [section(QUESTION, question)] if question else []
    lines += [section(CLAIM, claim), section(heading)]
    return book.request("supported", sources=format_sources(passages), claim=join_sections(lines))


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


def _complete_part(reply: Completion) -> str:
    """Return the complete part of a reply; where it was cut off, the last sentence may lack claims and is left out."""
    if reply.finish_reason != "length":
        return reply.text
    lines = read_valid_lines(reply.text)
    return format_claims((n, shield(claim)) for n, claim in lines if n != lines[-1][0])


def _resume_request(request: Generate, reply: Completion, count: int) -> Generate:
    """Make a second request that begins with the readable part of the reply, up to the first missing sentence."""
    lines = read_valid_lines(_complete_part(reply))
    missing = min(set(range(1, count + 1)) - {number for number, _ in lines}, default=1)
    prefix = format_claims((n, shield(claim)) for n, claim in lines if n < missing)
    return replace(request, prefill=f"\n{prefix}\n{missing}:" if prefix else f"\n{missing}:", max_tokens=2 * request.max_tokens)


_NUMBERED_LINE = re.compile(r"[ \t>*_-]*(?:sentence )?[\[(]?(\d{1,3})[\])]?[*_]*[ \t]*[.:)][*_]*[ \t]*(.*)", re.IGNORECASE)
_LEAD = re.compile(r"[ \t#*_]*(?:the |here are the )?claims(?: are)?[*_]*:[*_ \t]*", re.IGNORECASE)
_NONE = re.compile(r"\W*(?:none|no claims?|nothing|n/?a)\W*", re.IGNORECASE)
_YES_NO = re.compile(r"[\W_]*(yes|no)[\W_]*", re.IGNORECASE)
MAX_CLAIMS = 16
"""Maximum claims of one sentence; a model that lists more repeats itself."""
MIN_CLAIM_COVERAGE = 0.5
"""Share of a claim's words that the text must have; it must have all of the claim's numbers."""


def read_numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a reply; raises ReplyError at one that has no number."""
    lead = _LEAD.match(text.lstrip())
    body = text.lstrip()[lead.end() :] if lead else text
    for line in body.split("\n"):
        if not line.strip():
            continue
        match = _NUMBERED_LINE.fullmatch(line.rstrip("\r"))
        if match is None:
            raise ReplyError("claims", f"a line has no number of a sentence: {line.strip()[:80]!r}", reply=text)
        yield int(match[1]), one_line(match[2]).removeprefix(f"{match[1]}: ")  # said twice where the reply was begun with it


def read_claims(text: str, sentences: Sequence[str], shown: str, raw: str) -> list[list[str]]:
    """Return the claims of every sentence; `shown` is all the text that the model was shown.

    Raises ReplyError where a sentence has no line, or where a claim is not in the text, so that instructions in the text
    cannot make a model list other claims.
    """
    claims: list[list[str]] = [[] for _ in sentences]
    seen: set[int] = set()
    for number, claim in read_numbered_lines(text):
        if not 1 <= number <= len(sentences):
            raise ReplyError("claims", f"there is no sentence {number}", reply=raw)
        seen.add(number)
        if _NONE.fullmatch(claim) or claim in claims[number - 1]:
            continue
        if not any(c.isalnum() for c in claim):
            raise ReplyError("claims", f"a claim of sentence {number} is empty", reply=raw)
        if coverage(claim, shown) < MIN_CLAIM_COVERAGE or not _figures(claim) <= text_facts(shown).numbers:
            raise ReplyError("claims", f"the text does not contain what is listed as its claim: {claim[:80]!r}", reply=raw)
        claims[number - 1].append(claim)
    if missing := [i for i in range(1, len(sentences) + 1) if i not in seen]:
        raise ReplyError("claims", f"sentence {missing[0]} has no line", reply=raw)
    if any(len(listed) > MAX_CLAIMS for listed in claims):
        raise ReplyError("claims", f"more than {MAX_CLAIMS} claims of one sentence", reply=raw)
    return claims


def read_valid_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines that can be read, up to the first that cannot."""
    lines = []
    with suppress(ReplyError):
        for line in read_numbered_lines(text):
            lines.append(line)
    return lines


def complete_claims(sentence: str, claims: Sequence[str], *, answers: bool) -> list[str]:
    """Return the claims of a sentence, and the sentence itself where they lack one of its numbers or names.

    So no claim stays unchecked because a model does not list it.
    """
    listed = text_facts(" ".join(claims))
    whole = _figures(sentence) <= listed.numbers and text_facts(sentence).names <= set(listed.content)
    return list(claims) if whole or (not claims and claims_nothing(sentence, answers=answers)) else [*claims, sentence]


def _figures(text: str) -> set[str]:
    """Return the numbers that are written with digits; "one" is too often a pronoun."""
    return {n for w in words(text) if any(c.isdigit() for c in w.text) and (n := number_value(w.text)) is not None}


def read_supported(text: str, raw: str, words: Mapping[str, Label]) -> Label:
    """Read Yes or No; raises ReplyError where the reply is neither alone."""
    match = _YES_NO.fullmatch(text)
    if match is None:
        raise ReplyError("supported", "the reply is neither Yes nor No", reply=raw)
    return words[match[1].capitalize()]


SUPPORT_SCHEME = LabelScheme(
    {YES: Label.CORRECT, NO: Label.INCORRECT}, SUPPORTED, " Each detail is held against the sources in turn.", REASONING,
    ends=(SUPPORTED,), hint="Yes or No", max_tokens=8, read=read_supported, ties=(Label.CORRECT, Label.INCORRECT),
    stage="supported",
)  # fmt: skip
