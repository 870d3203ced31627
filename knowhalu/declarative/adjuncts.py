"""Answers as phrases of time, place and reason: the preposition that a bare date or place needs."""

import re

from knowhalu.declarative import verbs
from knowhalu.declarative.words import ADVERBS, OPENERS, tokens, word

_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December|"
    r"Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_WEEKDAY = r"(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)"
_RANGE = re.compile(
    rf"^((?:{_DAY} )?(?:{_MONTH} )?(?:{_DAY},? )?\d{{3,4}})\s*(?:to|until|till|-|–|—)\s*(?:the )?.*\d", re.IGNORECASE
)  # noqa: RUF001
_DATE = re.compile(
    rf"\b(?:{_DAY}(?: of)? {_MONTH}|{_MONTH} {_DAY}(?!\d)|\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}})|\d{{4}}-\d\d-\d\d", re.IGNORECASE
)
_ON = re.compile(rf"\b{_WEEKDAY}s?\b|\b(?:day|eve)\b|\bweekend\b", re.IGNORECASE)
_AT = re.compile(
    r"^\d{1,2}(?:[:.]\d\d)? ?(?:a\.?m|p\.?m|o'clock)"
    r"|^(?:the (?:age|end|beginning|start|turn)\b|noon|midnight|christmas$|easter$|night$)",
    re.IGNORECASE,
)
_DURING = re.compile(
    r"\bwar\b|\breign\b|\brule of\b|\bdynasty\b|\brevolution\b|\bceremony\b|\bfestival\b|\bgames\b|\bolympics\b", re.IGNORECASE
)
_AS_IS = re.compile(
    r"^(?:last|next|this|every|each|yesterday|today|tomorrow|tonight|now|never|always|recently|annually|monthly|weekly|daily|yearly|later|"
    r"earlier|immediately|twice|once)\b|\bago$|\blater$|\bearlier$",
    re.IGNORECASE,
)


def opens_phrase(answer: str) -> bool:
    """Tell whether an answer brings its preposition, or a conjunction."""
    found = tokens(answer)
    return bool(found) and word(found[0]) in OPENERS and not (len(found) == 1 and found[0][0].isupper())


def time_phrase(answer: str, preposition: str = "") -> str:
    """Put the preposition before a time that it needs: "in 1987", "on 5 May", "from 1920 to 1933"."""
    if opens_phrase(answer) or _AS_IS.search(answer):
        return answer
    if _RANGE.match(answer):
        return f"from {answer}" if re.search(r"\b(?:to|until|till)\b", answer) else f"in {answer}"
    if preposition:
        return f"{preposition} {answer}"
    if _AT.search(answer):
        return f"at {answer}"
    if _DATE.search(answer) or _ON.search(answer):
        return f"on {answer}"
    return f"{'during' if _DURING.search(answer) else 'in'} {answer}"


_SITES = re.compile(
    r"\b(?:university|college|school|institute|academy|conservatory|stadium|arena|palace|airport|hospital|theatre|theater|hall|"
    r"museum|court|church|cathedral|abbey|station|hotel|monastery|observatory|laboratory|gallery|castle|harvard|yale|mit|"
    r"centre|center|battle|festival|cemetery|racecourse|circuit|circus|home|house|headquarters|clinic|library|studios?)\b",
    re.IGNORECASE,
)
_GROUNDS = re.compile(
    r"\b(?:island|isle|street|avenue|road|boulevard|lane|coast|shore|banks?|moon|mars|mount|peninsula|border|river|plateau|plain|route|"
    r"floor|beach|square|side|continent|planet|farm)\b",
    re.IGNORECASE,
)
_PLACED = frozenset(
    "here there abroad home everywhere nowhere worldwide overseas next close north south east west offshore near".split()
)
TOWARDS = frozenset(
    "go move travel sail emigrate immigrate flee migrate return relocate retire march fly send deport exile get".split()
)
_MOVED = frozenset(f for b in TOWARDS for f in (b, verbs.past(b), verbs.third(b), verbs.participle(b))) - {
    "retired",
    "get",
    "got",
}


def place_phrase(answer: str, verb: str = "") -> str:
    """Put the preposition before a place that it needs: "in Paris", "at the University of Oslo", "to Tahiti" after "went"."""
    first = word(tokens(answer)[0])
    if opens_phrase(answer) or first in _PLACED:
        return answer
    if verb in _MOVED:
        return f"to {answer}"
    if verb in ("come", "comes", "came"):
        return f"from {answer}"
    main = re.split(r",| in | of (?!the\b)", answer)[0]
    if _SITES.search(main):
        return f"at {answer}"
    return f"{'on' if _GROUNDS.search(main) else 'in'} {answer}"


def reason_phrase(answer: str, *, clause: bool) -> str | None:
    """Join a reason to what it explains; None where an answer is neither a phrase, a clause nor a noun."""
    if opens_phrase(answer) or word(tokens(answer)[0]) in ADVERBS:
        return answer
    return f"because {answer}" if clause else f"because of {answer}"


_BY = frozenset("suicide assassination execution poison electrocution".split())


def manner_phrase(answer: str, verb: str = "") -> str | None:
    """Join a way of doing: a phrase as it is, a gerund with "by"; None of others, whose preposition is not sure."""
    first = tokens(answer)[0]
    if opens_phrase(answer) or word(first).endswith("ly"):
        return answer
    if verb in ("die", "dies", "died") and not verbs.is_gerund(word(first)):
        return f"{'by' if word(answer) in _BY else 'of'} {answer}"
    return (answer if word(first) == "using" else f"by {answer}") if verbs.is_gerund(word(first)) else None
