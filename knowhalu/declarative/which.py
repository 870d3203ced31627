"""Questions with which and what and a noun: the answer named by the noun, or the noun given up."""

import re
from collections.abc import Sequence

from knowhalu.declarative import verbs
from knowhalu.declarative.adjuncts import place_phrase, time_phrase
from knowhalu.declarative.asking import SUPERLATIVE, goes_on, in_gap, who
from knowhalu.declarative.clauses import declared, naming, put_in, stranded, with_adjunct, with_object
from knowhalu.declarative.nouns import ATTRIBUTES, KINDS, PLACES, SHARED, TIMES, head, head_at, named
from knowhalu.declarative.spans import noun_end
from knowhalu.declarative.words import (
    AUXILIARIES,
    BE,
    HAVE,
    PREPOSITIONS,
    is_possessive,
    low,
    past_adverbs,
    word,
)


def which(words: Sequence[str], answer: str, *, what: bool) -> str | None:
    """Answer a question that opens with "which" or "what"."""
    if what and words and _is_verb(words):
        return " ".join([answer, *words])
    end = noun_end(words)
    noun, rest = words[:end], words[end:]
    if not rest:
        return None
    if not noun:
        return who(rest, answer, name_first=not what)
    if low(noun[-1]) in ("and", "or") or ("and" in map(low, noun) and low(rest[0]) in ("have", "share")):
        return None  # a verb that is not known, or "did" left out
    aux = word(rest[0])
    if head(noun) in TIMES and aux in AUXILIARIES:
        return _with_time(noun, rest, answer)
    if aux in BE:
        return _which_is(noun, rest, answer)
    if aux in AUXILIARIES and not goes_on(aux, rest, past_adverbs(rest, 1)):
        return _of_verb(noun, rest, answer)
    return " ".join([named(noun, answer), *rest])


def _is_verb(words: Sequence[str]) -> bool:
    """Tell whether "what" is the subject of the very next word: "what caused", "what lies"."""
    w, after = low(words[0]), low(words[1]) if len(words) > 1 else ""
    if w in AUXILIARIES:
        return False
    return verbs.is_past(w) or (
        w in verbs.THIRDS and after not in AUXILIARIES and not (verbs.is_past(after) and after not in PREPOSITIONS)
    )


def _with_time(noun: Sequence[str], rest: Sequence[str], answer: str) -> str | None:
    """Answer "what year": the time stands at the end of the statement."""
    if _only_noun(rest) and word(rest[0]) in BE:
        return who(rest, answer, name_first=False)
    clause = declared(rest[0], rest[1:])
    if clause is None:
        return None
    at = stranded(clause.words, clause.verb)
    if at is not None:
        return " ".join(put_in(clause.words, at, answer))
    return " ".join(
        with_adjunct(clause, time_phrase(answer, "in" if head(noun) in ("year", "century", "month") else ""), time=True)
    )


def _only_noun(rest: Sequence[str]) -> bool:
    clause = declared(rest[0], rest[1:])
    return clause is not None and clause.helper == len(rest) - 1 and low(rest[1]) in ("the", "a") if len(rest) > 1 else True


def _which_is(noun: Sequence[str], rest: Sequence[str], answer: str) -> str | None:
    """Answer "which X is ...": a description of the answer, a gap in it, or a quality of what follows."""
    inner = rest[1:]
    if not inner:
        return None
    kind = head(noun) in ATTRIBUTES or low(noun[0]) in KINDS
    ahead = past_adverbs(rest, 1)
    if goes_on(word(rest[0]), rest, ahead) and not (kind and low(rest[ahead]) in ("a", "an")):
        return " ".join([named(noun, answer), *rest])
    if stranded(inner) is not None or naming(inner) is not None:
        return in_gap(rest[0], inner, named(noun, answer))
    if kind:
        return " ".join([*inner, word(rest[0]), answer])
    if low(inner[0]) == "the" or any(map(is_possessive, inner)):
        return _described(noun, rest, answer)
    clause = declared(rest[0], inner)
    if clause is None or clause.helper == len(inner):
        return " ".join([*inner, word(rest[0]), answer])
    if head(noun) in PLACES:
        return " ".join(with_adjunct(clause, place_phrase(answer)))
    return None


def _described(noun: Sequence[str], rest: Sequence[str], answer: str) -> str | None:
    """Say of the answer what follows "is"; after a superlative without a noun the question's own noun is put in."""
    clause = declared(rest[0], rest[1:])
    if clause is not None and clause.helper < len(rest) - 1 and head(noun) in PLACES and low(rest[1]) == "the":
        verbal = clause.verb != clause.helper
        if verbal and not re.search(r"\bby\b", " ".join(rest)):
            return " ".join(with_adjunct(clause, place_phrase(answer)))
    out = list(rest)
    after = low(rest[3]) if len(rest) > 3 else ""
    if SUPERLATIVE.match(low(rest[2]) if len(rest) > 2 else "") and (after in PREPOSITIONS or len(rest) == 3):
        plain = " ".join(noun[: head_at(noun) + 1])
        return " ".join([answer, *put_in(out, 3, plain)])
    return " ".join([named(noun, answer), *out])


_STAYS = frozenset("live die grow work settle reside retire end begin start happen occur originate compete study".split())
_STAYED = frozenset(f for b in _STAYS for f in (verbs.past(b), verbs.third(b), b))


def _of_verb(noun: Sequence[str], rest: Sequence[str], answer: str) -> str | None:
    """Answer "which X did ...": the answer is the object, or the place of what happened."""
    clause = declared(rest[0], rest[1:])
    if clause is None:
        return " ".join([named(noun, answer), *rest]) if word(rest[0]) in HAVE else None
    main = low(clause.words[clause.verb])
    if head(noun) in SHARED and (main in ("share", "have") or "common" in map(low, clause.words)):
        return " ".join(["the", *noun, "that", *clause.words, "is", answer])
    what = f"number {answer}" if head(noun) == "number" and answer[0].isdigit() else named(noun, answer)
    if head(noun) in PLACES and stranded(clause.words, clause.verb) is None and main in _STAYED:
        return " ".join(with_adjunct(clause, place_phrase(answer, main)))
    filled = with_object(clause, what)
    return " ".join(filled) if filled else None
