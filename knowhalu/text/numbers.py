"""Numbers of a text in digits or words, with the precision to which they are written."""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from text_to_num import find_numbers as find_number_words

from knowhalu.text.changes import is_start
from knowhalu.text.units import find_unit


class Number(NamedTuple):
    """A number: `precision` is the place of the last digit written (1e5 for "2.5 million"), `upper` the end of a range.

    `rounded` numbers are written with a scale or decimals ("2.5 million"), so that they stand for all that rounds to them.
    """

    start: int
    end: int
    value: float
    precision: float
    rounded: bool = False
    upper: float | None = None
    share: bool = False
    """It is a part of a whole, such as "a third" or "two in five"."""
    ordinal: bool = False
    unit: str = ""
    """The unit where it stands inside, as in "an hour and a half"."""


SCALES = {
    "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "mn": 1e6, "mln": 1e6, "bn": 1e9,
    "tn": 1e12, "dozen": 12.0, "lakh": 1e5, "crore": 1e7,
}  # fmt: skip
_SHORT_SCALES = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "m": 1e6, "b": 1e9}
_DIGITS = re.compile(
    r"(?<![\w.,/])(?P<sign>[-−–](?=\d))?(?P<digits>\d{1,3}(?:[,\u00a0\u202f' ]\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)"  # noqa: RUF001
    r"(?:[ -]?(?P<scale>" + "|".join(SCALES) + r")\b"
    r"|(?P<short>[kKMB]|(?<=[\d])[mb](?=n?\b))(?![\w/])|(?P<ordinal>st|nd|rd|th)\b)?",
)
_FRACTION_WORDS = {
    "half": 1 / 2, "third": 1 / 3, "quarter": 1 / 4, "fourth": 1 / 4, "fifth": 1 / 5, "sixth": 1 / 6, "eighth": 1 / 8,
    "tenth": 1 / 10,
}  # fmt: skip
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "seven": 7, "nine": 9}
_COUNT_WORD = "|".join(_COUNTS)
_FRACTION = re.compile(
    rf"\b(?:(?P<count>{_COUNT_WORD})[ -])?(?P<part>half|halves|(?:third|quarter|fourth|fifth|sixth|eighth|tenth)s?)\b"
    r"(?=\s*(?:[.,;:!?)]|$)| (?:of|the|its|their|his|her|as)\b)"
    rf"|(?P<few>\d+|{_COUNT_WORD}) in (?P<many>\d{{1,3}}|[^\W\d]+)\b|(?P<top>\d+)/(?P<bottom>\d+)(?![/\d])",
    re.IGNORECASE,
)
_AMOUNT_WORDS = {
    "half": 1 / 2,
    "a quarter": 1 / 4,
    "three quarters": 3 / 4,
    "a third": 1 / 3,
    "two thirds": 2 / 3,
    "a couple": 2.0,
}
_AMOUNT = re.compile(
    r"\b(?:(?P<part>half|(?:an?|one) (?:quarter|third)|three quarters|two thirds|a couple)(?P<link>(?: of)? an?| of)"
    rf"|(?P<count>\d+|{_COUNT_WORD})) (?P<unit>[a-z]+)(?: and an? (?P<more>half|quarter|third))?\b",
    re.IGNORECASE,
)
_LONG_UNITS = frozenset(("fortnight", "decade", "century"))
"""Units of which the article is a number."""
_MIXED = re.compile(rf"\s(?:and a half|and a quarter)\b(?: (?P<scale>{'|'.join(SCALES)})\b)?", re.IGNORECASE)
_HALF_SCALE = re.compile(rf"\b(?:half a|a|several|a few) (?P<scale>{'|'.join(SCALES)})\b", re.IGNORECASE)
_MANY = re.compile(
    r"\b(?P<many>tens|dozens|hundreds|thousands|millions|billions)(?: of (?P<scale>thousands|millions|billions))?\b",
    re.IGNORECASE,
)
_DOZEN = re.compile(r"\s?dozen\b", re.IGNORECASE)
_RANGE = re.compile(r"\s?(?:to|and|[-–—])\s?$")  # noqa: RUF001
_BETWEEN = re.compile(r"\bbetween\s*$", re.IGNORECASE)
_TOKEN = re.compile(r"\w+|[^\w\s]")


_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50}
_ROMAN = re.compile(
    r"\b(?:(?P<label>(?i:chapter|part|volume|vol\.|book|act|phase|stage|type|class|grade|article|section|level|figure|table|appendix"
    r"|category|mark)|World War)"
    r"|(?P<title>(?i:king|queen|pope|emperor|empress|tsar|shah|duke|prince) )?[A-Z][a-zà-ÿ]{2,})\s"
    r"(?P<roman>X{0,3}L?(?:IX|IV|V?I{0,3}))(?![\w.’'-])(?<=[IVXL])"  # noqa: RUF001
)


