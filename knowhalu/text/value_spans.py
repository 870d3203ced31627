"""The values of a text with their places: numbers, measurements, shares, money, dates and times of day.

A value is an interval of what it may mean: "2.5 million" all that rounds to it, "over 1,000" everything above, "1958" a year of
days.
"""

import math
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from knowhalu.text.changes import is_start
from knowhalu.text.clock import find_clock_times
from knowhalu.text.dates import DAYS_OF_YEAR, DateSpan, find_date_intervals
from knowhalu.text.limits import MAX_AGE, limit_moment, limit_number
from knowhalu.text.numbers import Number, find_numbers
from knowhalu.text.sentences import MAX_CACHED_CHARS, content_words
from knowhalu.text.shares import find_parts, find_rates, find_shared, find_totals
from knowhalu.text.units import find_unit, unit_spellings

MARGIN_OF_TIME = 15.0
"""How many minutes "about noon" may be off."""
MIN_YEAR = 1000
"""The first year that four digits write."""
MAX_SHARE_MARGIN = 0.005
"""How far the share of "3 of 7" may be from a percentage."""
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


class Role(StrEnum):
    """What a value is in its sentence, beside what it measures."""

    PLAIN = "plain"
    START = "start of a change"
    WHOLE = "whole of which another value is a part"
    SHARED = "number of which a share is told"
    TOTAL = "number of all things"
    OUTER = "a part with its whole"
    RATE = "the time that an amount is for"


