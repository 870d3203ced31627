"""Values of a text compared in whatever form they are written, and those of a claim written as its source writes them.

A claim's value agrees with a source's where the source's interval lies inside the claim's, so that a claim may be less
precise than its source, and differs where the two do not meet.
"""

import math
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from knowhalu.text.sentences import content_words
from knowhalu.text.value_spans import Value, ValueKind, find_values, values_with_periods

__all__ = [
    "Agreement",
    "Conflict",
    "Value",
    "ValueCheck",
    "ValueKind",
    "align_values",
    "check_values",
    "compare_values",
    "find_conflict",
    "find_values",
    "same_unit",
    "topic_of_values",
]


MIN_SURE_SHARE = 0.5
"""Share of a topic's words that the nearest sentence must have to speak of it surely."""


class Agreement(StrEnum):
    """What a source's value says about a claim's."""

    EQUAL = "equal"
    """The source's value confirms that of the claim."""
    OPEN = "open"
    """The source is less precise than the claim, or says more or less than a limit."""
    DIFFERENT = "different"
    """Both cannot be true of the same thing."""


def compare_values(claim: Value, source: Value) -> Agreement | None:
    """Compare a claim's value with a source's; None where they measure different things."""
    if claim.kind is source.kind is ValueKind.COUNT and not same_unit(claim, source):
        # "180 gardens" and "180 families" may be two words for one thing
        return Agreement.OPEN if claim.nominal == source.nominal else None
    if claim.kind is not source.kind or not same_unit(claim, source):
        # "90" answers "how tall" as well as "90 metres" does
        bare = (
            claim.kind is ValueKind.COUNT
            and not claim.unit
            and source.kind in (ValueKind.MEASURE, ValueKind.MONEY, ValueKind.SHARE)
        )
        return Agreement.EQUAL if bare and claim.written == source.written else None
    if claim.unit != source.unit and claim.kind is ValueKind.MONEY:
        return Agreement.DIFFERENT
    if claim.kind is ValueKind.TIME and claim.unit != source.unit:
        claim, source = _of_twelve_hours(claim), _of_twelve_hours(source)
    if claim.ends and source.ends:
        return _compare_ends(claim, source)
    if source.ends and claim.kind in (ValueKind.DATE, ValueKind.TIME):
        at_an_end = Agreement.EQUAL in (compare_values(claim, end) for end in _ends(source))
        return Agreement.EQUAL if at_an_end else _compare_intervals(claim, source)
    return _compare_intervals(claim, source)


def _ends(value: Value) -> tuple[Value, Value]:
    """Return the first and the last value of a period or range."""
    first, last = value.ends or (value.high, value.low)
    return value._replace(high=first, ends=None), value._replace(low=last, nominal=last, ends=None)


def _compare_ends(claim: Value, source: Value) -> Agreement:
    """Compare both ends of two periods or ranges."""
    found = [_compare_intervals(a, b) for a, b in zip(_ends(claim), _ends(source), strict=True)]
    return next((a for a in (Agreement.DIFFERENT, Agreement.OPEN) if a in found), Agreement.EQUAL)


def _of_twelve_hours(time: Value) -> Value:
    return time._replace(nominal=time.nominal % 720, low=time.nominal % 720, high=time.nominal % 720)


def _compare_intervals(claim: Value, source: Value) -> Agreement:
    tolerance = 1e-9 * max(abs(claim.high), abs(source.high), 1.0) if math.isfinite(claim.high + source.high) else 1e-9
    exact = claim.nominal == source.nominal or math.isclose(claim.nominal, source.nominal, rel_tol=1e-9)
    if exact and claim.kind is not ValueKind.DATE and _same_side(claim, source):
        return Agreement.EQUAL
    if claim.low - tolerance <= source.low and source.high <= claim.high + tolerance:
        return Agreement.EQUAL
    if claim.kind is not ValueKind.DATE and claim.low - tolerance <= source.nominal <= claim.high + tolerance:
        # each rounds to the other, as "295 feet" and "90 metres", or the source is more precise
        if source.low <= claim.nominal <= source.high or source.high - source.low < claim.high - claim.low < math.inf:
            return Agreement.EQUAL
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
    given = values_with_periods(source)
    best: dict[tuple[int, int], ValueCheck] = {}
    order = [*Agreement, None]
    for value in values_with_periods(claim):
        for other in (*given, None):
            agreement = _agreement(value, other) if other else None
            place = (value.start, value.end)
            if place not in best or order.index(agreement) < order.index(best[place].agreement):
                best[place] = ValueCheck(value, other if agreement else None, agreement)
    return tuple(best.values())


class Conflict(NamedTuple):
    """A value of a claim, another one that the sentence nearest to its topic has, and how sure this is: 0.5, 1, or 2."""

    value: Value
    source: Value
    sentence: str
    sure: float


