"""What a question asks for, and the two formulations of a query, by text rules."""

import re
from enum import StrEnum

from knowhalu.text import STOPWORDS, content_words, words


class Asked(StrEnum):
    """The kind of answer that a question asks for."""

    YES_NO = "yes or no"
    CHOICE = "one of the options named"
    TIME = "a time"
    NUMBER = "a number"
    PERSON = "a person or group"
    PLACE = "a place"
    REASON = "a reason or a way"
    THING = "a specific thing"


_AUXILIARIES = "is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|shall|may|might|must"
_YES_NO = re.compile(rf"^(?:and |but |so |then )?(?:{_AUXILIARIES})(?:n't)?\b", re.IGNORECASE)
_TAIL_YES_NO = re.compile(rf",\s*(?:{_AUXILIARIES})(?:n't)?\s+[^,?]*\?$", re.IGNORECASE)
_OR = re.compile(r"\b([\w'’.-]+)\s*,?\s+or\s+(?!not\b)(\w+)", re.IGNORECASE)  # noqa: RUF001
_TIME = re.compile(
    r"(?:^|, |\band |\bsince |\buntil |\bby )when\b|\b((?:what|which|in what|in which|on what|on which)\s+(?:\w+\s+)?(?:year|years|date|day|month|decade|century|time)|"
    r"how long ago|(?:born|died|founded|released|established|published|opened) (?:in )?(?:what|which) (?:year|date))\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\b(how (?:many|much|long|old|tall|high|far|large|big|fast|deep|heavy|often|wide)|what (?:is|was|were|are) the (?:\w+ )?(?:number|"
    r"population|price|cost|size|height|length|area|percentage|share|capacity|distance|weight|temperature|score|amount|age|total|rate|budget|"
    r"sum)|(?:what|which) (?:number|percentage|proportion|share|amount))\b",
    re.IGNORECASE,
)
_PERSON = re.compile(
    r"\b(who|whom|whose|(?:what|which) (?:\w+ ){0,3}(?:person|man|woman|actor|actress|author|singer|writer|director|player|president|king|"
    r"queen|scientist|artist|band|team|company|composer|musician|politician|architect|painter|poet|engineer|footballer|group|club))\b",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"\b(where|(?:what|which) (?:\w+ ){0,2}(?:country|city|state|town|place|continent|county|village|region|province|capital|street|island|"
    r"river|mountain|district|location|nation|borough|area))\b",
    re.IGNORECASE,
)
_REASON = re.compile(r"\b(why|how (?:do|does|did|can|could|is|are|was|were|should|would|to|come)|for what reason|what (?:made|caused|happens|happened|"
                     r"does .* do|did .* do))\b", re.IGNORECASE)  # fmt: skip


def asked_for(question: str) -> Asked:
    """Tell what kind of answer a question asks for."""
    text = question.strip()
    asks = text.rsplit(". ", 1)[-1] if text.endswith("?") else text
    yes_no = bool(_YES_NO.match(asks) or (_TAIL_YES_NO.search(asks) and not re.search(r"\b(what|which|who|when|where|how)\b", asks, re.IGNORECASE)))
    if _OR.search(asks) and (yes_no or re.search(r"\b(which|who|what)\b", asks, re.IGNORECASE)) and _offers(asks):
        return Asked.CHOICE
    if yes_no:
        return Asked.YES_NO
    tests = ((Asked.TIME, _TIME), (Asked.NUMBER, _NUMBER), (Asked.REASON, _REASON), (Asked.PERSON, _PERSON), (Asked.PLACE, _PLACE))
    found = [(m.start(), i, kind) for i, (kind, test) in enumerate(tests) if (m := test.search(asks))]
    return min(found)[2] if found else Asked.THING


def _offers(text: str) -> bool:
    """Tell whether an "or" stands between two options, rather than inside "two or three" or "more or less"."""
    match = list(_OR.finditer(text))[-1]
    numbers = {"one", "two", "three", "four", "five", "six", "more", "less", "sooner"}
    return match.group(1).lower() not in numbers


def options_of(question: str) -> list[str]:
    """Return the words around the last "or" of a choice question: the tails of its options, lower-cased."""
    asks = question.strip().rstrip("?").rsplit(". ", 1)[-1]
    left, _, right = asks.rpartition(" or ")
    left = re.split(r"[,:]", left)[-1] or left
    return [" ".join(content_words(left)[-4:]), " ".join(content_words(right)[:4])]


_MASKS = (
    (re.compile(r"\b(?:\d{1,2} )?(?:January|February|March|April|May|June|July|August|September|October|November|December)(?: \d{1,2})?(?:,? \d{4})?\b"), "what date"),
    (re.compile(r"\b(?:1\d{3}|20\d{2})\b"), "what year"),
    (re.compile(r"[$€£]?\b\d[\d,.]*(?: ?%| percent| million| billion)?"), "how many"),
)  # fmt: skip
NAME = re.compile(r"\b[A-Z](?:\.|[\w'’-]*)(?:\s+(?:(?:of|the|de|van|von|and) )?[A-Z](?:\.(?!\s*$)|[\w'’-]*))*")  # noqa: RUF001


def general_form(claim: str) -> str:
    """Put a question word for the last checkable detail of a claim: a date, a number or a name.

    "Marie Curie was born in Warsaw" becomes "Marie Curie was born in what?" Without such a detail the last words go.
    """
    text = claim.strip().rstrip(".!")
    for pattern, put in _MASKS:
        found = list(pattern.finditer(text))
        if found:
            return f"{text[: found[-1].start()]}{put}{text[found[-1].end() :]}?"
    names = [m for m in NAME.finditer(text) if m.start() > 0 and m.group().lower() not in STOPWORDS]
    if names:
        return f"{text[: names[-1].start()]}what{text[names[-1].end() :]}?"
    kept = words(text)
    half = kept[max(1, (2 * len(kept)) // 3) - 1].end if kept else len(text)
    return f"{text[:half]} what?"
