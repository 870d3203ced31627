"""The values of a claim compared with those of its sources, and written as its source writes them."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from knowhalu.text.agreement import Agreement, compare_values, same_unit
from knowhalu.text.changes import speaks_of_earlier
from knowhalu.text.sentences import content_words
from knowhalu.text.value_clauses import find_owned_value
from knowhalu.text.value_spans import Role, Value, ValueKind, find_values, values_with_periods

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
MIN_SLIP = 0.02
"""Decimal places by which two units must be apart for their numbers not to be rounded."""
WORDS_AROUND = 5
"""Words before and behind a value that tell what it is of."""


def _agreement(claim: Value, source: Value) -> Agreement | None:
    """Compare two values, of which one that may be a year is no other number of things."""
    agreement = compare_values(claim, source)
    unclear = claim.kind is ValueKind.COUNT and (claim.ambiguous or source.ambiguous)
    same = agreement is Agreement.EQUAL and not (claim.side and claim.nominal != source.nominal)
    return agreement if same or not unclear or agreement is Agreement.OPEN else None


class ValueCheck(NamedTuple):
    """A value of a claim, the value of the source that says most about it, and what it says; None where none is comparable."""

    value: Value
    source: Value | None
    agreement: Agreement | None


def check_values(claim: str, source: str) -> tuple[ValueCheck, ...]:
    """Compare every value of a claim with all values of a source; the best agreement of each counts.

    Of "3 of 7 counts" either the share is checked or both counts.
    """
    given = _given_values(claim, source)
    best: dict[tuple[int, int], ValueCheck] = {}
    order = [*Agreement, None]
    for value in values_with_periods(claim):
        for other in (*given, None):
            agreement = _agreement(value, other) if other else None
            place = (value.start, value.end)
            if place not in best or order.index(agreement) < order.index(best[place].agreement):
                best[place] = ValueCheck(value, other if agreement else None, agreement)
    return tuple(_without_doubles(best.values()))


def _without_doubles(checks: Iterable[ValueCheck]) -> list[ValueCheck]:
    """Return checks without those of values that others contain or are made of, whichever the source confirms."""
    kept = list(checks)
    for outer in [c for c in kept if c.value.role in (Role.OUTER, Role.RATE)]:
        inner = [c for c in kept if c is not outer and outer.value.start <= c.value.start and c.value.end <= outer.value.end]
        if outer.agreement is Agreement.EQUAL:
            kept = [c for c in kept if c not in inner]
        elif outer.agreement is None or outer.value.role is Role.RATE or all(c.agreement is Agreement.EQUAL for c in inner):
            kept.remove(outer)
    return kept


def _given_values(claim: str, source: str) -> list[Value]:
    """Return the values of a source that may say something of a claim, what changed only where the claim speaks of that."""
    values = values_with_periods(source)
    starts = {v for v in values if v.role is Role.START}
    if not starts or speaks_of_earlier(claim):
        return list(values)
    dates = [v for v in find_values(claim) if v.kind is ValueKind.DATE]
    return [v for v in values if v not in starts or _is_dated_apart(dates, source, v)]


def _is_dated_apart(dates: Sequence[Value], source: str, start: Value) -> bool:
    """Tell whether a claim has a date that the sentence of a change does not give for what it ended with."""
    end = source[start.end :].split(". ")[0]
    behind = [v for v in find_values(end.split(" to ")[0]) if v.kind is ValueKind.DATE]
    return any(compare_values(d, v) is Agreement.EQUAL for d in dates for v in behind)


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
    things, says nothing. A sentence also has another value where it gives the claim's value for something else, and for the topic
    another. Values that the question gives are not compared. The same digits at another scale, as "2.5 billion" for
    "2.5 million", are no result of a calculation (2).
    """
    topic = topic_of_values(claim, question)
    shares = [len(topic & set(content_words(s))) / max(1, len(topic)) for s in sentences]
    nearest = [s for s, share in zip(sentences, shares, strict=True) if share == max(shares) >= MIN_SURE_SHARE]
    settled = find_values(question)
    checks = {s: check_values(claim, s) for s in dict.fromkeys(sentences)}
    same = {c.value for found in checks.values() for c in found if c.agreement is Agreement.EQUAL}
    values = [v for v in values_with_periods(claim) if all(any(c.value == v for c in checks[s]) for s in nearest)]
    values = [v for v in values if not any(compare_values(v, s) is Agreement.EQUAL for s in settled)]
    conflicts = [found for value in values if (found := _conflict(claim, value, nearest, values_with_periods(claim)))]
    if len(values_with_periods(claim)) == len(values) == 1:
        conflicts += _misplaced(values[0], nearest, topic)
    return max(conflicts, key=lambda c: (c.sure, c.value not in same), default=None)


def _conflict(claim: str, value: Value, sentences: Sequence[str], values: Sequence[Value]) -> Conflict | None:
    worst: Conflict | None = None
    for sentence in sentences:
        compared = {other: _agreement(value, other) for other in _given_values(claim, sentence)}
        if set(compared.values()) & {Agreement.EQUAL, Agreement.OPEN}:
            return None
        differing = [v for v, agreement in compared.items() if agreement is Agreement.DIFFERENT and _has_unit(value, v)]
        # a value that equals another one of the claim belongs to that one
        taken = {v for v in differing if any(o != value and compare_values(o, v) is Agreement.EQUAL for o in values)}
        differing = [v for v in differing if v not in taken and not _is_rest(value, v, values)]
        differing = [v for v in differing if not _is_multiple(value, v, values, compared)]
        if differing:
            slip = next((v for v in differing if _is_slip(value, v)), None)
            counts = [v for v in compared if v.kind is ValueKind.COUNT]
            alone = len(differing) == 1 and (differing[0].role is not Role.OUTER or len(counts) == 2)
            sure = 2.0 if slip else 1.0 if alone else 0.5
            if worst is None or sure > worst.sure:
                worst = Conflict(value, slip or _rival(claim, value, sentence, differing, values), sentence, sure)
    return worst


