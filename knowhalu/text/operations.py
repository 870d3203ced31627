"""Calculations that a claim speaks of: a value with words such as "grew by", "years later", "twice as many", or "taller than"."""

import math
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from knowhalu.text.sentences import MAX_CACHED_CHARS, content_words, stem
from knowhalu.text.values import Value, ValueKind, find_values

TIMES = (ValueKind.DATE, ValueKind.TIME)
_LINKS = re.compile(r"\b(?:from|between|since|until|(?<!up )to)\b", re.IGNORECASE)
"""Words that make a limit or a range of a number for a comparison, but not for a calculation."""
_PERIOD = re.compile(r"(?P<first>.+?)(?:\s?[–—]\s?|(?<=\d)-|\s(?:-|to|until|till|through|and)\s)(?:the )?(?P<last>.+)")


class Operation(StrEnum):
    """What is calculated of two values."""

    DIFFERENCE = "difference"
    DURATION = "duration"
    AGE = "age"
    CHANGE = "relative change"
    RATIO = "ratio"
    SUM = "sum"
    COMPARISON = "comparison"


class Sides(NamedTuple):
    """The words that only the first or only the second of two compared things has."""

    first: frozenset[str]
    second: frozenset[str]


class Claimed(NamedTuple):
    """A result that a claim states: `direction` is 1 where it says more, -1 less, 0 neither; `cue` are the words that say so.

    `sides` are the two things of which the first is more or less, and `dimensions` what a comparison without a value compares.
    """

    operation: Operation
    value: Value
    direction: int = 0
    cue: str = ""
    sides: Sides | None = None
    dimensions: frozenset[str] = frozenset()


def find_operands(text: str) -> tuple[Value, ...]:
    """Return the values of a text one by one: no ranges, but both ends of "1890-1912" or "1,000 to 1,200"."""
    return _cached_operands(text) if len(text) <= MAX_CACHED_CHARS else tuple(_find_operands(text))


@lru_cache(maxsize=4096)
def _cached_operands(text: str) -> tuple[Value, ...]:
    return tuple(_find_operands(text))


def _find_operands(text: str) -> Iterator[Value]:
    times = [v for v in find_values(text) if v.kind in TIMES]
    masked = _LINKS.sub(lambda m: "&" * len(m.group()), text)
    numbers = [v for v in find_values(masked) if v.kind not in (*TIMES, ValueKind.ORDINAL)]
    numbers = [v for v in numbers if all(v.end <= t.start or t.end <= v.start for t in times)]
    yield from sorted([*numbers, *(part for time in times for part in _split_period(time))])


def _split_period(time: Value) -> Iterator[Value]:
    """Return the first and the last date of "1890-1912", or a date as it is."""
    m = _PERIOD.fullmatch(time.text)
    if m is None or time.ends is None:
        yield time
        return
    first, last = time.ends
    year = m["last"] if len(m["last"]) > 2 else m["first"][:-2] + m["last"]
    yield time._replace(end=time.start + m.end("first"), text=m["first"], high=first, ends=None)
    yield time._replace(start=time.start + m.start("last"), text=year, nominal=last, low=last, modifier=0, ends=None)


