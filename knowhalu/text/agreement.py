"""Whether a value of a source confirms or contradicts a claim's value, in whatever form both are written.

A claim's value agrees with a source's where the source's interval lies inside the claim's, so that a claim may be less
precise than its source, and differs where the two do not meet. Of two limits of the same side the bounds are compared.
"""

import math
from enum import StrEnum

from knowhalu.text.dates import DAYS_OF_YEAR
from knowhalu.text.limits import BOUND
from knowhalu.text.value_spans import Role, Value, ValueKind

MAX_LIMIT_GAP = 0.05
"""The share by which the bounds of two estimates may differ for a slip of rounding."""
MAX_CAP_GAP = 0.2
"""The share by which a value may be below a bound that still speaks of it."""


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
    found = _compare(claim, source)
    if source.role not in (Role.WHOLE, Role.SHARED) or claim.role in (Role.WHOLE, Role.SHARED, Role.TOTAL):
        return found
    if found is not Agreement.EQUAL:
        return None
    return Agreement.OPEN if source.role is Role.WHOLE else found  # "3 of 7 counts" speaks of 3 counts first


def _compare(claim: Value, source: Value) -> Agreement | None:
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
        return Agreement.EQUAL if bare and claim.written == source.written and claim.side in (0, source.side) else None
    if claim.kind is ValueKind.ORDINAL and claim.unit != source.unit:
        return Agreement.EQUAL if claim.nominal == source.nominal else None  # the first tram is no other line than line 4
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


def same_unit(claim: Value, source: Value) -> bool:
    """Tell whether two values of one kind measure or count the same; a count may leave out its noun."""
    if claim.kind is ValueKind.COUNT:
        return not claim.unit or not source.unit or not set(claim.unit.split()).isdisjoint(source.unit.split())
    if claim.kind is ValueKind.ORDINAL:
        return not claim.unit or not source.unit or claim.unit == source.unit
    # another currency is another amount
    return claim.kind in (ValueKind.MONEY, ValueKind.TIME) or claim.unit == source.unit


def _ends(value: Value) -> tuple[Value, Value]:
    """Return the first and the last value of a period or range."""
    first, last = value.ends or (value.high, value.low)
    return value._replace(high=first, ends=None), value._replace(low=last, nominal=last, ends=None)


def _compare_ends(claim: Value, source: Value) -> Agreement:
    """Compare both ends of two periods or ranges."""
    found = [_compare_intervals(a, b) for a, b in zip(_ends(claim), _ends(source), strict=True)]
    return next((a for a in (Agreement.DIFFERENT, Agreement.OPEN) if a in found), Agreement.EQUAL)


def _of_twelve_hours(time: Value) -> Value:
    return time._replace(nominal=time.nominal % 720, low=time.low % 720, high=time.high % 720)


def _compare_intervals(claim: Value, source: Value) -> Agreement:
    tolerance = 1e-9 * max(abs(claim.high), abs(source.high), 1.0) if math.isfinite(claim.high + source.high) else 1e-9
    if claim.side * source.side > 0 and not (claim.ends or source.ends):
        return _compare_limits(claim, source, tolerance)
    exact = claim.nominal == source.nominal or math.isclose(claim.nominal, source.nominal, rel_tol=1e-9)
    if exact and claim.kind is not ValueKind.DATE and not claim.side and not source.side:
        return Agreement.EQUAL
    if claim.low - tolerance <= source.low and source.high <= claim.high + tolerance:
        capped = claim.side == -BOUND and claim.kind not in (ValueKind.DATE, ValueKind.TIME)
        far = capped and not math.isclose(claim.nominal, source.nominal, rel_tol=MAX_CAP_GAP)
        return Agreement.OPEN if far else Agreement.EQUAL  # "up to 60 days" says more than 30 days
    if claim.kind is not ValueKind.DATE and claim.low - tolerance <= source.nominal <= claim.high + tolerance:
        # each rounds to the other, as "295 feet" and "90 metres", or the source is more precise
        if claim.side * source.side < 0 or (
            source.side and not math.isclose(claim.nominal, source.nominal, rel_tol=MAX_LIMIT_GAP)
        ):
            return Agreement.OPEN
        if source.low <= claim.nominal <= source.high or source.high - source.low < claim.high - claim.low < math.inf:
            return Agreement.EQUAL
    if source.high < claim.low - tolerance or claim.high < source.low - tolerance:
        return Agreement.DIFFERENT
    if claim.kind is ValueKind.DATE and (source.high <= claim.low or claim.high <= source.low):
        return Agreement.DIFFERENT
    return Agreement.OPEN


def _compare_limits(claim: Value, source: Value, tolerance: float) -> Agreement:
    """Compare the bounds of two limits of the same side; an estimate is also confirmed by one that implies it."""
    (low, high), (first, last) = claim.stated, source.stated
    exact = claim.nominal == source.nominal or math.isclose(claim.nominal, source.nominal, rel_tol=1e-9)
    implied = claim.low - tolerance <= source.low and source.high <= claim.high + tolerance
    if claim.kind is ValueKind.DATE:
        if low < last and first < high:
            return Agreement.EQUAL if (low, high) == (first, last) or implied else Agreement.OPEN
        return Agreement.OPEN if implied and high - low >= DAYS_OF_YEAR - 1 else Agreement.DIFFERENT
    if exact or first <= claim.nominal <= last or low <= source.nominal <= high:
        return Agreement.EQUAL
    if claim.kind is ValueKind.MEASURE and claim.written == source.written:
        return Agreement.DIFFERENT  # "over five months" for "over five years"
    if abs(claim.side) < BOUND and implied:
        return Agreement.EQUAL
    if abs(source.side) < BOUND and implied:
        return Agreement.OPEN
    near = math.isclose(claim.nominal, source.nominal, rel_tol=MAX_LIMIT_GAP) and abs(claim.side) < BOUND
    return Agreement.OPEN if near else Agreement.DIFFERENT
