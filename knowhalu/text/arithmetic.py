"""Check simple arithmetic of two values of the evidence that a claim states: differences, durations, ages, ratios, comparisons.

A source rarely writes "grew by 200 units"; it has 1,000 and then 1,200. A result counts as confirmed where the claim has a word
for the calculation and two values of the source that the claim speaks of yield it, and as wrong where they are the only two that
it can speak of and yield another result. Values that are not exact give results that are not: of two years, an age is one of two.
"""

import datetime
import math
import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from knowhalu.text.numbers import find_numbers
from knowhalu.text.operations import (
    TIMES,
    Claimed,
    Operation,
    Sides,
    find_operands,
    find_operations,
    match_difference,
    topic_words,
)
from knowhalu.text.overlap import text_facts
from knowhalu.text.sentences import content_words
from knowhalu.text.value_spans import TWELVE_HOURS
from knowhalu.text.values import Agreement, Value, ValueKind, check_values, compare_values, same_unit

MIN_SHARE, MIN_SURE_SHARE = 0.35, 0.6
"""Minimum shares of the claim's words in the sentences of two values: to confirm a result, and to call it wrong."""
MAX_EQUALLY_NEAR = 3
"""The most pairs of values as near as the one that confirms a result: of many, one yields any result by chance."""
MAX_FACTOR, MAX_OVERSHOOT = 12.0, 2.0
"""A result farther than this from the claim's is that of other values; the second holds for limits, such as "more than twice"."""
ROUNDING_SHARE = 0.05
"""A result that is off by this share may be rounded: it is neither confirmed nor called wrong."""
MAX_SENTENCES = 12
"""The sentences of a source that are read for values: those nearest to the claim."""
SECONDS_OF_MINUTE, SECONDS_OF_DAY, SECONDS_OF_YEAR = 60.0, 86400.0, 31557600.0
_LIFE_WORDS = frozenset(content_words("lived life born birth"))
_BORN, _OPENED = re.compile(r"\b(?:born|birth|b\.)[^.;()]{0,60}$", re.IGNORECASE), re.compile(r"\((?:[^()\d]*[;,] )?$")
_DASH, _SPAN = re.compile(r"\s?[–—-]{1,2}\s?\w"), re.compile(r"\s?(?:[–-]|to|until|till|and)\s?")
_BREAK = re.compile(r"[,;:]|\.(?!\d)|\b(?:and|but|while|whereas|against)\b")
_FROM, _TO = re.compile(r"\bfrom (?:about |some )?[$€£¥₹]?$"), re.compile(r"\bto (?:just |only |about |some |around )?[$€£¥₹]?$")


class Derivation(NamedTuple):
    """A claim's value or comparison, the two values of the source that yield it or another, and which of both they do.

    `sentences` are those of the two values; `explanation` writes out the calculation, as "1,200 - 1,000 = 200".
    """

    value: Value
    sources: tuple[Value, Value]
    sentences: tuple[str, ...]
    agreement: Agreement
    explanation: str
    operation: Operation


class _Operand(NamedTuple):
    sentence: int
    text: str
    value: Value


class _Result(NamedTuple):
    """A calculated interval; `ordered` is False where the source does not relate the two values."""

    low: float
    nominal: float
    high: float
    sources: tuple[Value, Value]
    formula: str
    ordered: bool


class _Scored(NamedTuple):
    """A result with its sentences, the share of the claim's words in them, and whether it confirms the claim.

    `named`: the sentences have all names of the claim; `alone`: they have no third value that measures the same.
    """

    result: _Result
    sentences: tuple[str, ...]
    agreement: Agreement | None
    share: float
    named: bool
    alone: bool


def check_arithmetic(claim: str, sentences: Sequence[str]) -> tuple[Derivation, ...]:
    """Return the results of calculations in a claim that values of the sentences confirm or refute; the rest is left out."""
    operations, sentences = list(find_operations(claim)), list(dict.fromkeys(sentences))
    stated = check_values(claim, " ".join(sentences)) if operations else ()
    equal = {(c.value.start, c.value.end) for c in stated if c.agreement is Agreement.EQUAL}
    checked: dict[tuple[int, int], Derivation] = {}
    for claimed in operations:
        place = (claimed.value.start, claimed.value.end)
        derived = _decide(claimed, list(_results(claim, claimed, sentences))) if place not in equal else None
        if derived and (place not in checked or derived.agreement is Agreement.EQUAL):
            checked[place] = derived
    return tuple(checked.values())


