"""Who does it to whom: a claim that exchanges the two names of a source's sentence around the same verb."""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from knowhalu.text.entities import find_names
from knowhalu.text.sentences import content_words

_PASSIVE = re.compile(r"\b(?:is|are|was|were|been|being|be|gets?|got)\b.*\bby\b", re.IGNORECASE)
_MUTUAL = frozenset(
    content_words("married marries met meets fought faced played resembles equals joined befriended divorced dated")
)
"""What one does to the other, the other does as well."""
_APART = re.compile(r"[,;:()]|\b(?:and|or|but|with|who|which|that|whose|while|when|as)\b", re.IGNORECASE)
MAX_WORDS_BETWEEN, SAME_START = 5, 4
"""Words between the two names, and letters by which the forms of a verb are recognised."""


class Roles(NamedTuple):
    """Who does what to whom, as content words."""

    agent: frozenset[str]
    verb: str
    patient: frozenset[str]


def find_exchange(claim: str, sentences: Iterable[str]) -> str | None:
    """Return the sentence that has a claim's verb between the same two names in exchanged roles, unless one has it as claimed."""
    given = {roles: sentence for sentence in sentences for roles in find_roles(sentence)}
    for c in find_roles(claim):
        same = [g for g in given if _same_verb(c, g)]
        exchanged = [g for g in same if (c.agent, c.patient) == (g.patient, g.agent)]
        if exchanged and not any((c.agent, c.patient) == (g.agent, g.patient) for g in same):
            return given[exchanged[0]]
    return None


def find_roles(text: str) -> list[Roles]:
    """Return the roles of neighbouring names with one verb between them, in the active or the passive."""
    found: list[Roles] = []
    for one, other in pairwise(find_names(text)):
        between = text[one.end : other.start]
        words = content_words(between)
        if len(between.split()) > MAX_WORDS_BETWEEN or _APART.search(between) or not words or words[0] in _MUTUAL:
            continue
        first, second = frozenset(content_words(one.text)), frozenset(content_words(other.text))
        passive = _PASSIVE.search(between) is not None
        if first and second and (passive or not re.search(r"\bby\b", between)):
            found.append(Roles(second, words[0], first) if passive else Roles(first, words[0], second))
    return found


def _same_verb(one: Roles, other: Roles) -> bool:
    return one.verb[:SAME_START] == other.verb[:SAME_START]
