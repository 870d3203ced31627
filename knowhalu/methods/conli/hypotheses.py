"""Selection of hypotheses: which sentences of a response are checked, and which claim nothing (CoNLI, section 3.1).

So that every hypothesis can be read alone, a list number stays with its sentence, and quoted speech with the words after it.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from knowhalu.text.sentences import Span, content_words, sentences, word_count, words

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


class SkippedSentence(NamedTuple):
    """A sentence that is no hypothesis, and why."""

    span: Span
    reason: str


class HypothesisSelection(NamedTuple):
    """The sentences of a response: those to be checked, and those that claim nothing."""

    hypotheses: tuple[Span, ...]
    dropped: tuple[SkippedSentence, ...]


def select_hypotheses(response: str, *, answers: bool = False, keep_all: bool = False) -> HypothesisSelection:
    """Split a response into hypotheses and noise, both in order; `answers` tells that it answers a question.

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
            dropped.append(SkippedSentence(span, reason))
    return HypothesisSelection(tuple(hypotheses), tuple(dropped))


def split_response(text: str) -> list[Span]:
    """Split a text into sentences with exact offsets; every character that is not white space is in one of them."""
    found: list[Span] = []
    for span in (part for s in sentences(text) for part in _without_rules(s)):
        start = span.start
        if found and (_goes_on(text, found[-1], start) or _NUMBER.fullmatch(found[-1].text)):
            start = found.pop().start
        found.append(Span(start, span.end, text[start : span.end]))
    return found


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
