"""Entities found by rules: names, places, dates, times, money and quantities, with their types."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from knowhalu.text.quantities import MAX_UNIT_DISTANCE, find_date_spans, number_value, unit_after
from knowhalu.text.sentences import SENTENCE_STARTERS, STOPWORDS, Span, sentences, stem, words
from knowhalu.text.wordlists import (
    CARDINALS,
    COMPOUND_NAME_NOUNS,
    CURRENCY_PATTERNS,
    DETERMINERS,
    HELPERS,
    MEASUREMENT_UNITS,
    MONTHS,
    NAME_PATTERN,
    NATIONALITIES,
    ORDINALS,
    ORGANISATION_NOUNS,
    PERSON_TITLES,
    PLACES,
    PREPOSITIONS,
    PRONOUNS,
    SEASONS_AND_HOLIDAYS,
    SENTENCE_OPENERS,
    SITE_NOUNS,
    TENS,
    VERBS,
    WEEKDAYS,
)
from knowhalu.types import Entity

_CAPITAL = r"(?:(?:[A-Z]\.){2,}|[A-Z]\.(?=\s[A-Z])|(?:d'|O')?[A-Z](?:[\w&’-]|'(?!s\b))*)"  # noqa: RUF001
_TITLE = rf"(?:{'|'.join(sorted(PERSON_TITLES, key=len, reverse=True))})\.?"
_PARTICLE = r"(?:of the|for the|of|for|de la|de|van der|van|von|der|den|bin|al|du|da|di|la|le|and the|and|&)"
_RUN = re.compile(rf"\b(?:{_TITLE}\s)?{_CAPITAL}(?:\s(?:{_PARTICLE}\s)?(?:{_TITLE}\s)?{_CAPITAL})*")
_WORD = re.compile(rf"{_PARTICLE}(?=\s)|\S+")
_PARTS = {"of", "of the", "for", "for the", "and", "and the", "&"}
"""Small words that separate two names, unless the word before joins them ("Bank of England")."""
_SENTENCE_START = re.compile(r"(?:^|[.!?:;]\s+|\n\s*)[\"'“‘(*\[_-]*$")  # noqa: RUF001
_NON_NAME_WORDS = (
    {w.lower() for w in ("I", *DETERMINERS, *PRONOUNS, *HELPERS, *PREPOSITIONS)}
    | SENTENCE_STARTERS
    | STOPWORDS
    | SENTENCE_OPENERS
)
_DATES = re.compile(rf"(?:(?:{'|'.join(WEEKDAYS)})s?|{'|'.join((*MONTHS, *SEASONS_AND_HOLIDAYS))}|BC|AD|Q[1-4]|[ap]m)")
_NO_NAME = re.compile(r"(?:ly|ing|ed|s|[ts]ion|ment|ness|ity|ism|ance|ence|ship|hood)$")
_PERSON_CONTEXT = re.compile(r"\s+(?:said|says|told|added|explained|wrote|was born|died|married|who\b)")
_AGE = re.compile(r",?\s+\(?(?:aged )?\d{1,2}\b(?=[,)])")


def find_names(text: str) -> Iterator[Entity]:
    """Find the names of a text; a word that is capitalised only at the start of a sentence is none."""
    for run in _RUN.finditer(text):
        for start, end in _split_run(text, run.start(), run.end()):
            start, end = _trim_name(text, start, end)
            if end > start and text[start:end].rstrip(".") not in PERSON_TITLES and not _only_begins(text, start, end):
                yield Entity(start=start, end=end, text=text[start:end], type=_type(text, start, end))


def _split_run(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Split a run of capitalised words where "of", "for" and "and" are between two names, not inside one."""
    first, before = start, ""
    for word in _WORD.finditer(text, start, end):
        inside = before in COMPOUND_NAME_NOUNS or (word.group() in {"and", "&"} and _is_firm(text[start:end]))
        if word.group() in _PARTS and not inside:
            yield first, word.start()
            first = word.end()
        before = word.group()
    yield first, end


