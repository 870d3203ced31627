"""How far a noun goes with what belongs to it: relative clauses, asides between commas, participles of its own."""

from collections.abc import Sequence

from knowhalu.declarative import verbs
from knowhalu.declarative.words import (
    ARTICLES,
    AUXILIARIES,
    DETERMINERS,
    MODIFIERS,
    PREPOSITIONS,
    RELATIVES,
    SUBORDINATE,
    is_adverb,
    is_possessive,
    low,
    past_adverbs,
)

_PLURAL = frozenset("people men women children police both".split())


def outside(words: Sequence[str]) -> list[bool]:
    """Tell of every token whether it stands outside relative clauses, as far as their verbs go."""
    found, waiting, i = [], False, 0
    while i < len(words):
        w = low(words[i])
        aside = _aside_end(words, i)
        if aside:
            found.extend([False] * (aside - i))
            i, waiting = aside, False
            continue
        if i and w in RELATIVES and low(words[i - 1]) not in PREPOSITIONS | ARTICLES:
            waiting = True
            found.append(False)
        elif waiting and (w in AUXILIARIES or verbs.is_past(w) or w in verbs.THIRDS or _is_base_after_relative(words, i)):
            waiting = False
            end = past_adverbs(words, i + 1)
            if w in AUXILIARIES and end < len(words) and (_is_verb_form(low(words[end])) or low(words[end]) in ("be", "been")):
                end += 1 + (low(words[end]) in ("be", "been"))
            else:
                end = i + 1
            end += end < len(words) and low(words[end]) in ARTICLES  # its object is no predicate of the sentence
            found.extend([False] * (min(end, len(words)) - i))
            i = end
            continue
        else:
            found.append(not waiting)
        i += 1
    return found


def _aside_end(words: Sequence[str], at: int) -> int:
    """Return where an aside between commas ends that opens at a place: ", founded in 1919,"; 0 where none does."""
    if not at or not words[at - 1].endswith(","):
        return 0
    w = low(words[at])
    if not (w in RELATIVES | ARTICLES or verbs.is_participle(w)):
        return 0
    return next((i + 1 for i in range(at, len(words) - 1) if words[i].endswith(",")), 0)


def _is_base_after_relative(words: Sequence[str], at: int) -> bool:
    return low(words[at - 1]) in RELATIVES and low(words[at]) in verbs.BASES


def _is_verb_form(w: str) -> bool:
    return w in verbs.BASES or verbs.is_participle(w) or verbs.is_gerund(w)


def is_modified(words: Sequence[str], at: int) -> bool:
    """Tell whether the token at a place belongs to what stands before it: "the play", "her first play", "of play"."""
    before = low(words[at - 1])
    if is_possessive(words[at - 1]) or before in MODIFIERS or before in AUXILIARIES:
        return True
    return before in DETERMINERS - {"that", "this", "all", "both", "each"} or before in PREPOSITIONS or before == "and"


def noun_end(words: Sequence[str]) -> int:
    """Return where the noun after "which" ends, with what belongs to it: at the finite verb of the question."""
    main = outside(words)
    for i, token in enumerate(words):
        w = low(token)
        if not main[i] or not w or (i and low(words[i - 1]) in MODIFIERS and w.endswith("ed")):
            continue
        if w in AUXILIARIES:
            return i
        finite = verbs.is_past(w) or (w in verbs.THIRDS and not _is_plural(words, i))
        if finite and not _is_reduced(words, i, main):
            return i
        if (
            i
            and w in verbs.BASES
            and (low(words[i - 1]).endswith("s") or low(words[i - 1]) in _PLURAL)
            and not _is_plural(words, i)
        ):
            return i
    return len(words)


def _is_plural(words: Sequence[str], at: int) -> bool:
    """Tell whether a form in -s is a plural: a verb or another of the kind comes right after it, or it opens the phrase."""
    w = low(words[at])
    if w not in verbs.NOUN_THIRDS and w not in verbs.NOUNS_TOO:
        return False
    after = low(words[at + 1]) if at + 1 < len(words) else ""
    numbered = at > 0 and (low(words[at - 1]) in MODIFIERS or (low(words[at - 1]).endswith("ed") and after == "of"))
    return (
        numbered
        or after in AUXILIARIES
        or (verbs.is_past(after) and after not in verbs.BASES)
        or after in verbs.THIRDS
        or at == 0
    )


def _is_reduced(words: Sequence[str], at: int, main: Sequence[bool]) -> bool:
    """Tell whether a participle belongs to the noun before it: a preposition follows, and further on a finite verb."""
    after = low(words[at + 1]) if at + 1 < len(words) else ""
    if (
        not verbs.is_participle(low(words[at]))
        or low(words[at]) in ("put", "come", "become", "let")
        or (after not in PREPOSITIONS and not is_adverb(words[min(at + 1, len(words) - 1)]))
    ):
        return False
    for i in range(at + 2, len(words)):
        w = low(words[i])
        if w in SUBORDINATE | {"and"}:
            return False
        if main[i] and (w in AUXILIARIES or verbs.is_past(w) or w in verbs.THIRDS) and not is_modified(words, i):
            return True
    return False
