"""Entity support: whether the sources contain an entity of a sentence, and in the same context.

An entity is supported if the sources contain it (a name in full, in part or by its initials; a number by its value; a date by
all parts that both give), and contain it where they are about the same matter.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from knowhalu.methods.common.judgment_model import logit
from knowhalu.requests import Probabilities
from knowhalu.text.overlap import coverage, text_facts
from knowhalu.text.quantities import find_dates, mismatched_quantity_share, missing_date_share
from knowhalu.text.sentences import content_words, sentences, words
from knowhalu.text.wordlists import PERSON_TITLES
from knowhalu.types import Entity, Passage

NUMERIC_TYPES = {"money", "percent", "quantity", "number", "cardinal", "ordinal"}
"""Types that a true statement may derive (sums, spans of time), so that a source need not contain them verbatim."""
CONTEXT_SENTENCES = 1
"""Neighbouring sentences on each side that are read with one, so that pronouns can be resolved."""


class SentenceInContext(NamedTuple):
    """A sentence of a passage with its neighbours, as the verifier reads it."""

    passage: Passage
    start: int
    end: int
    text: str
    context: str


class EntitySupport(NamedTuple):
    """The best sentence for an entity, the best one for the rest of its sentence, and how far they cover both (0 to 1)."""

    best_match: SentenceInContext
    best_context: SentenceInContext
    match: float
    match_in_context: float
    context_coverage: float
    best_context_coverage: float


def sentences_in_context(passages: Sequence[Passage]) -> list[SentenceInContext]:
    """Return every sentence of the passages with its neighbours and its title."""
    views = []
    for passage in passages:
        spans = sentences(passage.text)
        for i, span in enumerate(spans):
            first, last = spans[max(0, i - CONTEXT_SENTENCES)], spans[min(len(spans) - 1, i + CONTEXT_SENTENCES)]
            near = passage.text[first.start : last.end]
            title = f"{passage.title}: " if passage.title and passage.title.lower() not in near.lower() else ""
            views.append(SentenceInContext(passage, span.start, span.end, span.text, f"{title}{near}"))
    return views


def find_entity_support(text: str, entity: Entity, views: Sequence[SentenceInContext]) -> EntitySupport:
    """Find the sentence of the sources that has an entity, and the one on the same matter; `views` has at least one item."""
    rest = f"{text[: entity.start]} {text[entity.end :]}"
    matches = [entity_match(entity.text, f"{v.passage.title} {v.text}") for v in views]
    covered = [coverage(rest, v.context) if content_words(rest) else 1.0 for v in views]
    fits = [c + 0.5 * coverage(rest, v.text) for c, v in zip(covered, views, strict=True)]
    place = max(range(len(views)), key=lambda i: (matches[i], fits[i]))
    matter = max(range(len(views)), key=lambda i: (fits[i], matches[i]))
    near = entity_match(entity.text, views[matter].context)
    return EntitySupport(views[place], views[matter], matches[place], near, covered[place], covered[matter])


@lru_cache(maxsize=65536)
def entity_match(entity: str, text: str) -> float:
    """Return the share of an entity that a text has: 1 where it is verbatim there, else that of its dates, values or words."""
    if re.search(rf"(?<!\w){re.escape(entity)}(?!\w)", text, re.IGNORECASE):
        return 1.0
    if find_dates(entity):
        return 1 - missing_date_share(entity, text)
    values = text_facts(entity).numbers
    if values:
        return len(values & text_facts(text).numbers) / len(values)
    wanted = (
        [w for w in content_words(entity) if w.capitalize() not in PERSON_TITLES] or content_words(entity) or [entity.lower()]
    )
    have = set(content_words(text)) | {w.text.lower() for w in words(text)}
    share = sum(w in have for w in wanted) / len(wanted)
    return 1.0 if _matches_initials(entity, text) else share


def _matches_initials(name: str, text: str) -> bool:
    """Tell whether a text has the initials of a name, or the name of initials."""
    letters = re.sub(r"[.\s]", "", name)
    if letters.isupper() and 2 <= len(letters) <= 6:
        return re.search(r"\b" + r"(?:\w*\s+(?:of |the |and |for )*)".join(map(re.escape, letters)), text) is not None
    initials = "".join(w[0] for w in name.split() if w[0].isupper())
    return len(initials) > 1 and re.search(rf"\b{'[.]?'.join(initials)}\b", text) is not None


def entity_features(
    entity: Entity, support: EntitySupport, at_match: Probabilities, at_context: Probabilities
) -> dict[str, float]:
    """Return the features of an entity: its place in the sources, and the verifier's scores of its clause there."""
    absent, is_count = 1 - support.match, entity.type in NUMERIC_TYPES
    return {
        "absent": 0.0 if is_count else absent,
        "count_absent": absent if is_count else 0.0,
        "apart": max(0.0, support.best_context_coverage - support.context_coverage),
        "covered": support.context_coverage,
        "supported": logit(max(at_match.supported, at_context.supported)),
        "contradicted": logit(max(at_match.contradicted, at_context.contradicted)),
        "other_count": mismatched_quantity_share(entity.text, support.best_context.context),
    }