def _is_firm(text: str) -> bool:
    return bool(set(text.split()) & ORGANISATION_NOUNS) and len(text.split()) <= 5


def _trim_name(text: str, start: int, end: int) -> tuple[int, int]:
    """Strip small words, dates and the possessive from the ends of a name."""
    parts = [m for m in re.finditer(r"\S+", text[start:end])]
    while parts and (_is_small(parts[0].group()) or _is_dated(parts[0].group())):
        del parts[0]
    while parts and (_is_dated(parts[-1].group()) or parts[-1].group() in {"I", "&"}):
        del parts[-1]
    if not parts:
        return start, start
    start, end = start + parts[0].start(), start + parts[-1].end()
    possessive = re.search(r"['’]s?$", text[start:end])  # noqa: RUF001
    return start, end - len(possessive.group()) if possessive else end


def _is_dated(word: str) -> bool:
    return _DATES.fullmatch(word.strip(".,")) is not None


def _is_small(word: str) -> bool:
    return (word.lower() in _NON_NAME_WORDS or word.lower() in {"a", "an"}) and not (word.isupper() and len(word) > 1)


def _only_begins(text: str, start: int, end: int) -> bool:
    """Tell whether a single word is capitalised because it begins a sentence, not because it is a name."""
    word = text[start:end]
    if word in PLACES or word in NATIONALITIES or " " in word or not _SENTENCE_START.search(text[:start]):
        return word in {"I", "A"}
    if sum(c.isupper() for c in word) > 1 or any(c.isdigit() for c in word):
        return False
    follows = re.match(r"(?:'s|’s)|,? ([a-z']+)", text[end:])  # noqa: RUF001
    if _NO_NAME.search(word) and not text[end:].startswith(("'s", "’s")):  # noqa: RUF001
        return True
    verb = (follows[1] or "") if follows else ""
    if re.match(r" and [A-Z]", text[end:]):
        return False
    return not (follows and (not verb or verb in VERBS or verb in {"said", "will", "also"} or verb.endswith("ed")))


def _type(text: str, start: int, end: int) -> str:
    """Return the type of a name; "name" where it is unknown."""
    name = text[start:end]
    parts = [p.rstrip(".") for p in name.split()]
    if name in NATIONALITIES:
        return "nationality"
    if name in PLACES:
        return "place"
    if parts[0] in PERSON_TITLES and len(parts) > 1 or re.match(r"[A-Z]\.\s", name):
        return "person"
    if set(parts) & ORGANISATION_NOUNS or (len(parts) == 1 and name.isupper() and len(name) > 1):
        return "organisation"
    if set(parts) & SITE_NOUNS and len(parts) > 1:
        return "place"
    if _AGE.match(text[end:]) or (len(parts) > 1 and _PERSON_CONTEXT.match(text[end:])):
        return "person"
    return "name"


_POSSESSIVE = re.compile(r"['’]s\b")  # noqa: RUF001
_PEOPLE = re.compile(r"\w+(?:ish|ese|ian|[ei]an|can|man|ench|utch)s?")
"""Words derived from the name of a place, which are no names themselves."""
_SENTENCE_OPENING = re.compile(r"(?:[.!?:;]|--|[–—])[\"”’']*\s+[\"“‘'(]*|^[\"“‘'(]+|\n\s*")  # noqa: RUF001
_WHOLE_YEAR = re.compile(r"(?:1\d|20)\d\d")
_SCALES = frozenset("hundred thousand million billion trillion bn m k dozen".split())
_ORDINAL = re.compile(rf"\d+(?:st|nd|rd|th)|{'|'.join(ORDINALS)}")
_AMBIGUOUS_NUMBERS = frozenset({"one", "once", "second", "twice"})
"""Number words with another meaning in most texts."""
_MONEY = "$£€¥"
_HYPHENATED_NUMBER = re.compile(r"(\d[\d,.]*)-([a-z]{3,})")
"""A number that is part of a word, as in "19-year-old"."""
_SCORE = re.compile(r"\d{1,3}[-–:]\d{1,3}")  # noqa: RUF001


