"""Names in a text by their capitals: where they begin and end, and whether a person's, a place's or an organisation's."""

import re
from collections.abc import Iterator

from knowhalu.reasoners.gazetteer import JOINERS, NATIONALITIES, OPENERS, ORGANISATIONS, PLACES, SITES, TITLES
from knowhalu.reasoners.lexicon import DETERMINERS, HELPERS, PREPOSITIONS, PRONOUNS, VERBS
from knowhalu.text import STARTERS, STOPWORDS
from knowhalu.types import Entity

_CAPITAL = r"(?:(?:[A-Z]\.){2,}|[A-Z]\.(?=\s[A-Z])|(?:d'|O')?[A-Z](?:[\w&’-]|'(?!s\b))*)"  # noqa: RUF001
_TITLE = rf"(?:{'|'.join(sorted(TITLES, key=len, reverse=True))})\.?"
_SMALL = r"(?:of the|for the|of|for|de la|de|van der|van|von|der|den|bin|al|du|da|di|la|le|and the|and|&)"
_RUN = re.compile(rf"\b(?:{_TITLE}\s)?{_CAPITAL}(?:\s(?:{_SMALL}\s)?(?:{_TITLE}\s)?{_CAPITAL})*")
_WORD = re.compile(rf"{_SMALL}(?=\s)|\S+")
_PARTS = {"of", "of the", "for", "for the", "and", "and the", "&"}
"""Small words that part two names, unless the word before belongs with what follows ("Bank of England")."""
_BEGINS = re.compile(r"(?:^|[.!?:;]\s+|\n\s*)[\"'“‘(*\[_-]*$")  # noqa: RUF001
_NEVER = {w.lower() for w in ("I", *DETERMINERS, *PRONOUNS, *HELPERS, *PREPOSITIONS)} | STARTERS | STOPWORDS | OPENERS
_DATES = re.compile(
    r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|January|February|March|April|May|June|July|August|September|October"
    r"|November|December|Spring|Summer|Autumn|Winter|Christmas|Easter|BC|AD|Q[1-4]|[ap]m)"
)
_NO_NAME = re.compile(r"(?:ly|ing|ed|s|[ts]ion|ment|ness|ity|ism|ance|ence|ship|hood)$")
_SAYS = re.compile(r"\s+(?:said|says|told|added|explained|wrote|was born|died|married|who\b)")
_AGE = re.compile(r",?\s+\(?(?:aged )?\d{1,2}\b(?=[,)])")


def names(text: str) -> Iterator[Entity]:
    """Find the names of a text; a word that only begins a sentence is none."""
    for run in _RUN.finditer(text):
        for start, end in _pieces(text, run.start(), run.end()):
            start, end = _trimmed(text, start, end)
            if end > start and text[start:end].rstrip(".") not in TITLES and not _only_begins(text, start, end):
                yield Entity(start=start, end=end, text=text[start:end], type=_type(text, start, end))


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Part a run of capitals where "of", "for" and "and" stand between two names, and not inside one."""
    first, before = start, ""
    for word in _WORD.finditer(text, start, end):
        inside = before in JOINERS or (word.group() in {"and", "&"} and _is_firm(text[start:end]))
        if word.group() in _PARTS and not inside:
            yield first, word.start()
            first = word.end()
        before = word.group()
    yield first, end


def _is_firm(text: str) -> bool:
    return bool(set(text.split()) & ORGANISATIONS) and len(text.split()) <= 5


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave out what no name begins or ends with: small words, dates, the possessive."""
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
    return (word.lower() in _NEVER or word.lower() in {"a", "an"}) and not (word.isupper() and len(word) > 1)


def _only_begins(text: str, start: int, end: int) -> bool:
    """Tell whether a single capital word is there because a sentence begins, not because it names something."""
    word = text[start:end]
    if word in PLACES or word in NATIONALITIES or " " in word or not _BEGINS.search(text[:start]):
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
    """Say of which type a name is; "name" where nothing tells."""
    name = text[start:end]
    parts = [p.rstrip(".") for p in name.split()]
    if name in NATIONALITIES:
        return "nationality"
    if name in PLACES:
        return "place"
    if parts[0] in TITLES and len(parts) > 1 or re.match(r"[A-Z]\.\s", name):
        return "person"
    if set(parts) & ORGANISATIONS or (len(parts) == 1 and name.isupper() and len(name) > 1):
        return "organisation"
    if set(parts) & SITES and len(parts) > 1:
        return "place"
    if _AGE.match(text[end:]) or (len(parts) > 1 and _SAYS.match(text[end:])):
        return "person"
    return "name"