class _Token(NamedTuple):
    """A token as text2num reads it."""

    start: int
    end: int
    word: str

    def text(self) -> str:
        return self.word

    def lowercase(self) -> str:
        return self.word.lower()

    def nt_separated(self, previous: object) -> bool:
        return False

    def not_a_number_part(self) -> bool:
        return self.word.isdigit()


def find_numbers(text: str) -> list[Number]:
    """Find the numbers of a text in their order; each character belongs to one number at most."""
    found: list[Number] = []
    steps = {m.start("number") for m in _step_numbers(text)}
    for number in (
        *_amounts(text),
        *_fractions(text),
        *_half_scales(text),
        *_many(text),
        *_digits(text),
        *_roman_numerals(text),
        *_words(text),
    ):
        if number.start not in steps and all(n.end <= number.start or number.end <= n.start for n in found):
            found.append(number)
    return _join_ranges(text, sorted(found))


_ENUMERATOR = re.compile(r"\((?P<number>\d{1,2})\)(?=\s)")
_STEP = re.compile(
    r"(?:^|[.!?:]\s+)(?:step )?(?P<number>(?<!step )(?:first|second|third|fourth|fifth|sixth)(?=,\s)"
    r"|(?<=step )(?:\d{1,2}|one|two|three|four|five)(?=[:.]\s))",
    re.IGNORECASE,
)


def _step_numbers(text: str) -> Iterator[re.Match[str]]:
    """Find the numbers that only count the items of a list: "(1) salt and (2) honey", "First, boil it."."""
    enumerators = list(_ENUMERATOR.finditer(text))
    if [int(m["number"]) for m in enumerators[:2]] == [1, 2]:
        yield from enumerators
    yield from _STEP.finditer(text)


def _fractions(text: str) -> Iterator[Number]:
    for m in _FRACTION.finditer(text):
        if m["part"]:
            part = m["part"].lower().replace("halves", "half").removesuffix("s")
            value = _COUNTS[(m["count"] or "a").lower()] * _FRACTION_WORDS[part]
        elif m["few"]:
            few, many = (_small_number(m[name]) for name in ("few", "many"))
            if few is None or many is None or not 0 < few < many:
                continue
            value = few / many
        else:
            if not 0 < int(m["top"]) < int(m["bottom"]) <= 100:
                continue
            value = int(m["top"]) / int(m["bottom"])
        yield Number(m.start(), m.end(), value, 0.01, share=True)


def _amounts(text: str) -> Iterator[Number]:
    """Find the amounts of a unit in words: "half an hour", "an hour and a half", "a couple of weeks", "a decade"."""
    for m in _AMOUNT.finditer(text):
        if find_unit([m["unit"]]) is None:
            continue
        amount = _AMOUNT_WORDS.get((m["part"] or "").lower().replace("one ", "a "))
        if m["more"]:
            count = _small_number(m["count"])
            if count is not None:
                yield Number(m.start(), m.end(), count + _FRACTION_WORDS[m["more"].lower()], 0.1, unit=m["unit"])
        elif amount is not None:
            yield Number(m.start(), m.end("link"), amount, 0.1)
        elif m["unit"] in _LONG_UNITS and m["count"].lower() in ("a", "an"):
            yield Number(m.start(), m.end("count"), 1.0, 0.1)


def _small_number(word: str) -> float | None:
    if word.isdigit():
        return float(word)
    if word.lower() in _COUNTS:
        return float(_COUNTS[word.lower()])
    words = list(_words(word))
    return words[0].value if len(words) == 1 and words[0].end == len(word) and not words[0].ordinal else None


def _half_scales(text: str) -> Iterator[Number]:
    for m in _HALF_SCALE.finditer(text):
        scale = SCALES[m["scale"].lower()]
        opening = m.group().lower()
        if opening.startswith(("several", "a few")):
            yield Number(m.start(), m.end(), 2 * scale, scale, upper=10 * scale)
        else:
            value = scale / 2 if opening.startswith("half") else scale
            yield Number(m.start(), m.end(), value, value / 10 if scale >= 100 else 1.0, rounded=scale >= 100)


def _many(text: str) -> Iterator[Number]:
    """Find "hundreds" and "tens of thousands", which reach to ten times as many; "thousands" and above have no end."""
    for m in _MANY.finditer(text):
        many = m["many"].lower().removesuffix("s")
        value = (10.0 if many == "ten" else SCALES[many]) * (SCALES[m["scale"].lower().removesuffix("s")] if m["scale"] else 1.0)
        yield Number(m.start(), m.end(), value, value, upper=10 * value if many in ("ten", "dozen", "hundred") else math.inf)


