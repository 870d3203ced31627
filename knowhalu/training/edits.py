"""Edits of sentences: those that make a true one false, and those that keep it true.

An edit that falsifies keeps length and wording, so that neither reveals the label; the changed characters are known. Without
edits that keep a statement true, a model learns that every word that differs from the source is wrong.
"""

import random
import re
from collections.abc import Callable, Collection
from itertools import pairwise
from typing import NamedTuple

from knowhalu.text.sentences import STOPWORDS
from knowhalu.text.wordlists import CARDINALS, MONTHS, ORDINALS, WEEKDAYS

NUMBER_WORDS, ORDINAL_WORDS = CARDINALS[2:13], ORDINALS[:10]
_OPPOSITE_PAIRS = (
    "increase/decrease increased/decreased increases/decreases rise/fall rose/fell rising/falling more/fewer more/less "
    "higher/lower before/after first/last largest/smallest larger/smaller older/younger oldest/youngest earlier/later "
    "early/late longer/shorter won/lost win/lose north/south northern/southern east/west eastern/western male/female "
    "man/woman men/women husband/wife father/mother son/daughter brother/sister always/never all/none most/few many/few "
    "best/worst better/worse above/below accepted/rejected approved/rejected allowed/forbidden open/closed opened/closed "
    "buy/sell bought/sold success/failure old/new inside/outside left/right up/down high/low strong/weak safe/dangerous "
    "public/private rich/poor good/bad begin/end began/ended includes/excludes supports/opposes supported/opposed "
    "agreed/refused morning/evening summer/winter day/night he/she his/her king/queen actor/singer author/director "
    "played/directed wrote/directed American/British English/French"
)


def _table_of(pairs: str, one_way: Collection[str] = ()) -> dict[str, list[str]]:
    """Map each side of the pairs `one/other` to its other sides; the words in `one_way` only replace others."""
    table: dict[str, list[str]] = {}
    for pair in pairs.split():
        one, other = pair.replace("_", " ").split("/")
        table.setdefault(one, []).append(other)
        if other not in one_way:
            table.setdefault(other, []).append(one)
    return table


_OPPOSITES = _table_of(_OPPOSITE_PAIRS)
NAME = re.compile(r"\b[A-Z][\w’'-]+(?:\s+(?:(?:of|the|de|van|von)\s+)?[A-Z][\w’'-]+)*")  # noqa: RUF001
NUMBER = re.compile(r"\b\d[\d,]*(?:\.\d+)?\b")
_AUXILIARIES = "is|are|was|were|has|have|had|will|can|could|would|should|did|does|do|may|must"
_AUXILIARY = re.compile(rf"\b({_AUXILIARIES})\b(?! not)(?!n't)")
_NEGATED = re.compile(rf"\b({_AUXILIARIES})( not|n't)\b")


class FalsifyingEdit(NamedTuple):
    """A changed text and the character span of the change; `kind` names the change."""

    text: str
    start: int
    end: int
    kind: str


def _replace_span(text: str, start: int, end: int, new: str, kind: str) -> FalsifyingEdit:
    return FalsifyingEdit(text[:start] + new + text[end:], start, start + len(new), kind)


def swap_number(text: str, rng: random.Random, names: list[str]) -> FalsifyingEdit | None:
    """Change one number to another of the same size and form, half the time to one of `names`."""
    matches = list(NUMBER.finditer(text))
    if not matches:
        return None
    match = rng.choice(matches)
    old = match.group()
    others = [n for n in names if n != old and len(n) == len(old) and NUMBER.fullmatch(n)]
    if others and rng.random() < 0.5:
        return _replace_span(text, match.start(), match.end(), rng.choice(others), "number")
    digits = [i for i, c in enumerate(old) if c.isdigit()]
    at = rng.choice(digits[-2:] if re.fullmatch(r"1[0-9]{3}|20\d\d", old) else digits)
    choices = [d for d in "0123456789" if d != old[at] and not (d == "0" and at == 0)]
    new = old[:at] + rng.choice(choices) + old[at + 1 :]
    return _replace_span(text, match.start(), match.end(), new, "number")


