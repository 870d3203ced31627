"""The off-target check by extraction (KnowHalu, section 3.1), by text rules: does the answer deliver what is asked for?

Correctness is not looked at here: a wrong year is an answer to "in which year", "in the past" is not.
"""

import re
from functools import cache

from knowhalu.reasoners.questions import Asked, asked_for, options_of
from knowhalu.text import STOPWORDS, content_words, sentences, stem, words
from knowhalu.types import Extraction

_REFUSAL = re.compile(
    r"\b(i|we)(?:'m| am|'re| are)? ?(?:sorry|afraid|unable|unsure|not (?:sure|able|certain|aware))\b|\b(?:i|we) (?:do not|don't|cannot|can't|could not|couldn't|can not) "
    r"(?:know|answer|say|tell|find|determine|help|recall|verify|confirm|provide|give|work)\b|^(?:sorry|unknown|no idea|apologies)\b|"
    r"\b(?:does not|doesn't|do not|don't|did not) (?:say|state|mention|specify|give|tell|contain|provide|record|include|name|reveal)\b[^.]*(?:\bme\b|\bwho\b|\bwhen\b|\bwhat\b|\bwhere\b|"
    r"\bwhich\b|\bhow\b|\bwhy\b|enough|whether|information|answer|that)|\b(?:not (?:stated|mentioned|specified|given|clear|known|possible to say)|nothing (?:in|here)|no information|"
    r"can(?:not|'t) be (?:answered|determined|said|told)|not enough (?:information|detail)|insufficient information|beyond (?:my|what))\b|\bi (?:would|'d) (?:rather|have to|need)\b|"
    r"\bwithout (?:more|further) (?:information|details)\b|\b(?:is|are) silent on\b",
    re.IGNORECASE,
)  # fmt: skip
_SELF = re.compile(r"\b(?:i|i'm|i'd|i've|me|my|we|us)\b", re.IGNORECASE)
_UNABLE = re.compile(
    r"\b(?:not|cannot|can't|don't|won't|wouldn't|couldn't|nothing|neither|unable|guess\w*|unsure|open|pass|decline|impossible)\b", re.IGNORECASE
)
_VAGUE = frozenset(
    stem(w)
    for w in "someone somebody something somewhere sometime person people man woman thing things many various several different certain special "
    "particular general kind kinds sort sorts type types lot lots number amount often usually sometime past recently recent long ago early late later "
    "time times period century day days year years well known famous popular important notable major large small big good great interesting several "
    "multiple numerous few number part area place places country city region world group organisation organization company individual figure "
    "work works related involve involved associate associated connect connected field industry reason reasons way ways factor factors one ones "
    "other others local own name named called possible matter detail details nice good outside inside building thing profession job element building examination consultation common normal usual fact fairly quite really kept take took made make get got come came go went give given".split()
)
_NUMBER = re.compile(
    r"\d|\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|"
    r"forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion|dozen|half|quarter|third|none|no|nobody|both|once|twice|double|twins?|all|every|never|"
    r"daily|weekly|monthly|yearly|annually|quarterly|free|fortnight|decade|century|first|second|fourth|fifth|sixth|seventh|eighth|ninth|tenth|single|pair|a (?:day|week|month|year|minute|hour)|\w+teenth)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b\d{1,4}(?:s|st|nd|rd|th|am|pm)?\b|\b(?:january|february|march|april|may|june|july|august|september|october|november|december|monday|tuesday|wednesday|"
    r"thursday|friday|saturday|sunday|spring|summer|autumn|winter|christmas|easter|yesterday|today|tomorrow|tonight|noon|midnight|morning|evening|afternoon|"
    r"first|second|third|after|before|until|till|since|when|once|as soon as|during|while|never|every|next|last|two|three|four|five|six|seven|eight|nine|ten|twenty|immediately|now)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"^(?:it |he |she |they |that |this )?(?:(?:is|was|were|are|did|does|do|has|had|have|will|would|can|could)(?:n't| not| never)|not|never|neither|nobody|no one|none)\b"
    r"|\b(?:is|was|were|are|did|does|do|has|had|have|can|could|will|would)(?:n't| not| never)\b|\bnot (?:in|on|at|by|the|from|a|an)\b|\b(?:neither|nor)\b",
    re.IGNORECASE,
)  # fmt: skip
_POSITIVE_TURN = re.compile(r"\bbut (?!not|no\b)|\brather[,;]|\binstead\b|; |\bonly\b|\bexcept\b|\buntil\b|\bbecause\b", re.IGNORECASE)
_SUBORDINATE = re.compile(r"\b(?:although|whereas|while|who|which|that)\b", re.IGNORECASE)
_YES_NO = re.compile(r"^\W*(?:yes|no|yeah|yep|nope|true|false|correct|incorrect|indeed|never|both|neither|only|not)\b", re.IGNORECASE)


@cache
def extract(question: str, answer: str) -> Extraction:
    """Take from the answer what the question asks for, or say that it is not there."""
    asked = asked_for(question)
    if is_refusal(answer):
        return Extraction(entity=None, asked_for=asked, reason="the answer declines to answer", confidence=0.95, refusal=True)
    fresh = [w for w in content_words(answer) if w not in set(content_words(question))]
    reason = _fault(question, answer, asked, fresh)
    if reason is not None:
        return Extraction(entity=None, asked_for=asked, reason=reason, confidence=0.8)
    entity = _of_kind(answer, asked) or _entity(answer, question)
    return Extraction(entity=entity, asked_for=asked, reason=f"the answer names {entity!r}", confidence=0.7)


def is_refusal(answer: str) -> bool:
    """Tell whether an answer says that it cannot answer, and gives nothing else."""
    parts = sentences(answer)
    declines = _REFUSAL.search(answer) or (_SELF.search(answer) and _UNABLE.search(answer) and not re.search(r"\d", answer))
    return bool(parts) and bool(declines) and len(answer.split()) <= 60 and not _YES_NO.match(answer)


def _fault(question: str, answer: str, asked: Asked, fresh: list[str]) -> str | None:
    """Return why the answer does not deliver what is asked for, or None."""
    if asked in (Asked.YES_NO, Asked.CHOICE):
        return _closed_fault(question, answer, asked, fresh)
    if not fresh:
        return "the answer only repeats the question"
    if _only_negates(question, answer, asked):
        return "the answer says what is not the case, not what is"
    if asked is Asked.TIME and not _TIME.search(answer):
        return "the question asks for a time, the answer has none"
    if asked is Asked.NUMBER and not _NUMBER.search(answer):
        return "the question asks for a number, the answer has none"
    if sum(w in _VAGUE for w in fresh) >= 0.7 * len(fresh) and not re.search(r"\d|(?<!^)\b[A-Z]", answer):
        return "the answer is too general to be an answer"
    if asked in (Asked.PERSON, Asked.PLACE) and _names_nothing(question, answer):
        return f"the question asks for {asked}, the answer names none"
    return None


def _closed_fault(question: str, answer: str, asked: Asked, fresh: list[str]) -> str | None:
    """Look at questions whose answers are given in them: yes or no, or one of the options."""
    if _YES_NO.match(answer) or len(answer.split()) <= 3:
        return None
    wanted = set(content_words(question))
    if asked is Asked.YES_NO and 4 * len(wanted.intersection(content_words(answer))) < len(wanted):
        return "the question asks for yes or no, the answer says neither"
    if asked is Asked.CHOICE:
        told = set(content_words(answer))
        if not any(told.intersection(option.split()) for option in options_of(question)) and not fresh:
            return "the question offers a choice, the answer takes no side"
    return None


def _only_negates(question: str, answer: str, asked: Asked) -> bool:
    """Tell whether every clause of the answer is a negation (a reason may well be one)."""
    if asked is Asked.REASON or _POSITIVE_TURN.search(answer) or re.search(r"\bnot\b|n't\b|\bnever\b", question):
        return False
    parts = sentences(answer)
    found = [(p.text, _NEGATED.search(p.text)) for p in parts]
    return bool(parts) and all(m and not _SUBORDINATE.search(t[: m.start()]) for t, m in found)


def _names_nothing(question: str, answer: str) -> bool:
    """Tell whether an answer longer than a few words has no name or number that the question does not have."""
    seen = {stem(w.text.lower()) for w in words(question)}
    first = {s.start for s in sentences(answer)}
    new = [w for w in words(answer) if w.text.lower() not in STOPWORDS and stem(w.text.lower()) not in seen and w.text[0].isalnum()]
    named = [w for w in new if w.text[0].isupper() and (w.start not in first or len(answer.split()) <= 4) or w.text[0].isdigit()]
    return not named and len(answer.split()) > 4 and sum(stem(w.text.lower()) not in _VAGUE for w in new) <= 1


_DATE = re.compile(
    r"\b(?:\d{1,2}(?:st|nd|rd|th)? )?(?:January|February|March|April|May|June|July|August|September|October|November|December)\b(?: \d{1,2}(?:st|nd|rd|th)?)?"
    r"(?:,? \d{4})?|\b\d{4}s?\b|\b\d{1,2}(?:[:.]\d\d)? ?(?:a\.?m\.?|p\.?m\.?)?(?=\W|$)"
)
_AMOUNT = re.compile(r"[$€£]?\d[\d,.]*\d(?: ?%| ?\w+)?|[$€£]?\d(?: ?%| ?\w+)?")


def _of_kind(answer: str, asked: Asked) -> str | None:
    """Return the first date or number where one is asked for."""
    pattern = {Asked.TIME: _DATE, Asked.NUMBER: _AMOUNT}.get(asked)
    match = pattern.search(answer) if pattern else None
    return match.group() if match else None


def _entity(answer: str, question: str) -> str:
    """Return the stretch of the answer that the question did not already have: the shortest with every new word."""
    seen = {stem(w.text.lower()) for w in words(question)}
    new = [w for w in words(answer) if w.text.lower() not in STOPWORDS and stem(w.text.lower()) not in seen]
    if not new:
        return answer.strip()
    first, last = new[0], new[0]
    for word in new[1:]:
        if len(answer[last.end : word.start].split()) > 2:
            break
        last = word
    return answer[first.start : last.end]
