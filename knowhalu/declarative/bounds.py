"""Where the verb stands that an auxiliary before the subject belongs to: "did the band that ... | break up"."""

from collections.abc import Callable, Sequence

from knowhalu.declarative import verbs
from knowhalu.declarative.spans import is_modified, outside
from knowhalu.declarative.words import (
    ADVERBS,
    DETERMINERS,
    PREPOSITIONS,
    PRONOUNS,
    RELATIVES,
    SUBORDINATE,
    is_adverb,
    is_name,
    low,
)

_CHAINS = frozenset("help let make go come dare need".split())


def verb_at(words: Sequence[str], wanted: Callable[[str], bool]) -> int | None:
    """Return the place of the verb that an auxiliary before the subject belongs to, or None."""
    main = [*outside(words), True]
    found = [i for i in range(1, len(words)) if main[i] and wanted(low(words[i])) and not is_modified(words, i)]
    found = [i for i in found if main[i + 1] or not words[i].endswith(",")]
    if not found:
        return None
    best = found[0]
    for later in found[1:]:
        between = {low(w) for w in words[best + 1 : later]}
        noun = low(words[best]) in verbs.NOUNS_TOO and low(words[best]) not in _CHAINS
        if not noun or between & (SUBORDINATE | {"and", "to", "before", "after"}):
            break
        if later > best + 1 and (is_name(words[best - 1]) or low(words[best - 1]) in PRONOUNS or is_adverb(words[best - 1])):
            break
        if later > best + 1 and low(words[later]) in verbs.NOUNS_TOO:
            break
        best = later
    return best


def base_at(words: Sequence[str]) -> int | None:
    """Return the place of the infinitive after "did" and a subject; an unknown verb is known by the name before it."""
    at = verb_at(words, verbs.BASES.__contains__)
    return _unknown_verb(words) if at is None else at


def _unknown_verb(words: Sequence[str]) -> int | None:
    for i in range(1, len(words)):
        w = low(words[i])
        if (
            w.isalpha()
            and (is_name(words[i - 1]) or low(words[i - 1]) in PRONOUNS)
            and w not in PREPOSITIONS | DETERMINERS | ADVERBS | {"and", "or"} | RELATIVES
        ):
            return i if not is_adverb(words[i]) and not words[i - 1].endswith(",") else None
    return None


def participle_at(words: Sequence[str]) -> int | None:
    """Return the place of the participle after "has" and a subject."""
    at = verb_at(words, lambda w: verbs.is_participle(w) or w == "been")
    if at is None or at + 1 >= len(words) or low(words[at + 1]) != "by":
        return at
    later = verb_at(words[at + 1 :], lambda w: verbs.is_participle(w) or w == "been")
    return at if later is None else at + 1 + later


def infinitive_at(words: Sequence[str]) -> int | None:
    """Return the place of the infinitive after a modal verb and a subject."""
    at = verb_at(words, lambda w: w in verbs.BASES or w == "be")
    return _unknown_verb(words) if at is None else at
