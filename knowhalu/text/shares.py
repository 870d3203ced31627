"""Parts of a whole, as in "3 of the 7 counts" and "of the 800 people asked, 200", and times that amounts are for."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from knowhalu.text.numbers import Number

_DETERMINER = r"(?:the |its |their |his |her |our |all |those |these )?"
_OF = re.compile(rf"(?:(?P<noun> [a-z]+)? (?P<out>out of)| of) {_DETERMINER}(?:about |some )?", re.IGNORECASE)
_OPENING = re.compile(rf"(?:^|[.;:,]\s)(?P<of>(?:out )?of {_DETERMINER})$", re.IGNORECASE)
_BEHIND = re.compile(r"(?: [\w'’-]+){1,10}, (?:only |just )?")  # noqa: RUF001
_RATE = re.compile(
    r"\b(?:(?:a|per|each|every) day|daily|(?:with)?in (?:any |a |one )?(?:24[ -]hours?(?: period)?|day))\b", re.IGNORECASE
)
_AMOUNT = re.compile(r"\d[^\s.,;]*(?: [^\s.,;\d]+){0,3} $|\b(?:once|twice|one|two|three|four|five|six|times)(?: [a-z]+){0,3} $")

_ALL = re.compile(r"\b(?:all(?: of)?(?: the| its| their)?|(?:an?|the) (?:total|whole) of) $", re.IGNORECASE)
_TOTAL = re.compile(r"(?: [\w-]+){0,3} (?:in total|in all|altogether)\b", re.IGNORECASE)


class Part(NamedTuple):
    """A part and its whole, the one that the noun follows, and the place of the words that have both."""

    start: int
    end: int
    part: Number
    whole: Number
    counted: Number


def find_parts(text: str, numbers: Sequence[Number]) -> Iterator[Part]:
    """Find the pairs of whole numbers of which the text calls one a part of the other."""
    plain = [n for n in numbers if not (n.share or n.ordinal or n.upper is not None) and n.value == int(n.value) > 0]
    for one, other in pairwise(plain):
        between = text[one.end : other.start]
        if (m := _OF.fullmatch(between)) and one.value <= other.value and (m["out"] or one.value > 1):
            yield Part(one.start, other.end, one, other, one if m["noun"] else other)
        elif _BEHIND.fullmatch(between) and other.value <= one.value and (m := _OPENING.search(text[: one.start])):
            yield Part(m.start("of"), other.end, other, one, one)


def find_totals(text: str, numbers: Sequence[Number]) -> Iterator[Number]:
    """Find the numbers that are called all that there are: "all 12", "a total of 12", "12 in total"."""
    yield from (n for n in numbers if _ALL.search(text[max(0, n.start - 40) : n.start]) or _TOTAL.match(text, n.end))


def find_shared(text: str, numbers: Sequence[Number]) -> Iterator[Number]:
    """Find the numbers of which a share or another number is told: "half of the 800", "one of the four"."""
    for last, number in pairwise(numbers):
        between = text[last.end : number.start]
        shared = last.share or between.lstrip().startswith(("%", "per"))
        if _OF.fullmatch(between) or (shared and re.search(rf"\bof {_DETERMINER}$", between, re.IGNORECASE)):
            yield number


def find_rates(text: str) -> Iterator[tuple[int, int]]:
    """Return the places of "a day", "daily" and "in 24 hours" behind an amount."""
    yield from ((m.start(), m.end()) for m in _RATE.finditer(text) if _AMOUNT.search(text[max(0, m.start() - 60) : m.start()]))
