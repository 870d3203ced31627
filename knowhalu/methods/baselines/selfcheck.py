"""SelfCheckGPT (Manakul et al. 2023): hallucinations are inconsistent between samples of the same model.

Further responses to the same question or document are sampled at temperature 1, and each piece of the checked response is
compared with each of them. No knowledge is needed. Pieces and decision follow KnowHalu, appendix A.5.2.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from knowhalu.errors import ModelError, ReplyError, StageError
from knowhalu.io.verifier_file import distinguishes_contradictions
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.baselines.judge import source_queries
from knowhalu.methods.common.labels import LabelScheme, generate_label
from knowhalu.methods.common.sources import given_or_retrieved_passages
from knowhalu.methods.common.verdict import (
    LABEL_SUPPORT,
    combine_segments,
    inconclusive_reason,
    is_hallucinated,
    resolve_inconclusive,
)
from knowhalu.methods.options import BaselineOptions
from knowhalu.prompts.book import BASELINES, PromptBook
from knowhalu.prompts.format import format_passages
from knowhalu.prompts.replies import complete_sentences, generate_with_retry, one_line
from knowhalu.prompts.template import join_sections, section
from knowhalu.requests import Completion, Conversation, Entail, EntailmentPair, ask
from knowhalu.results import Segment, Verdict
from knowhalu.text.probabilities import complement
from knowhalu.text.sentences import Span, at_most_segments, sentences
from knowhalu.types import META_SAMPLES, InconclusiveReason, Judgment, Label, Passage, Sample, Task

MAX_SHOWN_CHARS = 160
"""Characters of a response that a reason shows."""


class SelfCheckReasoner(Protocol):
    """The steps that a reasoner contributes to SelfCheckGPT."""

    def draw(self, sample: Sample, passages: Sequence[Passage], number: int) -> Conversation[str]:
        """Draw the response `number`, from 0, to what the sample responds to."""

    def inconsistent(self, part: Sample, contexts: Sequence[str]) -> Conversation[list[float | None]]:
        """Return for each context the inconsistency (0 to 1) of the response of `part`; None where it does not mention it."""


class SelfCheck:
    """Check a response by further responses to the same input."""

    name = "selfcheck"

    def __init__(self, reasoner: SelfCheckReasoner, options: BaselineOptions | None = None) -> None:
        self.reasoner, self.options = reasoner, options or BaselineOptions()

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Check one sample."""
        drawn = Counter((yield from self._samples(sample)))  # a short answer is often drawn in the same words
        segments = []
        for piece in self._pieces(sample):
            part = sample.model_copy(update={"response": piece.text})
            scores = yield from self.reasoner.inconsistent(part, tuple(drawn))
            segments.append(self._segment(sample, piece, drawn, scores))
        verdict = combine_segments(sample, segments, self.name, kind=None)
        return verdict if self.options.score == "max" else self._by_mean(verdict)

    def _samples(self, sample: Sample) -> Conversation[list[str]]:
        """Return the responses that come with the sample, or draw them; raises StageError where there can be none."""
        if META_SAMPLES in sample.meta:
            return _read_meta_samples(sample)
        if sample.task is Task.CLAIM:
            raise StageError(
                META_SAMPLES,
                "a claim answers nothing, so there is nothing to answer again. Give the question or the documents that it comes "
                "from, or other texts on the same as meta.samples, a list of texts",
            )
        passages: tuple[Passage, ...] = ()
        if sample.documents:  # knowledge is not shown, as the model would check by it
            without = sample.model_copy(update={"knowledge": ()})
            passages = yield from given_or_retrieved_passages(without, source_queries(without), words=self.options.source_words)
        drawn = []
        for number in range(self.options.samples):
            drawn.append((yield from self.reasoner.draw(sample, passages, number)))
        return drawn

    def _pieces(self, sample: Sample) -> Sequence[Span]:
        """Return the pieces that are judged alone: the segments of a summary, the sentences of any other response."""
        if sample.task is not Task.SUMMARY and len(spans := sentences(sample.response)) <= self.options.pieces:
            return spans
        return at_most_segments(sample.response, self.options.segment_words, self.options.pieces)

    def _segment(self, sample: Sample, piece: Span, drawn: Counter[str], scores: Sequence[float | None]) -> Segment:
        """Score a piece by its mean inconsistency; a response that does not mention it counts as one half."""
        pairs = list(zip(drawn.items(), scores, strict=True))
        score = sum(n * (0.5 if value is None else value) for (_, n), value in pairs) / drawn.total()
        label = Label.INCORRECT if score >= self.options.threshold else Label.CORRECT
        silent = all(value is None for value in scores)
        if silent:
            label = Label.INCONCLUSIVE
        by_votes = set(scores) <= {0.0, 1.0, None}
        # the answer about a single response is no share of anything
        p = None if by_votes and not silent and drawn.total() == 1 else score
        base = Judgment(
            label=label, confidence=p if label is Label.INCORRECT else complement(p), p_supported=complement(p),
            confidence_source="none" if p is None else "votes" if by_votes else "probability",
            rationale=_reason(pairs, drawn.total()), inconclusive_reason=InconclusiveReason.OFF_TOPIC if silent else None,
        )  # fmt: skip
        label = resolve_inconclusive(label, sample.task)
        why = inconclusive_reason(label, base)
        return Segment(**piece._asdict(), label=label, inconclusive_reason=why, probability=p, base=base)

    def _by_mean(self, verdict: Verdict) -> Verdict:
        """Decide by the mean of all pieces (SelfCheckGPT's score of a passage)."""
        scores = [1 - LABEL_SUPPORT[s.base.label] if s.probability is None else s.probability for s in verdict.segments]
        score = sum(scores) / len(scores)
        label = Label.INCORRECT if score >= self.options.threshold else Label.CORRECT
        if all(s.base.label is Label.INCONCLUSIVE for s in verdict.segments):
            label = resolve_inconclusive(Label.INCONCLUSIVE, verdict.task)
        reason = f"mean inconsistency of {len(verdict.segments)} pieces {score:.2f}; the worst: {verdict.reason}"
        return verdict.model_copy(update={
            "label": label, "hallucinated": is_hallucinated(label), "reason": reason,
            "probability": None if verdict.probability is None else score,
            "inconclusive_reason": InconclusiveReason.OFF_TOPIC if label is Label.INCONCLUSIVE else None,
        })  # fmt: skip


