"""What becomes of the noun after "which" and "how many": dropped, kept before a name, or kept behind it."""

import re
from collections.abc import Sequence

from knowhalu.declarative import verbs
from knowhalu.declarative.answers import stem_of
from knowhalu.declarative.words import NATIONAL, PREPOSITIONS, RELATIVES, is_name, low, swapped, word
from knowhalu.text import stem

TIMES = frozenset("year years month day date decade century time season years".split())
PLACES = frozenset(
    """
    country city state town place continent county village region province capital street island river mountain district location
    nation borough area neighborhood neighbourhood suburb territory ocean sea lake planet
    """.split()
)
ATTRIBUTES = frozenset(
    "nationality color colour genre religion size shape age gender sex breed ethnicity race denomination species ".split()
)
KINDS = frozenset("part side section kind type sort form style breed genre".split())
SHARED = frozenset("job profession occupation nationality genre career trait religion ethnicity".split())
CALLED = frozenset("name title pseudonym alias nickname pen".split())
_PEOPLE = frozenset(
    """
    actor actress author singer writer director player president king queen scientist artist composer musician politician
    architect painter poet engineer footballer novelist physicist chemist mathematician philosopher producer comedian rapper
    songwriter screenwriter playwright journalist astronomer economist businessman businesswoman entrepreneur film-maker
    filmmaker band group duo guitarist pianist drummer general admiral explorer inventor model dancer historian biologist
    activist athlete boxer golfer swimmer cyclist cricketer quarterback coach conductor psychologist designer
    """.split()
)
_MONEY = frozenset("money cash profit revenue".split())
_NUMBER_WORDS = frozenset(
    """
    one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
    twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion trillion dozen hundreds thousands
    millions billions dozens several few many more fewer half none zero no hundred
    """.split()
)
_SINGULAR = {"children": "child", "people": "person", "men": "man", "women": "woman", "wives": "wife", "feet": "foot",
             "teeth": "tooth", "mice": "mouse", "lives": "life", "movies": "movie", "species": "species", "series": "series",
             "times": "time"}  # fmt: skip


def head_at(noun: Sequence[str]) -> int:
    """Return the place of a noun phrase's head: the last word before what follows it."""
    for i in range(1, len(noun)):
        w = low(noun[i])
        if w in PREPOSITIONS | RELATIVES or (
            i > 0 and (verbs.is_participle(w) or verbs.is_gerund(w)) and w not in verbs.NOUNS_TOO
        ):
            return i - 1
        if noun[i - 1].endswith(","):
            return i - 1
    return len(noun) - 1


def head(noun: Sequence[str]) -> str:
    """Return a noun phrase's head, or nothing of an empty one."""
    return word(noun[head_at(noun)]) if noun else ""


def named(noun: Sequence[str], answer: str) -> str:
    """Name what a noun phrase asks for: "the American singer Prince", "Prince, the singer born in 1958,", or the answer alone."""
    if not noun or low(noun[0]) in PREPOSITIONS or head(noun) in KINDS or not _single_name(answer):
        return answer
    at = head_at(noun)
    said = {stem(word(w)) for w in answer.split()}
    if stem(head(noun)) in said or low(noun[0]) in _NUMBER_WORDS:
        return answer
    text = " ".join(noun).rstrip(",")
    if low(noun[0]) == "number":
        return answer
    if at + 1 < len(noun):
        return f"{answer}, the {text},"
    people = head(noun) in _PEOPLE and any(is_name(w) and NATIONAL.match(word(w).capitalize()) for w in noun[:-1])
    return f"the {text} {answer}" if people else answer


def _single_name(answer: str) -> bool:
    words = answer.split()
    return is_name(words[0]) and "," not in answer and " and " not in answer and len(words) <= 6 and not words[0][0].isdigit()


def is_bare_number(answer: str) -> bool:
    """Tell whether an answer is a number without a unit."""
    last = "".join(answer.split()[-1:]).lower()
    return last in _NUMBER_WORDS or bool(re.fullmatch(r"[\d,.]*\d\+?|\w+-(?:one|two|three|four|five|six|seven|eight|nine)", last))


def counted(noun: Sequence[str], answer: str) -> str:
    """Join a number and what it counts: "three" and "children"; of an answer with a noun of its own, only what it lacks."""
    if not noun:
        return answer
    at = head_at(noun)
    said = {stem_of(word(w)) for w in answer.split()}
    rest = " ".join(noun[at + 1 :])
    if stem_of(word(noun[at])) in said or word(singular(noun[at])) in answer.lower().split():
        return f"{answer} {rest}".strip() if rest and rest.lower() not in answer.lower() else answer
    if not is_bare_number(answer):
        return answer
    if answer.lower() in ("one", "1"):
        noun = [*noun[:at], singular(noun[at]), *noun[at + 1 :]]
    return f"{answer} {' '.join(noun)}"


def poured(noun: Sequence[str], answer: str) -> str:
    """Join an amount and what it is an amount of: "200 litres of water"."""
    mass = head(noun)
    if (
        mass in _MONEY
        or stem(mass) in {stem(word(w)) for w in answer.split()}
        or re.search(r"[$€£¥]|dollars|euros|pounds", answer)
    ):
        return answer
    return f"{answer} {' '.join(noun)}" if is_bare_number(answer) else f"{answer} of {' '.join(noun)}"


def singular(token: str) -> str:
    """Return a plural noun's singular."""
    w = low(token)
    if w in _SINGULAR:
        return swapped(token, _SINGULAR[w])
    if w.endswith("ies") and len(w) > 4:
        return swapped(token, f"{w[:-3]}y")
    if w.endswith(("ches", "shes", "sses", "xes")):
        return swapped(token, w[:-2])
    return swapped(token, w[:-1]) if w.endswith("s") and not w.endswith("ss") else token
