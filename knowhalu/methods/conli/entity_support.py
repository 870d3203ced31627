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
from knowhalu.text.overlap import coverage, facts
from knowhalu.text.quantities import counts_missing, dates, dates_missing
from knowhalu.text.sentences import content_words, sentences, words
from knowhalu.text.wordlists import TITLES
from knowhalu.types import Entity, Passage

COUNTED = {"money", "percent", "quantity", "number", "cardinal", "ordinal"}
"""Types that a true statement may have worked out (sums, spans of time), so that a source need not have them as they stand."""
REACH = 1
"""Sentences on each side that are read with one: they say who "he" is."""


class View(NamedTuple):
    """A sentence of a passage with its neighbours, as the verifier reads it."""

    passage: Passage
    start: int
    end: int
    text: str
    near: str


class Standing(NamedTuple):
    """The best place of an entity, the best place of the rest of its sentence, and how far each has either (shares of 1)."""

    place: View
    matter: View
    held: float
    held_near: float
    covered: float
    covered_best: float


def views(passages: Sequence[Passage]) -> list[View]:
    """Return every sentence of the passages with its neighbours and its title."""
    found = []
    for passage in passages:
        pieces = sentences(passage.text)
        for i, piece in enumerate(pieces):
            first, last = pieces[max(0, i - REACH)], pieces[min(len(pieces) - 1, i + REACH)]
            near = passage.text[first.start : last.end]
            title = f"{passage.title}: " if passage.title and passage.title.lower() not in near.lower() else ""
            found.append(View(passage, piece.start, piece.end, piece.text, f"{title}{near}"))
    return found


def standing(text: str, entity: Entity, there: Sequence[View]) -> Standing:
    """Find where the entity of a sentence stands, and where what is said of it does; `there` has at least one view."""
    rest = f"{text[: entity.start]} {text[entity.end :]}"
    held = [held_in(entity.text, f"{v.passage.title} {v.text}") for v in there]
    covered = [coverage(rest, v.near) if content_words(rest) else 1.0 for v in there]
    place = max(range(len(there)), key=lambda i: (held[i], covered[i] + 0.5 * coverage(rest, there[i].text)))
    matter = max(range(len(there)), key=lambda i: (covered[i] + 0.5 * coverage(rest, there[i].text), held[i]))
    near = held_in(entity.text, there[matter].near)
    return Standing(there[place], there[matter], held[place], near, covered[place], covered[matter])


@lru_cache(maxsize=65536)
def held_in(entity: str, text: str) -> float:
    """Return the share of an entity that a text has: all where it stands there, else of its dates or values, or of its words."""
    if re.search(rf"(?<!\w){re.escape(entity)}(?!\w)", text, re.IGNORECASE):
        return 1.0
    if dates(entity):
        return 1 - dates_missing(entity, text)
    values = facts(entity).numbers
    if values:
        there = facts(text).numbers
        return len(values & there) / len(values)
    wanted = [w for w in content_words(entity) if w.capitalize() not in TITLES] or content_words(entity) or [entity.lower()]
    have = set(content_words(text)) | {w.text.lower() for w in words(text)}
    share = sum(w in have for w in wanted) / len(wanted)
    return 1.0 if _by_initials(entity, text) else share


def _by_initials(name: str, text: str) -> bool:
    """Tell whether a text has a name by its initials, or initials by their name."""
    letters = re.sub(r"[.\s]", "", name)
    if letters.isupper() and 2 <= len(letters) <= 6:
        return re.search(r"\b" + r"(?:\w*\s+(?:of |the |and |for )*)".join(map(re.escape, letters)), text) is not None
    initials = "".join(w[0] for w in name.split() if w[0].isupper())
    return len(initials) > 1 and re.search(rf"\b{'[.]?'.join(initials)}\b", text) is not None


def entity_features(entity: Entity, found: Standing, at_place: Probabilities, at_matter: Probabilities) -> dict[str, float]:
    """Return what tells whether an entity is borne out: where it stands, and what the verifier says of its clause there."""
    absent, is_count = 1 - found.held, entity.type in COUNTED
    return {
        "absent": 0.0 if is_count else absent,
        "count_absent": absent if is_count else 0.0,
        "apart": max(0.0, found.covered_best - found.covered),
        "covered": found.covered,
        "supported": logit(max(at_place.supported, at_matter.supported)),
        "contradicted": logit(max(at_place.contradicted, at_matter.contradicted)),
        "other_count": counts_missing(entity.text, found.matter.near),
    }
