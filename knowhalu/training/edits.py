"""Small changes that turn a true statement into a false one: numbers, names, dates, negations and opposites.

Each edit keeps length and wording, so that neither gives the label away; the changed characters are known.
"""

import random
import re
from collections.abc import Callable
from typing import NamedTuple

from knowhalu.text.sentences import STOPWORDS
from knowhalu.text.wordlists import CARDINALS, MONTHS, ORDINALS, WEEKDAYS

NUMBER_WORDS, ORDINAL_WORDS = CARDINALS[2:13], ORDINALS[:10]
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
NUMBER = re.compile(r"\b\d[\d,]*(?:\.\d+)?\b")
_AUXILIARY = re.compile(r"\b(is|are|was|were|has|have|had|will|can|could|would|should|did|does|do|may|must)\b(?! not)(?!n't)")
_NOT = re.compile(r"\b(is|are|was|were|has|have|had|will|can|could|would|should|did|does|do|may|must)( not|n't)\b")


class FalsifyingEdit(NamedTuple):
    """A changed text and where the change stands in it, in characters; `kind` names the change."""

    text: str
    start: int
    end: int
    kind: str


def _replace_span(text: str, start: int, end: int, new: str, kind: str) -> FalsifyingEdit:
    return FalsifyingEdit(text[:start] + new + text[end:], start, start + len(new), kind)


def swap_number(text: str, rng: random.Random, names: list[str]) -> FalsifyingEdit | None:
    """Change one number to another of the same size and form, half the time to one of `names`."""
    found = list(NUMBER.finditer(text))
    if not found:
        return None
    match = rng.choice(found)
    old = match.group()
    others = [n for n in names if n != old and len(n) == len(old) and NUMBER.fullmatch(n)]
    if others and rng.random() < 0.5:
        return _replace_span(text, match.start(), match.end(), rng.choice(others), "number")
    digits = [i for i, c in enumerate(old) if c.isdigit()]
    at = rng.choice(digits[-2:] if re.fullmatch(r"1[0-9]{3}|20\d\d", old) else digits)
    choices = [d for d in "0123456789" if d != old[at] and not (d == "0" and at == 0)]
    new = old[:at] + rng.choice(choices) + old[at + 1 :]
    return _replace_span(text, match.start(), match.end(), new, "number")


def swap_listed(text: str, rng: random.Random, names: list[str]) -> FalsifyingEdit | None:
    """Change a month, weekday, number word or ordinal to another of its kind."""
    found = [
        (m, group)
        for group in (MONTHS, WEEKDAYS, NUMBER_WORDS, ORDINAL_WORDS)
        for m in re.finditer(rf"\b(?:{'|'.join(group)})\b", text, 0 if group in (MONTHS, WEEKDAYS) else re.IGNORECASE)
    ]
    if not found:
        return None
    match, group = rng.choice(found)
    new = rng.choice([w for w in group if w.lower() != match.group().lower()])
    return _replace_span(text, match.start(), match.end(), new.capitalize() if match.group()[0].isupper() else new, "date")


def swap_name(text: str, rng: random.Random, names: list[str]) -> FalsifyingEdit | None:
    """Change one name to another of the same number of words, from `names`."""
    found = [m for m in NAME.finditer(text) if m.start() > 0 or " " in m.group()]
    rng.shuffle(found)
    for match in found:
        size = len(match.group().split())
        others = [n for n in names if n[:1].isupper() and len(n.split()) == size and n not in text and match.group() not in n]
        if others:
            return _replace_span(text, match.start(), match.end(), rng.choice(others), "name")
    return None


_ENDINGS = ("ing", "ed", "ly", "ion", "al", "ous", "ive", "ity", "ers", "er", "es", "s")
_LOWER = re.compile(r"\b[a-z]{4,}\b")


def _ending(word: str) -> str:
    return next((e for e in _ENDINGS if word.endswith(e)), "")


def swap_word(text: str, rng: random.Random, names: list[str]) -> FalsifyingEdit | None:
    """Change one word to another of the same ending that `names` hold in small letters, a word of the same document."""
    found = [m for m in _LOWER.finditer(text) if m.group() not in STOPWORDS]
    rng.shuffle(found)
    for match in found:
        ending, taken = _ending(match.group()), set(_LOWER.findall(text))
        others = [n for n in names if n[:1].islower() and _ending(n) == ending and n not in taken and n[:4] != match.group()[:4]]
        if ending and others:
            return _replace_span(text, match.start(), match.end(), rng.choice(others), "word")
    return None


def swap_roles(text: str, rng: random.Random, names: list[str]) -> FalsifyingEdit | None:
    """Let two names of a statement change places, unless they stand side by side in a list."""
    found = list(NAME.finditer(text))
    pairs = [
        (a, b)
        for i, a in enumerate(found)
        for b in found[i + 1 :]
        if a.group() != b.group() and len(re.findall(r"[a-z]{2,}", text[a.end() : b.start()].replace(" and ", " "))) >= 2
    ]
    if not pairs:
        return None
    a, b = rng.choice(pairs)
    return _replace_span(text, a.start(), b.end(), b.group() + text[a.end() : b.start()] + a.group(), "roles")


def swap_opposite(text: str, rng: random.Random, names: list[str]) -> FalsifyingEdit | None:
    """Change one word to its opposite."""
    found = [m for m in re.finditer(r"\b[A-Za-z]+\b", text) if m.group() in _OPPOSITES]
    if not found:
        return None
    match = rng.choice(found)
    return _replace_span(text, match.start(), match.end(), rng.choice(_OPPOSITES[match.group()]), "opposite")


def negate(text: str, rng: random.Random, names: list[str]) -> FalsifyingEdit | None:
    """Put a negation in, or take one out."""
    if match := _NOT.search(text):
        return _replace_span(text, match.start(), match.end(), match.group(1), "negation")
    found = list(_AUXILIARY.finditer(text))
    if not found:
        return None
    match = found[0]
    return _replace_span(text, match.start(), match.end(), f"{match.group()} not", "negation")


EDIT_FUNCTIONS: tuple[Callable[[str, random.Random, list[str]], FalsifyingEdit | None], ...] = (
    swap_number, swap_number, swap_listed, swap_name, swap_name, swap_name, swap_roles, swap_opposite, swap_opposite, negate,
    swap_word, swap_word,
)  # fmt: skip
NEUTRAL_EDITS = frozenset({"name", "roles", "word"})
"""Kinds of edits after which a statement is not borne out, but perhaps not contradicted either."""


def find_details(text: str) -> list[str]:
    """List the names, numbers and longer words of a text, which an edit may put in the place of others."""
    names = {m.group() for m in NAME.finditer(text) if m.start() > 0}
    plain = {w for w in _LOWER.findall(text) if w not in STOPWORDS}
    return sorted(names | plain | {m.group() for m in NUMBER.finditer(text)})


def random_edit(text: str, rng: random.Random, names: list[str]) -> FalsifyingEdit | None:
    """Make one random change, or return None where the text offers none."""
    for change in rng.sample(EDIT_FUNCTIONS, len(EDIT_FUNCTIONS)):
        changed = change(text, rng, names)
        if changed is not None and changed.text != text:
            return changed
    return None