def _read_meta_samples(sample: Sample) -> list[str]:
    """Return `meta.samples`; raises StageError where it is no list of texts."""
    given = sample.meta[META_SAMPLES]
    if not isinstance(given, list | tuple) or not given:
        raise StageError(META_SAMPLES, "meta.samples must be a list of texts, one for each further response")
    for number, text in enumerate(given, 1):
        if not isinstance(text, str) or not text.strip():
            raise StageError(META_SAMPLES, f"meta.samples: number {number} is no text. Write each further response as a text")
    return list(given)


def _reason(pairs: Sequence[tuple[tuple[str, int], float | None]], total: int) -> str:
    """Return how many responses support a piece, with one that does not."""
    support = sum(n for (_, n), value in pairs if value is not None and value < 0.5)
    reason = f"{support} of {total} other responses support it"
    (response, _), score = max(pairs, key=lambda p: (p[1] is not None and p[1] >= 0.5, p[0][1]))
    if score is None or score < 0.5:
        return reason
    text = " ".join(response.split())
    return f"{reason}; another one says: {text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + ' ...'}"


def _read_answer(text: str, raw: str, words: Mapping[str, Label]) -> Label:
    """Read the answer of a reply; raises ReplyError where it names none, or several."""
    bare = text.strip(" \n\t.*_\"'()[]").casefold()
    for word, label in words.items():
        if bare == word.casefold():
            return label
    named = set(re.findall(rf"(?<![\w/])(?:{'|'.join(map(re.escape, words))})(?![\w/])", text))
    if len(named) != 1:
        raise ReplyError("supported", f"the reply names {'several' if named else 'none'} of {', '.join(words)}", reply=raw)
    return words[named.pop()]


