"""Entities of a sentence, found by rules, or by a model that the user has: names, places, dates, times, money, quantities.

The rules need no model: patterns for all that is counted or dated, capitals for names, lists of our own for their types. The
spans of every detector are put in order and kept apart; nothing is ever downloaded.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from knowhalu.reasoners.gazetteer import CURRENCIES, UNITS
from knowhalu.reasoners.naming import names
from knowhalu.reasoners.quantities import dated
from knowhalu.types import Entity

_FIGURE = r"(?:(?<!\w)[-−])?\d[\d,]{0,24}(?:\.\d+)?"  # noqa: RUF001
_ALONE = r"(?<!\w)(?<!\d,)"  # no figure begins within another
_SCALE = r"(?:hundred|thousand|million|billion|trillion|dozen)"
_TEENS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_TENS = "(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)"
_SMALL = "two|three|four|five|six|seven|eight|nine"
_SPELLED = rf"(?:{_TENS}(?:[- ](?:one|{_SMALL}))?|{_TEENS}|{_SMALL}|(?:an?|one|half a) (?={_SCALE}))(?:(?:[- ]|(?<= )){_SCALE})*"
_VAGUE = "(?:dozens|hundreds|thousands|millions|billions)"
_VALUE = rf"(?:{_FIGURE}(?:\s?(?:{_SCALE}|bn|m|k)\b)?|{_SPELLED})"
_RANGE = rf"{_VALUE}(?:(?:\s?[-–]\s?| to ){_VALUE})?"  # noqa: RUF001
_YEAR = r"(?:1\d{3}|20\d\d)"
_RANK = "(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|twentieth)"
_DAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_UNIT = "|".join(sorted(UNITS, key=lambda unit: -len(unit)))
_NO_PLURAL = "(?:was|is|has|as|this|its|his|us|yes|always|perhaps|less|across|towards|unless|plus|minus|versus)"
_NO_NOUN = rf"(?!{_NO_PLURAL}\b|of\b|to\b|in\b|and\b|or\b|for\b|from\b|with\b|by\b|on\b|at\b|years?\b)"

PATTERNS: tuple[tuple[str, str], ...] = (
    ("money", rf"(?:US|AU?|CA?|NZ|HK)?[$£€¥]\s?{_FIGURE}(?:\s?(?:{_SCALE}|bn|m|k)\b)?"),
    ("money", rf"\b(?:{_RANGE}|{_VAGUE} of) (?:US |Australian |Canadian )?(?:{'|'.join(CURRENCIES)})\b"),
    ("percent", rf"{_ALONE}{_RANGE}(?:\s?%|[ -](?:per cent|percent(?:age points?)?)\b)"),
    ("time", r"\b\d{1,2}(?:[:.]\d\d)? ?(?:[ap]\.m\.|[ap]m\b|o'clock)|\b\d{1,2}:\d\d(?::\d\d)?\b|\b(?:noon|midnight)\b"),
    ("date", rf"\b(?:{_YEAR}|[1-9]0)s\b|\b(?:\d{{1,2}}(?:st|nd|rd|th)|{_RANK}) century(?: BC| AD)?"),
    ("date", rf"\b(?:spring|summer|autumn|winter|christmas|easter|q[1-4])(?: of)? {_YEAR}\b"),
    ("date", r"\b\d{1,2}/\d{1,2}/\d{2,4}\b|\b\d{1,4} (?:BC|AD|BCE|CE)\b"),
    ("date", rf"\b(?:last |next )?{_DAY}(?: (?:morning|afternoon|evening|night))?\b|\b(?:yesterday|today|tomorrow)\b"),
    ("quantity", rf"{_ALONE}{_RANGE}(?:\s?°\s?[CF]?|(?:[ -]|(?<=\d))(?:{_UNIT})\b(?:[ -](?:long|old|tall|high|wide|deep))?)"),
    ("quantity", rf"\b{_VAGUE} of [a-z]+s\b"),
    ("quantity", rf"\b{_YEAR} {_NO_NOUN}[a-z]+(?<!s)s\b(?! (?:ago|later)\b)"),
    ("date", rf"\b{_YEAR}(?:[-–](?:{_YEAR}|\d\d))?\b(?![,.]?\d)"),  # noqa: RUF001
    ("ordinal", rf"\b\d+(?:st|nd|rd|th)\b|(?<=\bthe ){_RANK}\b|(?<=\bhis ){_RANK}\b|(?<=\bher ){_RANK}\b|(?<=\bits ){_RANK}\b"),
    ("quantity", rf"{_ALONE}{_RANGE} (?:{_NO_NOUN}[a-z]{{3,}} )?{_NO_NOUN}[a-z]+(?<!s)s\b"),
    ("number", rf"{_ALONE}(?:{_RANGE}|{_VAGUE})\b"),
)
"""What is counted, measured or dated, and how it is written; of what overlaps the first pattern that matches counts."""
_COMPILED = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in PATTERNS)


@lru_cache(maxsize=4096)
def by_rules(text: str) -> tuple[Entity, ...]:
    """Find the entities of a text by rules."""
    dates = (Entity(start=a, end=b, text=text[a:b], type="date") for a, b, _ in dated(text))
    return apart([*dates, *_counted(text), *names(text)])


def _counted(text: str) -> Iterator[Entity]:
    for kind, pattern in _COMPILED:
        for m in pattern.finditer(text):
            yield Entity(start=m.start(), end=m.end(), text=m.group(), type=kind)


def apart(found: Iterable[Entity]) -> tuple[Entity, ...]:
    """Put entities in order; of those that overlap the first one given stays."""
    kept: list[Entity] = []
    for entity in found:
        if entity.end > entity.start and all(entity.end <= k.start or k.end <= entity.start for k in kept):
            kept.append(entity)
    return tuple(sorted(kept, key=lambda e: e.start))
