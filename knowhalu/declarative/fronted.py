"""Questions that open with a preposition ("in which year", "by whom") or with whose."""

import re
from collections.abc import Sequence

from knowhalu.declarative.adjuncts import time_phrase
from knowhalu.declarative.asking import goes_on
from knowhalu.declarative.clauses import declared, with_adjunct, with_object
from knowhalu.declarative.nouns import CALLED, TIMES, head, named
from knowhalu.declarative.spans import noun_end
from knowhalu.declarative.words import (
    AUXILIARIES,
    BE,
    PREPOSITIONS,
    is_possessive,
    low,
    past_adverbs,
    tokens,
    word,
)


def fronted(preposition: str, words: Sequence[str], answer: str, *, noun: bool) -> str | None:
    """Answer a question that opens with a preposition: "in which year", "by whom"; `noun` where a noun may follow."""
    end = noun_end(words) if noun else 0
    of, rest = words[:end], words[end:]
    if not rest or word(rest[0]) not in AUXILIARIES:
        return None
    clause = declared(rest[0], rest[1:])
    if clause is None or len(rest) < 2:
        return None
    prep = preposition.lower()
    timed = head(of) in TIMES or head(of) == "age"
    if head(of) == "age" and re.fullmatch(r"\d+|\w+", answer):
        phrase = f"{prep} the age of {answer}"
    elif timed:
        phrase = time_phrase(answer, prep)
    elif head(of) in CALLED:
        phrase = f"{prep} the {' '.join(of)} {answer}"
    elif prep == "on" and head(of) == "continent":
        phrase = f"in {answer}"
    else:
        own = word(tokens(answer)[0]) in PREPOSITIONS and low(answer.split()[0]) != ""
        phrase = answer if own else f"{prep} {named(of, answer)}"
    return " ".join(with_adjunct(clause, phrase, time=timed))


def whose(words: Sequence[str], answer: str) -> str | None:
    """Answer a question that opens with "whose"."""
    end = noun_end(words)
    owned, rest = words[:end], words[end:]
    if not owned or not rest:
        return None
    owner = owner_of(answer)
    aux = word(rest[0])
    subject = goes_on(aux, rest, min(past_adverbs(rest, 1), len(rest) - 1))
    if aux in BE and len(rest) > 1 and not subject:
        return " ".join([*rest[1:], aux, owner, *owned])
    if aux in AUXILIARIES - BE and not subject:
        clause = declared(aux, rest[1:])
        filled = None if clause is None else with_object(clause, " ".join([owner, *owned]))
        return " ".join(filled) if filled else None
    return " ".join([owner, *owned, *rest])


def owner_of(answer: str) -> str:
    """Return an answer in the possessive."""
    if is_possessive(answer):
        return answer
    return f"{answer}'" if re.match(r"the\b.*s$", answer, re.IGNORECASE) else f"{answer}'s"
