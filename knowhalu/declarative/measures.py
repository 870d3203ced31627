"""Questions with how: a number with what it counts, a measure with its adjective, a duration, a way."""

import re
from collections.abc import Sequence

from knowhalu.declarative import verbs
from knowhalu.declarative.adjuncts import manner_phrase, opens_phrase
from knowhalu.declarative.clauses import Clause, declared, put_in, stranded, with_adjunct, with_object
from knowhalu.declarative.nouns import counted, head, is_bare_number, poured
from knowhalu.declarative.predicates import predicate_at
from knowhalu.declarative.spans import noun_end
from knowhalu.declarative.words import (
    AUXILIARIES,
    BE,
    DO,
    MODALS,
    PREPOSITIONS,
    SUBORDINATE,
    is_adjective,
    low,
    opens_time,
    past_adverbs,
    word,
)

_WITH_ADJECTIVE = frozenset("tall high long deep wide thick broad".split())
_PLAIN = frozenset("large big hot cold fast far heavy strong great common".split())
_DEGREES = frozenset("very extremely quite fairly incredibly highly moderately rather not".split())
_DURATIONS = frozenset("years year months days weeks hours minutes decades seasons seconds".split())
_LASTING = frozenset(f for b in ("last", "take", "run", "spend", "measure") for f in (b, verbs.past(b), verbs.third(b)))
_UNITS = re.compile(r"\b(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|decades?|centur(?:y|ies))\b", re.IGNORECASE)


def how(words: Sequence[str], answer: str) -> str | None:
    """Answer a question that opens with "how"."""
    first = word(words[0]) if words else ""
    if first in ("many", "few"):
        return _many(words[1:], answer)
    if first == "much":
        return _much(words[1:], answer)
    if first in AUXILIARIES:
        return _manner(words, answer)
    if first == "long" and len(words) > 1 and low(words[1]) == "ago":
        return _beside(words[2:], answer if answer.endswith("ago") else f"{answer} ago")
    if first == "often":
        return _beside(words[1:], answer)
    if len(words) < 3 or word(words[1]) not in AUXILIARIES:
        return None
    if first == "old" or first in _WITH_ADJECTIVE | _PLAIN or is_adjective(words[0]):
        return _measured(first, words[1:], answer)
    return None


def _beside(rest: Sequence[str], phrase: str) -> str | None:
    clause = _clause(rest)
    return None if clause is None else " ".join(with_adjunct(clause, phrase, time=True))


def _clause(rest: Sequence[str]) -> Clause | None:
    return declared(rest[0], rest[1:]) if len(rest) > 1 and word(rest[0]) in AUXILIARIES else None


def _is_subject(rest: Sequence[str]) -> bool:
    """Tell whether what was counted is the subject of the verb that follows."""
    aux = word(rest[0])
    if aux not in AUXILIARIES:
        return True
    at = past_adverbs(rest, 1)
    w = low(rest[at]) if at < len(rest) else ""
    if aux in MODALS:
        return w in verbs.BASES | {"be"}
    if aux in DO:
        return False
    verbal = verbs.is_participle(w) or w == "been"
    return verbal or (aux in BE and (w in PREPOSITIONS or verbs.is_gerund(w) or (at < len(rest) and is_adjective(rest[at]))))


def _many(words: Sequence[str], answer: str) -> str | None:
    end = noun_end(words)
    noun, rest = words[:end], words[end:]
    if not noun or not rest:
        return None
    what = counted(noun, answer)
    if word(rest[0]) in BE and len(rest) > 1 and low(rest[1]) == "there":
        return " ".join(["there", word(rest[0]), what, *rest[2:]])
    if _is_subject(rest):
        return None if answer.lower() in ("one", "1") else " ".join([what, *rest])
    clause = _clause(rest)
    if clause is None:
        return None
    if head(noun) == "times":
        return " ".join(with_adjunct(clause, what))
    main = low(clause.words[clause.verb])
    at = stranded(clause.words, clause.verb)
    if head(noun) in _DURATIONS and at is None and main not in _LASTING:
        return " ".join(with_adjunct(clause, what if opens_phrase(what) else f"for {what}"))
    if word(rest[0]) in BE and at is None:
        return None
    filled = with_object(clause, what)
    return " ".join(filled) if filled else None


