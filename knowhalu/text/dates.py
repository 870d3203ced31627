"""Dates in any form, as intervals of days: days, months, seasons, years, decades, centuries, and parts of them."""

import re
from collections.abc import Callable
from typing import NamedTuple

from knowhalu.text.wordlists import MONTHS

DAYS_OF_YEAR = 366.0
_MONTH = rf"(?P<month>{'|'.join(MONTHS)}|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>1\d{3}|20\d\d)"
_ERA = r"(?:\s?(?P<era>BCE?|B\.C\.(?:E\.)?|CE|AD|A\.D\.))?"
_PART = r"(?:(?P<part>early|mid|late|the beginning of|the middle of|the end of)[\s-]+)?"
_SEASONS = {"spring": (3, 5), "summer": (6, 8), "autumn": (9, 11), "fall": (9, 11), "winter": (12, 14)}
_PARTS = {"early": (0.0, 0.4), "beg": (0.0, 0.4), "mid": (0.3, 0.7), "late": (0.6, 1.0), "end": (0.6, 1.0)}
_BEFORE_YEAR = (
    r"(?:in|since|by|of|from|until|till|to|after|before|during|between|and|circa|c\.|around|about|year|for|through|as of|"
    r"spring|summer|autumn|fall|winter)"
)


class DateSpan(NamedTuple):
    """A date in a text: the days [low, high) that it covers; `yearless` dates are days of a year.

    `certain` is False for four digits that no word marks as a year.
    """

    start: int
    end: int
    low: float
    high: float
    yearless: bool = False
    certain: bool = True


