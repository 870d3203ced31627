"""Changes in a text: the value that something started from, as in "rose from 10 to 12" and "up from 10"."""

import re

_CHANGE = (
    r"(?:up|down|ris(?:es?|en|ing)|rose|gr[eo]w[ns]?|growing|increas(?:es?|ed|ing)|climb(?:s|ed|ing)?|jump(?:s|ed|ing)?|gain(?:s|ed)?"
    r"|fell|fall(?:s|en|ing)?|drop(?:s|ped|ping)?|declin(?:es?|ed|ing)|decreas(?:es?|ed|ing)|shr[aiu]nk|reduced|cut|lowered|raised"
    r"|went|changed|doubled|tripled|halved|expanded|improved|slipped|dipped|soared|surged)"
)
_BLURRED = r"(?:an?\s|about\s|some\s|around\s|just\s|only\s)?[$€£¥₹]?$"
_START = re.compile(rf"\b{_CHANGE}\b(?:\s(?!to\b)[^\s.;,]+){{0,4}}?\sfrom\s{_BLURRED}", re.IGNORECASE)
_COMPARED = re.compile(rf"\b(?:compared (?:with|to)|versus|against)\s{_BLURRED}", re.IGNORECASE)
_EARLIER = re.compile(
    r"[^.;]{0,30}?\b(?:(?:year|month|quarter|week|decade)s? (?:before|earlier|ago|prior)|last (?:year|month|quarter)"
    r"|(?:the|a) (?:previous|prior|preceding) \w+)",
    re.IGNORECASE,
)


def is_start(text: str, start: int) -> bool:
    """Tell whether the value that begins here is what something was before: "up from 10", "against 8 the year before"."""
    before = text[max(0, start - 60) : start]
    return bool(_START.search(before) or (_COMPARED.search(before) and _EARLIER.match(text, start)))


_OF_EARLIER = re.compile(
    rf"\b(?:{_CHANGE}|from|previous(?:ly)?|earlier|before|originally|initially|formerly|once|used to|prior|last|ago|compared"
    r"|had been|start(?:s|ed|ing)?|began|first|change)\b",
    re.IGNORECASE,
)


def speaks_of_earlier(claim: str) -> bool:
    """Tell whether a claim has a word for a change or for an earlier time, to which the start of a change may belong."""
    return bool(_OF_EARLIER.search(claim))