def _results(claim: str, claimed: Claimed, sentences: Sequence[str]) -> Iterator[_Scored]:
    """Return the results of all pairs of values in the sentences nearest to the claim."""
    topic, names = topic_words(claim, claimed), text_facts(claim).names
    words = [frozenset(content_words(s)) for s in sentences]
    ranked = sorted((i for i, w in enumerate(words) if topic & w), key=lambda i: (-len(topic & words[i]), i))
    operands = [_Operand(i, sentences[i], v) for i in sorted(ranked[:MAX_SENTENCES]) for v in find_operands(sentences[i])]
    operands = [o for o in operands if math.isfinite(o.value.high - o.value.low) and not match_difference(o.text, o.value)]
    for one, other in combinations(operands, 2):
        if result := _calculate(claimed, topic, one, other):
            found = words[one.sentence] | words[other.sentence]
            here = [o.value for o in operands if o.sentence in (one.sentence, other.sentence)]
            alone = sum(_measure(v) == _measure(one.value) for v in here) == 2
            texts = tuple(dict.fromkeys((one.text, other.text)))
            yield _Scored(result, texts, _agreement(claimed, result), len(topic & found) / len(topic), names <= found, alone)


def _measure(value: Value) -> tuple[ValueKind, str]:
    """Return what two values have in common that can be subtracted; counts may leave out their noun."""
    return value.kind, "" if value.kind is ValueKind.COUNT else value.unit


def _decide(claimed: Claimed, scored: Sequence[_Scored]) -> Derivation | None:
    best = max((s.share for s in scored), default=0.0)
    nearest = [s for s in scored if s.share == best and s.named]
    equal = [s for s in nearest if s.agreement is Agreement.EQUAL]
    near = [s for s in scored if s.share >= best / 2]
    if equal and best >= MIN_SHARE and len(nearest) <= MAX_EQUALLY_NEAR:
        chosen, agreement = equal[0], Agreement.EQUAL
    elif nearest == near and len(near) == 1 and best >= MIN_SURE_SHARE and near[0].alone and near[0].result.ordered:
        chosen, agreement = near[0], Agreement.DIFFERENT
    else:
        return None
    if agreement is not (equal or near)[0].agreement:
        return None
    result = chosen.result
    text = result.formula if claimed.operation is Operation.COMPARISON else f"{result.formula} = {_write(claimed, result)}"
    return Derivation(claimed.value, result.sources, chosen.sentences, agreement, text, claimed.operation)


def _calculate(claimed: Claimed, topic: frozenset[str], one: _Operand, other: _Operand) -> _Result | None:
    """Calculate what the claim speaks of; None where it cannot be that of these two values."""
    order = _order(claimed, one, other) if _fits(claimed, one, other, topic) else None
    if order is None:
        return None
    first, second, ordered = order
    values, named = (first, second), topic | set(claimed.value.unit.split())
    if first.kind is ValueKind.COUNT and not ordered and not {*first.unit.split(), *second.unit.split()} & named:
        return None  # numbers of other things
    if claimed.operation is Operation.SUM:
        bounds = (first.low + second.low, first.nominal + second.nominal, first.high + second.high)
        return _Result(*bounds, values, f"{first.text} + {second.text}", ordered=False)
    if claimed.operation not in (Operation.RATIO, Operation.CHANGE):
        return _subtract(claimed, *order)
    low, nominal, high = second.low / first.high, second.nominal / first.nominal, second.high / first.low
    if claimed.operation is Operation.RATIO:
        return _Result(low, nominal, high, values, f"{second.text} / {first.text}", ordered)
    return _Result(low - 1, nominal - 1, high - 1, values, f"({second.text} - {first.text}) / {first.text}", ordered)