def swap_listed(text: str, rng: random.Random, names: list[str]) -> FalsifyingEdit | None:
    """Change a month, weekday, number word or ordinal to another of its kind."""
    matches = [
        (m, group)
        for group in (MONTHS, WEEKDAYS, NUMBER_WORDS, ORDINAL_WORDS)
        for m in re.finditer(rf"\b(?:{'|'.join(group)})\b", text, 0 if group in (MONTHS, WEEKDAYS) else re.IGNORECASE)
    ]
    if not matches:
        return None
    match, group = rng.choice(matches)
    new = rng.choice([w for w in group if w.lower() != match.group().lower()])
    return _replace_span(text, match.start(), match.end(), new.capitalize() if match.group()[0].isupper() else new, "date")


def swap_name(text: str, rng: random.Random, names: list[str]) -> FalsifyingEdit | None:
    """Change one name to another of the same number of words, from `names`."""
    matches = [m for m in NAME.finditer(text) if m.start() > 0 or " " in m.group()]
    rng.shuffle(matches)
    for match in matches:
        size = len(match.group().split())
        others = [n for n in names if n[:1].isupper() and len(n.split()) == size and n not in text and match.group() not in n]
        if others:
            return _replace_span(text, match.start(), match.end(), rng.choice(others), "name")
    return None


_ENDINGS = ("ing", "ed", "ly", "ion", "al", "ous", "ive", "ity", "ers", "er", "es", "s")
_LOWER = re.compile(r"\b[a-z]{4,}\b")


def _ending(word: str) -> str:
    return next((e for e in _ENDINGS if word.endswith(e)), "")


def swap_word(text: str, rng: random.Random, names: list[str]) -> FalsifyingEdit | None:
    """Change one word to another of the same ending that `names` hold in small letters, a word of the same document."""
    matches = [m for m in _LOWER.finditer(text) if m.group() not in STOPWORDS]
    rng.shuffle(matches)
    for match in matches:
        ending, taken = _ending(match.group()), set(_LOWER.findall(text))
        others = [n for n in names if n[:1].islower() and _ending(n) == ending and n not in taken and n[:4] != match.group()[:4]]
        if ending and others:
            return _replace_span(text, match.start(), match.end(), rng.choice(others), "word")
    return None


def swap_roles(text: str, rng: random.Random, names: list[str]) -> FalsifyingEdit | None:
    """Swap two names of a statement, unless they are adjacent in a list."""
    matches = list(NAME.finditer(text))
    pairs = [
        (a, b)
        for i, a in enumerate(matches)
        for b in matches[i + 1 :]
        if a.group() != b.group() and len(re.findall(r"[a-z]{2,}", text[a.end() : b.start()].replace(" and ", " "))) >= 2
    ]
    if not pairs:
        return None
    a, b = rng.choice(pairs)
    return _replace_span(text, a.start(), b.end(), b.group() + text[a.end() : b.start()] + a.group(), "roles")


def swap_opposite(text: str, rng: random.Random, names: list[str]) -> FalsifyingEdit | None:
    """Change one word to its opposite."""
    matches = [m for m in re.finditer(r"\b[A-Za-z]+\b", text) if m.group() in _OPPOSITES]
    if not matches:
        return None
    match = rng.choice(matches)
    return _replace_span(text, match.start(), match.end(), rng.choice(_OPPOSITES[match.group()]), "opposite")


def negate(text: str, rng: random.Random, names: list[str]) -> FalsifyingEdit | None:
    """Insert a negation, or remove one."""
    if match := _NEGATED.search(text):
        return _replace_span(text, match.start(), match.end(), match.group(1), "negation")
    if match := _AUXILIARY.search(text):
        return _replace_span(text, match.start(), match.end(), f"{match.group()} not", "negation")
    return None


EDIT_FUNCTIONS: tuple[Callable[[str, random.Random, list[str]], FalsifyingEdit | None], ...] = (
    swap_number, swap_number, swap_listed, swap_name, swap_name, swap_name, swap_roles, swap_opposite, swap_opposite, negate,
    swap_word, swap_word,
)  # fmt: skip
NEUTRAL_EDITS = frozenset({"name", "roles", "word"})
"""Kinds of edits that leave a statement unsupported, but not necessarily contradicted."""