SUPPORT_SCHEME = LabelScheme(
    {"Yes": Label.CORRECT, "No": Label.INCORRECT, "N/A": Label.INCONCLUSIVE}, max_tokens=8, read=_read_answer, stage="supported"
)
INCONSISTENCY_SCORES = {Label.CORRECT: 0.0, Label.INCORRECT: 1.0, Label.INCONCLUSIVE: None}
"""Inconsistency of a sentence by the model's answer; None where the response does not mention the matter."""
REDRAW_SEED_OFFSET = 1_000_003
"""Added to the seed of a response that is drawn again, so that it cannot come out the same."""


class SelfCheckLLM:
    """Sample responses of a language model, and ask it which sentences each supports (the prompt variant)."""

    def __init__(self, options: LLMOptions | None = None, method: BaselineOptions | None = None) -> None:
        """Load the prompts; raises PromptError where one cannot be used."""
        self.options, self.method = options or LLMOptions(), method or BaselineOptions()
        self.book = PromptBook(BASELINES, self.options, ("answer", "supported"))

    def draw(self, sample: Sample, passages: Sequence[Passage], number: int) -> Conversation[str]:
        """Draw the response `number`, from 0, to what the sample responds to."""
        question = [section("Question", sample.question)] if sample.question else []
        request = self.book.request("answer", sample.task, sample=join_sections([*format_passages(passages), *question]))
        request = replace(request, temperature=self.method.temperature, seed=request.seed + number)
        _, text = yield from generate_with_retry(
            request, _response, lambda c: replace(request, seed=request.seed + REDRAW_SEED_OFFSET)
        )
        return text

    def inconsistent(self, part: Sample, contexts: Sequence[str]) -> Conversation[list[float | None]]:
        """Return for each context the inconsistency of the response of `part`: 0 or 1, None where it does not mention it."""
        question = [section("Question", part.question)] if part.question else []
        scores: list[float | None] = []
        for context in contexts:
            request = self.book.request(
                "supported", part.task, context=join_sections([*question, section("Context", context)]),
                sentence=section("Sentence", part.response),
            )  # fmt: skip
            label, _ = yield from generate_label(request, "\n", SUPPORT_SCHEME)
            scores.append(INCONSISTENCY_SCORES[label])
        return scores


class SelfCheckEncoder:
    """Compare sentences with given responses by the verifier (the NLI variant)."""

    def __init__(self, folder: Path) -> None:
        """Keep the folder; raises ModelError where its verifier has no output for the contradictions that are measured here."""
        if not distinguishes_contradictions(folder):
            remedy = "Use one with the classes supported, contradicted and neutral, or a language model: --reasoner llm"
            raise ModelError(f"{folder}: selfcheck counts contradictions, which this verifier does not distinguish. {remedy}")
        self.folder = folder

    def draw(self, sample: Sample, passages: Sequence[Passage], number: int) -> Conversation[str]:
        """Raise StageError: the encoder generates no text."""
        yield from ()
        raise StageError(
            "samples",
            "the encoder cannot sample further responses. Give them with the row as meta.samples, a list of texts, or use a "
            "language model: --reasoner llm",
        )

    def inconsistent(self, part: Sample, contexts: Sequence[str]) -> Conversation[list[float | None]]:
        """Return for each context P(contradicted) / (P(contradicted) + P(supported)), without the neutral class."""
        scores = yield from ask(Entail(tuple(EntailmentPair(c, part.response, part.question) for c in contexts)))
        return [p.contradicted / decided if (decided := p.contradicted + p.supported) > 0 else None for p in scores]


def _response(reply: Completion) -> str:
    text = one_line(complete_sentences(reply.text) or reply.text) if reply.finish_reason == "length" else one_line(reply.text)
    if not any(c.isalnum() for c in text):
        raise ReplyError("samples", "the model wrote no response", reply=reply.text)
    return text