class Value(NamedTuple):
    """A value with its place: `low` to `high` in base units (days for dates), and `nominal`, the number as written.

    `unit` is a dimension, a currency or the stems of the words that say what is counted;
    `ambiguous` marks a number that may also be a year. `ends` are the end of the first and the beginning of the last value of a
    period or range.
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
    side: int = 0
    """The side that words around it leave open: 1 above and -1 below for estimates, 2 and -2 for bounds."""
    stated: tuple[float, float] = (0.0, 0.0)
    """What a limit would mean without the words that make it one."""
    role: Role = Role.PLAIN


@lru_cache(maxsize=4096)
def _cached_values(text: str) -> tuple[Value, ...]:
    return tuple(_find_values(text))


def find_values(text: str) -> tuple[Value, ...]:
    """Return the values of a text in their order."""
    return _cached_values(text) if len(text) <= MAX_CACHED_CHARS else tuple(_find_values(text))


_JOINT = re.compile(r"\s?(?:[-–—]|to|until|till|through|and)\s?(?:the\s)?", re.IGNORECASE)  # noqa: RUF001
_BETWEEN = re.compile(r"\b(?:between|from)\s(?:the\s)?$", re.IGNORECASE)


@lru_cache(maxsize=4096)
def values_with_periods(text: str) -> tuple[Value, ...]:
    """Return the values of a text, "from 1953 to 1956" and "between 9 am and 5 pm" as one value each.

    "3 of 7 counts" has a share as well, and "600 mg a day" a time that the amount is for.
    """
    joined: list[Value] = []
    for value in find_values(text):
        if joined and _is_period(text, joined[-1], value):
            first = joined.pop()
            value = first._replace(
                end=value.end, text=text[first.start : value.end], high=value.high, ends=(first.high, value.low)
            )
        joined.append(value)
    return tuple(sorted((*joined, *_outer_values(text, joined))))


def _outer_values(text: str, values: Sequence[Value]) -> Iterator[Value]:
    """Return the shares of parts in their wholes, and "a day" and "in 24 hours" behind an amount."""
    counts = {(v.start, v.end) for v in values if v.kind is ValueKind.COUNT and not v.ambiguous}
    for start, end, part, whole, _ in find_parts(text, find_numbers(text) if len(counts) > 1 else ()):
        if {(part.start, part.end), (whole.start, whole.end)} <= counts:
            share, half = part.value / whole.value, min(MAX_SHARE_MARGIN, 0.5 / whole.value)
            yield Value(start, end, text[start:end], ValueKind.SHARE, share, share - half, share + half, role=Role.OUTER)
    day = unit_spellings()["day"].factor
    for start, end in find_rates(text):
        yield Value(start, end, text[start:end], ValueKind.MEASURE, day, day, day, "rate", role=Role.RATE)


def _is_period(text: str, first: Value, last: Value) -> bool:
    between = text[first.end : last.start]
    plain = first.kind is last.kind and first.kind in (ValueKind.DATE, ValueKind.TIME) and not (first.ends or last.ends)
    if not plain or first.unit != last.unit or first.high > last.low or not _JOINT.fullmatch(between):
        return False
    return not between.strip().startswith("and") or bool(_BETWEEN.search(text[: first.start]))


def _find_values(text: str) -> Iterator[Value]:
    numbers = find_numbers(text)
    dates = [d for d in find_date_intervals(text) if not any(_is_end_of(d, n) for n in numbers)]
    found: list[Value] = []
    for d in dates:
        whole_year = d.high - d.low >= DAYS_OF_YEAR - 1
        margin = max(2 * DAYS_OF_YEAR, (d.high - d.low) / 2) if whole_year else d.high - d.low
        low, high, modifier, side = limit_moment(text, d.start, (d.low, d.high), margin)
        unit, written = "day of the year" if d.yearless else "", text[d.start : d.end]
        value = Value(d.start, d.end, written, ValueKind.DATE, d.low, low, high, unit, modifier=modifier, ends=d.ends)
        found.append(value._replace(side=side, stated=(d.low, d.high)))
    for t in find_clock_times(text):
        if not any(d.start < t.end and t.start < d.end for d in dates):
            unit, written = TWELVE_HOURS if t.twelve else "", text[t.start : t.end]
            low, high, modifier, side = limit_moment(text, t.start, (t.minute, t.minute), MARGIN_OF_TIME)
            value = Value(t.start, t.end, written, ValueKind.TIME, t.minute, low, high, unit, modifier=modifier, side=side)
            found.append(value._replace(stated=(t.minute, t.minute)))
    taken = [(v.start, v.end) for v in found]
    counted = {n: p.counted for p in find_parts(text, numbers) for n in (p.part, p.whole)}
    roles = dict.fromkeys(find_totals(text, numbers), Role.TOTAL) | dict.fromkeys(find_shared(text, numbers), Role.SHARED)
    roles |= {p.whole: Role.WHOLE for p in find_parts(text, numbers)}
    bare = {(d.start, d.end) for d in dates if not d.certain}
    for number in numbers:
        place = (number.start, number.end)
        if place in bare or not any(a < number.end and number.start < b for a, b in taken):
            value = _value_of(text, number)
            if value.kind is ValueKind.COUNT:
                unit = _measure(text, counted[number]).unit if number in counted else value.unit
                value = value._replace(unit=unit, role=roles.get(number, value.role))
            found.append(value._replace(ambiguous=True) if place in bare else value)
            if value.kind is ValueKind.MONEY and value.text.lower().endswith(("pound", "pounds")):
                found.append(_in_pounds_of_mass(value))
    yield from sorted(found)


def _is_end_of(date: DateSpan, number: Number) -> bool:
    """Tell whether a date is rather the upper end of a range of numbers, as in "970 to 1040"."""
    return number.upper is not None and number.start < date.start and date.end == number.end and number.value < MIN_YEAR


def _in_pounds_of_mass(value: Value) -> Value:
    """Return the other meaning of "500 pounds"."""
    pound = unit_spellings()["lb"]
    low, high, nominal, first, last = (x * pound.factor for x in (value.low, value.high, value.nominal, *value.stated))
    mass = value._replace(kind=ValueKind.MEASURE, unit=pound.dimension, nominal=nominal, low=low, high=high, ambiguous=True)
    return mass._replace(stated=(first, last))


def _value_of(text: str, number: Number) -> Value:
    measured = _measure(text, number)
    precise = measured.kind in (ValueKind.COUNT, ValueKind.MONEY, ValueKind.ORDINAL)
    start, end = measured.start, measured.end
    bare = measured.kind is ValueKind.COUNT and not measured.unit
    low, high, modifier, side = limit_number(text, number._replace(start=start), end, precise=precise, bare=bare)
    low, high, nominal = (x * measured.factor + measured.offset for x in (low, high, number.value))
    half = 0.0 if precise and not number.rounded else number.precision / 2 * measured.factor
    return Value(
        start, end, text[start:end], measured.kind, nominal, low, high, measured.unit, modifier=modifier,
        ends=(nominal, high) if number.upper is not None else None, written=number.value, side=side,
        stated=(nominal - half, nominal + half), role=Role.START if is_start(text, start) else Role.PLAIN,
    )  # fmt: skip


class _Measure(NamedTuple):
    """What a number measures, its place with unit or currency, and factor and offset to base units."""

    kind: ValueKind
    unit: str
    start: int
    end: int
    factor: float = 1.0
    offset: float = 0.0


_FOLLOWING = re.compile(r"[^\W\d_]+(?:/[a-z]+)?[²³]?|[°℃℉][CF]?|[$€£¥₹]")
_PERCENT = re.compile(r"\s?(?:%|percent\b|per cent\b|pct\b|percentage points?\b)", re.IGNORECASE)
_CURRENCY_BEFORE = re.compile(
    r"(?<![^\W\d_])(?:(?P<code>[A-Z]{3})\s?|(?:(?P<land>US|AU?|CA?|NZ|HK|S)\s?)?(?P<sign>[$€£¥₹₩])\s?)$"
)
_DOLLARS = {"A": "AUD", "AU": "AUD", "C": "CAD", "CA": "CAD", "NZ": "NZD", "HK": "HKD", "S": "SGD"}
_FIELD = re.compile(r"[^\W\d]:\s$")
_AGED = re.compile(r"\b(?:aged?|at the age of|age of|turned|turning)[:\s]+$", re.IGNORECASE)
_NAME_BEFORE, _CLOSED = re.compile(r"[A-Z][\w’'-]+(?:,\s|\s\()$"), re.compile(r"[,)]")  # noqa: RUF001
_LABEL = re.compile(
    r"\b(?P<label>chapter|part|volume|vol\.|book|act|phase|stage|type|class|grade|article|section|level|room|figure|fig\.|table|no\."
    r"|number|step|season|episode|page|route|line|platform|gate|appendix|version|world war|mark|category)(?::(?<!number:))?\s$",
    re.IGNORECASE,
)
_LABELLED = re.compile(r"\s" + _LABEL.pattern.removesuffix(r"(?::(?<!number:))?\s$").removeprefix(r"\b") + r"\b", re.IGNORECASE)
"""The same words behind a rank, as in "the second season"."""
MAX_NOUN_DISTANCE = 3


def _measure(text: str, number: Number) -> _Measure:
    before = text[max(0, number.start - 24) : number.start]
    if percent := _PERCENT.match(text, number.end):
        return _Measure(ValueKind.SHARE, "", number.start, percent.end(), 0.01)
    if number.share:
        return _Measure(ValueKind.SHARE, "", number.start, number.end)
    if money := _currency_before(before):
        return _Measure(ValueKind.MONEY, money[0], number.start - money[1], number.end)
    if number.unit and (inside := find_unit([number.unit])):
        return _Measure(ValueKind.MEASURE, inside[0].dimension, number.start, number.end, inside[0].factor)
    following = [m for m, _ in zip(_FOLLOWING.finditer(text, number.end), range(MAX_NOUN_DISTANCE), strict=False)]
    if following and following[0].start() - number.end <= 1 and (found := find_unit([m.group() for m in following])):
        unit, count = found
        kind = ValueKind.MONEY if unit.dimension.isupper() else ValueKind.MEASURE
        return _Measure(kind, unit.dimension, number.start, following[count - 1].end(), unit.factor, unit.offset)
    label = _LABELLED.match(text, number.end) if number.ordinal else _LABEL.search(before)
    if number.ordinal or label:
        return _Measure(ValueKind.ORDINAL, label["label"].lower() if label else "", number.start, number.end)
    if _is_age(text, number, before):
        year = unit_spellings()["year"]
        return _Measure(ValueKind.MEASURE, year.dimension, number.start, number.end, year.factor)
    if _FIELD.search(before):
        row = [w for w in content_words(text[: number.start]) if not w.isdigit()]
        return _Measure(ValueKind.COUNT, " ".join(row), number.start, number.end)  # "Town: Ulm; Goals: 77" counts one of these
    return _Measure(ValueKind.COUNT, _counted(text, number.end, following), number.start, number.end)


def _counted(text: str, end: int, following: Sequence[re.Match[str]]) -> str:
    """Return the stems of the words up to the next break or number that say what is counted: "worn expansion joints"."""
    stems: list[str] = []
    for m in following:
        if re.search(r"[.,;:()\d]", text[end : m.start()]) or find_numbers(m.group()):
            break
        found = content_words(m.group())
        if stems and not found:
            break
        stems += found
    return " ".join(stems)


def _currency_before(before: str) -> tuple[str, int] | None:
    """Return the currency whose sign or code ends here, and its length."""
    m = _CURRENCY_BEFORE.search(before)
    if m is None or not (found := find_unit([m["sign"] or m["code"]])) or not found[0].dimension.isupper():
        return None
    currency = _DOLLARS.get(m["land"] or "", found[0].dimension) if m["sign"] == "$" else found[0].dimension
    return currency, len(m.group())


def _is_age(text: str, number: Number, before: str) -> bool:
    """Tell whether a number is an age: "aged 34", or 34 between commas after a name."""
    if number.value > MAX_AGE or number.value != int(number.value):
        return False
    return bool(_AGED.search(before) or (_NAME_BEFORE.search(before) and _CLOSED.match(text, number.end)))