def _digits(text: str) -> Iterator[Number]:
    for m in _DIGITS.finditer(text):
        digits = re.sub(r"[,\u00a0\u202f' ]", "", m["digits"])
        short = m["short"] if m["short"] not in ("m", "b") or text[m.start() - 1 : m.start()] in tuple("$€£¥") else None
        scale = SCALES[m["scale"].lower()] if m["scale"] else _SHORT_SCALES[short] if short else 1.0
        end = m.end() if short or not m["short"] else m.end("digits")
        decimals = len(digits.partition(".")[2])
        precision = scale * 10.0**-decimals
        value = float(digits) * scale * (-1 if m["sign"] else 1)
        rounded = bool(decimals) or scale > 12
        end, value = _with_fraction(text, end, value)
        yield Number(m.start(), end, value, precision, rounded, ordinal=bool(m["ordinal"]))


def _words(text: str) -> Iterator[Number]:
    tokens = [_Token(m.start(), m.end(), m.group()) for m in _TOKEN.finditer(text)]
    for o in find_number_words(tokens, "en", 0.0):
        start, end, value = tokens[o.start].start, tokens[o.end - 1].end, float(o.value)
        low = text[start:end].lower()
        if low in SCALES or low in ("seconds", "point", "ones") or (low == "second" and not _is_rank(text[:start])):
            continue  # a unit, or the scale of a number in digits
        if low == "one" and _is_pronoun(text[:start], text[end:]):
            continue
        end, value = _with_fraction(text, end, value)
        if dozen := _DOZEN.match(text, end):
            end, value = dozen.end(), 12 * value
        yield Number(
            start,
            end,
            value,
            1.0 if value < 1e4 else min(last_place(value), 10.0 ** (len(str(int(value))) - 2)),
            rounded=value >= 1e4,
            ordinal=bool(o.is_ordinal),
        )


_ONE_AFTER = re.compile(r"\b(?:no|any|some|every|each|this|that|which|another|the (?:first|only|last|same))[\s-]$", re.IGNORECASE)
_ONE_BEFORE = re.compile(r"\s?(?:[.,;:!?)’']|$|(?:who|whom|which|that|another|to|can|could|should|must|may)\b)", re.IGNORECASE)  # noqa: RUF001


def _is_pronoun(before: str, after: str) -> bool:
    """Tell "no one", "one another" and "a new one" from a number."""
    return bool(before.strip() and (_ONE_AFTER.search(before) or _ONE_BEFORE.match(after)))


def _is_rank(before: str) -> bool:
    """Tell "finished second" from "one second", "per second" and "a second"."""
    return not re.search(r"(?:\d|\b(?:an?|per|each|every|this|split|one|half|[a-z]+teen|[a-z]+ty))[\s-]?$", before, re.IGNORECASE)


def _roman_numerals(text: str) -> Iterator[Number]:
    """Find "Chapter IV", "Elizabeth II" and "World War I": Roman numerals after a label or a name."""
    for m in _ROMAN.finditer(text):
        written = m["roman"]
        if len(written) == 1 and not (m["label"] or m["title"]):
            continue  # an initial, or the pronoun
        digits = [_ROMAN_DIGITS[c] for c in written]
        value = sum(-d if d < max(digits[i:]) else d for i, d in enumerate(digits))
        yield Number(m.start("roman"), m.end("roman"), float(value), 1.0, ordinal=not m["label"])


def _with_fraction(text: str, end: int, value: float) -> tuple[int, float]:
    """Add "and a half" and a scale behind it, as in "two and a half million"."""
    m = _MIXED.match(text, end)
    if m is None:
        return end, value
    return m.end(), (value + (0.25 if "quarter" in m.group() else 0.5)) * (SCALES[m["scale"].lower()] if m["scale"] else 1.0)


def last_place(value: float) -> float:
    """Return the place of the last digit that is not zero: 100 for 1,200."""
    number, place = abs(int(value)), 1
    while number and number % (10 * place) == 0 and place < 1e15:
        place *= 10
    return float(place)


def _join_ranges(text: str, numbers: list[Number]) -> list[Number]:
    """Join "10 to 20" and "between 10 and 20" into one number with an upper end."""
    joined: list[Number] = []
    for number in numbers:
        if joined and _is_range(text, joined[-1], number):
            last = joined.pop()
            # "10 to 20 million" means 10 million
            scaled = number.rounded and not last.rounded and last.value and number.value / last.value >= 1000
            low = last.value * 10 ** math.floor(math.log10(number.value / last.value)) if scaled else last.value
            number = last._replace(end=number.end, value=min(low, number.value), upper=number.value)
        joined.append(number)
    return joined


def _is_range(text: str, low: Number, high: Number) -> bool:
    between = text[low.end : high.start]
    if low.upper is not None or low.share or low.ordinal or low.value >= high.value or not _RANGE.fullmatch(between):
        return False
    if is_start(text, low.start):
        return False
    return between.strip() != "and" or bool(_BETWEEN.search(text[: low.start]))