def _subtract(claimed: Claimed, first: Value, second: Value, ordered: bool) -> _Result:
    """Subtract the first value from the second, in the base unit of the claim's value; ages are in years."""
    low, nominal, high = second.low - first.high, second.nominal - first.nominal, second.high - first.low
    smaller, larger = (first.text, second.text) if nominal >= 0 else (second.text, first.text)
    text, scale, turn = f"{larger} - {smaller}", 1.0, 0.0
    match claimed.operation:
        case Operation.AGE:
            low, high = _completed_years(first.high - 1, second.low), _completed_years(first.low, second.high - 1)
        case Operation.DURATION if first.kind is ValueKind.DATE:
            scale = SECONDS_OF_DAY
        case Operation.DURATION:
            scale = SECONDS_OF_MINUTE
            if nominal < 0 and not claimed.sides:  # past midnight, or noon
                turn = SECONDS_OF_DAY / (2 if first.unit == TWELVE_HOURS else 1)
                text = f"{second.text} - {first.text}"
        case Operation.DIFFERENCE if first.kind is not claimed.value.kind:  # percentage points
            scale = 100.0
        case Operation.COMPARISON:
            text = f"{second.text} {'>' if nominal > 0 else '<'} {first.text}"
            ordered = ordered and low * high > 0
    return _Result(scale * low + turn, scale * nominal + turn, scale * high + turn, (first, second), text, ordered)


def _completed_years(first: float, last: float) -> int:
    """Return the full years between two days where 1 January of the year 1 is 306, as in dates of a text."""
    a, b = (datetime.date.fromordinal(max(1, int(day) - 305)) for day in (first, last))
    return b.year - a.year - ((b.month, b.day) < (a.month, a.day))


def _fits(claimed: Claimed, one: _Operand, other: _Operand, topic: frozenset[str]) -> bool:
    """Tell whether two values are of one kind and unit, and of one that the claim calculates with."""
    a, b, value = one.value, other.value, claimed.value
    if _measure(a) != _measure(b) or (one.sentence != other.sentence and not _alike(a, b)):
        return False
    date, units = a.kind is ValueKind.DATE and a.unit == "", {a.unit, b.unit}
    match claimed.operation:
        case Operation.AGE:
            return date and _is_birth(min(one, other, key=lambda o: o.value.low))
        case Operation.DURATION:
            born = any(map(_is_birth, (one, other)))
            return a.kind is ValueKind.TIME or (date and (not born or bool(topic & _LIFE_WORDS)))
        case Operation.COMPARISON:
            return bool(units & claimed.dimensions) or (a.kind is ValueKind.MONEY and "money" in claimed.dimensions)
        case _ if a.kind in TIMES or a.unit == "temperature":  # degrees have no natural zero
            return False
        case Operation.RATIO | Operation.CHANGE:
            return min(a.low, b.low) > 0
    points = claimed.operation is Operation.DIFFERENCE and value.kind is ValueKind.COUNT and "point" in value.unit.split()
    same = a.kind is value.kind and (_alike(value, a) or _alike(value, b))
    return same or (points and a.kind is ValueKind.SHARE)


def _alike(a: Value, b: Value) -> bool:
    """Tell whether two values of one kind have the same unit, or count what both name."""
    return a.unit == b.unit or (a.kind is ValueKind.COUNT and bool(a.unit and b.unit) and same_unit(a, b))


def _is_birth(operand: _Operand) -> bool:
    """Tell whether a date is that of a birth: after "born", or before a dash as in "(1941-2009)"."""
    before = operand.text[: operand.value.start]
    return bool(_BORN.search(before) or (_OPENED.search(before) and _DASH.match(operand.text, operand.value.end)))