_RISE = (
    r"rose|risen|ris(?:es?|ing)|gr[eo]wn?|grow(?:s|ing|th)|increas(?:es?|ed|ing)|climb(?:s|ed)?|gain(?:s|ed)?|went up|widened|"
    r"(?:is|are|was|were) up"
)
_FALL = (
    r"fell|fall(?:s|en|ing)?|drop(?:s|ped)?|declin(?:es?|ed|ing)|decreas(?:es?|ed|ing)|shr[aiu]nk|reduc(?:es?|ed|tion)|went down|"
    r"lowered|shortened|narrowed|(?:is|are|was|were) down"
)
_MORE = r"more|higher|taller|longer|larger|bigger|greater|heavier|deeper|wider|faster|warmer|hotter|dearer|above|ahead"
_LESS = r"fewer|less|lower|shorter|smaller|lighter|shallower|narrower|slower|cooler|colder|cheaper|below|behind"
_BEFORE_VALUE = tuple(
    (re.compile(rf"\b({words})\b(?:[^.;,]{{0,40}}?\b(?:{link})|\sof)(?:\s(?:a|an|some|the))?\s*$", re.I), side)
    for words, link, side in ((_RISE, "by", 1), (_FALL, "by", -1), ("difference|gap|margin|differ(?:s|ed)?", "by|was|is", 0))
)
_AFTER_VALUE = tuple(
    (re.compile(rf"^(?:\s(?!and|or|in|of|than|to)\w+){{0,2}}?\s({words})\b", re.I), side)
    for words, side in ((_MORE, 1), (_LESS, -1))
)
_THAN = re.compile(r"\b(?:than|as(?:\s\w+){1,3}\sas)\s", re.I)
_SEQUENCE = re.compile(r"^(?: or so)?\s(?P<word>after|before|later than|earlier than|later|earlier)\b,?\s?", re.I)
_LASTING = re.compile(
    r"\b(?:for|last(?:s|ed|ing)?|tak(?:es|ing)|took|span(?:s|ned|ning)?|within|spent|after|ran|during|over|stood)"
    r"(?: (?:about|nearly|almost|some|around|exactly|only|just|a total of|another|the))*\s*$",
    re.I,
)
_AGED = re.compile(r"\b(?:aged|age of|at age|turn(?:s|ed|ing))\s*$", re.I)
_YEARS_OLD = re.compile(r"^[- ]years?[- ]olds?\b|^ years of age\b|^ when (?:he|she)\b", re.I)
_TOTAL = re.compile(r"\b(?:total(?:s|led|ed|ling)?|altogether|in all|combined|together|between them)\b", re.I)
_NEGATED = re.compile(r"\b(?:not|never|no|neither|nor|without|cannot)\b|n['’]t\b", re.I)  # noqa: RUF001
_MULTIPLES = {
    "twice": 2.0, "doubled": 2.0, "doubles": 2.0, "double": 2.0, "tripled": 3.0, "trebled": 3.0, "quadrupled": 4.0,
    "halved": 0.5, "half": 0.5, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0, "six": 6.0, "seven": 7.0, "eight": 8.0,
    "nine": 9.0, "ten": 10.0,
}  # fmt: skip
_RATIO = re.compile(
    r"\b(?:(?P<limit>more than|over|less than|under|nearly|almost|about|around|roughly|at least)\s)?"
    r"(?:(?P<verb>doubled|doubles|tripled|trebled|quadrupled|halved)|half\sas\s\w+(?!\sagain)"
    r"|(?:twice|double|(?:\d+(?:\.\d+)?|two|three|four|five|six|seven|eight|nine|ten)\stimes)"
    r"\s(?:as\s\w+|the|that|its|more|higher|larger|longer|greater|bigger))\b",
    re.I,
)
_RATIO_LIMITS = {
    "more than": (1.0, float("inf")), "over": (1.0, float("inf")), "at least": (1.0, float("inf")), "less than": (0.0, 1.0),
    "under": (0.0, 1.0), "nearly": (0.8, 1.0), "almost": (0.8, 1.0), "about": (0.88, 1.12), "around": (0.88, 1.12),
    "roughly": (0.88, 1.12), "": (0.94, 1.06),
}  # fmt: skip
"""How far a ratio may be from "twice", as factors, by the word before."""
_DIMENSIONS: dict[str, tuple[int, str]] = {
    "taller higher deeper wider longer": (1, "length"), "shallower narrower shorter": (-1, "length"),
    "heavier": (1, "mass"), "lighter": (-1, "mass"), "faster": (1, "speed"), "slower": (-1, "speed"),
    "warmer hotter": (1, "temperature"), "cooler colder": (-1, "temperature"), "dearer": (1, "money"), "cheaper": (-1, "money"),
    "larger bigger": (1, "area volume"), "smaller": (-1, "area volume"),
}  # fmt: skip
_COMPARATIVES = {word: meaning for words, meaning in _DIMENSIONS.items() for word in words.split()}
_COMPARED = re.compile(
    rf"\b(?:(?P<word>{'|'.join(_COMPARATIVES)})|(?P<amount>more|fewer)\s(?P<noun>[a-z]+)(?:\s\w+){{0,3}}?)\sthan\s", re.I
)


def find_operations(claim: str) -> Iterator[Claimed]:
    """Return the results of calculations that a claim states, each with its value; none of a claim that denies something."""
    if _NEGATED.search(claim):
        return
    ratios, values = list(_ratios(claim)), find_operands(claim)
    yield from ratios
    for value in values:
        if (
            value.kind not in TIMES
            and math.isfinite(value.nominal)
            and all(value.end <= r.value.start or r.value.end <= value.start for r in ratios)
        ):
            yield from _operations_of(claim, value)
    yield from _comparisons(claim, {v.end for v in values})


