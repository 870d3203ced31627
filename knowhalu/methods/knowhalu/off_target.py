"""The off-target check by extraction (KnowHalu, section 3.1), by text rules.

The check is whether the answer has what is asked for, not whether it is correct: a wrong year answers "in which year", "in the
past" does not.
"""

import re
from functools import lru_cache

from knowhalu.text import wordlists as lexicon
from knowhalu.text.courtesies import ASSENT
from knowhalu.text.questions import AnswerType, asking_part, choice_options, declines_to_answer, expected_answer_type, hedges
from knowhalu.text.sentences import STOPWORDS, Span, content_words, sentences, stem, words
from knowhalu.text.values import ValueKind, find_values
from knowhalu.types import Extraction

_VAGUE = frozenset(stem(w) for w in lexicon.VAGUE_WORDS)
_UNITS = r"\ba (?:day|week|month|year|minute|hour)\b"
_NUMBER = re.compile(rf"\d|{lexicon.any_word_pattern(lexicon.NUMBER_WORDS)}|{_UNITS}|\b\w+teenth\b", re.IGNORECASE)
_TIMES = lexicon.any_word_pattern(
    [
        *lexicon.MONTHS,
        *lexicon.WEEKDAYS,
        *lexicon.SEASONS_AND_HOLIDAYS,
        *lexicon.TIMES_OF_DAY,
        *lexicon.RELATIVE_TIMES,
    ]
)
_TIME = re.compile(rf"\b\d{{1,4}}(?:s|st|nd|rd|th|am|pm)?\b|{_TIMES}", re.IGNORECASE)
_YES_NO_OPENING = re.compile(rf"^\W*(?:{lexicon.any_word_pattern(lexicon.YES_NO_OPENINGS)}|{ASSENT}\b)", re.IGNORECASE)
_LINKING = frozenset("is are was were am has have had".split())
"""Verbs that most sentences have, so that they take up no question."""
_OPENING_AUXILIARY = re.compile(
    rf"\W*(?:(?:and|but|so|then) )?((?:{'|'.join(a for a in lexicon.AUXILIARIES if a not in _LINKING)})(?:n't)?)\b", re.IGNORECASE
)
_PRONOUN = r"(?:i|you|he|she|it|we|they|that|this|one|there)"
_MONTH = re.compile(rf"\b(?:{lexicon.MONTH_NAMES})\b")
_ALTERNATIVES = re.compile(r"\b(?:and|or|between|than)\b", re.IGNORECASE)
"""A question that names several things may be answered by one of them."""
_FIRST_PERSON = re.compile(r"I(?:['’]\w+)?$")  # noqa: RUF001
MAX_REFUSAL_WORDS = 60
"""A longer answer is more than a refusal."""
MAX_SHORT_ANSWER_WORDS = 3
"""An answer of at most so many words is a short answer rather than an echo of the question."""


@lru_cache(maxsize=4096)
def extract_entity(question: str, answer: str) -> Extraction:
    """Extract what the question asks for from the answer; no entity where it is missing."""
    asked = expected_answer_type(question)
    if is_refusal(question, answer):
        return Extraction(entity=None, asked_for=asked, reason="the answer declines to answer", confidence=0.95, refusal=True)
    known = set(content_words(question))
    fresh = [w for w in content_words(answer) if w not in known]
    hedged = len(answer.split()) <= MAX_REFUSAL_WORDS and hedges(answer)
    fault = None if hedged else _fault(question, answer, asked, fresh)  # half a refusal: not for rules to decide
    if fault is not None:
        return Extraction(entity=None, asked_for=asked, reason=fault, confidence=0.8)
    entity = _first_of_type(answer, asked) or _new_words(question, answer)
    return Extraction(entity=entity, asked_for=asked, reason=f"the answer names {entity!r}", confidence=0.7)


def is_refusal(question: str, answer: str) -> bool:
    """Tell whether an answer declines to answer, without a number or name of its own, a "but" or an opinion."""
    if len(answer.split()) > MAX_REFUSAL_WORDS or _YES_NO_OPENING.match(answer):
        return False
    seen = {stem(w.text.lower()) for w in words(question)}
    goes_on = lexicon.CONTRAST_PATTERN.search(answer) or lexicon.OPINION_PATTERN.search(answer)
    says = declines_to_answer(answer, in_other_words=True) or (hedges(answer) and not goes_on)
    return says and all(stem(w.text.lower()) in seen for w in _details(answer))


def _fault(question: str, answer: str, asked: AnswerType, fresh: list[str]) -> str | None:
    """Return why the answer lacks what is asked for, or None; `fresh` are its words that are not in the question."""
    if asked in (AnswerType.YES_NO, AnswerType.CHOICE):
        return _closed_fault(question, answer, asked, fresh)
    if not fresh and _echoes(question, answer):
        return "the answer only repeats the question"
    if _only_negates(question, answer, asked):
        return "the answer says what is not the case, not what is"
    if asked is AnswerType.TIME and not _TIME.search(answer) and not _names_time(answer):
        return "the question asks for a time, the answer has none"
    if asked is AnswerType.NUMBER and not _NUMBER.search(answer):
        return "the question asks for a number, the answer has none"
    if not fresh:
        return None  # one of the question's own names may be the answer, or "the WHO"
    if sum(w in _VAGUE for w in fresh) >= 0.7 * len(fresh) and not re.search(r"\d|(?<!^)\b[A-Z]", answer):
        return "the answer is too general to be an answer"
    if asked in (AnswerType.PERSON, AnswerType.PLACE) and _names_nothing(question, answer):
        return f"the question asks for {asked}, the answer names none"
    return None


