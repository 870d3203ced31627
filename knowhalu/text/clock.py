"""Times of day in any form, in minutes from midnight."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_NUMBERS = "one two three four five six seven eight nine ten eleven twelve".split()
_HALF = r"(?:\s?(?P<half>a\.m\.|p\.m\.|am\b|pm\b|AM\b|PM\b))"
_PART = r"(?:\sin the (?P<part>morning|afternoon|evening)|\s(?P<night>at night))?"
_HOUR = rf"(?P<hour>1?\d|2[0-4]|{'|'.join(_NUMBERS)})"
_FORMS = (
    rf"(?P<clock>\d{{1,2}})[:.h](?P<minute>[0-5]\d)(?::[0-5]\d)?(?:{_HALF}|\so'clock)",
    rf"(?P<clock>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?!:?\d)(?:\s?(?:h|hrs|hours|o'clock)\b)?{_PART}",
    rf"(?P<clock>[01]?\d|2[0-4])h(?P<minute>[0-5]\d)?\b{_PART}",
    rf"{_HOUR}{_HALF}",
    rf"(?P<past>half|a quarter|quarter|ten|twenty|five) (?P<side>past|to) {_HOUR}\b{_PART}",
    rf"{_HOUR} (?:o'clock|o’clock){_PART}",  # noqa: RUF001
    rf"{_HOUR}\b\sin the (?P<part>morning|afternoon|evening)\b",
    r"(?P<name>noon|midday|midnight)\b",
)
_PATTERNS = tuple(re.compile(rf"(?<![\w:.,$€£/-]){form}", re.IGNORECASE) for form in _FORMS)
_PAST = {"half": 30, "a quarter": 15, "quarter": 15, "ten": 10, "twenty": 20, "five": 5}
MINUTES_OF_DAY = 1440.0


class ClockTime(NamedTuple):
    """A time of day with its place; `twelve` is True where nothing tells morning from afternoon."""

    start: int
    end: int
    minute: float
    twelve: bool = False


def find_clock_times(text: str) -> list[ClockTime]:
    """Find the times of day of a text in its order; of overlapping forms the more complete one counts."""
    found: list[ClockTime] = []
    for time in (t for pattern in _PATTERNS for m in pattern.finditer(text) for t in _read(m)):
        if all(f.end <= time.start or time.end <= f.start for f in found):
            found.append(time)
    return sorted(found)


def _read(m: re.Match[str]) -> Iterator[ClockTime]:
    part = {k: v.lower() for k, v in m.groupdict().items() if v}
    if name := part.get("name"):
        yield ClockTime(m.start(), m.end(), 0.0 if name == "midnight" else MINUTES_OF_DAY / 2)
        return
    written = part.get("clock") or part["hour"]
    hour = int(written) if written.isdigit() else _NUMBERS.index(written) + 1
    minute = int(part.get("minute", 0)) + _PAST.get(part.get("past", ""), 0) * (-1 if part.get("side") == "to" else 1)
    half = part.get("half", "")[:1] or {"morning": "a", "afternoon": "p", "evening": "p"}.get(part.get("part", ""), "")
    half = half or ("night" in part and ("p" if hour > 5 else "a")) or ""
    if hour > (12 if half and hour != 0 else 24):
        half = ""  # "14:30 pm"
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    # "10:15" and "02:30" are written by the 24-hour clock, "2:30" may be either
    twelve = not half and 1 <= hour <= 12 and ("past" in part or "clock" not in part or len(written) == 1)
    yield ClockTime(m.start(), m.end(), (60.0 * hour + minute) % MINUTES_OF_DAY, twelve)