class TypedSpan(NamedTuple):
    """A span of a text, `text == source[start:end]`, with its type and the unit of a number."""

    start: int
    end: int
    text: str
    type: str
    unit: str = ""


def typed_spans(text: str) -> list[TypedSpan]:
    """Return the dates, weekdays, numbers and names of a text, in order; none overlaps another."""
    found = [TypedSpan(a, b, text[a:b], "date") for a, b, _ in find_date_spans(text)]
    for more in (_numbers(text), _names(text)):
        found += [s for s in more if not any(f.start < s.end and s.start < f.end for f in found)]
    return sorted(found)


def _numbers(text: str) -> Iterator[TypedSpan]:
    """Find numbers with their currency or percent sign; "5.5 million" and "two hundred" are one number."""
    tokens = words(text)
    at = 0
    while at < len(tokens):
        first = last = at
        at += 1
        if (inner := _number_in_word(tokens[first])) is not None:
            yield inner
        if not _is_number_word(tokens[first]):
            continue
        while at < len(tokens) and tokens[at].text.lower() in _SCALES and text[tokens[last].end : tokens[at].start] in (" ", "-"):
            last, at = at, at + 1
        start, end = tokens[first].start, tokens[last].end
        money = start > 0 and text[start - 1] in _MONEY
        yield _number(text, start - money, end, _following(text, end, tokens[at : at + MAX_UNIT_DISTANCE]))


def _following(text: str, end: int, tokens: list[Span]) -> list[Span]:
    """Return the words after a number up to the next mark, as in "31, led the vote" none is a unit of 31."""
    found = []
    for token in tokens:
        if text[end : token.start].strip(" %"):
            break
        found.append(token)
        end = token.end
    return found


def _number_in_word(token: Span) -> TypedSpan | None:
    """Return the number at the start of a word, or the score of a match; None for another word."""
    if _SCORE.fullmatch(token.text):
        return TypedSpan(token.start, token.end, token.text, "score")
    joined = _HYPHENATED_NUMBER.match(token.text)
    return TypedSpan(token.start, token.start + joined.end(1), joined[1], "number", stem(joined[2])) if joined else None


def _is_number_word(token: Span) -> bool:
    return number_value(token.text) is not None and token.text.lower() not in _AMBIGUOUS_NUMBERS


def _number(text: str, start: int, end: int, following: list[Span]) -> TypedSpan:
    low = text[start:end].lower()
    unit = unit_after(following)
    if low[0] in _MONEY:
        return TypedSpan(start, end, text[start:end], "money")
    if low.endswith("%") or unit == "percent":
        return TypedSpan(start, end, text[start:end], "percent")
    if _ORDINAL.fullmatch(low):
        return TypedSpan(start, end, text[start:end], "ordinal")
    if _WHOLE_YEAR.fullmatch(low):
        return TypedSpan(start, end, text[start:end], "year")
    return TypedSpan(start, end, text[start:end], "number", unit)


def _names(text: str) -> Iterator[TypedSpan]:
    """Find runs of capitalised words, without small words at their start; a weekday or a month alone gets a type of its own.

    A single word at the start of a sentence is no name, nor is a run of words in capitals only.
    """
    opening = {s.start for s in sentences(text)} | {m.end() for m in _SENTENCE_OPENING.finditer(text)}
    for match in NAME_PATTERN.finditer(text):
        start = match.start()
        for part in _POSSESSIVE.split(match.group()):
            tokens = words(part)
            begins = start in opening and len(tokens) == 1
            while tokens and tokens[0].text.lower() in STOPWORDS | DETERMINERS:
                tokens.pop(0)
            if tokens and not begins and any(c.islower() for t in tokens for c in t.text):
                a, b = start + tokens[0].start, start + tokens[-1].end
                yield TypedSpan(a, b, text[a:b], _name_type(text[a:b]))
            start += len(part) + 2


