"""The values of a text with their places: numbers, measurements, shares, money, dates and times of day.

A value is an interval of what it may mean: "2.5 million" all that rounds to it, "over 1,000" everything above, "1958" a year of
days.
"""

import math
import re
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from knowhalu.text.clock import MINUTES_OF_DAY, find_clock_times
from knowhalu.text.dates import DAYS_OF_YEAR, find_date_intervals
from knowhalu.text.numbers import Number, find_numbers, last_place
from knowhalu.text.sentences import MAX_CACHED_CHARS, content_words
from knowhalu.text.units import find_unit

APPROXIMATE_SHARE, NEARLY_SHARE = 0.05, 0.15
"""How far "about" and "nearly" reach, as shares of the number."""
TWELVE_HOURS = "of twelve hours"
"""Unit of times of day that may be before or after noon."""


class ValueKind(StrEnum):
    """What a value measures; only values of one kind and unit are compared."""

    COUNT = "count"
    ORDINAL = "rank"
    MEASURE = "measurement"
    SHARE = "share"
    MONEY = "money"
    DATE = "date"
    TIME = "time of day"


class Value(NamedTuple):
    """A value with its place: `low` to `high` in base units (days for dates), and `nominal`, the number as written.

    `unit` is a dimension, a currency or the stem of the counted noun; `ambiguous` marks a number that may also be a year. `ends`
    are the end of the first and the beginning of the last value of a period or range.
    """

    start: int
    end: int
    text: str
    kind: ValueKind
    nominal: float
    low: float
    high: float
    unit: str = ""
    ambiguous: bool = False
    modifier: int = 0
    """Characters before it that limit or blur it, such as "more than "."""
    ends: tuple[float, float] | None = None
    written: float = math.nan
    """The number without its unit; not a number for dates and times."""


@lru_cache(maxsize=4096)
def _cached_values(text: str) -> tuple[Value, ...]:
    return tuple(_find_values(text))


def find_values(text: str) -> tuple[Value, ...]:
    """Return the values of a text in their order."""
    return _cached_values(text) if len(text) <= MAX_CACHED_CHARS else tuple(_find_values(text))


_JOINT = re.compile(r"\s?(?:[-–—]|to|until|till|through|and)\s?(?:the\s)?", re.IGNORECASE)  # noqa: RUF001
_BETWEEN = re.compile(r"\bbetween\s(?:the\s)?$", re.IGNORECASE)


@lru_cache(maxsize=4096)
def values_with_periods(text: str) -> tuple[Value, ...]:
    """Return the values of a text, "from 1953 to 1956" and "between 9 am and 5 pm" as one value each."""
    joined: list[Value] = []
    for value in find_values(text):
        if joined and _is_period(text, joined[-1], value):
            first = joined.pop()
            value = first._replace(
                end=value.end, text=text[first.start : value.end], high=value.high, ends=(first.high, value.low)
            )
        joined.append(value)
    return tuple(joined)


def _is_period(text: str, first: Value, last: Value) -> bool:
    between = text[first.end : last.start]
    plain = first.kind is last.kind and first.kind in (ValueKind.DATE, ValueKind.TIME) and not (first.ends or last.ends)
    if not plain or first.unit != last.unit or first.high > last.low or not _JOINT.fullmatch(between):
        return False
    return not between.strip().startswith("and") or bool(_BETWEEN.search(text[: first.start]))


def _find_values(text: str) -> Iterator[Value]:
    dates = find_date_intervals(text)
    found: list[Value] = []
    for d in dates:
        low, high = _date_bounds(text, d.start, d.low, d.high)
        unit = "day of the year" if d.yearless else ""
        found.append(Value(d.start, d.end, text[d.start : d.end], ValueKind.DATE, d.low, low, high, unit, ends=d.ends))
    for t in find_clock_times(text):
        if not any(d.start < t.end and t.start < d.end for d in dates):
            unit = TWELVE_HOURS if t.twelve else ""
            low, high = _clock_bounds(text, t.start, t.minute)
            found.append(Value(t.start, t.end, text[t.start : t.end], ValueKind.TIME, t.minute, low, high, unit))
    taken = [(v.start, v.end) for v in found]
    bare = {(d.start, d.end) for d in dates if not d.certain}
    for number in find_numbers(text):
        place = (number.start, number.end)
        if place in bare or not any(a < number.end and number.start < b for a, b in taken):
            value = _value_of(text, number)
            found.append(value._replace(ambiguous=True) if place in bare else value)
    yield from sorted(found)


_LIMITS = tuple(
    (re.compile(rf"{words}\s*$", re.IGNORECASE), side)
    for words, side in (
        (r"\b(?:more than|over|above|exceed(?:s|ing|ed)?|(?:greater|longer|older) than|upwards? of|after)", 1),
        (r"\b(?:less than|under|below|(?:fewer|shorter|younger) than|before|within)", -1),
        (r"(?:\b(?:at least|no (?:less|fewer) than|a minimum of|since|from)|[≥>]=?)", 2),
        (r"(?:\b(?:at most|no more than|a maximum of|up to|until|by)|[≤<]=?)", -2),
    )
)
"""Words before a value that make it a limit: 1 above, -1 below, 2 and -2 with the value itself."""
_ABOUT = re.compile(
    r"(?:\b(?:about|around|approximately|roughly|some|circa|ca\.?|c\.|approx\.?|or so|in the region of|close to)|[~≈])\s*$", re.I
)
_NEARLY = re.compile(r"\b(?:nearly|almost|just under|not quite)\s*$", re.I)


