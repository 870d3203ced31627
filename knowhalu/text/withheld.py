"""Refusals that are false: they say that the sources do not tell what the sources tell."""

import re
from collections.abc import Iterable

from knowhalu.text.entities import find_names
from knowhalu.text.overlap import text_facts
from knowhalu.text.questions import AnswerType, expected_answer_type, is_checkable
from knowhalu.text.sentences import content_words
from knowhalu.text.values import ValueKind, find_values
from knowhalu.text.wordlists import MEASURE_ADJECTIVES

MIN_SHARE = 0.6
"""Share of a question's words that a sentence which answers it must have."""
MIN_OTHERS = 0.5
"""Share of the words beside names that it must have."""
MIN_SAME_START, MAX_ENDING = 5, 3
"""Letters that forms of one word begin with, and by which one may be longer."""
_MEASURES = frozenset(content_words(" ".join(MEASURE_ADJECTIVES)))
_OF_SOURCES = re.compile(
    r"\b(?:texts?|documents?|contexts?|sources?|passages?|articles?|reports?|excerpts?|materials?|information)\b"
    r"|\bcould not find\b|\bnot (?:mentioned|stated|specified|given|provided|said|included)\b",
    re.IGNORECASE,
)
_NAMED = frozenset({AnswerType.PERSON, AnswerType.PLACE})


def find_withheld_answer(question: str, refusal: str, sentences: Iterable[str]) -> str | None:
    """Return the sentence that answers a question of which a refusal says that the sources do not; None where none surely does.

    It must have the names of the question, most of its words, also beside its names, and a value or name of the kind that is
    asked for.
    """
    if not _OF_SOURCES.search(refusal) or not is_checkable(question):
        return None
    asked, names, words = expected_answer_type(question), text_facts(question).names, set(content_words(question))
    topic = words - _MEASURES
    others = {w for w in topic - names if not w.isdigit()}
    for sentence in sentences:
        given = set(content_words(sentence))
        named, found = (sum(_is_among(w, given) for w in part) for part in (names, topic))
        beside = sum(_is_among(w, given) for w in others)
        has_topic = found >= MIN_SHARE * len(topic) and beside >= MIN_OTHERS * len(others)
        if named == len(names) and has_topic and _has_detail(asked, sentence, words):
            return sentence
    return None


def _is_among(word: str, given: set[str]) -> bool:
    """Tell whether a text has a word or one of the same beginning, as "Brazil" and "Brazilian"."""
    if word in given or len(word) < MIN_SAME_START:
        return word in given
    start = word[: max(MIN_SAME_START, len(word) - MAX_ENDING)]
    return any(w.startswith(start) and len(w) <= len(word) + MAX_ENDING for w in given)


def _has_detail(asked: AnswerType, sentence: str, known: set[str]) -> bool:
    """Tell whether a sentence has what such a question asks for and does not have itself."""
    if asked in _NAMED:
        return any(known.isdisjoint(content_words(n.text)) for n in find_names(sentence))
    moments = (ValueKind.DATE, ValueKind.TIME)
    values = [v for v in find_values(sentence) if known.isdisjoint(content_words(v.text))]
    if asked is AnswerType.TIME:
        return any(v.kind in moments or v.ambiguous for v in values)
    return asked is AnswerType.NUMBER and any(v.kind not in moments for v in values)
