"""Where the predicate begins after "is" and a subject: a participle, an adjective, a second noun or a phrase."""

from collections.abc import Sequence

from knowhalu.declarative import verbs
from knowhalu.declarative.spans import is_modified, outside
from knowhalu.declarative.words import (
    ARTICLES,
    DETERMINERS,
    NATIONAL,
    PREPOSITIONS,
    PRONOUNS,
    RELATIVES,
    SUBORDINATE,
    is_adjective,
    is_adverb,
    is_name,
    low,
    word,
)

_BASED = frozenset("based named called known titled entitled inspired".split())
_MADE = frozenset(
    "awarded given named called elected appointed made considered crowned declared granted dubbed offered voted paid".split()
)
_NAMING = frozenset("kind type sort name number".split())


def predicate_at(words: Sequence[str], *, prepositions: bool) -> int | None:
    """Return where the predicate begins after "is" and a subject, adverbs included, or None where there is only a noun.

    With `prepositions` a phrase like "in Paris" may be the predicate where nothing else is.
    """
    if not words:
        return None
    if word(words[0]) in PRONOUNS and not (word(words[0]) in ("this", "that", "these", "those") and len(words) > 2):
        return 1 if len(words) > 1 else None
    main = outside(words)
    at = _verbal(words, main)
    nominal = _nominal(words, main)
    if at is None or (nominal is not None and nominal < at):
        at = nominal
    if at is None and prepositions:
        at = _prepositional(words, main)
    if at is None:
        return None
    while at > 1 and is_adverb(words[at - 1]) and not is_modified(words, at - 1):
        at -= 1
    return at


def _verbal(words: Sequence[str], main: Sequence[bool]) -> int | None:
    """Find a participle or an adjective; of a noun with a participle of its own, the one behind that."""
    found = [i for i in range(1, len(words)) if main[i] and not is_modified(words, i) and _is_predicate(words, i)]
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
            and not is_modified(words, i)
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
