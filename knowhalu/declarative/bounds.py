"""Where phrases end: the noun after "which", and the subject that stands between an auxiliary and its verb."""

from collections.abc import Callable, Sequence

from knowhalu.declarative import verbs
from knowhalu.declarative.words import (
    ADVERBS,
    ARTICLES,
    AUXILIARIES,
    DETERMINERS,
    MODIFIERS,
    NATIONAL,
    PREPOSITIONS,
    PRONOUNS,
    RELATIVES,
    SUBORDINATE,
    is_adjective,
    is_adverb,
    is_name,
    is_possessive,
    low,
    past_adverbs,
    word,
)

_CHAINS = frozenset("help let make go come dare need".split())
_PLURAL = frozenset("people men women children police both".split())
_BASED = frozenset("based named called known titled entitled inspired".split())
_MADE = frozenset(
    "awarded given named called elected appointed made considered crowned declared granted dubbed offered voted paid".split()
)
_NAMING = frozenset("kind type sort name number".split())


def _main(words: Sequence[str]) -> list[bool]:
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


def _modified(words: Sequence[str], at: int) -> bool:
    """Tell whether the token at a place belongs to what stands before it: "the play", "her first play", "of play"."""
    before = low(words[at - 1])
    if is_possessive(words[at - 1]) or before in MODIFIERS or before in AUXILIARIES:
        return True
    return before in DETERMINERS - {"that", "this", "all", "both", "each"} or before in PREPOSITIONS or before == "and"


def verb_at(words: Sequence[str], wanted: Callable[[str], bool]) -> int | None:
    """Return the place of the verb that an auxiliary before the subject belongs to, or None."""
    main = _main(words)
    last = len(words) - 1
    found = [
        i for i in range(1, len(words))
        if main[i] and wanted(low(words[i])) and not _modified(words, i) and (i == last or not words[i].endswith(",") or main[i + 1])
    ]  # fmt: skip
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


def predicate_at(words: Sequence[str], *, prepositions: bool) -> int | None:
    """Return where the predicate begins after "is" and a subject, adverbs included, or None where there is only a noun.

    With `prepositions` a phrase like "in Paris" may be the predicate where nothing else is.
    """
    if not words:
        return None
    if word(words[0]) in PRONOUNS and not (word(words[0]) in ("this", "that", "these", "those") and len(words) > 2):
        return 1 if len(words) > 1 else None
    main = _main(words)
    at = _verbal(words, main)
    nominal = _nominal(words, main)
    if at is None or (nominal is not None and nominal < at):
        at = nominal
    if at is None and prepositions:
        at = _prepositional(words, main)
    if at is None:
        return None
    while at > 1 and is_adverb(words[at - 1]) and not _modified(words, at - 1):
        at -= 1
    return at


def _verbal(words: Sequence[str], main: Sequence[bool]) -> int | None:
    """Find a participle or an adjective; of a noun with a participle of its own, the one behind that."""
    found = [i for i in range(1, len(words)) if main[i] and not _modified(words, i) and _is_predicate(words, i)]
    if not found:
        return None
    best = found[0]
    for later in found[1:]:
        after = low(words[best + 1]) if best + 1 < len(words) else ""
        between = {low(w) for w in words[best + 1 : later]}
        own = low(words[best]) not in _BASED and after in PREPOSITIONS and not is_adjective(words[best])
        if not own or between & (SUBORDINATE | {"and", "or", "to"}) or not is_name(words[later - 1]):
            break
        best = later
    return best


def _is_predicate(words: Sequence[str], at: int) -> bool:
    w = low(words[at])
    if verbs.is_participle(w) and at + 1 < len(words) and low(words[at + 1]) in ARTICLES and w not in _MADE:
        return False
    if verbs.is_participle(w) or verbs.is_gerund(w):
        return w not in verbs.NOUNS_TOO or at + 1 == len(words) or low(words[at + 1]) in PREPOSITIONS
    if not is_adjective(words[at]):
        return False
    after = low(words[at + 1]) if at + 1 < len(words) else ""
    return (
        at + 1 == len(words)
        or after in PREPOSITIONS | SUBORDINATE | {"than", "and", "or", "enough", "to"}
        or w in ("part", "worth")
    )


def _nominal(words: Sequence[str], main: Sequence[bool]) -> int | None:
    """Find a second noun: "Etna | an active volcano", "Napoleon | emperor of France", "Ann Lee and Bo Chan | both actors"."""
    named = is_name(words[0]) or low(words[0]) == "both"
    for i in range(1, len(words)):
        before = low(words[i - 1])
        told = before in verbs.ONLY_PAST or (before in verbs.PASTS and before not in _MADE)
        free = (
            main[i]
            and not told
            and not _modified(words, i)
            and not words[i - 1].endswith(",")
            and before not in ("or", "as", "than")
        )
        if not free:
            continue
        if low(words[i]) in ARTICLES | {"both", "also", "still", "not", "ever", "never", "originally"}:
            return i
        if (
            NATIONAL.match(word(words[i]).capitalize())
            and words[i][0].isupper()
            and named
            and (i + 1 == len(words) or low(words[i + 1]))
        ):
            return i
        if named and low(words[i]).isalpha() and low(words[i]) not in PREPOSITIONS | {"and", "or"} | RELATIVES | _NAMING:
            return i
    if len(words) == 2 and not named and low(words[0]) not in DETERMINERS and low(words[1]) not in PREPOSITIONS:
        return 1
    return None


def _prepositional(words: Sequence[str], main: Sequence[bool]) -> int | None:
    found = [i for i in range(1, len(words) - 1) if main[i] and low(words[i]) in PREPOSITIONS and low(words[i]) != "of"]
    found += [i for i in range(1, len(words) - 2) if low(words[i]) == "of" and low(words[i + 2]) in ("same", "different")]
    if not found:
        return None
    return min(found) if is_name(words[0]) or low(words[0]) == "both" else max(found)


def noun_end(words: Sequence[str]) -> int:
    """Return where the noun after "which" ends, with what belongs to it: at the finite verb of the question."""
    main = _main(words)
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
        if main[i] and (w in AUXILIARIES or verbs.is_past(w) or w in verbs.THIRDS) and not _modified(words, i):
            return True
    return False
