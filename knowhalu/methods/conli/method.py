"""CoNLI: each sentence against the sources as natural language inference, then each entity of the sentences that pass.

The detection agent of the CoNLI paper (section 3.1, algorithm 1), independent of the reasoner. Contradicted and neutral
sentences both count as hallucinated; sentences that claim nothing are not checked.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from knowhalu.methods.common.attribution import evidence_for
from knowhalu.methods.common.sources import given_or_retrieved_passages
from knowhalu.methods.common.verdict import (
    NO_EVIDENCE,
    RELATION_BY_LABEL,
    combine_segments,
    deciding_segment,
    error_relation,
    inconclusive_judgment,
    judged_segment,
    nothing_to_check_verdict,
    support_order,
)
from knowhalu.methods.options import ConliOptions
from knowhalu.requests import Conversation
from knowhalu.results import Evidence, Finding, Segment, SkippedSpan, Verdict
from knowhalu.text.probabilities import all_measured
from knowhalu.text.sentences import Span, content_words, sentences, word_count, words
from knowhalu.types import Entity, Judgment, Label, Passage, Sample

NO_CLAIM = "nothing to check: no sentence of the response claims anything"
NO_ENTITY = "no entity in it to judge"


class EntityHypothesis(NamedTuple):
    """A sentence of the response that the sources should entail; with a `focus`, only that entity is in question."""

    text: str
    focus: Entity | None = None


class ConliReasoner(Protocol):
    """The steps that a reasoner contributes to CoNLI; each is a conversation."""

    def detector(self, name: str) -> Callable[[str], Sequence[Entity]]:
        """Return the detector of entities."""

    def infer(
        self, sample: Sample, hypotheses: Sequence[EntityHypothesis], passages: Sequence[Passage]
    ) -> Conversation[Sequence[Judgment]]:
        """Judge each hypothesis alone by the passages: CORRECT (entailment), INCORRECT (contradiction), INCONCLUSIVE (neutral).

        All of them have a focus, or none has.
        """


class CoNLI:
    """Check the sentences of a response, and the entities of those that pass, by a chain of inferences."""

    name = "conli"

    def __init__(self, reasoner: ConliReasoner, options: ConliOptions | None = None) -> None:
        """Raise SettingsError, ModelError or MissingExtra where the entity detector of the options cannot be had."""
        self.reasoner, self.options = reasoner, options or ConliOptions()
        self.detect = (lambda text: ()) if self.options.levels == "sentence" else reasoner.detector(self.options.entities)

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Check one sample."""
        options = self.options
        spans, skipped = select_hypotheses(sample.response, answers=bool(sample.question), keep_all=not options.select)
        if options.levels == "entity":
            bare = [s for s in spans if not self.detect(s.text)]
            skipped += [SkippedSpan(**s._asdict(), reason=NO_ENTITY) for s in bare]
            spans = [s for s in spans if s not in bare]
        segments: list[Segment] = []
        size = options.batch_size if options.batched else 1
        for i in range(0, len(spans), size):
            segments += yield from self._group(sample, spans[i : i + size])
        if segments:
            measured = all_measured(s.probability for s in segments)
            verdict = combine_segments(sample, segments, self.name, probability=max(measured) if measured else None)
            verdict = verdict.model_copy(update={"reason": _reason(deciding_segment(segments))})
        else:
            verdict = nothing_to_check_verdict(sample, self.name, NO_CLAIM)
        return verdict.model_copy(update={"skipped": tuple(sorted(skipped, key=lambda s: s.start))})

    def _group(self, sample: Sample, group: Sequence[Span]) -> Conversation[list[Segment]]:
        """Judge several sentences by the same passages: as wholes, then by the entities of those that pass."""
        asked = sample if self.options.question else sample.model_copy(update={"question": None})
        queries = [f"{asked.question} {s.text}" if asked.question else s.text for s in group]
        limit, k = self.options.source_words, self.options.passages
        passages = yield from given_or_retrieved_passages(sample, queries, words=limit, k=k)
        if not any(p.text.strip() for p in passages):
            no_evidence = inconclusive_judgment(sample.task, NO_EVIDENCE)
            return [judged_segment(s, no_evidence, sample.task) for s in group]
        bases: Sequence[Judgment | None] = [None] * len(group)
        if self.options.levels != "entity":
            bases = yield from self.reasoner.infer(asked, [EntityHypothesis(s.text) for s in group], passages)
        tagged = [
            (span, EntityHypothesis(span.text, entity))
            for span, base in zip(group, bases, strict=True) if base is None or base.label is Label.CORRECT
            for entity in self.detect(span.text)
        ]  # fmt: skip
        judgments: Sequence[Judgment] = ()
        if tagged:
            judgments = yield from self.reasoner.infer(asked, [h for _, h in tagged], passages)
        judged = [(s, h.focus, j) for (s, h), j in zip(tagged, judgments, strict=True) if h.focus is not None]
        return [_segment(s, b, [(e, j) for at, e, j in judged if at is s]) for s, b in zip(group, bases, strict=True)]