def _clock_bounds(text: str, start: int, minute: float) -> tuple[float, float]:
    before = text[max(0, start - 24) : start]
    if m := _ABOUT.search(before):
        return minute - 15, minute + 15
    for pattern, side in _LIMITS:
        if (m := pattern.search(before)) and m.group().strip().lower() in ("before", "after"):
            return (minute + 1, MINUTES_OF_DAY) if side > 0 else (0.0, minute - 1)
    return minute, minute


def _date_bounds(text: str, start: int, low: float, high: float) -> tuple[float, float]:
    """Widen a date by the word before it: "before", "after", "about"."""
    before = text[max(0, start - 20) : start].removesuffix("the ")
    for pattern, side in _LIMITS:
        if pattern.search(before) and side in (1, -1):
            return (high, math.inf) if side > 0 else (-math.inf, low)
    if _ABOUT.search(before):
        margin = max(2 * DAYS_OF_YEAR, (high - low) / 2) if high - low >= DAYS_OF_YEAR - 1 else (high - low)
        return low - margin, high + margin
    return low, high


def _value_of(text: str, number: Number) -> Value:
    measured = _measure(text, number)
    low, high, modifier = _number_bounds(text, number, precise=measured.kind in (ValueKind.COUNT, ValueKind.MONEY))
    low, high, nominal = (x * measured.factor + measured.offset for x in (low, high, number.value))
    start = number.start - 1 if text[max(0, number.start - 1) : number.start] in _SYMBOLS else number.start
    end = measured.end
    modifier = modifier and modifier + start - number.start
    ends = (nominal, high) if number.upper is not None else None
    return Value(
        start, end, text[start:end], measured.kind, nominal, low, high, measured.unit, modifier=modifier, ends=ends,
        written=number.value,
    )  # fmt: skip


def _number_bounds(text: str, number: Number, *, precise: bool) -> tuple[float, float, int]:
    """Return what a number may mean, and the length of the words before it that say so.

    Whole counts and amounts are exact, other numbers stand for all that rounds to them.
    """
    value, half = number.value, number.precision / 2
    if number.upper is not None:
        return value, number.upper, 0
    before = text[max(0, number.start - 24) : number.start].rstrip("".join(_SYMBOLS))
    if m := _NEARLY.search(before):
        return value * (1 - NEARLY_SHARE), value, len(m.group())
    if m := _ABOUT.search(before):
        reach = max(half, min(last_place(value) / 2, value * APPROXIMATE_SHARE), value * 0.01)
        return value - reach, value + reach, len(m.group())
    for pattern, side in _LIMITS:
        if m := pattern.search(before):
            step = 0.0 if abs(side) == 2 else 1e-9 * max(1.0, abs(value))
            low, high = (value + step, math.inf) if side > 0 else (-math.inf, value - step)
            return low, high, len(m.group())
    margin = 0.0 if precise and not number.rounded else half
    return value - margin, value + margin, 0


class _Measure(NamedTuple):
    """What a number measures, the end of its unit, and factor and offset to base units."""

    kind: ValueKind
    unit: str
    end: int
    factor: float = 1.0
    offset: float = 0.0


_SYMBOLS = frozenset("$€£¥₹")
_FOLLOWING = re.compile(r"[^\W\d_]+(?:/[a-z]+)?[²³]?|[°℃℉][CF]?|[$€£¥₹]")
_PERCENT = re.compile(r"\s?(?:%|percent\b|per cent\b|pct\b|percentage points?\b)", re.IGNORECASE)
MAX_NOUN_DISTANCE = 3


def _measure(text: str, number: Number) -> _Measure:
    if percent := _PERCENT.match(text, number.end):
        return _Measure(ValueKind.SHARE, "", percent.end(), 0.01)
    if number.share:
        return _Measure(ValueKind.SHARE, "", number.end)
    symbol = text[max(0, number.start - 1) : number.start]
    if symbol in _SYMBOLS and (currency := find_unit([symbol])):
        return _Measure(ValueKind.MONEY, currency[0].dimension, number.end)
    following = [m for m, _ in zip(_FOLLOWING.finditer(text, number.end), range(MAX_NOUN_DISTANCE), strict=False)]
    if following and following[0].start() - number.end <= 1 and (found := find_unit([m.group() for m in following])):
        unit, count = found
        kind = ValueKind.MONEY if unit.dimension.isupper() else ValueKind.MEASURE
        return _Measure(kind, unit.dimension, following[count - 1].end(), unit.factor, unit.offset)
    if number.ordinal:
        return _Measure(ValueKind.ORDINAL, "", number.end)
    nouns = (noun for m in following if text[number.end : m.start()].count(".") == 0 for noun in content_words(m.group()))
    return _Measure(ValueKind.COUNT, next(nouns, ""), number.end)