def _ratios(claim: str) -> Iterator[Claimed]:
    for m in _RATIO.finditer(claim):
        limit = (m["limit"] or "").lower()
        word = m.group()[len(limit) :].lower().split()[0]
        nominal = _MULTIPLES[word] if word in _MULTIPLES else float(word)
        low, high = (nominal * factor for factor in _RATIO_LIMITS[limit])
        value = Value(m.start(), m.end(), m.group(), ValueKind.SHARE, nominal, low, high)
        direction = (1 if nominal > 1 else -1) if m["verb"] else 0
        sides = None if m["verb"] else _sides_around(claim, m.start(), m.end())
        yield Claimed(Operation.RATIO, value, direction, m.group(), sides)


def match_difference(text: str, value: Value) -> tuple[str, int] | None:
    """Return the word that makes a value a difference, as in "grew by 200" or "200 more", and its direction."""
    before, after = text[: value.start - value.modifier], text[value.end :]
    for patterns, part in ((_BEFORE_VALUE, before), (_AFTER_VALUE, after)):
        for pattern, side in patterns:
            if m := pattern.search(part):
                return m[1], side
    return None


def _operations_of(claim: str, value: Value) -> Iterator[Claimed]:
    before, after = claim[: value.start - value.modifier], claim[value.end :]
    time = value.kind is ValueKind.MEASURE and value.unit == "duration"
    if _AGED.search(before) or _YEARS_OLD.match(after) or value.text.lower().endswith(("year-old", "years old")):
        yield Claimed(Operation.AGE, value, cue="age aged old")
    elif time and (m := _SEQUENCE.match(after)):
        side = {"before": -1, "earlier than": -1, "after": 1, "later than": 1}.get(m["word"].lower(), 0)
        sides = _sides(before, after[m.end() :]) if side else None
        yield Claimed(Operation.DURATION, value, side if sides else 0, m.group(), sides)
    elif difference := match_difference(claim, value):
        cue, side = difference
        sides = _sides_around(claim, value.start, value.end)
        yield Claimed(Operation.DIFFERENCE, value, side, cue, sides)
        if value.kind is ValueKind.SHARE and "point" not in value.text:
            yield Claimed(Operation.CHANGE, value, side, cue, sides)
    elif time and (m := _LASTING.search(before)):
        yield Claimed(Operation.DURATION, value, cue=m.group())
    elif value.kind is not ValueKind.SHARE and (m := _TOTAL.search(claim)):
        yield Claimed(Operation.SUM, value, cue=m.group())


def _comparisons(claim: str, value_ends: set[int]) -> Iterator[Claimed]:
    """Find "A is taller than B" and "A has more rooms than B"; after a value the words say by how much."""
    for m in _COMPARED.finditer(claim):
        if m["noun"]:
            side, dimensions = (1 if m["amount"].lower() == "more" else -1), stem(m["noun"].lower())
        else:
            side, dimensions = _COMPARATIVES[m["word"].lower()]
        sides = _sides(claim[: m.start()], claim[m.end() :])
        if sides and m.start() - 1 not in value_ends:
            value = Value(m.start(), m.end() - 1, m.group()[:-1], ValueKind.COUNT, side, side, side)
            yield Claimed(Operation.COMPARISON, value, side, m.group(), sides, frozenset(dimensions.split()))


def _sides_around(claim: str, start: int, end: int) -> Sides | None:
    """Return the sides of a result at this place that "than" or "as many as" compares."""
    m = _THAN.search(claim, start)
    return _sides(claim[:start] + claim[end : max(end, m.start())], claim[m.end() :]) if m else None


def _sides(left: str, right: str) -> Sides | None:
    one, other = (frozenset(content_words(text)) - _PLAIN_WORDS for text in (left, right))
    return Sides(one - other, other - one) if one - other and other - one else None


def blank_out(text: str, values: Iterable[Value]) -> str:
    """Return a text with spaces in place of some of its values."""
    for value in values:
        text = text[: value.start] + " " * (value.end - value.start) + text[value.end :]
    return text


def topic_words(claim: str, claimed: Claimed) -> frozenset[str]:
    """Return the content words of a claim that say what was measured: neither the values nor the words of the calculation."""
    text = blank_out(claim, (claimed.value, *(v for v in find_operands(claim) if v.kind not in TIMES)))
    return frozenset(content_words(text)) - frozenset(content_words(claimed.cue)) - _PLAIN_WORDS


_PLAIN_WORDS = frozenset(
    content_words(
        "more fewer less higher lower larger smaller increase decrease rise rose fall fell grew drop dropped year years old aged "
        "percent per cent total altogether combined together between difference times about nearly almost around later earlier "
        "after before approximately number numbers amount compared over only just roughly percentage point points"
    )
)