def find_conflict(claim: str, sentences: Sequence[str], question: str = "") -> Conflict | None:
    """Return the surest other value that the sentences give for what a claim says; None without any.

    It is sure (1) where the sentence that is nearest to the topic has one other value of a known unit, and no sentence as near
    has the same; half as sure where it has several. On training rows a conflict farther away, or between numbers of unknown
    things, says nothing. Values that the question gives are not compared. The same digits at another scale, as "2.5 billion" for
    "2.5 million", are no result of a calculation (2).
    """
    topic = topic_of_values(claim, question)
    shares = [len(topic & set(content_words(s))) / max(1, len(topic)) for s in sentences]
    nearest = [s for s, share in zip(sentences, shares, strict=True) if share == max(shares) >= MIN_SURE_SHARE]
    settled = find_values(question)
    values = [v for v in find_values(claim) if not any(compare_values(v, s) is Agreement.EQUAL for s in settled)]
    found = [conflict for value in values if (conflict := _conflict(value, nearest))]
    return max(found, key=lambda c: c.sure, default=None)


def _conflict(value: Value, sentences: Sequence[str]) -> Conflict | None:
    worst: Conflict | None = None
    for sentence in sentences:
        compared = {other: _agreement(value, other) for other in values_with_periods(sentence)}
        if set(compared.values()) & {Agreement.EQUAL, Agreement.OPEN}:
            return None
        differing = [v for v, agreement in compared.items() if agreement is Agreement.DIFFERENT and _has_unit(value, v)]
        if differing:
            slip = next((v for v in differing if _is_scale_slip(value, v)), None)
            sure = 2.0 if slip else 1.0 if len(differing) == 1 else 0.5
            if worst is None or sure > worst.sure:
                worst = Conflict(value, slip or differing[0], sentence, sure)
    return worst


def _has_unit(one: Value, other: Value) -> bool:
    """Tell whether it is known what two comparable values measure or count."""
    return one.kind is not ValueKind.COUNT or bool(one.unit and other.unit)


def topic_of_values(claim: str, question: str = "") -> frozenset[str]:
    """Return the content words of claim and question without those of the claim's values: what the values are of."""
    values = {word for value in find_values(claim) for word in content_words(value.text)}
    return frozenset(content_words(f"{question} {claim}")) - values


def _is_scale_slip(claim: Value, source: Value) -> bool:
    """Tell whether two values have the same digits at scales that are a thousand, a million or a billion apart."""
    if claim.kind is ValueKind.DATE or not claim.nominal * source.nominal > 0:
        return False
    scale = abs(math.log10(claim.nominal / source.nominal))
    return any(math.isclose(scale, power, abs_tol=1e-6) for power in (3, 6, 9))


def align_values(claim: str, source: str) -> str:
    """Write the values of a claim that agree with the source as the source writes them, so that only the rest is left to compare.

    "Some 295 feet" becomes "90 metres" where the source has that; a value that the source has in the same form stays.
    """
    text, end = claim, len(claim)
    for check in sorted(check_values(claim, source), key=lambda c: -c.value.start):
        value, given = check.value, check.source
        if given is None or check.agreement is not Agreement.EQUAL or value.end > end or _has_words(source, value.text):
            continue
        end = value.start - value.modifier
        put = given.text
        if given.kind in (ValueKind.DATE, ValueKind.ORDINAL):
            own, its = _OPENING.search(text[:end]), _OPENING.search(source[: given.start])
            end, put = own.start() if own else end, (its.group() if its and (own or given.ends) else "") + put
        text = text[:end] + (put[0].upper() + put[1:] if end == 0 else put) + text[value.end :]
    return text


def _has_words(source: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", source) is not None


_OPENING = re.compile(r"\b(?:(?:in|on|at|from|between) )?(?:the )?$|\b(?:in|on|from|between) $", re.IGNORECASE)
"""Words before a date or rank that belong to its form."""


def same_unit(claim: Value, source: Value) -> bool:
    """Tell whether two values of one kind measure or count the same; a count may leave out its noun."""
    if claim.kind is ValueKind.COUNT:
        return not claim.unit or not source.unit or not set(claim.unit.split()).isdisjoint(source.unit.split())
    if claim.kind is ValueKind.ORDINAL:
        return not claim.unit or not source.unit or claim.unit == source.unit
    # another currency is another amount
    return claim.kind in (ValueKind.MONEY, ValueKind.TIME) or claim.unit == source.unit


def _same_side(claim: Value, source: Value) -> bool:
    return math.isinf(claim.low) == math.isinf(source.low) and math.isinf(claim.high) == math.isinf(source.high)
