"""Stretches of a text that one of the same type may take the place of: dates, numbers of each sort, names."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from knowhalu.reasoners.lexicon import DETERMINERS, MONTHS, NAME
from knowhalu.reasoners.quantities import REACH, dated, number_of, unit_after
from knowhalu.text import STOPWORDS, Span, sentences, stem, words

_WEEKDAY = re.compile(r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day")
_MONTH = re.compile("|".join(m.capitalize() for m in MONTHS))
_POSSESSIVE = re.compile(r"['’]s\b")  # noqa: RUF001
_PEOPLE = re.compile(r"\w+(?:ish|ese|ian|[ei]an|can|man|ench|utch)s?")
"""Words made of a place's name: none of them stands for a name of its own."""
_OPENS = re.compile(r"(?:[.!?:;]|--|[–—])[\"”’']*\s+[\"“‘'(]*|^[\"“‘'(]+|\n\s*")  # noqa: RUF001
_YEAR = re.compile(r"(?:1\d|20)\d\d")
_SCALES = frozenset("hundred thousand million billion trillion bn m k dozen".split())
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth")
_LOOSE = frozenset({"one", "once", "second", "twice"})
"""Number words that mostly say something else."""
_MONEY = "$£€¥"
_JOINED = re.compile(r"(\d[\d,.]*)-([a-z]{3,})")
"""A number that is part of a word, as in "19-year-old"."""
_SCORE = re.compile(r"\d{1,3}[-–:]\d{1,3}")  # noqa: RUF001


class Stretch(NamedTuple):
    """Characters of a text, `text == source[start:end]`: what sort of thing they name, and of numbers what is counted."""

    start: int
    end: int
    text: str
    type: str
    unit: str = ""


def stretches(text: str) -> list[Stretch]:
    """Return the dates, weekdays, numbers and names of a text, in order; none overlaps another."""
    found = [Stretch(a, b, text[a:b], "date") for a, b, _ in dated(text)]
    for more in (_numbers(text), _names(text)):
        found += [s for s in more if not any(f.start < s.end and s.start < f.end for f in found)]
    return sorted(found)


def _numbers(text: str) -> Iterator[Stretch]:
    """Find numbers as they are written: with their currency or percent sign, "5.5 million" and "two hundred" as one."""
    tokens = words(text)
    at = 0
    while at < len(tokens):
        first = last = at
        at += 1
        if (inner := _within(tokens[first])) is not None:
            yield inner
        if not _counts(tokens[first]):
            continue
        while at < len(tokens) and tokens[at].text.lower() in _SCALES and text[tokens[last].end : tokens[at].start] in (" ", "-"):
            last, at = at, at + 1
        start, end = tokens[first].start, tokens[last].end
        money = start > 0 and text[start - 1] in _MONEY
        yield _number(text, start - money, end, _following(text, end, tokens[at : at + REACH]))


def _following(text: str, end: int, tokens: list[Span]) -> list[Span]:
    """Return the words after a number up to the next mark: none of "31, led the vote" is what 31 counts."""
    found = []
    for token in tokens:
        if text[end : token.start].strip(" %"):
            break
        found.append(token)
        end = token.end
    return found


def _within(token: Span) -> Stretch | None:
    """Return the number that a word begins with, or the score that it is."""
    if _SCORE.fullmatch(token.text):
        return Stretch(token.start, token.end, token.text, "score")
    joined = _JOINED.match(token.text)
    return Stretch(token.start, token.start + joined.end(1), joined[1], "number", stem(joined[2])) if joined else None


def _counts(token: Span) -> bool:
    return number_of(token.text) is not None and token.text.lower() not in _LOOSE


def _number(text: str, start: int, end: int, following: list[Span]) -> Stretch:
    said = text[start:end].lower()
    unit = unit_after(following)
    if said[0] in _MONEY:
        return Stretch(start, end, text[start:end], "money")
    if said.endswith("%") or unit == "percent":
        return Stretch(start, end, text[start:end], "percent")
    if _ORDINAL.fullmatch(said):
        return Stretch(start, end, text[start:end], "ordinal")
    if _YEAR.fullmatch(said):
        return Stretch(start, end, text[start:end], "year")
    return Stretch(start, end, text[start:end], "number", unit)


def _names(text: str) -> Iterator[Stretch]:
    """Find runs of capitalised words, without small words at their start; a weekday or a month alone is no name.

    A lone word that begins a sentence is none either: there every word has a capital. Nor is a run of words in capitals only.
    """
    opening = {s.start for s in sentences(text)} | {m.end() for m in _OPENS.finditer(text)}
    for match in NAME.finditer(text):
        start = match.start()
        for part in _POSSESSIVE.split(match.group()):
            tokens = words(part)
            begins = start in opening and len(tokens) == 1
            while tokens and tokens[0].text.lower() in STOPWORDS | DETERMINERS:
                tokens.pop(0)
            if tokens and not begins and any(c.islower() for t in tokens for c in t.text):
                a, b = start + tokens[0].start, start + tokens[-1].end
                yield Stretch(a, b, text[a:b], _name_type(text[a:b]))
            start += len(part) + 2


def _name_type(text: str) -> str:
    if _WEEKDAY.fullmatch(text) or _MONTH.fullmatch(text):
        return "weekday" if _WEEKDAY.fullmatch(text) else "month"
    return "people" if _PEOPLE.fullmatch(text) else "name"
