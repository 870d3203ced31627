"""The off-target check by extraction (KnowHalu, section 3.1), by text rules.

Does the answer deliver what is asked for? Correctness is not looked at: a wrong year is an answer to "in which year", "in the
past" is not.
"""

import re
from functools import lru_cache

from knowhalu.reasoners import lexicon
from knowhalu.reasoners.questions import Asked, asked_for, options_of
from knowhalu.text import STOPWORDS, Span, content_words, sentences, stem, words
from knowhalu.types import Extraction

_VAGUE = frozenset(stem(w) for w in lexicon.VAGUE)
_UNITS = r"\ba (?:day|week|month|year|minute|hour)\b"
_NUMBER = re.compile(rf"\d|{lexicon.any_of(lexicon.NUMBERS)}|{_UNITS}|\b\w+teenth\b", re.IGNORECASE)
_TIMES = lexicon.any_of([*lexicon.MONTHS, *lexicon.SEASONS_AND_DAYS, *lexicon.RELATIVE_TIMES])
_TIME = re.compile(rf"\b\d{{1,4}}(?:s|st|nd|rd|th|am|pm)?\b|{_TIMES}", re.IGNORECASE)
_SETTLES = re.compile(rf"^\W*{lexicon.any_of(lexicon.YES_NO_OPENINGS)}", re.IGNORECASE)
REFUSAL_WORDS = 60
"""An answer longer than this gives more than a refusal."""


@lru_cache(maxsize=4096)
def extract(question: str, answer: str) -> Extraction:
    """Take from the answer what the question asks for, or say that it is not there."""
    asked = asked_for(question)
    if is_refusal(answer):
        return Extraction(entity=None, asked_for=asked, reason="the answer declines to answer", confidence=0.95, refusal=True)
    known = set(content_words(question))
    fault = _fault(question, answer, asked, [w for w in content_words(answer) if w not in known])
    if fault is not None:
        return Extraction(entity=None, asked_for=asked, reason=fault, confidence=0.8)
    entity = _of_kind(answer, asked) or _new_words(question, answer)
    return Extraction(entity=entity, asked_for=asked, reason=f"the answer names {entity!r}", confidence=0.7)


def is_refusal(answer: str) -> bool:
    """Tell whether an answer says that it cannot answer, and gives nothing else."""
    if len(answer.split()) > REFUSAL_WORDS or _SETTLES.match(answer):
        return False
    in_other_words = lexicon.SPEAKER.search(answer) and lexicon.UNABLE.search(answer) and not re.search(r"\d", answer)
    return bool(lexicon.REFUSAL.search(answer) or in_other_words)


def _fault(question: str, answer: str, asked: Asked, fresh: list[str]) -> str | None:
    """Return why the answer does not deliver what is asked for, or None; `fresh` are its words that the question has not."""
    if asked in (Asked.YES_NO, Asked.CHOICE):
        return _closed_fault(question, answer, asked, fresh)
    if not fresh:
        return "the answer only repeats the question"
    if _only_negates(question, answer, asked):
        return "the answer says what is not the case, not what is"
    if asked is Asked.TIME and not _TIME.search(answer):
        return "the question asks for a time, the answer has none"
    if asked is Asked.NUMBER and not _NUMBER.search(answer):
        return "the question asks for a number, the answer has none"
    if sum(w in _VAGUE for w in fresh) >= 0.7 * len(fresh) and not re.search(r"\d|(?<!^)\b[A-Z]", answer):
        return "the answer is too general to be an answer"
    if asked in (Asked.PERSON, Asked.PLACE) and _names_nothing(question, answer):
        return f"the question asks for {asked}, the answer names none"
    return None


def _closed_fault(question: str, answer: str, asked: Asked, fresh: list[str]) -> str | None:
    """Look at questions whose answers are given in them: yes or no, or one of the options."""
    if _SETTLES.match(answer) or len(answer.split()) <= 3:
        return None
    wanted, told = set(content_words(question)), set(content_words(answer))
    if asked is Asked.YES_NO and 4 * len(wanted & told) < len(wanted):
        return "the question asks for yes or no, the answer says neither"
    if asked is Asked.CHOICE and not fresh and not any(told.intersection(o.split()) for o in options_of(question)):
        return "the question offers a choice, the answer takes no side"
    return None


def _only_negates(question: str, answer: str, asked: Asked) -> bool:
    """Tell whether every main clause of the answer is a negation (a reason may well be one)."""
    if asked is Asked.REASON or lexicon.POSITIVE_TURN.search(answer) or lexicon.NEGATED_QUESTION.search(question):
        return False
    found = [(p.text, lexicon.NEGATION.search(p.text)) for p in sentences(answer)]
    return bool(found) and all(m and not lexicon.SUBORDINATE.search(text[: m.start()]) for text, m in found)


def _unasked(question: str, answer: str) -> list[Span]:
    """Return the words of the answer that carry meaning and are not in the question."""
    seen = {stem(w.text.lower()) for w in words(question)}
    return [w for w in words(answer) if w.text.lower() not in STOPWORDS and stem(w.text.lower()) not in seen]


def _names_nothing(question: str, answer: str) -> bool:
    """Tell whether an answer of more than four words brings no name, no number and hardly a specific word."""
    if len(answer.split()) <= 4:
        return False
    opening = {s.start for s in sentences(answer)}
    new = [w for w in _unasked(question, answer) if w.text[0].isalnum()]
    named = any((w.text[0].isupper() and w.start not in opening) or w.text[0].isdigit() for w in new)
    return not named and sum(stem(w.text.lower()) not in _VAGUE for w in new) <= 1


def _of_kind(answer: str, asked: Asked) -> str | None:
    """Return the first date or number where one is asked for."""
    pattern = {Asked.TIME: lexicon.DATE, Asked.NUMBER: lexicon.AMOUNT}.get(asked)
    match = pattern.search(answer) if pattern else None
    return match.group() if match else None


def _new_words(question: str, answer: str) -> str:
    """Return the first stretch of the answer that the question did not have; the whole answer where it has no such words."""
    new = _unasked(question, answer)
    if not new:
        return answer.strip()
    first, last = new[0], new[0]
    for word in new[1:]:
        if len(answer[last.end : word.start].split()) > 2:
            break
        last = word
    return answer[first.start : last.end]
