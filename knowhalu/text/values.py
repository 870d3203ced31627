"""Values of a text: numbers, measurements, shares, money and dates, compared in whatever form they are written.

A value is an interval of what it may mean: "2.5 million" all that rounds to it, "over 1,000" everything above, "1958" a year of
days. A claim's value agrees with a source's where the source's interval lies inside the claim's, so that a claim may be less
precise than its source, and differs where the two do not meet.
"""

import math
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from knowhalu.text.dates import DAYS_OF_YEAR, find_date_intervals
from knowhalu.text.numbers import Number, find_numbers, last_place
from knowhalu.text.sentences import MAX_CACHED_CHARS, content_words
from knowhalu.text.units import find_unit

APPROXIMATE_SHARE, NEARLY_SHARE = 0.05, 0.15
"""How far "about" and "nearly" reach, as shares of the number."""


class ValueKind(StrEnum):
    """What a value measures; only values of one kind and unit are compared."""

    COUNT = "count"
    ORDINAL = "rank"
    MEASURE = "measurement"
    SHARE = "share"
    MONEY = "money"
    DATE = "date"


class Agreement(StrEnum):
    """What a source's value says about a claim's."""

    EQUAL = "equal"
    """The source's value confirms that of the claim."""
    OPEN = "open"
    """The source is less precise than the claim, or says more or less than a limit."""
    DIFFERENT = "different"
    """Both cannot be true of the same thing."""


