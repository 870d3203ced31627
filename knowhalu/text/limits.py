"""Words around a value that limit or blur it, such as "more than", "about" and "or less", and what it means with them."""

import math
import re
from typing import NamedTuple

from knowhalu.text.changes import is_start
from knowhalu.text.numbers import Number, last_place

APPROXIMATE_SHARE, NEARLY_SHARE = 0.05, 0.15
"""How far "about" and "nearly" reach, as shares of the number."""
MAX_AGE = 120
BOUND = 2
"""The size of a side that is a rule's own bound, as in "at least 8", and no estimate, as in "more than 1,000 came"."""


class Limited(NamedTuple):
    """What a value may mean, how many characters before it say so, and the side that is left open, if any.

    The side is 1 above and -1 below where the text compares ("more than 1,000 came"), 2 and -2 where it sets a bound.
    """

    low: float
    high: float
    modifier: int = 0
    side: int = 0


_BEFORE = tuple(
    (re.compile(rf"{words}\s*$", re.IGNORECASE), side)
    for words, side in (
        (r"(?<!\bno )\b(?:more than|over|above|exceed(?:s|ing|ed)?|(?:greater|longer|older) than|upwards? of|after)", 1),
        (r"(?<!\bno )\b(?:less than|under|below|(?:fewer|shorter|younger) than|before|within)", -1),
        (
            r"(?:\b(?:at least|no (?:less|fewer) than|(?:a|the) minimum(?: \w+){0,2} (?:of|is|was)|(?<!\d )min(?:\.|imum)?:?"
            r"|since|from)|[≥>]=?)",
            2,
        ),
        (
            r"(?:\b(?:at most|no (?:more|longer|later|older|higher) than|(?:a|the) (?:maximum|limit)(?: \w+){0,2} (?:of|is|was)"
            r"|max(?:\.|imum)?:?|up to|until)|[≤<]=?)",
            -2,
        ),
    )
)
"""Words before a value that make it a limit: 1 above, -1 below, 2 and -2 with the value itself."""
_AFTER = tuple(
    (re.compile(words, re.IGNORECASE), side)
    for words, side in (
        (r"\s?(?:(?:or|and) (?:more|over|above|older|up(?:wards)?|longer|higher)\b|at (?:the )?(?:very )?least\b|minimum\b)", 2),
        (
            r"\s?(?:(?:or|and) (?:less|fewer|under|below|younger|shorter|lower)\b|at (?:the )?(?:very )?most\b|max(?:imum)?\b"
            r"(?! \w))",
            -2,
        ),
    )
)
"""Words behind a value with its unit that make it a bound."""
_OPPOSITE = {1: -2, 2: -1, -1: 2, -2: 1}
_NEGATED = re.compile(r"(?:\b(?:not|never|cannot|no longer)|n['’]t)\b[^.;:,]*$", re.IGNORECASE)  # noqa: RUF001
_ABOUT = re.compile(
    r"(?:\b(?:about|around|approximately|roughly|some|circa|ca\.?|c\.|approx\.?|or so|in the region of|close to)|[~≈])\s*$", re.I
)
_NEARLY = re.compile(r"\b(?:nearly|almost|just under|not quite)\s*$", re.I)
_BETWEEN = re.compile(r"\b(?:between|from)\s(?:the\s)?$", re.IGNORECASE)
_RULE = re.compile(r"\b(?:within|before|after)\s*$", re.IGNORECASE)
_OF_THINGS = re.compile(
    r"(?:(?:^|[.;:,!?]\s|\b(?:for|on|of|to|with|in|all|any|no|every|each|only|most)\s)(?:[\w-]+\s)?(?:[a-z]+s|children|people|men|women)"
    r"|\b(?:any|no|every|each|a)\s(?:[\w-]+\s)?[a-z]+|\b(?:those|anyone|everyone|aged?))\s(?:(?:weighing|costing|lasting|aged|worth)\s)?$",
    re.IGNORECASE,
)
"""What "over 10" behind it selects, as in "Bags over 10 kg": a rule applies to such things."""
_OF_AGE = re.compile(r"\b(?:over|under|above|below|older than|younger than)\s*$", re.IGNORECASE)


def limit_moment(text: str, start: int, bounds: tuple[float, float], margin: float) -> Limited:
    """Widen a date or a time of day by the word before it: "before", "after" or "about"."""
    low, high = bounds
    before = text[max(0, start - 20) : start]
    article = len("the ") if before.endswith("the ") else 0
    before = before.removesuffix("the ")
    for pattern, side in _BEFORE:
        if side in (1, -1) and (m := pattern.search(before)):
            step = 1e-3 if low == high else 0.0
            low, high = (high + step, math.inf) if side > 0 else (-math.inf, low - step)
            return Limited(low, high, len(m.group()) + article, side * BOUND)
    if m := _ABOUT.search(before):
        return Limited(low - margin, high + margin, len(m.group()) + article)
    return Limited(low, high)


def limit_number(text: str, number: Number, end: int, *, precise: bool, bare: bool) -> Limited:
    """Return what a number may mean, whose unit ends at `end`; a `bare` one has none.

    Whole counts and amounts are exact, other numbers stand for all that rounds to them.
    """
    value, half = number.value, number.precision / 2
    before = text[max(0, number.start - 40) : number.start]
    if number.upper is not None:
        opening = _BETWEEN.search(before)
        return Limited(value, number.upper, len(opening.group()) if opening else 0)
    if m := _NEARLY.search(before):
        return Limited(value * (1 - NEARLY_SHARE), value, len(m.group()))
    if m := _ABOUT.search(before):
        place = last_place(value) if number.precision >= 1 else number.precision
        reach = max(half, min(place / 2, value * APPROXIMATE_SHARE), value * 0.01)
        return Limited(value - reach, value + reach, len(m.group()))
    margin = 0.0 if precise and not number.rounded else half
    if found := _side_before(text, number):
        side, length = found
        step = 0.0 if abs(side) == BOUND else 1e-9 * max(1.0, abs(value))
        ruled = bare and value <= MAX_AGE and _OF_AGE.search(before)
        ruled = ruled or _RULE.search(before) or _OF_THINGS.search(text[max(0, number.start - 80) : number.start - length])
        low, high = (value + step, math.inf) if side > 0 else (-math.inf, value - step)
        return Limited(low, high, length, side * BOUND if ruled and abs(side) < BOUND else side)
    if not number.ordinal and (behind := next((side for pattern, side in _AFTER if pattern.match(text, end)), 0)):
        return Limited(value, math.inf, 0, behind) if behind > 0 else Limited(-math.inf, value, 0, behind)
    return Limited(value - margin, value + margin)


def _side_before(text: str, number: Number) -> tuple[int, int] | None:
    """Return the side that the words before a number leave open, and their length; 0 where they are denied."""
    before = text[max(0, number.start - 40) : number.start]
    for pattern, side in _BEFORE:
        if m := pattern.search(before):
            at = number.start - len(m.group())
            if m.group().strip().lower() == "from" and is_start(text, number.start):
                return None
            negated = _NEGATED.search(text[max(0, number.start - 80) : at])
            return (_OPPOSITE[side], 0) if negated else (side, len(m.group()))
    return None
