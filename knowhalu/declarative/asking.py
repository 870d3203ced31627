"""Questions with who, what and which: the answer as the subject, in the object's gap, or beside a copula."""

import re
from collections.abc import Sequence

from knowhalu.declarative import verbs
from knowhalu.declarative.adjuncts import place_phrase, time_phrase
from knowhalu.declarative.bounds import noun_end
from knowhalu.declarative.clauses import declared, naming, put_in, stranded, with_adjunct, with_object
from knowhalu.declarative.nouns import ATTRIBUTES, CALLED, KINDS, PLACES, SHARED, TIMES, head, head_at, named
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
_SUPERLATIVE = re.compile(r"[a-z]{3,}est$")


def who(rest: Sequence[str], answer: str, *, name_first: bool = True) -> str | None:
    """Answer a question that opens with "who"; with "which" or "what" alone, `name_first` tells which end the answer takes."""
    if not rest:
        return None
    aux = word(rest[0])
    if aux not in AUXILIARIES:
        return " ".join([answer, *rest])
    ahead = past_adverbs(rest, 1)
    thing = not name_first and aux in BE and ahead < len(rest) and low(rest[ahead]) in ("a", "an")
    if ahead < len(rest) and not thing and _goes_on(aux, rest, ahead):
        return " ".join([answer, _agreeing(rest[0], answer, name_first), *rest[1:]])
    if aux not in BE:
        clause = declared(aux, rest[1:])
        if clause is None and aux in HAVE and name_first:
            return " ".join([answer, _agreeing(rest[0], answer, name_first), *rest[1:]])
        filled = clause and with_object(clause, answer)
        return " ".join(filled) if filled else None
    return _beside_copula(rest, answer, name_first=name_first)


def _goes_on(aux: str, rest: Sequence[str], at: int) -> bool:
    """Tell whether a verb, an adjective or a phrase follows the auxiliary, so that the answer is the subject."""
    w = low(rest[at])
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
        or (bool(_SUPERLATIVE.match(w)) and low(rest[min(at + 1, len(rest) - 1)]) in PREPOSITIONS)
    )


def _agreeing(aux: str, answer: str, people: bool) -> str:
    joined = people and re.search(r"\w,? and [A-Z]", answer) and not re.search(r"&|\bof\b", answer)
    return _PLURALS.get(aux, aux) if joined else aux


def _beside_copula(rest: Sequence[str], answer: str, *, name_first: bool) -> str | None:
    be, noun = rest[0], rest[1:]
    if not noun or word(noun[0]) in PRONOUNS - {"this", "that", "these", "those", "it"}:
        return None
    if (stranded(noun) is not None or naming(noun) is not None) and not _told_of(be, noun):
        return _in_gap(be, noun, answer)
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


def _in_gap(be: str, noun: Sequence[str], answer: str) -> str | None:
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
    if aux in AUXILIARIES and not (len(rest) > 1 and _goes_on(aux, rest, past_adverbs(rest, 1))):
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
    if ahead < len(rest) and _goes_on(word(rest[0]), rest, ahead) and not (kind and low(rest[ahead]) in ("a", "an")):
        return " ".join([named(noun, answer), *rest])
    if stranded(inner) is not None or naming(inner) is not None:
        return _in_gap(rest[0], inner, named(noun, answer))
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
    if _SUPERLATIVE.match(low(rest[2]) if len(rest) > 2 else "") and (after in PREPOSITIONS or len(rest) == 3):
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
    if aux in BE and len(rest) > 1 and not _goes_on(aux, rest, past_adverbs(rest, 1) if past_adverbs(rest, 1) < len(rest) else 1):
        return " ".join([*rest[1:], aux, owner, *owned])
    if aux in AUXILIARIES and aux not in BE and not _goes_on(aux, rest, min(past_adverbs(rest, 1), len(rest) - 1)):
        clause = declared(aux, rest[1:])
        filled = clause and with_object(clause, " ".join([owner, *owned]))
        return " ".join(filled) if filled else None
    return " ".join([owner, *owned, *rest])


def owner_of(answer: str) -> str:
    """Return an answer in the possessive."""
    if (
        is_possessive(answer)
        and not re.match(r"the\b.*[^'’]s$", answer, re.IGNORECASE)
        and answer[-1] in "s'’"
        and "'" in answer[-2:]
    ):  # noqa: RUF001
        return answer
    return f"{answer}'" if re.match(r"the\b.*s$", answer, re.IGNORECASE) else f"{answer}'s"
