"""Questions that ask inside a statement: "X was born in what city?", "Y was directed by which American director?"."""

from collections.abc import Sequence

from knowhalu.declarative import verbs
from knowhalu.declarative.adjuncts import place_phrase, time_phrase
from knowhalu.declarative.nouns import PLACES, TIMES, counted, head, named
from knowhalu.declarative.words import (
    ARTICLES,
    AUXILIARIES,
    BE,
    PREPOSITIONS,
    RELATIVES,
    SUBORDINATE,
    is_adverb,
    low,
    tokens,
    word,
)


def inside(words: Sequence[str], answer: str) -> str | None:
    """Put an answer in the place of the question word of a statement, with its noun and its preposition as they fit."""
    found = [i for i in range(1, len(words)) if _asks(words, i)]
    if len(found) != 1:
        return None
    at = found[0]
    asks = word(words[at])
    before, rest = _joined(words[:at]), list(words[at + 1 :])
    if asks == "how":
        end = _end(rest[1:]) + 1
        return " ".join([*before, counted(rest[1:end], answer), *rest[end:]])
    if asks in ("where", "when"):
        bare = low(before[-1]) in PREPOSITIONS
        phrase = answer if bare else time_phrase(answer) if asks == "when" else place_phrase(answer)
        return " ".join([*before, phrase, *rest])
    end = _end(rest) if asks in ("what", "which") else 0
    noun, rest = rest[:end], rest[end:]
    marks = _comma(noun or [words[at]])
    prep = low(before[-1]) if low(before[-1]) in PREPOSITIONS else ""
    own = word(tokens(answer)[0]) in PREPOSITIONS
    if prep and own:
        before = before[:-1]
    if head(noun) == "nationality" and prep == "of" and low(before[-2]) in BE:
        before, phrase = before[:-1], answer
    elif head(noun) in TIMES and not own:
        before, phrase = (before[:-1], time_phrase(answer, prep)) if prep else (before, time_phrase(answer))
    else:
        phrase = answer if own or head(noun) in PLACES else named(noun, answer)
    return " ".join([*before, f"{phrase.rstrip(',') if not rest else phrase}{marks}", *rest])


def _joined(words: Sequence[str]) -> list[str]:
    """Return the tokens without a comma between a subject and its verb: "A and B, are both ..."."""
    found = list(words)
    for i in range(len(found) - 1):
        if found[i].endswith(","):
            if low(found[i + 1]) in AUXILIARIES:
                found[i] = found[i].rstrip(",")
            break
    return found


def _comma(noun: Sequence[str]) -> str:
    return "," if noun[-1].endswith(",") else ""


def _asks(words: Sequence[str], at: int) -> bool:
    """Tell whether a word asks, rather than joins a relative clause."""
    w, last = low(words[at]), at + 1 == len(words)
    after = low(words[at + 1]) if not last else ""
    if w == "what":
        return after not in AUXILIARIES
    if w == "which":
        return not last and after not in AUXILIARIES | PREPOSITIONS | ARTICLES and bool(_noun_follows(words, at))
    if w == "how":
        return after == "many"
    return w in ("who", "whom", "where", "when") and (
        last or (w == "whom" and after in PREPOSITIONS and low(words[at - 1]) in PREPOSITIONS)
    )


def _noun_follows(words: Sequence[str], at: int) -> bool:
    after = low(words[at + 1])
    verb = after in verbs.THIRDS or verbs.is_past(after)
    return (not words[at - 1].endswith(",") and not verb) or low(words[at - 1]) in PREPOSITIONS


def _end(words: Sequence[str]) -> int:
    """Return where the noun after "what" or "which" ends."""
    for i, token in enumerate(words):
        w = low(token)
        verb = w and (verbs.is_participle(w) or verbs.is_gerund(w)) and w not in verbs.NOUNS_TOO
        if w in PREPOSITIONS | AUXILIARIES or (i and (w in RELATIVES | SUBORDINATE | ARTICLES or verb or _joins(words, i))):
            while i and is_adverb(words[i - 1]):
                i -= 1
            return i
        if token.endswith(","):
            return i + 1
    return len(words)


def _joins(words: Sequence[str], at: int) -> bool:
    """Tell whether "and" or "or" joins more than nouns: "what city and was ...", but not "which village and civil parish"."""
    if low(words[at]) not in ("and", "or"):
        return False
    after = low(words[at + 1]) if at + 1 < len(words) else ""
    return not after or after in verbs.THIRDS or verbs.is_past(after) or after in AUXILIARIES | PREPOSITIONS | ARTICLES