def _segment(span: Span, base: Judgment | None, judged: Sequence[tuple[Entity, Judgment]]) -> Segment:
    """Merge the judgments of a sentence: it passes only if the whole and all of its entities do."""
    findings = tuple(_finding(span, entity, judgment) for entity, judgment in judged)
    whole = base or min((j for _, j in judged), key=lambda j: support_order(j.label, j.p_supported))
    passes = all(j.label is Label.CORRECT for j in (whole, *(j for _, j in judged)))
    label = Label.CORRECT if passes else Label.INCORRECT
    supported = all_measured((whole.p_supported, *(f.p_supported for f in findings)))
    return Segment(
        **span._asdict(), label=label, relation=error_relation(label, whole, findings),
        probability=None if supported is None else 1 - min(*supported, 1.0), base=whole, findings=findings,
        evidence=_evidence(span, whole, judged, passes=passes),
    )  # fmt: skip


def _finding(span: Span, entity: Entity, judgment: Judgment) -> Finding:
    return Finding(
        unit="entity", start=span.start + entity.start, end=span.start + entity.end, text=entity.text, type=entity.type,
        label=Label.CORRECT if judgment.label is Label.CORRECT else Label.INCORRECT, relation=RELATION_BY_LABEL[judgment.label],
        p_supported=judgment.p_supported, reason=judgment.rationale,
    )  # fmt: skip


def _evidence(span: Span, base: Judgment, judged: Sequence[tuple[Entity, Judgment]], *, passes: bool) -> tuple[Evidence, ...]:
    """Pair the entities that failed, or else the sentence, with quotes that contradict."""
    failed = [(e, j) for e, j in judged if j.label is not Label.CORRECT]
    if passes or not failed:
        return evidence_for(span, base)
    return tuple(
        pair for e, j in failed for pair in evidence_for(Span(span.start + e.start, span.start + e.end, e.text), j, limit=1)
    )


def _reason(worst: Segment) -> str:
    """Return the reason of the least supported part of a sentence, of those that failed where any did."""
    units = [(worst.base.label, worst.base.p_supported, worst.base.rationale)]
    units += [(f.label, f.p_supported, f"“{f.text}”: {f.reason}") for f in worst.findings]
    return min(units, key=lambda u: (u[0] is Label.CORRECT, support_order(u[0], u[1])))[2]


_NUMBER = re.compile(r"[(]?(?:\d{1,3}|[a-zA-Z])[.)]")
_MARKER = re.compile(r"(?:[ \t]*(?:[-*•–+]|\d{1,3}[.)]|[(]?[a-zA-Z][)])[ \t]+|[ \t]*>[ \t]*)+")  # noqa: RUF001
_HEADING = re.compile(r"#{1,6}\s.*|(\*\*|__)[^*_]+\1:?|(?:=+|-+)\s*\w+(?: +\w+)*\s*(?:=+|-+)")
_TAGS = re.compile(r"</?[a-z][^<>]*>|```\w*|`{3,}|~~~\w*")
_ADDRESSEE = r"(?: (?:there|all|everyone|everybody|again|[A-Z]\w+)){0,2}"
_POLITE = re.compile(
    rf"(?:hello|hi|hey|dear|greetings|welcome|good (?:morning|afternoon|evening|day)|goodbye|bye){_ADDRESSEE}"
    rf"|(?:thanks|thank you)(?: (?:so|very) much)?(?: for [^.]{{0,60}})?"
    rf"|(?:best|kind|warm) (?:regards|wishes)|sincerely(?: yours)?|yours (?:sincerely|faithfully|truly)|cheers"
    rf"|(?:sure|certainly|of course|absolutely|great question|good question|no problem|you(?:'|’)?re welcome)"  # noqa: RUF001
    rf"|(?:i )?hope (?:this|that|it) (?:helps|is helpful|was helpful|answers)[^.]{{0,40}}"
    rf"|(?:please )?(?:let me know|feel free|do not hesitate|don(?:'|’)?t hesitate)\b[^.]*"  # noqa: RUF001
    rf"|(?:(?:sure|certainly|of course|okay|ok)[,!.]? )?here(?:'|’)?s? (?:is|are )?(?:a|an|the|my|your)?[^.:]{{0,60}}"  # noqa: RUF001
    r"(?:summary|answer|response|overview|list|points|breakdown|version)[^.:]{0,40}"
    r"|i(?:'|’| a)m (?:happy|glad) to help[^.]{0,40}",  # noqa: RUF001
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?？][\s*_)\]]*$")  # noqa: RUF001
_MAX_LEAD_WORDS = 8
"""Maximum words of a line that only introduces what follows its colon."""