def _names_time(answer: str) -> bool:
    return any(v.kind in (ValueKind.DATE, ValueKind.TIME) or v.unit == "duration" for v in find_values(answer))


def _closed_fault(question: str, answer: str, asked: AnswerType, fresh: list[str]) -> str | None:
    """Check answers to closed questions: yes or no, or one of the options."""
    if _YES_NO_OPENING.match(answer) or len(answer.split()) <= 3:
        return None
    asking = asking_part(question)
    wanted, given = set(content_words(asking)), set(content_words(answer))
    if asked is AnswerType.YES_NO and 4 * len(wanted & given) < len(wanted) and not _takes_up(asking, answer):
        return "the question asks for yes or no, the answer says neither"
    if asked is AnswerType.CHOICE and not fresh and not any(given.intersection(o.split()) for o in choice_options(question)):
        return "the question offers a choice, the answer takes no side"
    return None


def _takes_up(question: str, answer: str) -> bool:
    """Tell whether an answer says yes or no by the question's own auxiliary: "Can I send it back?", "You can within a week"."""
    auxiliary = _OPENING_AUXILIARY.match(question)
    if auxiliary is None:
        return False
    verb = auxiliary[1].lower().removesuffix("n't")
    forms = {"do": "do|does|did", "does": "do|does|did", "did": "do|does|did", "will": "will|wo"}.get(verb, verb)
    return re.search(rf"\b{_PRONOUN} (?:{forms})(?:n?['’]t|not)?\b", answer, re.IGNORECASE) is not None  # noqa: RUF001


def _echoes(question: str, answer: str) -> bool:
    """Tell whether an answer without a content word of its own is an echo: long enough, no detail, and nothing to choose from."""
    if (
        len(answer.split()) <= MAX_SHORT_ANSWER_WORDS
        or _details(answer)
        or _MONTH.search(answer)
        or _ALTERNATIVES.search(question)
    ):
        return False
    opening = answer.split()[0]
    return bool(content_words(answer)) and not any(w.text == opening for w in _details(question))


def _details(text: str) -> list[Span]:
    """Return the words with a digit or a capital, except those that merely open a sentence and the pronoun "I"."""
    opening = {s.start for s in sentences(text)}
    telling = {w: w.text[1:] if w.start in opening and w.text[0].isalpha() else w.text for w in words(text)}
    return [w for w, part in telling.items() if any(c.isupper() or c.isdigit() for c in part) and not _FIRST_PERSON.match(w.text)]


def _only_negates(question: str, answer: str, asked: AnswerType) -> bool:
    """Tell whether every main clause of the answer is a negation (a reason may well be one)."""
    if (
        asked is AnswerType.REASON
        or lexicon.POSITIVE_CONTRAST_PATTERN.search(answer)
        or lexicon.NEGATED_QUESTION_PATTERN.search(question)
    ):
        return False
    found = [(p.text, lexicon.NEGATION_PATTERN.search(p.text)) for p in sentences(answer)]
    return bool(found) and all(m and not lexicon.SUBORDINATE_PATTERN.search(text[: m.start()]) for text, m in found)


def _words_not_in_question(question: str, answer: str) -> list[Span]:
    """Return the content words of the answer that are not in the question."""
    seen = {stem(w.text.lower()) for w in words(question)}
    written = {w.text for w in words(question)}
    named = {w for w in _details(answer) if w.text.lower() in STOPWORDS and w.text not in written}  # "US", "the WHO"
    return [w for w in words(answer) if w in named or (w.text.lower() not in STOPWORDS and stem(w.text.lower()) not in seen)]


def _names_nothing(question: str, answer: str) -> bool:
    """Tell whether an answer of more than four words adds no name, no number and at most one specific word."""
    if len(answer.split()) <= 4:
        return False
    new = [w for w in _words_not_in_question(question, answer) if w.text[0].isalnum()]
    named = any(w in new for w in _details(answer))
    return not named and sum(stem(w.text.lower()) not in _VAGUE for w in new) <= 1


def _first_of_type(answer: str, asked: AnswerType) -> str | None:
    """Return the first date or number where one is asked for."""
    pattern = {AnswerType.TIME: lexicon.DATE_PATTERN, AnswerType.NUMBER: lexicon.AMOUNT_PATTERN}.get(asked)
    match = pattern.search(answer) if pattern else None
    return match.group() if match else None


def _new_words(question: str, answer: str) -> str:
    """Return the first span of new words in the answer; the whole answer where it has none."""
    new = _words_not_in_question(question, answer)
    if not new:
        return answer.strip()
    first, last = new[0], new[0]
    for word in new[1:]:
        if len(answer[last.end : word.start].split()) > 2:
            break
        last = word
    return answer[first.start : last.end]
