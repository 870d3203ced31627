"""Small changes that turn a true statement into a false one: numbers, names, dates, negations and opposites.

Each edit keeps length and wording, so that neither gives the label away; the changed characters are known.
"""

import random
import re
from collections.abc import Callable
from typing import NamedTuple

MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
NUMBER_WORDS = "two three four five six seven eight nine ten eleven twelve".split()
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_PAIRS = (
    "increase/decrease increased/decreased increases/decreases rise/fall rose/fell rising/falling more/fewer more/less "
    "higher/lower before/after first/last largest/smallest larger/smaller older/younger oldest/youngest earlier/later "
    "early/late longer/shorter won/lost win/lose north/south northern/southern east/west eastern/western male/female "
    "man/woman men/women husband/wife father/mother son/daughter brother/sister always/never all/none most/few many/few "
    "best/worst better/worse above/below accepted/rejected approved/rejected allowed/forbidden open/closed opened/closed "
    "buy/sell bought/sold success/failure old/new inside/outside left/right up/down high/low strong/weak safe/dangerous "
    "public/private rich/poor good/bad begin/end began/ended includes/excludes supports/opposes supported/opposed "
    "agreed/refused morning/evening summer/winter day/night he/she his/her king/queen actor/singer author/director "
    "played/directed wrote/directed American/British English/French"
)
_OPPOSITES: dict[str, list[str]] = {}
for _pair in _PAIRS.split():
    _a, _b = _pair.split("/")
    _OPPOSITES.setdefault(_a, []).append(_b)
    _OPPOSITES.setdefault(_b, []).append(_a)

NAME = re.compile(r"\b[A-Z][\w’'-]+(?:\s+(?:(?:of|the|de|van|von)\s+)?[A-Z][\w’'-]+)*")  # noqa: RUF001
_NUMBER = re.compile(r"\b\d[\d,]*(?:\.\d+)?\b")
_AUXILIARY = re.compile(r"\b(is|are|was|were|has|have|had|will|can|could|would|should|did|does|do|may|must)\b(?! not)(?!n't)")
_NOT = re.compile(r"\b(is|are|was|were|has|have|had|will|can|could|would|should|did|does|do|may|must)( not|n't)\b")


_TIME_OR_PLACE = (
    r"(?<=\w),? (?:on|in|at|after|during|for|by|with|from|since) (?:the |a |an |his |her |their |last )?"
    r"[A-Z0-9]?[\w'’-]+(?: [A-Z0-9][\w'’-]*)*(?=[,.;]| and | to | of |$)"  # noqa: RUF001
)
_DROPPABLE = re.compile(
    r" \([^()]*\)|, (?:which|who|where)\b[^,.;]*(?=[,.;])|\b(?:also|very|recently|really|just) "
    r"|(?<=\w) \d[\d,.]* to \d[\d,.]*(?= )"
    rf"|^(?:In|On|At|After|During|By|Since) [^,]{{3,40}}, |{_TIME_OR_PLACE}"
)


def shorten(text: str, rng: random.Random) -> str:
    """Leave out one or two details of a true statement: a bracket, a side clause, a time or place, an adverb; still true."""
    for _ in range(rng.randint(1, 2)):
        found = list(_DROPPABLE.finditer(text))
        if not found:
            break
        match = rng.choice(found)
        left = text[: match.start()] + text[match.end() :]
        if len(left.split()) >= 4:
            text = left[:1].upper() + left[1:]
    return text


class Edit(NamedTuple):
    """A changed text and where the change stands in it, in characters; `kind` names the change."""

    text: str
    start: int
    end: int
    kind: str


def _put(text: str, start: int, end: int, new: str, kind: str) -> Edit:
    return Edit(text[:start] + new + text[end:], start, start + len(new), kind)


def swap_number(text: str, rng: random.Random, names: list[str]) -> Edit | None:
    """Change one number to another of the same size and form."""
    found = list(_NUMBER.finditer(text))
    if not found:
        return None
    match = rng.choice(found)
    digits = [i for i, c in enumerate(match.group()) if c.isdigit()]
    old = match.group()
    at = rng.choice(digits[-2:] if re.fullmatch(r"1[0-9]{3}|20\d\d", old) else digits)
    choices = [d for d in "0123456789" if d != old[at] and not (d == "0" and at == 0)]
    new = old[:at] + rng.choice(choices) + old[at + 1 :]
    return _put(text, match.start(), match.end(), new, "number")


def swap_listed(text: str, rng: random.Random, names: list[str]) -> Edit | None:
    """Change a month, weekday, number word or ordinal to another of its kind."""
    found = [
        (m, group)
        for group in (MONTHS, DAYS, NUMBER_WORDS, ORDINALS)
        for m in re.finditer(rf"\b(?:{'|'.join(group)})\b", text, 0 if group in (MONTHS, DAYS) else re.IGNORECASE)
    ]
    if not found:
        return None
    match, group = rng.choice(found)
    new = rng.choice([w for w in group if w.lower() != match.group().lower()])
    return _put(text, match.start(), match.end(), new.capitalize() if match.group()[0].isupper() else new, "date")


def swap_name(text: str, rng: random.Random, names: list[str]) -> Edit | None:
    """Change one name to another of the same number of words, from `names`."""
    found = [m for m in NAME.finditer(text) if m.start() > 0 or " " in m.group()]
    rng.shuffle(found)
    for match in found:
        size = len(match.group().split())
        others = [n for n in names if len(n.split()) == size and n not in text and match.group() not in n]
        if others:
            return _put(text, match.start(), match.end(), rng.choice(others), "name")
    return None


def swap_opposite(text: str, rng: random.Random, names: list[str]) -> Edit | None:
    """Change one word to its opposite."""
    found = [m for m in re.finditer(r"\b[A-Za-z]+\b", text) if m.group() in _OPPOSITES]
    if not found:
        return None
    match = rng.choice(found)
    return _put(text, match.start(), match.end(), rng.choice(_OPPOSITES[match.group()]), "opposite")


def negate(text: str, rng: random.Random, names: list[str]) -> Edit | None:
    """Put a negation in, or take one out."""
    if match := _NOT.search(text):
        return _put(text, match.start(), match.end(), match.group(1), "negation")
    found = list(_AUXILIARY.finditer(text))
    if not found:
        return None
    match = found[0]
    return _put(text, match.start(), match.end(), f"{match.group()} not", "negation")


KINDS: tuple[Callable[[str, random.Random, list[str]], Edit | None], ...] = (
    swap_number, swap_number, swap_listed, swap_name, swap_name, swap_name, swap_opposite, negate,
)  # fmt: skip


def edit(text: str, rng: random.Random, names: list[str]) -> Edit | None:
    """Make one random change, or return None where the text offers none."""
    for change in rng.sample(KINDS, len(KINDS)):
        changed = change(text, rng, names)
        if changed is not None and changed.text != text:
            return changed
    return None