def find_details(text: str) -> list[str]:
    """List the names, numbers and longer words of a text, which an edit may substitute for others."""
    names = {m.group() for m in NAME.finditer(text) if m.start() > 0}
    plain = {w for w in _LOWER.findall(text) if w not in STOPWORDS}
    return sorted(names | plain | {m.group() for m in NUMBER.finditer(text)})


def random_edit(text: str, rng: random.Random, names: list[str]) -> FalsifyingEdit | None:
    """Apply one random edit; None where the text allows none."""
    for change in rng.sample(EDIT_FUNCTIONS, len(EDIT_FUNCTIONS)):
        changed = change(text, rng, names)
        if changed is not None and changed.text != text:
            return changed
    return None


_TIME_OR_PLACE = (
    rf"(?<=\w),? (?:on|in|since|by) (?:{'|'.join(MONTHS)})(?: \d{{1,2}},)? \d{{4}},?(?= )"
    r"|(?<=\w),? (?:on|in|at|after|during|for|by|with|from|since) (?:the |a |an |his |her |their |last )?"
    r"[A-Z0-9]?[\w'’-]+(?: [A-Z0-9][\w'’-]*)*(?=[,.;]| and | to | of |$)"  # noqa: RUF001
)
_DROPPABLE = re.compile(
    r" \([^()]*\)|, (?:which|who|where)\b[^,.;]*(?=[,.;])|\b(?:also|very|recently|really|just|however,) "
    r"|(?<=\w) \d[\d,.]* to \d[\d,.]*(?= )|, (?:\w+ ){1,3}(?:said|says|added|told \w+)(?=[.,])"
    rf"|^(?:In|On|At|After|During|By|Since) [^,]{{3,40}}, |{_TIME_OR_PLACE}"
)
_SYNONYM_PAIRS = """
began/started begins/starts bought/purchased film/movie large/big children/kids approximately/about said/stated
ended/finished founded/established received/got numerous/many often/frequently main/principal help/assist tried/attempted
needed/required used/employed near/close_to because_of/due_to more_than/over fewer_than/under more_than/in_excess_of
percent/per_cent percent/% United_States/US United_Kingdom/UK such_as/like showed/revealed built/constructed
made/produced picked/chosen job/post shut/closed halted/stopped let/allowed kept/retained quickly/rapidly whole/entire
located_in/situated_in wrote/authored took_part_in/participated_in set_up/created died/passed_away married/wed
each_year/annually every_year/annually every_day/daily twice/two_times previously/earlier currently/now doctor/physician
firm/company car/vehicle picture/photo illness/disease buy/purchase start/begin rise/increase rose/increased fell/dropped
did_not/didn't was_not/wasn't were_not/weren't is_not/isn't are_not/aren't does_not/doesn't cannot/can't will_not/won't
has_not/hasn't had_not/hadn't
"""
_SYNONYMS = _table_of(_SYNONYM_PAIRS, ("like", "now", "over", "under", "post", "vehicle", "company", "started", "got"))
_SYNONYM_PATTERN = re.compile(rf"(?<![\w'])(?:{'|'.join(sorted(map(re.escape, _SYNONYMS), key=len, reverse=True))})(?![\w'])")
_MONTH = "|".join(MONTHS)
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}}) ({_MONTH}) (\d{{3,4}})\b")
_MONTH_FIRST = re.compile(rf"\b({_MONTH}) (\d{{1,2}}), (\d{{3,4}})\b")
_FULL_NAME = re.compile(r"\b([A-Z][a-z]+) ([A-Z][a-z]{3,})(?= (?:is|was|has|had|said|did|will|wrote|won|plays|played|became)\b)")
_NO_FIRST_NAMES = frozenset("New North South East West Great United Lake Mount Saint Los San The Royal Old Fort Port".split())
_FRONTED = re.compile(r"^(In|On|During|After|Before|By) ([^,]{3,40}), (?!and\b|or\b|\d)([^,;:]{10,})\.$")


