"""Dates and quantities of a text, and those of a claim that a source does not confirm."""

import re
from functools import lru_cache
from typing import NamedTuple

from knowhalu.text.sentences import Span, content_words, words
from knowhalu.text.wordlists import CARDINALS, MONTHS, ORDINALS, TENS

_NUMBER_VALUES = {w: str(i) for i, w in enumerate(CARDINALS)} | {w: str(i) for i, w in enumerate(ORDINALS, 1)}
_NUMBER_VALUES |= {w: str(10 * i) for i, w in enumerate(TENS, 3)} | {"dozen": "12", "once": "1", "twice": "2"}
_SCALE = {"thousand": 1e3, "million": 1e6, "m": 1e6, "bn": 1e9, "billion": 1e9, "k": 1e3}
_MONTH = rf"(?P<month>{'|'.join(MONTHS)}|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>1\d{3}|20\d\d)"
_DATES = tuple(
    re.compile(rf"\b{pattern}\b")
    for pattern in (
        rf"{_DAY}(?: of)? {_MONTH},?(?: {_YEAR})?",
        rf"{_MONTH} {_DAY}(?:,? {_YEAR})?",
        rf"{_MONTH},? {_YEAR}",
        r"(?P<year>1\d{3}|20\d\d)-(?P<number>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12]\d|3[01])",
        rf"(?<=in ){_MONTH}",
    )
)
_UNITS = {"%": "percent", "$": "dollar", "£": "pound", "€": "euro", "per": "percent"}
MAX_UNIT_DISTANCE = 3
"""Words after a number that may be its unit."""


class Date(NamedTuple):
    """A date; 0 for a part that is not given."""

    year: int
    month: int
    day: int


class Quantity(NamedTuple):
    """A number and its unit or counted noun; "" where none follows."""

    value: str
    unit: str


@lru_cache(maxsize=65536)
def number_value(word: str) -> str | None:
    """Return the value of a number, an ordinal or a number word as text ("1,000" and "1000" meet), or None."""
    low = word.lower()
    if low in _NUMBER_VALUES:
        return _NUMBER_VALUES[low]
    match = re.fullmatch(r"([\d][\d,]*(?:\.\d+)?)(?:%|st|nd|rd|th|s|(m|bn|k))?", low)
    if match is None:
        return None
    value = float(match.group(1).replace(",", "")) * _SCALE.get(match.group(2) or "", 1.0)
    return f"{value:.15g}" if value < 1e15 else None


def find_date_spans(text: str) -> tuple[tuple[int, int, Date], ...]:
    """Find the dates that name a month, as (start, end, date); of overlapping ones the longest counts."""
    taken: list[tuple[int, int, Date]] = []
    for pattern in _DATES:
        for m in pattern.finditer(text):
            if any(a < m.end() and m.start() < b for a, b, _ in taken):
                continue
            part = m.groupdict()
            named = (part.get("month") or "")[:3]
            month = next((i for i, name in enumerate(MONTHS, 1) if name[:3] == named), int(part.get("number") or 0))
            taken.append((m.start(), m.end(), Date(int(part.get("year") or 0), month, int(part.get("day") or 0))))
    return tuple(taken)


@lru_cache(maxsize=8192)
def find_dates(text: str) -> tuple[Date, ...]:
    """Return the dates of a text that name a month."""
    return tuple(d for _, _, d in find_date_spans(text))


@lru_cache(maxsize=8192)
def find_quantities(text: str) -> frozenset[Quantity]:
    """Return the quantities of a text; numbers inside dates are left out."""
    places = find_date_spans(text)
    tokens = words(text)
    counted = set()
    for i, word in enumerate(tokens):
        value = number_value(word.text)
        if value is None or any(a <= word.start < b for a, b, _ in places):
            continue
        after = text[word.end : word.end + 1]
        unit = _UNITS.get(text[word.start - 1 : word.start], "") if word.start else ""
        unit = unit or _UNITS.get(after, "") or _UNITS.get(word.text[-1:], "")
        counted.add(Quantity(value, unit or unit_after(tokens[i + 1 : i + 1 + MAX_UNIT_DISTANCE])))
    return frozenset(counted)


def unit_after(following: list[Span]) -> str:
    """Return the first content word after a number."""
    for word in following:
        if word.text.lower() == "per":
            return "percent"
        if number_value(word.text) is None and (found := content_words(word.text)):
            return found[0]
    return ""


def missing_date_share(claim: str, source: str) -> float:
    """Return the share of the claim's dates that contradict every date of the source in a part that both give."""
    wanted, given = find_dates(claim), find_dates(source)
    missing = [w for w in wanted if not any(_dates_agree(w, g) for g in given)]
    return len(missing) / len(wanted) if wanted else 0.0


def _dates_agree(wanted: Date, given: Date) -> bool:
    shared = [(a, b) for a, b in zip(wanted, given, strict=True) if a and b]
    return wanted.month == given.month and all(a == b for a, b in shared)


def mismatched_quantity_share(claim: str, source: str) -> float:
    """Return the share of the claim's quantities that the source has with other numbers only."""
    wanted, given = find_quantities(claim), find_quantities(source)
    missing = [w for w in wanted if w not in given and w.unit and any(g.unit == w.unit for g in given)]
    return len(missing) / len(wanted) if wanted else 0.0
