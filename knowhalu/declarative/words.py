"""Small words of English by what they do in a sentence, and a sentence as tokens: words with their marks, quotations whole."""

import re
from collections.abc import Sequence

from knowhalu.declarative import verbs

BE = frozenset("is are was were am".split())
DO = frozenset("do does did".split())
HAVE = frozenset("has have had".split())
MODALS = frozenset("can could will would shall should may might must".split())
AUXILIARIES = BE | DO | HAVE | MODALS
ASKING = frozenset("who whom whose what which when where why how".split())
RELATIVES = frozenset("who whom whose which that where".split())
ARTICLES = frozenset("a an the".split())
POSSESSIVES = frozenset("his her its their my your our".split())
DETERMINERS = ARTICLES | POSSESSIVES | frozenset("this that these those each every some any no both all another".split())
PRONOUNS = frozenset("he she it they we i you there this that these those".split())
OBJECTS = frozenset("him her them it us me you himself herself itself themselves".split())
PREPOSITIONS = frozenset(
    """
    in on at by to from for of with as into onto over under between among after before during since until till near through
    against about without within across along around behind beside besides beyond despite upon toward towards via inside outside
    throughout below above off out up down per alongside amid
    """.split()
)
PARTICLES = frozenset("up out off away back down over".split())
OPENERS = PREPOSITIONS | frozenset(
    "because due thanks owing according every each once twice when while if where whenever".split()
)
"""Words with which an answer opens that can stand at the end of a sentence as it is."""
SUBORDINATE = frozenset("when while because if until although though whereas once whenever".split())
MODIFIERS = frozenset(
    """
    first second third fourth fifth last next new old own other only main major best worst most more largest biggest smallest
    highest longest oldest youngest great top final early late original national international official real full former current
    same such two three four five six seven eight nine ten many several few very
    """.split()
)
ADVERBS = frozenset(
    "also not never ever once first originally still now then already always often later eventually currently usually only both "
    "formerly best most mainly widely commonly officially together previously initially primarily all each".split()
)
ADJECTIVES = frozenset(
    """
    famous responsible able unable similar different close near dead alive available popular native active blue red green white
    black yellow brown grey gray old older young younger tall taller large larger big bigger small smaller long longer short
    shorter high higher low lower fast faster slow slower heavy heavier light lighter rich richer poor poorer new newer late
    later early earlier closer nearer bigger hotter colder deeper wider worth true false real alive extinct edible poisonous
    toxic safe dangerous illegal legal open closed free independent home part full empty common rare important essential
    necessary pregnant bankrupt present absent unique notable prominent due eligible subject immune capable aware afraid proud
    guilty innocent visible invisible flat round wet dry hot cold better worse greater more less fewer best worst synonymous
    contemporary
    """.split()
)
_ADJECTIVAL = re.compile(r"[a-z]{3,}(?:ous|able|ible|ful|less|ive|ical|ish)$")
NATIONAL = re.compile(
    r"[A-Z]\w+(?:ian|ean|ish|ese|can)$|(?:German|French|Dutch|Greek|Swiss|Czech|Thai|Turk|Finn|Danish|Iraqi|Israeli|Pakistani|Welsh|Roman|"
    r"Norwegian|Icelandic|Jewish|Catholic|Christian|Muslim|Buddhist|Hindu)$"
)
_TOKEN = re.compile(r'"[^"]*"[^\s"]*|“[^”]*”\S*|\([^()]*\)\S*|\S+')
_CORE = re.compile(r"\w(?:.*\w)?", re.DOTALL)


def tokens(text: str) -> list[str]:
    """Cut a text at white space; a quotation and what stands in brackets stay whole."""
    return _TOKEN.findall(text)


def word(token: str) -> str:
    """Return a token's word in lower case, without marks."""
    found = _CORE.search(token)
    return found.group().lower() if found else ""


def low(token: str) -> str:
    """Return a token's word where it is written in lower case, else nothing: names and titles are never verbs."""
    found = _CORE.search(token)
    return found.group() if found and found.group().islower() and token[0] not in "\"“'(" else ""


def is_name(token: str) -> bool:
    """Tell whether a token opens like a name, a number or a quotation."""
    found = _CORE.search(token)
    return found is not None and (not found.group()[0].islower() or token[0] in '"“')


def swapped(token: str, put: str) -> str:
    """Put another word in a token, its marks kept."""
    return _CORE.sub(lambda _: put, token, count=1)


def is_adjective(token: str) -> bool:
    """Tell whether a token is an adjective that may end a predicate."""
    return low(token) in ADJECTIVES or bool(_ADJECTIVAL.match(low(token)))


def is_adverb(token: str) -> bool:
    """Tell whether a token is an adverb that may stand before a verb."""
    return low(token) in ADVERBS or (low(token).endswith("ly") and len(low(token)) > 4 and low(token) not in verbs.BASES)


def past_adverbs(words: Sequence[str], at: int) -> int:
    """Return the place of the first token from `at` on that is no adverb."""
    while at < len(words) and is_adverb(words[at]):
        at += 1
    return at


def is_possessive(token: str) -> bool:
    """Tell whether a token is a possessive: "Orwell's", "the Beatles'"."""
    return token.lower().endswith(("'s", "’s", "s'", "s’"))  # noqa: RUF001


def opens_noun(words: Sequence[str], at: int) -> bool:
    """Tell whether a noun phrase opens at a place."""
    return at < len(words) and (low(words[at]) in DETERMINERS | OBJECTS or is_name(words[at]))


_TIMES = re.compile(
    r"\d|(?:January|February|March|April|May|June|July|August|September|October|November|December|Monday|Tuesday|Wednesday|"
    r"Thursday|Friday|Saturday|Sunday|spring|summer|autumn|winter)\b"
)
_SPANS = frozenset("century centuries decade decades year years month week war 1990s".split())
_ANY_TIME = frozenset("since until till during before after".split())


def opens_time(words: Sequence[str], at: int) -> bool:
    """Tell whether a phrase of time opens at a place: "in 1990", "since the war", "during", "in the 19th century"."""
    if at + 1 >= len(words):
        return False
    first = low(words[at])
    if first in _ANY_TIME:
        return True
    if first not in ("in", "on", "from", "by", "at"):
        return False
    ahead = words[at + 1 : at + 5]
    return bool(_TIMES.match(ahead[0])) or (
        low(ahead[0]) in ARTICLES and any(word(a) in _SPANS or re.match(r"\d{4}s\b", a) for a in ahead[1:])
    )
