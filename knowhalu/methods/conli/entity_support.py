"""Where an entity of a sentence stands in the sources, and whether that is the place of which the sentence speaks.

An entity judged alone is borne out if the sources have it (a name in full, in part or by its initials; a number by its value; a
date by all that both tell), and have it where they speak of the same matter, not somewhere else.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from knowhalu.methods.common.features import logit
from knowhalu.requests import Probabilities
from knowhalu.text.overlap import coverage, text_facts
from knowhalu.text.quantities import find_dates, mismatched_quantity_share, missing_date_share
from knowhalu.text.sentences import content_words, sentences, words
from knowhalu.text.wordlists import PERSON_TITLES
from knowhalu.types import Entity, Passage

NUMERIC_TYPES = {"money", "percent", "quantity", "number", "cardinal", "ordinal"}
"""Types that a true statement may have worked out (sums, spans of time), so that a source need not have them as they stand."""
CONTEXT_SENTENCES = 1
"""Sentences on each side that are read with one: they say who "he" is."""


class SentenceInContext(NamedTuple):
    """A sentence of a passage with its neighbours, as the verifier reads it."""

    passage: Passage
    start: int
    end: int
    text: str
    context: str


class EntitySupport(NamedTuple):
    """The best place of an entity, the best place of the rest of its sentence, and how far each has either (shares of 1)."""

    best_match: SentenceInContext
    best_context: SentenceInContext
    match: float
    match_in_context: float
    context_coverage: float
    best_context_coverage: float


def sentences_in_context(passages: Sequence[Passage]) -> list[SentenceInContext]:
    """Return every sentence of the passages with its neighbours and its title."""
    found = []
    for passage in passages:
        pieces = sentences(passage.text)
        for i, piece in enumerate(pieces):
            first, last = pieces[max(0, i - CONTEXT_SENTENCES)], pieces[min(len(pieces) - 1, i + CONTEXT_SENTENCES)]
            near = passage.text[first.start : last.end]
            title = f"{passage.title}: " if passage.title and passage.title.lower() not in near.lower() else ""
            found.append(SentenceInContext(passage, piece.start, piece.end, piece.text, f"{title}{near}"))
    return found


def find_entity_support(text: str, entity: Entity, there: Sequence[SentenceInContext]) -> EntitySupport:
    """Find where the entity of a sentence stands, and where what is said of it does; `there` has at least one view."""
    rest = f"{text[: entity.start]} {text[entity.end :]}"
    held = [entity_match(entity.text, f"{v.passage.title} {v.text}") for v in there]
    covered = [coverage(rest, v.context) if content_words(rest) else 1.0 for v in there]
    place = max(range(len(there)), key=lambda i: (held[i], covered[i] + 0.5 * coverage(rest, there[i].text)))
    matter = max(range(len(there)), key=lambda i: (covered[i] + 0.5 * coverage(rest, there[i].text), held[i]))
    near = entity_match(entity.text, there[matter].context)
    return EntitySupport(there[place], there[matter], held[place], near, covered[place], covered[matter])


@lru_cache(maxsize=65536)
def entity_match(entity: str, text: str) -> float:
    """Return the share of an entity that a text has: all where it stands there, else of its dates or values, or of its words."""
    if re.search(rf"(?<!\w){re.escape(entity)}(?!\w)", text, re.IGNORECASE):
        return 1.0
    if find_dates(entity):
        return 1 - missing_date_share(entity, text)
    values = text_facts(entity).numbers
    if values:
        there = text_facts(text).numbers
        return len(values & there) / len(values)
    wanted = (
        [w for w in content_words(entity) if w.capitalize() not in PERSON_TITLES] or content_words(entity) or [entity.lower()]
    )
    have = set(content_words(text)) | {w.text.lower() for w in words(text)}
    share = sum(w in have for w in wanted) / len(wanted)
    return 1.0 if _matches_initials(entity, text) else share


def _matches_initials(name: str, text: str) -> bool:
    """Tell whether a text has a name by its initials, or initials by their name."""
    letters = re.sub(r"[.\s]", "", name)
    if letters.isupper() and 2 <= len(letters) <= 6:
        return re.search(r"\b" + r"(?:\w*\s+(?:of |the |and |for )*)".join(map(re.escape, letters)), text) is not None
    initials = "".join(w[0] for w in name.split() if w[0].isupper())
    return len(initials) > 1 and re.search(rf"\b{'[.]?'.join(initials)}\b", text) is not None


def entity_features(entity: Entity, found: EntitySupport, at_place: Probabilities, at_matter: Probabilities) -> dict[str, float]:
    """Return what tells whether an entity is borne out: where it stands, and what the verifier says of its clause there."""
    absent, is_count = 1 - found.match, entity.type in NUMERIC_TYPES
    return {
        "absent": 0.0 if is_count else absent,
        "count_absent": absent if is_count else 0.0,
        "apart": max(0.0, found.best_context_coverage - found.context_coverage),
        "covered": found.context_coverage,
        "supported": logit(max(at_place.supported, at_matter.supported)),
        "contradicted": logit(max(at_place.contradicted, at_matter.contradicted)),
        "other_count": mismatched_quantity_share(entity.text, found.best_context.context),
    }
