"""Who does what to whom: claims that exchange the two participants of a source's relation, or say it from the other side.

A relation is a verb with subject and object, a comparison, an order in time, a direction, a kinship or a formula. Participants
are compared by their words; where these do not tell them apart, nothing is said.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from knowhalu.text.converses import (
    BACKWARD_VERBS,
    FORMULAS,
    IRREGULAR,
    MUTUAL_VERBS,
    PIVOTS,
    POSSESSIVE_NOUNS,
    VERB_GROUPS,
    verb_of,
)
from knowhalu.text.sentences import STOPWORDS, content_words, sentences, stem, words
from knowhalu.text.wordlists import DETERMINERS, HELPERS, PREPOSITIONS

MAX_PARTICIPANT_WORDS = 6
_NEGATED = re.compile(r"\b(?:not|never|no|neither|nor|without|cannot)\b|n['’]t\b", re.IGNORECASE)  # noqa: RUF001
_BREAK = re.compile(r"[,;:()–—]|\b(?:and|or|but|although|though|while|when|because|who|which|that|whose|if|since|until)\b", re.I)
_OPERAND = re.compile(r"\b(?:is|are|equals?|as|of|by|the)\b|=")
_CLAUSES = re.compile(r"[,;]\s|\s(?:but|although|though|while)\s")
_OWN_CLAUSE = re.compile(r"\b(?:after|before|as)\b", re.IGNORECASE)
_PURPOSE = re.compile(r"\bto (?:get|find|obtain|calculate)\b")
_POSSESSIVE = re.compile(
    rf"(?P<owner>(?:[A-Z][\w.-]*\s)*[A-Z][\w.-]*|(?:the|my|his|her|their|a)\s\w+)['’]s\s(?P<noun>{POSSESSIVE_NOUNS})\b"  # noqa: RUF001
)
_SUBJECT_NOUN = re.compile(
    rf"^\W*(?:the|one|an?)\s(?P<noun>{POSSESSIVE_NOUNS})\sof\s(?P<of>[^,;:]+?)\s(?P<be>is|are|was|were)\s(?P<who>[^,;:.]+)", re.I
)
_BE = frozenset("is are was were been being be gets got".split())
_SCALE_OF_AMOUNT = re.compile(r"\b(?P<side>more|fewer|less)\s(?P<noun>[\w-]+(?:\s[\w-]+){0,2})\sthan\b", re.IGNORECASE)


class Relation(NamedTuple):
    """What relates two participants, which are content words; the first is the agent, the greater or the earlier one."""

    names: frozenset[str]
    first: frozenset[str]
    second: frozenset[str]
    cue: frozenset[str] = frozenset()
    """The words that say it."""
    forward: bool = True
    """The first is on the left."""


def find_exchange(claim: str, sources: Iterable[str]) -> str | None:
    """Return the sentence with the participants of a claim's relation exchanged; None without one, or where another has it so."""
    claimed = find_relations(claim)
    given = [(s, r) for s in sources for r in find_relations(s)] if claimed else []
    for c in claimed:
        sides = [(s, _compare(c, g)) for s, g in given]
        if not any(side == 1 for _, side in sides) and (found := next((s for s, side in sides if side == -1), None)) is not None:
            return found
    return None


def find_converse(claim: str, sources: Iterable[str]) -> str | None:
    """Return the sentence that says what a claim says from the other side, and has all its other words; None without one."""
    wanted, claimed = set(content_words(claim)) - _LIGHT, find_relations(claim)
    for source in sources if claimed else ():
        known, pairs = set(content_words(source)), [(c, g) for c in claimed for g in find_relations(source)]
        sides = {_compare(c, g) for c, g in pairs}
        turned = [c for c, g in pairs if c.forward != g.forward and _compare(c, g) == 1]
        if -1 not in sides and any(wanted - c.cue <= known for c in turned):
            return source
    return None


def _compare(claim: Relation, source: Relation) -> int:
    """Return 1 where two relations have the same participants, -1 where they are exchanged, 0 where this is unclear."""
    if not claim.names & source.names:
        return 0
    straight = _share(claim.first, source.first), _share(claim.second, source.second)
    crossed = _share(claim.first, source.second), _share(claim.second, source.first)
    if min(straight) >= MIN_SHARE and not min(crossed):
        return 1
    # "copper conducts heat better than steel": words that both subjects have tell neither of the two participants
    firsts, seconds = claim.first & source.first, claim.second & source.second
    crossed = (
        _share(claim.first - firsts, source.second - seconds),
        _share(claim.second - seconds, source.first - firsts),
    )
    return -1 if min(crossed) >= MIN_SHARE and not min(straight) else 0


MIN_SHARE = 0.5
"""Share of a participant's words, of the claim's or the source's, that both have."""


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / min(len(one), len(other)) if one and other else 0.0


@lru_cache(maxsize=4096)
def find_relations(text: str) -> tuple[Relation, ...]:
    """Return the relations between two participants that a text states; none of a clause that denies something."""
    pieces = (p for s in sentences(text) for p in ([s.text] if not _NEGATED.search(s.text) else _CLAUSES.split(s.text)))
    return tuple(r for p in pieces if not _NEGATED.search(p) for r in _relations(p) if r.first and r.second)