def _much(words: Sequence[str], answer: str) -> str | None:
    end = noun_end(words)
    noun, rest = words[:end], words[end:]
    if not rest:
        return None
    what = poured(noun, answer) if noun else answer
    if word(rest[0]) in BE and len(rest) > 1 and low(rest[1]) == "there":
        return " ".join(["there", word(rest[0]), what, *rest[2:]])
    if noun and _is_subject(rest):
        return " ".join([what, *rest])
    clause = _clause(rest)
    if clause is None:
        return None
    worth = next((i for i, w in enumerate(clause.words) if low(w) == "worth" and i > clause.helper), None)
    if worth is not None:
        return " ".join(put_in(clause.words, worth + 1, what))
    if low(clause.words[clause.verb]) in ("cost", "costs"):
        return " ".join(put_in(clause.words, clause.verb + 1, what))
    filled = with_object(clause, what)
    return " ".join(filled) if filled else None


def _measured(adjective: str, rest: Sequence[str], answer: str) -> str | None:
    """Answer "how tall", "how long", "how old"."""
    aux = word(rest[0])
    if aux in BE:
        return _of_being(adjective, rest, answer)
    clause = _clause(rest)
    if clause is None:
        return None
    main = low(clause.words[clause.verb])
    if adjective == "long":
        if main in _LASTING:
            return " ".join(put_in(clause.words, _before_to(clause), answer))
        return " ".join(with_adjunct(clause, answer if opens_phrase(answer) else f"for {answer}"))
    if adjective == "far" or aux in MODALS:
        return " ".join(put_in(clause.words, clause.verb + 1, answer))
    return None


def _before_to(clause: Clause) -> int:
    """Return the place behind a verb of lasting, or behind whom it takes time: "it took Noah | to build"."""
    for i in range(clause.verb + 1, len(clause.words)):
        w = low(clause.words[i])
        if w == "to":
            return i
        if w in PREPOSITIONS | SUBORDINATE:
            break
    return clause.verb + 1


def _of_being(adjective: str, rest: Sequence[str], answer: str) -> str | None:
    be, words = word(rest[0]), rest[1:]
    if adjective == "long" and _UNITS.search(answer):
        at = predicate_at(words, prepositions=False)
        if at is not None and low(words[at]):
            return _beside(rest, answer if opens_phrase(answer) else f"for {answer}")
    end = len(words)
    for i in range(1, len(words)):
        if low(words[i]) in SUBORDINATE or opens_time(words, i) or (adjective == "far" and low(words[i]) in ("from", "to")):
            end = i
            break
    told = _told(adjective, answer, beside=end < len(words))
    return None if told is None else " ".join([*words[:end], be, told, *words[end:]])


def _told(adjective: str, answer: str, *, beside: bool) -> str | None:
    said = [word(w) for w in answer.split()]
    if adjective in said or "away" in said or opens_phrase(answer):
        return answer
    if all(w in _DEGREES for w in said):
        return f"{answer} {adjective}"
    if adjective == "old":
        aged = is_bare_number(answer) or bool(_UNITS.search(answer))
        return f"{answer} years old" if is_bare_number(answer) else f"{answer} old" if aged else None
    if not re.match(r"\W*(?:\d|about|around|over|nearly|almost|approximately|more|less|at|up)", answer) and not is_bare_number(
        said[0]
    ):
        return None
    if adjective == "far":
        return answer if beside else f"{answer} away"
    return f"{answer} {adjective}" if adjective in _WITH_ADJECTIVE else answer if adjective in _PLAIN else None


def _manner(words: Sequence[str], answer: str) -> str | None:
    clause = _clause(words)
    if clause is None or clause.verb == len(clause.words) - 1 and clause.helper == clause.verb and word(words[0]) in BE:
        return None
    phrase = manner_phrase(answer, low(clause.words[clause.verb]))
    return None if phrase is None else " ".join(with_adjunct(clause, phrase))