def _days(year: int, month: int = 1, day: int = 1) -> float:
    """Return days since year 0 in the proleptic Gregorian calendar; months past 12 run into the next year."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    y = year - (month <= 2)
    era_day = 365 * y + y // 4 - y // 100 + y // 400
    return float(era_day + (153 * ((month + 9) % 12) + 2) // 5 + day - 1)


def _interval(year: int, first: int, last: int) -> tuple[float, float]:
    return _days(year, first), _days(year, last + 1)


def _month_number(name: str) -> int:
    return next(i for i, month in enumerate(MONTHS, 1) if month[:3] == name[:3].title())


def _calendar(m: re.Match[str]) -> tuple[float, float, bool] | None:
    part = m.groupdict()
    month = _month_number(part["month"]) if part.get("month") else int(part.get("number") or 0)
    day, year = int(part.get("day") or 0), int(part.get("year") or 0)
    if not 1 <= month <= 12 or day > 31:
        return None
    if not year:  # a leap year, so that 29 February has its place
        low = _days(2000, month, day or 1) - _days(2000)
        return low, low + (1 if day else _days(2000, month + 1) - _days(2000, month)), True
    if day:
        return _days(year, month, day), _days(year, month, day) + 1, False
    return *_interval(year, month, month), False


def _season(m: re.Match[str]) -> tuple[float, float, bool]:
    first, last = _SEASONS[m["season"].lower()]
    return *_interval(int(m["year"]), first, last), False


def _share(low: float, high: float, part: str | None) -> tuple[float, float]:
    """Return the early, middle or late part of an interval."""
    if not part:
        return low, high
    key = next(k for k in _PARTS if part.lower().removeprefix("the ").startswith(k))
    a, b = _PARTS[key]
    return low + a * (high - low), low + b * (high - low)


def _year(m: re.Match[str]) -> tuple[float, float, bool]:
    year = int(m["year"])
    if (m["era"] or "").upper().startswith("B"):
        year = 1 - year
    return *_share(_days(year), _days(year + 1), m["part"]), False


def _years(m: re.Match[str]) -> tuple[float, float, bool]:
    first, last = int(m["first"]), m["last"]
    return _days(first), _days(int(str(first)[: 4 - len(last)] + last) + 1), False


def _decade(m: re.Match[str]) -> tuple[float, float, bool]:
    year = int(m["decade"])
    length = 100 if year % 100 == 0 and m["decade"].endswith("00") else 10
    return *_share(_days(year), _days(year + length), m["part"]), False


def _century(m: re.Match[str]) -> tuple[float, float, bool]:
    number = int(m["century"]) if m["century"].isdigit() else _ORDINALS.index(m["century"].lower()) + 1
    start = -100 * number + 1 if (m["era"] or "").upper().startswith("B") else 100 * (number - 1)
    return *_share(_days(start), _days(start + 100), m["part"]), False


_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth "
    "seventeenth eighteenth nineteenth twentieth twenty-first"
).split()
_FORMS: tuple[tuple[str, Callable[[re.Match[str]], tuple[float, float, bool] | None]], ...] = (
    (rf"{_DAY}(?: of)? {_MONTH},?(?: {_YEAR})?", _calendar),
    (rf"{_MONTH} {_DAY}(?!\d|,\d)(?:,? {_YEAR})?", _calendar),
    (rf"{_MONTH},?(?: of)? {_YEAR}", _calendar),
    (r"(?P<year>1\d{3}|20\d\d)[-/.](?P<number>0[1-9]|1[0-2])[-/.](?P<day>0[1-9]|[12]\d|3[01])", _calendar),
    (r"(?P<year>1\d{3}|20\d\d)[/-](?P<number>0[1-9]|1[0-2])(?![-/.\d])", _calendar),
    (r"(?P<day>0?[1-9]|[12]\d|3[01])\.(?P<number>0?[1-9]|1[0-2])\.(?P<year>1\d{3}|20\d\d)", _calendar),
    (rf"(?P<season>spring|summer|autumn|fall|winter)(?: of)? {_YEAR}", _season),
    (rf"{_PART}(?P<decade>1\d\d0|20\d0)s\b", _decade),
    (rf"{_PART}(?P<century>\d{{1,2}}(?=st|nd|rd|th)|{'|'.join(_ORDINALS)})(?:st|nd|rd|th)?[\s-]century{_ERA}", _century),
    (r"(?P<first>1\d{3}|20\d\d)\s?[–-]\s?(?P<last>\d{4}|\d\d)(?!\d)", _years),
    (rf"(?<=in ){_MONTH}", _calendar),
    (rf"{_PART}(?P<year>\d{{1,4}})\s?(?P<era>BCE?|B\.C\.(?:E\.)?|CE|AD)\b", _year),
    (rf"{_PART}{_YEAR}{_ERA}(?![\w%]|[.,]\d|(?:\s|-)(?:percent|per cent|people|million|billion))", _year),
)
_PATTERNS = tuple((re.compile(rf"(?<![\w.,$€£]){pattern}", re.IGNORECASE), read) for pattern, read in _FORMS)
_YEAR_WORD = re.compile(rf"\b{_BEFORE_YEAR}\s*$", re.IGNORECASE)
_YEAR_CONTEXT = re.compile(rf"(?:^|[(\[,;:–-]|\b{_BEFORE_YEAR})\s*$", re.IGNORECASE)


def find_date_intervals(text: str) -> list[DateSpan]:
    """Find the dates of a text in its order; of overlapping forms the more complete one counts."""
    taken: list[DateSpan] = []
    for pattern, read in _PATTERNS:
        for m in pattern.finditer(text):
            if any(d.start < m.end() and m.start() < d.end for d in taken):
                continue
            if read is _year and not _is_year(text, m):
                continue
            if found := read(m):
                certain = read is not _year or bool(m["era"] or m["part"] or _YEAR_WORD.search(text[: m.start()]))
                taken.append(DateSpan(m.start(), m.end(), *found, certain))
    return sorted(taken)


def _is_year(text: str, m: re.Match[str]) -> bool:
    """Tell a year from a number of things: by its era, by the word before, or where no noun follows."""
    if m["era"] or m["part"] or _YEAR_CONTEXT.search(text[: m.start()]):
        return not re.match(r"\s(?:years|days|times|km|kg|metres|meters|miles|feet|tonnes|tons|kilometres)\b", text[m.end() :])
    return not re.match(r"\s[a-z]+s\b|\s(?:people|men|women|children|staff|m|km|kg|g|ft|mm|cm)\b", text[m.end() :])
