"""Changes that keep a statement true: details left out, numbers and dates written otherwise, common words exchanged.

Without them a model learns that whatever differs from its source by a word is wrong.
"""

import random
import re
from collections.abc import Callable
from itertools import pairwise

from knowhalu.text.wordlists import MONTHS
from knowhalu.training.edits import NUMBER_WORDS

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
_SYNONYMS: dict[str, list[str]] = {}
for _pair in _SYNONYM_PAIRS.split():
    _one, _two = _pair.replace("_", " ").split("/")
    _SYNONYMS.setdefault(_one, []).append(_two)
    if _two not in ("like", "now", "over", "under", "post", "vehicle", "company", "started", "got"):
        _SYNONYMS.setdefault(_two, []).append(_one)
_SYNONYM_PATTERN = re.compile(rf"(?<![\w'])(?:{'|'.join(sorted(map(re.escape, _SYNONYMS), key=len, reverse=True))})(?![\w'])")
_MONTH = "|".join(MONTHS)
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}}) ({_MONTH}) (\d{{3,4}})\b")
_MONTH_FIRST = re.compile(rf"\b({_MONTH}) (\d{{1,2}}), (\d{{3,4}})\b")
_FULL_NAME = re.compile(r"\b([A-Z][a-z]+) ([A-Z][a-z]{3,})(?= (?:is|was|has|had|said|did|will|wrote|won|plays|played|became)\b)")
_NO_FIRST_NAMES = frozenset("New North South East West Great United Lake Mount Saint Los San The Royal Old Fort Port".split())
_FRONTED = re.compile(r"^(In|On|During|After|Before|By) ([^,]{3,40}), (?!and\b|or\b|\d)([^,;:]{10,})\.$")


def drop_details(text: str, rng: random.Random) -> str:
    """Leave out one or two details of a true statement: a bracket, a side clause, a time or place, an adverb; still true."""
    for _ in range(rng.randint(1, 2)):
        found = list(_DROPPABLE.finditer(text))
        if not found:
            break
        match = rng.choice(found)
        left = text[: match.start()] + text[match.end() :]
        if len(left.split()) >= 4:
            text = left[:1].upper() + left[1:]
    return text


def rewrite_number(text: str, rng: random.Random) -> str:
    """Write one small number as a word, or a number word in digits."""
    found = list(re.finditer(rf"(?<![\d.,:/-])\b(?:{'|'.join(NUMBER_WORDS)}|[2-9]|1[0-2])\b(?![\d:/%-]|[.,]\d)", text))
    found = [m for m in found if not re.search(rf"(?:{_MONTH})\s*$", text[: m.start()]) and not _starts_date(text[m.end() :])]
    if not found:
        return text
    match = rng.choice(found)
    word = match.group()
    new = NUMBER_WORDS[int(word) - 2] if word.isdigit() else str(NUMBER_WORDS.index(word) + 2)
    return text[: match.start()] + new + text[match.end() :]


def _starts_date(rest: str) -> bool:
    return re.match(rf"\s*(?:{_MONTH})\b", rest) is not None


def rewrite_date(text: str, rng: random.Random) -> str:
    """Write dates month first, or day first."""
    if _DAY_FIRST.search(text):
        return _DAY_FIRST.sub(r"\2 \1, \3", text)
    return _MONTH_FIRST.sub(r"\2 \1 \3", text)


def swap_synonym(text: str, rng: random.Random) -> str:
    """Exchange one common word for another of the same meaning."""
    found = list(_SYNONYM_PATTERN.finditer(text))
    if not found:
        return text
    match = rng.choice(found)
    return text[: match.start()] + rng.choice(_SYNONYMS[match.group()]) + text[match.end() :]


def use_last_name(text: str, rng: random.Random) -> str:
    """Call a person by the last name."""
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
    """Say a true statement otherwise, in one to three of the ways; the same text where none applies."""
    wanted = rng.randint(1, 3)
    for way in rng.sample(PARAPHRASES, len(PARAPHRASES)):
        if wanted and (new := way(text, rng)) != text:
            text, wanted = new, wanted - 1
    return text


_BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-LRB-": "(", "-RRB-": ")", "``": '"', "''": '"', "`": "'"}


def detokenize(text: str) -> str:
    """Undo the tokenization of news corpora: sentence tags, spaces around marks, bracket codes, lost capitals."""
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
