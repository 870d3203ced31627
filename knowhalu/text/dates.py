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
_PART = (
    r"(?:(?P<part>(?:early|late)(?: in)?|mid|(?:the )?(?:beginning|start|middle|end|(?:first|second|latter) half) of)[\s-]+"
    r"(?:the\s)?)?"
)
_SEASONS = {"spring": (3, 5), "summer": (6, 8), "autumn": (9, 11), "fall": (9, 11), "winter": (12, 14)}
_PARTS = {
    "early": (0.0, 0.4), "beg": (0.0, 0.4), "start": (0.0, 0.4), "mid": (0.3, 0.7), "late": (0.6, 1.0), "end": (0.6, 1.0),
    "first": (0.0, 0.5), "second": (0.5, 1.0), "latter": (0.5, 1.0),
}  # fmt: skip
_QUARTERS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": 4}
_DECADES = "twenties thirties forties fifties sixties seventies eighties nineties".split()
_BEFORE_YEAR = (
    r"(?:in|since|by|of|from|until|till|to|after|before|during|between|and|circa|c\.|around|about|year|for|through|as of|"
    r"spring|summer|autumn|fall|winter)"
)
_NOUN = (
    r"\s(?:years|days|times|people|men|women|children|staff|m|km|kg|g|ft|mm|cm|metres|meters|miles|feet|tonnes|tons|kilometres)\b"
    r"|\s(?!(?:was|is|has|as|this|its|his|us|across|unless|towards)\b)[a-z]+s\b"
)
"""What follows a number of things."""


class DateSpan(NamedTuple):
    """A date in a text: the days [low, high) that it covers; `yearless` dates are days of a year.

    `certain` is False for four digits that no word marks as a year. `ends` are the end of the first date and the beginning of the
    last one of a period, such as "1953–1956".
    """

    start: int
    end: int
    low: float
    high: float
    yearless: bool = False
    certain: bool = True
    ends: tuple[float, float] | None = None


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
    return *_share(*_interval(year, month, month), part.get("part")), False


def _days_of_month(m: re.Match[str]) -> tuple[float, float, bool] | None:
    found, days = _calendar(m), int(m["last"]) - int(m["day"])
    return (found[0], found[1] + days, found[2]) if found and days > 0 else None


def _slashed(m: re.Match[str]) -> tuple[float, float, bool] | None:
    """Read "3/4/1958" as all days from the one to the other that it may mean."""
    one, two, year = int(m["one"]), int(m["two"]), int(m["year"])
    days = [_days(year, month, day) for day, month in ((one, two), (two, one)) if month <= 12]
    return (min(days), max(days) + 1, False) if days else None


def _quarter(m: re.Match[str]) -> tuple[float, float, bool]:
    name = m["quarter"].lower()
    quarter = _QUARTERS.get(name) or int(name[0])
    return *_interval(int(m["year"]), 3 * quarter - 2, 3 * quarter), False


def _half_year(m: re.Match[str]) -> tuple[float, float, bool]:
    half = int(m["half"])
    return *_interval(int(m["year"]), 6 * half - 5, 6 * half), False


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