def _order(claimed: Claimed, one: _Operand, other: _Operand) -> tuple[Value, Value, bool] | None:
    """Return two values in the order in which the claim compares them, and whether the source relates them so."""
    a, b, text = one.value, other.value, one.text
    if claimed.sides:
        apart = one.sentence != other.sentence  # words that both sentences have do not tell the two values apart
        common = frozenset(content_words(text) if apart else ()) & frozenset(content_words(other.text))
        sides = Sides(claimed.sides.first - common, claimed.sides.second - common)
        years = Sides(*(frozenset(w for w in side if w.isdigit()) for side in sides))
        sides = years if all(years) else sides  # "more in 2020 than in 2019": all else belongs to both
        owners = (_owner(one, sides), _owner(other, sides))
        return (b, a, True) if owners == (0, 1) else (a, b, True) if owners == (1, 0) else None
    first, second = sorted((a, b), key=lambda v: v.nominal)
    if claimed.operation in (Operation.AGE, Operation.DURATION):
        span = one.sentence == other.sentence and bool(_SPAN.fullmatch(text[a.end : b.start]))
        return (a, b, True) if span and a.kind is ValueKind.TIME else (first, second, span or claimed.operation is Operation.AGE)
    if one.sentence == other.sentence:
        if _FROM.search(text[a.end : b.start]):
            return b, a, True
        if _FROM.search(text[: a.start]) and _TO.search(text[a.end : b.start]):
            return a, b, True
        # "1,000 in 2010 and 1,200 in 2015", or each after its date
        dates = [v for v in find_operands(text) if v.kind is ValueKind.DATE and v.unit == ""]
        places = "".join("d" if v in dates else "v" for v in sorted([a, b, *dates]))
        if places in ("vdvd", "dvdv") and dates[0].low != dates[1].low:
            return (a, b, True) if dates[0].low < dates[1].low else (b, a, True)
    falling = claimed.direction < 0 or (claimed.operation is Operation.RATIO and claimed.value.nominal < 1)
    return (second, first, False) if falling else (first, second, False)


def _owner(operand: _Operand, sides: Sides) -> int | None:
    """Return whose value it is: 0 for the first side, 1 for the second; None where the sentence does not tell.

    Only one of both is named before the value in its clause, or else behind it, or else in the sentence.
    """
    _, text, value = operand
    among = [v for v in find_operands(text) if _measure(v) == _measure(value)]
    start = max((v.end for v in among if v.end <= value.start), default=0)
    end = min((v.start for v in among if v.start >= value.end), default=len(text))
    before, after = _BREAK.split(text[start : value.start])[-1], _BREAK.split(text[value.end : end])[0]
    for part in (before, after, text if len(among) == 1 else ""):
        words = set(content_words(part))
        if found := {i for i, side in enumerate(sides) if words & side}:
            return found.pop() if len(found) == 1 else None
    return None


def _agreement(claimed: Claimed, result: _Result) -> Agreement | None:
    """Compare the claimed result with the calculated one; what is off by rounding alone is neither confirmed nor called wrong."""
    value = claimed.value
    if claimed.operation is Operation.COMPARISON:
        same = result.nominal * claimed.direction > 0
        return (Agreement.EQUAL if same else Agreement.DIFFERENT) if result.ordered else None
    if claimed.operation is Operation.AGE:
        age = round(value.nominal / (SECONDS_OF_YEAR if value.kind is ValueKind.MEASURE else 1.0))
        return Agreement.EQUAL if result.low <= age <= result.high else Agreement.DIFFERENT
    change = result.nominal - 1 if claimed.operation is Operation.RATIO else result.nominal
    if claimed.direction and result.ordered and change * claimed.direction < 0:
        return Agreement.DIFFERENT
    low, nominal, high = sorted(map(abs, (result.low, result.nominal, result.high)))
    factor = max(nominal, value.nominal) / max(min(nominal, value.nominal), 1e-9)
    if factor > (MAX_FACTOR if math.isfinite(value.high - value.low) else MAX_OVERSHOOT):
        return None
    agreement = compare_values(value, value._replace(low=low, nominal=nominal, high=high))
    gap = max(value.low - high, low - value.high)
    return None if agreement is Agreement.DIFFERENT and gap <= ROUNDING_SHARE * nominal else agreement


def _write(claimed: Claimed, result: _Result) -> str:
    """Write the result of a calculation in the unit of the claim's value."""
    value, nominal = claimed.value, abs(result.nominal)
    if claimed.operation is Operation.AGE:
        return f"{result.low:g}" if result.low == result.high else f"{result.low:g} or {result.high:g}"
    if claimed.operation is Operation.RATIO:
        return f"{nominal:.3g}"
    if value.kind is ValueKind.SHARE:
        return f"{100 * nominal:.3g} {'points' if claimed.operation is Operation.DIFFERENCE else '%'}"
    numbers = find_numbers(value.text)
    factor = value.nominal / numbers[0].value if len(numbers) == 1 and numbers[0].value else 1.0
    number = f"{nominal / factor:,.2f}".rstrip("0").rstrip(".")
    return value.text[: numbers[0].start] + number + value.text[numbers[0].end :] if len(numbers) == 1 else number