def _misplaced(value: Value, sentences: Sequence[str], topic: frozenset[str]) -> list[Conflict]:
    """Return the conflict with the value that a sentence gives for the topic, where it gives the claim's for something else."""
    for sentence in sentences:
        compared = {v: _agreement(value, v) for v in values_with_periods(sentence)}
        other = find_owned_value(topic, sentence, compared)
        if other is not None and _has_unit(value, other):
            return [Conflict(value, other, sentence, 1.0)]
    return []


def _is_rest(part: Value, source: Value, values: Sequence[Value]) -> bool:
    """Tell whether a source's value is the whole of a claim's part or what is left of it: of 31, 12 for "19 of 31"."""
    outer = next((v for v in values if v.role is Role.OUTER and v.start <= part.start and part.end <= v.end and v != part), None)
    wholes = [v.nominal for v in values if outer and v.role is Role.WHOLE and outer.start <= v.start and v.end <= outer.end]
    return any(source.nominal in (whole, whole - part.nominal) for whole in wholes)


def _is_multiple(value: Value, source: Value, values: Sequence[Value], given: Iterable[Value]) -> bool:
    """Tell whether a claim's value is to another one of it as the source's are: "0.5 g in 10 ml" where 5 ml have 250 mg."""
    if not value.nominal * source.nominal > 0:
        return False
    factor = value.nominal / source.nominal
    pairs = ((v, g) for v in values for g in given if v.kind is g.kind and v.unit and same_unit(v, g) and v.unit != value.unit)
    return any(v.nominal != g.nominal and math.isclose(v.nominal, factor * g.nominal, rel_tol=1e-6) for v, g in pairs)


def _rival(claim: str, value: Value, sentence: str, differing: Sequence[Value], values: Sequence[Value]) -> Value:
    """Return the value that stands in place of a claim's: none that another value of the claim is, and with the same words."""
    own = _words_around(claim, value)
    return max(
        differing,
        key=lambda v: (
            all(compare_values(o, v) is not Agreement.EQUAL for o in values),
            len(own & _words_around(sentence, v)),
        ),
    )


def _words_around(text: str, value: Value) -> frozenset[str]:
    before, after = text[: value.start].split()[-WORDS_AROUND:], text[value.end :].split()[:WORDS_AROUND]
    return frozenset(content_words(" ".join((*before, *after))))


def _has_unit(one: Value, other: Value) -> bool:
    """Tell whether it is known what two comparable values measure or count."""
    return one.kind is not ValueKind.COUNT or bool(one.unit and other.unit)


def topic_of_values(claim: str, question: str = "") -> frozenset[str]:
    """Return the content words of claim and question without those of the claim's values: what the values are of."""
    values = {word for value in find_values(claim) for word in content_words(value.text)}
    return frozenset(content_words(f"{question} {claim}")) - values


def _is_slip(claim: Value, source: Value) -> bool:
    """Tell whether two values have the same digits in other units, or at scales a thousand, a million or a billion apart."""
    if claim.kind is ValueKind.DATE or not claim.nominal * source.nominal > 0:
        return False
    scale = abs(math.log10(claim.nominal / source.nominal))
    other_unit = claim.kind is ValueKind.MEASURE and claim.written == source.written and scale > MIN_SLIP
    return other_unit or any(math.isclose(scale, power, abs_tol=1e-6) for power in (3, 6, 9))


def align_values(claim: str, source: str) -> str:
    """Write the values of a claim that agree with the source as the source writes them, so that only the rest is left to compare.

    "Some 295 feet" becomes "90 metres" where the source has that; a value that the source has in the same form stays. The words
    of a limit are exchanged with it.
    """
    text, end = claim, len(claim)
    for check in sorted(check_values(claim, source), key=lambda c: -c.value.start):
        value, given = check.value, check.source
        if given is None or check.agreement is not Agreement.EQUAL or value.end > end or _has_words(source, value.text):
            continue
        if (value.role is Role.OUTER) != (given.role is Role.OUTER):
            continue  # "a quarter of those asked" has no place for "200 of the 800"
        end = value.start - value.modifier
        put = source[given.start - given.modifier : given.end] if value.modifier and given.side else given.text
        if value.side and not value.modifier:  # "65 or older" keeps its words
            put = given.text
        elif given.kind in (ValueKind.DATE, ValueKind.ORDINAL) and not given.side:
            own, its = None if value.modifier else _OPENING.search(text[:end]), _OPENING.search(source[: given.start])
            end = own.start() if own else end
            put = (its.group() if its and (own or given.ends or value.side) else "") + put
        text = text[:end] + (put[0].upper() + put[1:] if end == 0 else put) + text[value.end :]
    return text


def _has_words(source: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", source) is not None


_OPENING = re.compile(r"\b(?:(?:in|on|at|from|between) )?(?:the )?$|\b(?:in|on|from|between) $", re.IGNORECASE)
"""Words before a date or rank that belong to its form."""
