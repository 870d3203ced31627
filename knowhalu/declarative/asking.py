"""Questions with who, and with what or which alone: the answer as the subject, in a gap, or beside a copula."""

import re
from collections.abc import Sequence

from knowhalu.declarative import verbs
from knowhalu.declarative.clauses import declared, naming, put_in, stranded, with_object
from knowhalu.declarative.words import (
    ADJECTIVES,
    AUXILIARIES,
    BE,
    DO,
    HAVE,
    MODALS,
    PREPOSITIONS,
    PRONOUNS,
    RELATIVES,
    is_adjective,
    is_name,
    is_possessive,
    low,
    past_adverbs,
    tokens,
    word,
)

_PLURALS = {"is": "are", "was": "were", "has": "have"}
SUPERLATIVE = re.compile(r"[a-z]{3,}est$")


def who(rest: Sequence[str], answer: str, *, name_first: bool = True) -> str | None:
    """Answer a question that opens with "who"; with "which" or "what" alone, `name_first` tells which end the answer takes."""
    if not rest:
        return None
    aux = word(rest[0])
    if aux not in AUXILIARIES:
        return " ".join([answer, *rest])
    ahead = past_adverbs(rest, 1)
    thing = not name_first and aux in BE and ahead < len(rest) and low(rest[ahead]) in ("a", "an")
    if not thing and goes_on(aux, rest, ahead):
        return " ".join([answer, _agreeing(rest[0], answer, name_first), *rest[1:]])
    if aux not in BE:
        clause = declared(aux, rest[1:])
        if clause is None and aux in HAVE and name_first:
            return " ".join([answer, _agreeing(rest[0], answer, name_first), *rest[1:]])
        filled = None if clause is None else with_object(clause, answer)
        return " ".join(filled) if filled else None
    return _beside_copula(rest, answer, name_first=name_first)


def goes_on(aux: str, rest: Sequence[str], at: int) -> bool:
    """Tell whether a verb, an adjective or a phrase follows the auxiliary, so that the answer is the subject."""
    w = low(rest[at]) if at < len(rest) else ""
    if not w:
        return False
    if aux in DO:
        return "not" in [low(t) for t in rest[1:at]]
    if aux in MODALS:
        return w in verbs.BASES | {"be"}
    if aux not in BE:
        return verbs.is_participle(w) or w == "been"
    if w in ("a", "an") or w in PREPOSITIONS or w == "there":
        return w != "there"
    verbal = verbs.is_participle(w) or verbs.is_gerund(w)
    return (
        (verbal and w not in verbs.NOUNS_TOO)
        or is_adjective(rest[at])
        or w in ADJECTIVES
        or w in ("more", "less")
        or (bool(SUPERLATIVE.match(w)) and low(rest[min(at + 1, len(rest) - 1)]) in PREPOSITIONS)
    )


def _agreeing(aux: str, answer: str, people: bool) -> str:
    joined = people and re.search(r"\w,? and [A-Z]", answer) and not re.search(r"&|\bof\b", answer)
    return _PLURALS.get(aux, aux) if joined else aux


def _beside_copula(rest: Sequence[str], answer: str, *, name_first: bool) -> str | None:
    be, noun = rest[0], rest[1:]
    if not noun or word(noun[0]) in PRONOUNS - {"this", "that", "these", "those", "it"}:
        return None
    if (stranded(noun) is not None or naming(noun) is not None) and not _told_of(be, noun):
        return in_gap(be, noun, answer)
    if (
        name_first
        and any(map(is_name, tokens(answer)))
        and low(tokens(answer)[0]) not in ("a", "an")
        and not _is_plain_name(noun)
    ):
        return " ".join([answer, _agreeing(word(be), answer, True), *noun])
    return " ".join([*noun, word(be), answer])


def _told_of(be: str, noun: Sequence[str]) -> bool:
    """Tell whether the preposition without a noun belongs to a clause about the noun: "the colony that they came from"."""
    clause = declared(be, noun)
    own = any(low(w) in RELATIVES or low(w) in verbs.ONLY_PAST for w in noun[1:])
    return own and (clause is None or clause.verb == clause.helper)


def _is_plain_name(noun: Sequence[str]) -> bool:
    return all(is_name(w) or low(w) in ("of", "de", "van", "von", "the") for w in noun) and not any(map(is_possessive, noun))


def in_gap(be: str, noun: Sequence[str], answer: str) -> str | None:
    """Put the answer behind a stranded preposition, or behind "called"."""
    clause = declared(be, noun)
    if clause is None:
        return None
    words = clause.words
    if clause.helper == len(noun):  # nothing but a preposition is the predicate: "the film is about"
        at = stranded(noun)
        if at is None or at < 2:
            return None
        words = [*noun[: at - 1], word(be), *noun[at - 1 :]]
    start = min(clause.verb, len(words) - 1)
    at = stranded(words, 1 if clause.helper == len(noun) else start)
    if at is None:
        at = naming(words, start)
    return None if at is None else " ".join(put_in(words, at, answer))