def _name_type(text: str) -> str:
    if text in WEEKDAYS or text in MONTHS:
        return "weekday" if text in WEEKDAYS else "month"
    return "people" if _PEOPLE.fullmatch(text) else "name"


_FIGURE = r"(?:(?<!\w)[-−])?\d[\d,]{0,24}(?:\.\d+)?"  # noqa: RUF001
_ALONE = r"(?<!\w)(?<!\d,)"  # no figure begins within another
_SCALE = r"(?:hundred|thousand|million|billion|trillion|dozen)"
_TEENS, _SMALL = "|".join(CARDINALS[10:20]), "|".join(CARDINALS[2:10])
_TENS = f"(?:{'|'.join((CARDINALS[20], *TENS[:-1]))})"
_SPELLED = rf"(?:{_TENS}(?:[- ](?:one|{_SMALL}))?|{_TEENS}|{_SMALL}|(?:an?|one|half a) (?={_SCALE}))(?:(?:[- ]|(?<= )){_SCALE})*"
_VAGUE = "(?:dozens|hundreds|thousands|millions|billions)"
_VALUE = rf"(?:{_FIGURE}(?:\s?(?:{_SCALE}|bn|m|k)\b)?|{_SPELLED})"
_RANGE = rf"{_VALUE}(?:(?:\s?[-–]\s?| to ){_VALUE})?"  # noqa: RUF001
_YEAR = r"(?:1\d{3}|20\d\d)"
_RANK = f"(?:{'|'.join(ORDINALS)}|twentieth)"
_DAY = f"(?:{'|'.join(WEEKDAYS)})"
_UNIT = "|".join(sorted(MEASUREMENT_UNITS, key=lambda unit: -len(unit)))
_NO_PLURAL = "(?:was|is|has|as|this|its|his|us|yes|always|perhaps|less|across|towards|unless|plus|minus|versus)"
_NO_NOUN = rf"(?!{_NO_PLURAL}\b|of\b|to\b|in\b|and\b|or\b|for\b|from\b|with\b|by\b|on\b|at\b|years?\b)"

ENTITY_PATTERNS: tuple[tuple[str, str], ...] = (
    ("money", rf"(?:US|AU?|CA?|NZ|HK)?[$£€¥]\s?{_FIGURE}(?:\s?(?:{_SCALE}|bn|m|k)\b)?"),
    ("money", rf"\b(?:{_RANGE}|{_VAGUE} of) (?:US |Australian |Canadian )?(?:{'|'.join(CURRENCY_PATTERNS)})\b"),
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
"""The patterns of quantities, dates and times by type; of overlapping matches the first pattern counts."""
_COMPILED = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in ENTITY_PATTERNS)


@lru_cache(maxsize=4096)
def find_entities(text: str) -> tuple[Entity, ...]:
    """Find the entities of a text by rules."""
    dates = (Entity(start=a, end=b, text=text[a:b], type="date") for a, b, _ in find_date_spans(text))
    return drop_overlaps([*dates, *_pattern_entities(text), *find_names(text)])


def _pattern_entities(text: str) -> Iterator[Entity]:
    for kind, pattern in _COMPILED:
        for m in pattern.finditer(text):
            yield Entity(start=m.start(), end=m.end(), text=m.group(), type=kind)


def drop_overlaps(found: Iterable[Entity]) -> tuple[Entity, ...]:
    """Sort entities; of those that overlap the first one given is kept."""
    kept: list[Entity] = []
    for entity in found:
        if entity.end > entity.start and all(entity.end <= k.start or k.end <= entity.start for k in kept):
            kept.append(entity)
    return tuple(sorted(kept, key=lambda e: e.start))