class Value(NamedTuple):
    """A value with its place: `low` to `high` in base units (days for dates), and `nominal`, the number as written.

    `unit` is a dimension, a currency or the stem of the counted noun; `ambiguous` marks a number that may also be a year.
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


def compare_values(claim: Value, source: Value) -> Agreement | None:
    """Compare a claim's value with a source's; None where they measure different things."""
    if claim.kind is not source.kind or not _same_unit(claim, source):
        return None
    if claim.unit != source.unit and claim.kind is ValueKind.MONEY:
        return Agreement.DIFFERENT
    tolerance = 1e-9 * max(abs(claim.high), abs(source.high), 1.0) if math.isfinite(claim.high + source.high) else 1e-9
    exact = claim.nominal == source.nominal or math.isclose(claim.nominal, source.nominal, rel_tol=1e-9)
    if exact and claim.kind is not ValueKind.DATE and _same_side(claim, source):
        return Agreement.EQUAL
    if claim.low - tolerance <= source.low and source.high <= claim.high + tolerance:
        return Agreement.EQUAL
    if (
        claim.low <= source.nominal <= claim.high
        and source.low <= claim.nominal <= source.high
        and claim.kind is not ValueKind.DATE
    ):
        return Agreement.EQUAL  # each rounds to the other, as "295 feet" and "90 metres"
    if source.high < claim.low - tolerance or claim.high < source.low - tolerance:
        return Agreement.DIFFERENT
    if claim.kind is ValueKind.DATE and (source.high <= claim.low or claim.high <= source.low):
        return Agreement.DIFFERENT
    return Agreement.OPEN


def _agreement(claim: Value, source: Value) -> Agreement | None:
    """Compare two values, of which one that may be a year is no other number of things."""
    agreement = compare_values(claim, source)
    unclear = claim.kind is ValueKind.COUNT and (claim.ambiguous or source.ambiguous)
    return None if unclear and agreement is Agreement.DIFFERENT else agreement


class ValueCheck(NamedTuple):
    """A value of a claim, the value of the source that says most about it, and what it says; None where none is comparable."""

    value: Value
    source: Value | None
    agreement: Agreement | None


def check_values(claim: str, source: str) -> tuple[ValueCheck, ...]:
    """Compare every value of a claim with all values of a source; the best agreement of each counts."""
    given = find_values(source)
    best: dict[tuple[int, int], ValueCheck] = {}
    order = [*Agreement, None]
    for value in find_values(claim):
        for other in (*given, None):
            agreement = _agreement(value, other) if other else None
            place = (value.start, value.end)
            if place not in best or order.index(agreement) < order.index(best[place].agreement):
                best[place] = ValueCheck(value, other if agreement else None, agreement)
    return tuple(best.values())


def value_conflict(claim: str, sentences: Sequence[str]) -> float:
    """Return how surely the sentences give another value for what a claim says, from 0 to 1.

    It is the share of the claim's other words in a sentence with another value, where no sentence with as many of them has the
    same value: a value that a farther sentence has may be that of another thing.
    """
    worst = 0.0
    for value in find_values(claim):
        rest = set(content_words(claim[: value.start] + claim[value.end :]))
        same, other = 0.0, 0.0
        for sentence in sentences:
            share = len(rest & set(content_words(sentence))) / max(1, len(rest))
            agreements = {_agreement(value, v) for v in find_values(sentence)}
            if agreements & {Agreement.EQUAL, Agreement.OPEN}:
                same = max(same, share)
            elif Agreement.DIFFERENT in agreements:
                other = max(other, share)
        worst = max(worst, other if other > same else 0.0)
    return worst


def align_values(claim: str, source: str) -> str:
    """Write the values of a claim that agree with the source as the source writes them, so that only the rest is left to compare.

    "Some 295 feet" becomes "90 metres" where the source has that; a value that the source has in the same form stays.
    """
    text, end = claim, len(claim)
    for check in sorted(check_values(claim, source), key=lambda c: -c.value.start):
        value, given = check.value, check.source
        if given is None or check.agreement is not Agreement.EQUAL or value.end > end or value.text in source:
            continue
        end = value.start - value.modifier
        if given.kind is ValueKind.DATE and text[:end].endswith("the ") and given.text[0].isdigit():
            end -= len("the ")
        text = text[:end] + given.text + text[value.end :]
    return text


def _same_unit(claim: Value, source: Value) -> bool:
    if claim.kind is ValueKind.COUNT:
        return not claim.unit or not source.unit or claim.unit == source.unit
    return claim.kind is ValueKind.MONEY or claim.unit == source.unit  # another currency is another amount


def _same_side(claim: Value, source: Value) -> bool:
    return math.isinf(claim.low) == math.isinf(source.low) and math.isinf(claim.high) == math.isinf(source.high)


@lru_cache(maxsize=4096)
def _cached_values(text: str) -> tuple[Value, ...]:
    return tuple(_find_values(text))


def find_values(text: str) -> tuple[Value, ...]:
    """Return the values of a text in their order."""
    return _cached_values(text) if len(text) <= MAX_CACHED_CHARS else tuple(_find_values(text))


def _find_values(text: str) -> Iterator[Value]:
    dates = find_date_intervals(text)
    found: list[Value] = []
    for d in dates:
        low, high = _date_bounds(text, d.start, d.low, d.high)
        unit = "day of the year" if d.yearless else ""
        found.append(Value(d.start, d.end, text[d.start : d.end], ValueKind.DATE, d.low, low, high, unit))
    bare = {(d.start, d.end) for d in dates if not d.certain}
    for number in find_numbers(text):
        place = (number.start, number.end)
        if place in bare or not any(d.start < number.end and number.start < d.end for d in dates):
            value = _value_of(text, number)
            found.append(value._replace(ambiguous=True) if place in bare else value)
    yield from sorted(found)


_LIMITS = tuple(
    (re.compile(rf"{words}\s*$", re.IGNORECASE), side)
    for words, side in (
        (r"\b(?:more than|over|above|exceed(?:s|ing|ed)?|(?:greater|longer|older) than|upwards? of|after)", 1),
        (r"\b(?:less than|under|below|(?:fewer|shorter|younger) than|before|within)", -1),
        (r"(?:\b(?:at least|no (?:less|fewer) than|a minimum of|since|from)|[≥>]=?)", 2),
        (r"(?:\b(?:at most|no more than|a maximum of|up to|until)|[≤<]=?)", -2),
    )
)
"""Words before a value that make it a limit: 1 above, -1 below, 2 and -2 with the value itself."""
_ABOUT = re.compile(
    r"(?:\b(?:about|around|approximately|roughly|some|circa|ca\.?|c\.|approx\.?|or so|in the region of|close to)|[~≈])\s*$", re.I
)
_NEARLY = re.compile(r"\b(?:nearly|almost|just under|not quite|close to)\s*$", re.I)


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
    return Value(start, end, text[start:end], measured.kind, nominal, low, high, measured.unit, modifier=modifier)


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