def drop_details(text: str, rng: random.Random) -> str:
    """Omit one or two details of a true statement: a bracket, a side clause, a time or place, an adverb; it stays true."""
    for _ in range(rng.randint(1, 2)):
        matches = list(_DROPPABLE.finditer(text))
        if not matches:
            break
        match = rng.choice(matches)
        left = text[: match.start()] + text[match.end() :]
        if len(left.split()) >= 4:
            text = left[:1].upper() + left[1:]
    return text


def rewrite_number(text: str, rng: random.Random) -> str:
    """Write one small number as a word, or a number word in digits."""
    numbers = [
        m
        for m in re.finditer(rf"(?<![\d.,:/-])\b(?:{'|'.join(NUMBER_WORDS)}|[2-9]|1[0-2])\b(?![\d:/%-]|[.,]\d)", text)
        if not re.search(rf"(?:{_MONTH})\s*$", text[: m.start()]) and not re.match(rf"\s*(?:{_MONTH})\b", text[m.end() :])
    ]
    if not numbers:
        return text
    match = rng.choice(numbers)
    word = match.group()
    new = NUMBER_WORDS[int(word) - 2] if word.isdigit() else str(NUMBER_WORDS.index(word) + 2)
    return text[: match.start()] + new + text[match.end() :]


def rewrite_date(text: str, rng: random.Random) -> str:
    """Write dates with the month first, or with the day first."""
    if _DAY_FIRST.search(text):
        return _DAY_FIRST.sub(r"\2 \1, \3", text)
    return _MONTH_FIRST.sub(r"\2 \1 \3", text)


def swap_synonym(text: str, rng: random.Random) -> str:
    """Replace one common word by another of the same meaning."""
    matches = list(_SYNONYM_PATTERN.finditer(text))
    if not matches:
        return text
    match = rng.choice(matches)
    return text[: match.start()] + rng.choice(_SYNONYMS[match.group()]) + text[match.end() :]


def use_last_name(text: str, rng: random.Random) -> str:
    """Shorten the full name of a person to the last name."""
    return _FULL_NAME.sub(lambda m: m.group() if m.group(1) in _NO_FIRST_NAMES else m.group(2), text, count=1)


def move_adverbial(text: str, rng: random.Random) -> str:
    """Move a time or place from the front of a sentence to its end."""
    match = _FRONTED.match(text)
    if match is None:
        return text
    word, what, rest = match.groups()
    first = rest.split()[0]
    rest = rest[0].upper() + rest[1:] if first.islower() else rest
    return f"{rest} {word.lower()} {what}."


PARAPHRASES: tuple[Callable[[str, random.Random], str], ...] = (
    drop_details, drop_details, rewrite_number, rewrite_date, swap_synonym, swap_synonym, use_last_name, move_adverbial,
)  # fmt: skip


def rephrase(text: str, rng: random.Random) -> str:
    """Paraphrase a true statement in one to three ways; returns the same text where none applies."""
    wanted = rng.randint(1, 3)
    for way in rng.sample(PARAPHRASES, len(PARAPHRASES)):
        if wanted and (new := way(text, rng)) != text:
            text, wanted = new, wanted - 1
    return text


_BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-LRB-": "(", "-RRB-": ")", "``": '"', "''": '"', "`": "'"}


def detokenize(text: str) -> str:
    """Undo the tokenization of news corpora: sentence tags, spaces around punctuation, bracket codes, lost capitals."""
    text = re.sub(r"</?t>", " ", text)
    for code, mark in _BRACKETS.items():
        text = text.replace(code, mark)
    text = re.sub(r"(\w)- (?=\w)", r"\1-", re.sub(r"(?<=\w)\((?=\s)", " (", text)).replace("( ", "(")
    if not re.search(r" [.,]( |$)", text):
        return " ".join(text.split())
    text = re.sub(r"\s+([.,;:!?%)]|'s\b|n't\b|'re\b|'ve\b|'ll\b|'d\b|'m\b)", r"\1", text)
    text = re.sub(r'([($#])\s+|(?<!\S)" ([^"]*?) "', lambda m: m.group(1) or f'"{m.group(2)}"', text)
    text = " ".join(text.split())
    ends = [0, *(m.end() for m in re.finditer(r'[.!?]["\')]* (?=[a-z])', text)), len(text)]
    return "".join(text[a : a + 1].upper() + text[a + 1 : b] for a, b in pairwise(ends))