def _named_decade(m: re.Match[str]) -> tuple[float, float, bool]:
    name = (m["short"] or m["name"]).lower()
    year = 1900 + (int(name) if name.isdigit() else 10 * (_DECADES.index(name) + 2))
    return *_share(_days(year), _days(year + 10), m["part"]), False


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
_LAST_DAY = r"\s?[–-]\s?(?P<last>[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"  # noqa: RUF001
_FORMS: tuple[tuple[str, Callable[[re.Match[str]], tuple[float, float, bool] | None]], ...] = (
    (rf"{_DAY}{_LAST_DAY}(?: of)? {_MONTH}(?:,? {_YEAR})?", _days_of_month),
    (rf"{_MONTH} {_DAY}{_LAST_DAY}(?!\d|,\d)(?:,? {_YEAR})?", _days_of_month),
    (rf"{_DAY}(?: of |\s|-){_MONTH}(?:,?[\s-]{_YEAR})?", _calendar),
    (rf"{_MONTH} {_DAY}(?!\d|,\d)(?:,? {_YEAR})?", _calendar),
    (rf"{_PART}{_MONTH},?(?: of)?[\s-]{_YEAR}", _calendar),
    (r"(?P<year>1\d{3}|20\d\d)[-/.](?P<number>0[1-9]|1[0-2])[-/.](?P<day>0[1-9]|[12]\d|3[01])", _calendar),
    (r"(?P<year>1\d{3}|20\d\d)[/-](?P<number>0[1-9]|1[0-2])(?![-/.\d])", _calendar),
    (r"(?P<day>0?[1-9]|[12]\d|3[01])\.(?P<number>0?[1-9]|1[0-2])\.(?P<year>1\d{3}|20\d\d)", _calendar),
    (r"(?P<one>0?[1-9]|[12]\d|3[01])[/-](?P<two>0?[1-9]|[12]\d|3[01])[/-](?P<year>1\d{3}|20\d\d)", _slashed),
    (rf"Q(?P<quarter>[1-4])(?:,? of|,)?[\s/-]{_YEAR}", _quarter),
    (rf"{_YEAR}[\s/-]?Q(?P<quarter>[1-4])", _quarter),
    (rf"(?P<quarter>first|second|third|fourth|last|1st|2nd|3rd|4th) quarter(?: of)? {_YEAR}", _quarter),
    (rf"H(?P<half>[12])(?: of)?[\s/-]{_YEAR}", _half_year),
    (rf"(?P<season>spring|summer|autumn|fall|winter)(?: of)? {_YEAR}", _season),
    (rf"{_PART}(?P<decade>1\d\d0|20\d0)s\b", _decade),
    (rf"{_PART}(?P<century>\d{{1,2}}(?=st|nd|rd|th)|{'|'.join(_ORDINALS)})(?:st|nd|rd|th)?[\s-]century{_ERA}", _century),
    (rf"{_PART}(?<=the )(?:['’](?P<short>[1-9]0)s|(?P<name>{'|'.join(_DECADES)}))\b", _named_decade),  # noqa: RUF001
    (rf"(?<=in ){_MONTH}", _calendar),
    (rf"{_PART}(?P<year>\d{{1,4}})\s?(?P<era>BCE?|B\.C\.(?:E\.)?|CE|AD)\b", _year),
    (rf"{_PART}{_YEAR}{_ERA}(?![\w%]|[.,]\d|(?:\s|-)(?:percent|per cent|people|million|billion))", _year),
)
_PATTERNS = tuple((re.compile(rf"(?<![\w.,$€£]){pattern}", re.IGNORECASE), read) for pattern, read in _FORMS)
_YEAR_WORD = re.compile(rf"\b{_BEFORE_YEAR}\s*$", re.IGNORECASE)
_CERTAIN_YEAR = re.compile(r"\b(?:in|since|until|till|during|year|spring|summer|autumn|fall|winter)\s*$", re.IGNORECASE)
_DASH = re.compile(r"\s?[-–—]\s?")  # noqa: RUF001
_SHORT_YEAR = re.compile(r"\s?[–-]\s?(?P<last>\d\d)(?![\d%-]|[.,]\d)")  # noqa: RUF001


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
                taken.append(_with_short_year(text, DateSpan(m.start(), m.end(), *found, certain)))
    return _join_periods(text, sorted(taken))


def _with_short_year(text: str, year: DateSpan) -> DateSpan:
    """Read "1953–56" as a period."""  # noqa: RUF002
    m = _SHORT_YEAR.match(text, year.end)
    written = text[year.start : year.end]
    if m is None or len(written) != 4 or not written.isdigit() or int(m["last"]) <= int(written[2:]):
        return year
    last = int(written[:2] + m["last"])
    return year._replace(end=m.end(), high=_days(last + 1), ends=(year.high, _days(last)), certain=True)


def _join_periods(text: str, dates: list[DateSpan]) -> list[DateSpan]:
    """Join "1953–1956" into one period."""  # noqa: RUF002
    joined: list[DateSpan] = []
    for date in dates:
        last = joined[-1] if joined else None
        if last and not (last.ends or last.yearless or date.yearless) and last.high <= date.low:
            if _DASH.fullmatch(text[last.end : date.start]):
                joined.pop()
                date = last._replace(end=date.end, high=date.high, ends=(last.high, date.low), certain=True)
        joined.append(date)
    return joined


def _is_year(text: str, m: re.Match[str]) -> bool:
    """Tell a year from a number of things: by its era, by the word before, or where no noun follows."""
    if m["era"] or m["part"]:
        return True
    if _CERTAIN_YEAR.search(text[: m.start()]):
        return not re.match(r"\s(?:years|days|times)\b", text[m.end() :])
    following = re.match(r"\s?(?:to|and|[-–])\s?\d{4}(?!\d)", text[m.end() :])  # noqa: RUF001
    return not re.match(_NOUN, text[m.end() + (following.end() if following else 0) :])