def _relations(text: str) -> Iterator[Relation]:
    text = _POSSESSIVE.sub(lambda m: f"the {m['noun']} of {m['owner']}", text)
    if m := _SUBJECT_NOUN.match(text):
        text = f"{m['who']} {m['be']} the {m['noun']} of {m['of']}"
    yield from _formulas(text)
    for pivot in PIVOTS:
        for m in pivot.pattern.finditer(text):
            yield _relation(pivot.names, _left(text[: m.start()]), _right(text[m.end() :]), m.group(), forward=pivot.forward)
    for m in _SCALE_OF_AMOUNT.finditer(text):
        names = frozenset(f"more {w}" for w in content_words(m["noun"]))
        yield _relation(names, _left(text[: m.start()]), _right(text[m.end() :]), m["side"], forward=m["side"].lower() == "more")
    for m in _GIVEN.finditer(text):
        names = _GROUPS.get(verb_of(m["verb"]), frozenset({verb_of(m["verb"])}))
        yield _relation(names, _left(m["giver"]), _left(m["taker"]), m["verb"], forward=True)
    yield from _verbs(text)


def _relation(names: frozenset[str], left: frozenset[str], right: frozenset[str], cue: str = "", *, forward: bool) -> Relation:
    """Return a relation without the words that both participants have."""
    left, right, said = left - right, right - left, frozenset(content_words(cue))
    return Relation(names, *((left, right) if forward else (right, left)), said, forward)


def _left(text: str) -> frozenset[str]:
    return frozenset(content_words(_BREAK.split(text)[-1])[-MAX_PARTICIPANT_WORDS:]) - _LIGHT


def _right(text: str) -> frozenset[str]:
    """Return the words of the first noun phrase of a text, with what follows it after "of"."""
    clause = _BREAK.split(text)[0]
    tokens = words(clause)
    start = next((i for i, t in enumerate(tokens) if t.text.lower() not in STOPWORDS), 0)
    end = next((i for i, t in enumerate(tokens) if i > start and t.text.lower() in _ENDS_PHRASE), len(tokens))
    piece = clause[tokens[start].start : tokens[end - 1].end] if tokens else ""
    return frozenset(content_words(piece)[:MAX_PARTICIPANT_WORDS]) - _LIGHT


def _formulas(text: str) -> Iterator[Relation]:
    for name, (between, told) in FORMULAS.items():
        for m in re.finditer(between, text):
            operand = _OPERAND.split(text[: m.start()])[-1]
            yield _relation(frozenset({name}), _left(operand), _right(text[m.end() :]), m.group(), forward=True)
        for m in re.finditer(told, text) if told else ():
            first, second = (_left(_PURPOSE.split(m[side])[0]) for side in ("first", "second"))
            yield _relation(frozenset({name}), first, second, m.group().split()[0], forward=True)


def _verbs(text: str) -> Iterator[Relation]:
    """Return verbs between a subject and an object, in the active or the passive."""
    tokens = words(text)
    for at, token in enumerate(tokens[1:-1], 1):
        word, before = token.text.lower(), tokens[at - 1].text.lower()
        verb = verb_of(word)
        if not _may_be_verb(token.text) or before in DETERMINERS or before in PREPOSITIONS or verb in _MUTUAL:
            continue
        left, rest = _left(_OWN_CLAUSE.split(text[: token.start])[-1]), text[token.end :]
        passive = any(t.text.lower() in _BE for t in tokens[max(0, at - 2) : at])
        m = (_BY if passive else _OBJECT).match(rest)
        if m is None or (passive and word.endswith("s")):
            continue
        particle = (m["particle"] or "").lower()
        backward = _BACKWARD.get(verb, frozenset())
        names = _GROUPS.get(verb) or backward or frozenset({f"verb {verb} {particle}".strip()})
        yield _relation(names, left, _right(rest[m.end() :]), word, forward=passive == bool(backward))


_GIVEN = re.compile(
    r"\b(?:is|are|was|were|been) (?P<verb>sold|lent|given|rented|leased|paid|sent|supplied)"
    r" to (?P<taker>[^,;:]{1,40}?) by (?P<giver>[^,;:.]+)"
)
_PARTICLE = r"(?:\s(?P<particle>over|up|off|out|down|to|on|against|for))?"
_BY = re.compile(rf"{_PARTICLE}(?:\s[\w'-]+){{0,4}}?\sby\s", re.IGNORECASE)  # noqa: RUF001
_OBJECT = re.compile(rf"{_PARTICLE}\s(?=[A-Z\d]|(?:{'|'.join(sorted(DETERMINERS))})\s)")
_ENDS_PHRASE = (PREPOSITIONS | DETERMINERS | HELPERS | {"around", "across", "along", "within", "without", "than", "so"}) - {"of"}
_LIGHT = frozenset(content_words("lies stands comes came happened occurred took place sits located situated"))
_MUTUAL = frozenset(map(stem, MUTUAL_VERBS))
_GROUPS = {stem(verb): frozenset(names.split()) for verb, names in VERB_GROUPS.items()}
_BACKWARD = {stem(verb): frozenset(names.split()) for verb, names in BACKWARD_VERBS.items()}


def _may_be_verb(word: str) -> bool:
    """Tell whether a word looks like a form of a verb with an object: in lower case, with an ending or known."""
    plain = word.isalpha() and word.islower() and word not in STOPWORDS and len(word) > 2
    return plain and (word.endswith(("ed", "s")) or word in IRREGULAR)
