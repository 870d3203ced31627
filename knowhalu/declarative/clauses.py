"""Questions turned back into statements: the auxiliary behind its subject, the verb in its form, the answer in its gap."""

from collections.abc import Sequence
from typing import NamedTuple

from knowhalu.declarative import verbs
from knowhalu.declarative.bounds import base_at, infinitive_at, participle_at
from knowhalu.declarative.predicates import predicate_at
from knowhalu.declarative.words import (
    BE,
    DO,
    HAVE,
    PARTICLES,
    PREPOSITIONS,
    SUBORDINATE,
    is_adverb,
    low,
    opens_noun,
    opens_time,
    past_adverbs,
    swapped,
    word,
)


class Clause(NamedTuple):
    """A statement that lacks what was asked for: its tokens, the place of the main verb, and that of the auxiliary or copula."""

    words: list[str]
    verb: int
    helper: int


_WHOLE = frozenset("out because instead as regardless ahead".split())
_NAMED = frozenset("called named titled entitled nicknamed dubbed awarded given renamed christened granted".split())
_TEMPORAL = frozenset("this last next every each".split())


def declared(helper: str, rest: Sequence[str], *, prepositions: bool = False) -> Clause | None:
    """Put an auxiliary from before the subject to its place; None where the subject's end is not sure."""
    aux = word(helper)
    if aux in DO:
        return _without_do(aux, rest)
    if aux in BE:
        at = predicate_at(rest, prepositions=prepositions)
        if at is None:
            return Clause([*rest, aux], len(rest), len(rest))
        words = [*rest[:at], aux, *rest[at:]]
        main = past_adverbs(words, at + 1)
        verbal = main < len(words) and (verbs.is_participle(low(words[main])) or verbs.is_gerund(low(words[main])))
        return Clause(words, main if verbal else at, at)
    found = participle_at(rest) if aux in HAVE else infinitive_at(rest)
    if found is None:
        return None
    start = found
    while start > 1 and is_adverb(rest[start - 1]):
        start -= 1
    words, main = [*rest[:start], aux, *rest[start:]], found + 1
    while main + 1 < len(words) and low(words[main]) in ("be", "been", "have"):
        after = past_adverbs(words, main + 1)
        if after == len(words) or not (verbs.is_participle(low(words[after])) or verbs.is_gerund(low(words[after]))):
            break
        main = after
    return Clause(words, main, start)


def _without_do(aux: str, rest: Sequence[str]) -> Clause | None:
    at = base_at(rest)
    if at is None:
        return None
    start = at
    while start > 1 and is_adverb(rest[start - 1]):
        start -= 1
    if "not" in [low(w) for w in rest[start:at]]:
        return Clause([*rest[:start], aux, *rest[start:]], at + 1, start)
    return Clause([*rest[:at], inflected(rest[at], aux), *rest[at + 1 :]], at, at)


def inflected(token: str, aux: str) -> str:
    """Return a verb's form that says the same without "did", "does" or "do"."""
    base = low(token)
    return swapped(token, verbs.past(base) if aux == "did" else verbs.third(base) if aux == "does" else base)


def put_in(words: Sequence[str], at: int, what: str) -> list[str]:
    """Return the tokens with something put in before a place."""
    return [*words[:at], what, *words[at:]]


def stranded(words: Sequence[str], start: int = 0) -> int | None:
    """Return the place behind a preposition that has lost its noun: at the end, or before another phrase."""
    lows = [low(w) for w in words]
    if len(words) > start and lows[-1] in PREPOSITIONS:
        return len(words)
    for i in range(len(words) - 2, start, -1):
        if lows[i] in PREPOSITIONS and not words[i].endswith(",") and (lows[i + 1] in PREPOSITIONS - {"of"} | SUBORDINATE):
            whole = lows[i] in _WHOLE or (lows[i], lows[i + 1]) in (("up", "to"), ("from", "under"), ("in", "between"))
            if not whole:
                return i + 1
    return None


def naming(words: Sequence[str], start: int = 0) -> int | None:
    """Return the place behind "called" or "awarded" where what follows is not what it is called."""
    for i in range(start, len(words)):
        if low(words[i]) in _NAMED and (i + 1 == len(words) or low(words[i + 1]) in PREPOSITIONS | SUBORDINATE):
            return i + 1
    return None


def with_object(clause: Clause, what: str) -> list[str] | None:
    """Put an object in its gap: behind a stranded preposition, else behind the verb and an object that it has already."""
    words = clause.words
    at = stranded(words, clause.verb)
    if at is None:
        at = _object_slot(words, clause.verb)
    return None if at is None else put_in(words, at, what)


def _object_slot(words: Sequence[str], verb: int) -> int | None:
    at = _last_verb(words, verb)
    if low(words[at]) in ("do", "does", "did", "done", "doing"):
        return None
    at += 1
    if at < len(words) and low(words[at]) in PARTICLES and at + 1 < len(words) and low(words[at + 1]) != "the":
        at += 1
    if opens_noun(words, at) and low(words[at]) not in _TEMPORAL:
        at += 1
        while at < len(words) and low(words[at]) not in PREPOSITIONS | SUBORDINATE:
            at += 1
        if at + 1 < len(words) and low(words[at]) == "to" and low(words[at + 1]) in verbs.BASES:
            return None if low(words[at + 1]) == "do" else at + 2
    return at


def _last_verb(words: Sequence[str], at: int) -> int:
    """Follow a chain of verbs: "tried to build", "started making", "helped write"."""
    while True:
        after = [low(w) for w in words[at + 1 : at + 3]]
        if len(after) == 2 and after[0] == "to" and after[1] in verbs.BASES | {"be"}:
            at += 2
        elif after and (verbs.is_gerund(after[0]) or (low(words[at])[:4] == "help" and after[0] in verbs.BASES)):
            at += 1
        else:
            return at


def with_adjunct(clause: Clause, what: str, *, time: bool = False) -> list[str]:
    """Put a phrase of place or time in: at the end, but before a clause, and a place before a time."""
    for i in range(clause.verb + 1, len(clause.words)):
        if low(clause.words[i]) in SUBORDINATE or (not time and opens_time(clause.words, i)):
            return put_in(clause.words, i, what)
    return [*clause.words, what]