class HypothesisSelection(NamedTuple):
    """The sentences of a response: those to be checked, and those that claim nothing, each with the reason."""

    hypotheses: list[Span]
    dropped: list[SkippedSpan]


def select_hypotheses(response: str, *, answers: bool = False, keep_all: bool = False) -> HypothesisSelection:
    """Split a response into hypotheses and noise, both in order; `answers` tells that it answers a question (section 3.1).

    So that every hypothesis can be read alone, a list number stays with its sentence, and quoted speech with the words after it.
    With `keep_all`, only sentences without a letter or digit are noise. A response of one sentence, and the sentences of an
    answer, are never too short to be checked.
    """
    spans = split_response(response)
    rules = NOISE_RULES[:1] if keep_all else NOISE_RULES[:-1] if answers or len(spans) == 1 else NOISE_RULES
    hypotheses, dropped = [], []
    for span in spans:
        reason = next((name for name, is_noise in rules if is_noise(span.text)), None)
        if reason is None:
            hypotheses.append(_without_marker(span))
        else:
            dropped.append(SkippedSpan(**span._asdict(), reason=reason))
    return HypothesisSelection(hypotheses, dropped)


def split_response(text: str) -> list[Span]:
    """Split a text into sentences with exact offsets; every character that is not white space is in one of them."""
    spans: list[Span] = []
    for span in (part for s in sentences(text) for part in _without_rules(s)):
        start = span.start
        if spans and (_goes_on(text, spans[-1], start) or _NUMBER.fullmatch(spans[-1].text)):
            start = spans.pop().start
        spans.append(Span(start, span.end, text[start : span.end]))
    return spans


def _without_rules(span: Span) -> Iterator[Span]:
    """Split a sentence from the lines without a letter or digit below it, which `sentences` joins to it."""
    last = next((i for i in range(len(span.text) - 1, -1, -1) if span.text[i].isalnum()), -1)
    cut = span.text.find("\n", last + 1)
    if cut < 0:
        yield span
        return
    body, rest = span.text[:cut].rstrip(), span.text[cut:].lstrip()
    yield Span(span.start, span.start + len(body), body)
    yield Span(span.end - len(rest), span.end, rest)


def _goes_on(text: str, before: Span, start: int) -> bool:
    """Tell whether the sentence before continues with a small letter, after speech or where its line was wrapped."""
    gap = text[before.end : start]
    wrapped = gap.strip(" \t\r") == "\n" and before.text[-1] not in ".!?:;|"
    return text[start].islower() and (wrapped or "\n" not in gap)


def _without_marker(span: Span) -> Span:
    """Leave out the bullet or number of a list item."""
    marker = _MARKER.match(span.text)
    start = marker.end() if marker and marker.end() < len(span.text) else 0
    return Span(span.start + start, span.end, span.text[start:])


def _strip_markup(text: str) -> str:
    marker = _MARKER.match(text)
    return text[marker.end() if marker else 0 :].strip(" \t\r\n*_\"'“”.!,;")


def _is_markup(text: str) -> bool:
    return not any(c.isalnum() for c in _TAGS.sub("", _strip_markup(text)))


def _is_heading(text: str) -> bool:
    lead = text.rstrip("*_ ").endswith(":") and word_count(text) <= _MAX_LEAD_WORDS and not any(c.isdigit() for c in text)
    return lead or _HEADING.fullmatch(text.strip()) is not None


def _is_polite(text: str) -> bool:
    return _POLITE.fullmatch(_strip_markup(text).rstrip(" :")) is not None


def _is_question(text: str) -> bool:
    return _QUESTION.search(text.rstrip("\"'”’")) is not None and (text[0] in "\"'“‘" or text[-1] not in "\"'”’")  # noqa: RUF001


def _is_short(text: str) -> bool:
    bare = _strip_markup(text)
    return not any(c.isdigit() for c in bare) and (len(words(bare)) < 2 or not content_words(bare))


NOISE_RULES: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("markup without words", _is_markup), ("a heading", _is_heading), ("a courtesy", _is_polite),
    ("a question", _is_question), ("too short to claim anything", _is_short),
)  # fmt: skip
"""The reason and the rule for each kind of noise; the first rule that applies counts.

The last one does not apply to a response of one sentence, nor to an answer.
"""
