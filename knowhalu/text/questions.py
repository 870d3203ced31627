"""What a question asks for, the two formulations of a query, and answers that decline, all by text rules."""

import re
from enum import StrEnum

from knowhalu.text import wordlists as lexicon
from knowhalu.text.sentences import STOPWORDS, Span, content_words, sentences, words
from knowhalu.text.wordlists import (
    AUXILIARIES,
    DATE_PATTERN,
    MEASURE_ADJECTIVES,
    NAME_PATTERN,
    PERSON_NOUNS,
    PLACE_NOUNS,
    QUANTITY_NOUNS,
    QUESTION_WORDS,
    SHARE_NOUNS,
    TIME_NOUNS,
    any_word_pattern,
)


class AnswerType(StrEnum):
    """The kind of answer that a question asks for."""

    YES_NO = "yes or no"
    CHOICE = "one of the options named"
    TIME = "a time"
    NUMBER = "a number"
    PERSON = "a person or group"
    PLACE = "a place"
    REASON = "a reason or a way"
    THING = "a specific thing"


def _which(nouns: list[str], between: int) -> str:
    return rf"\b(?:what|which) (?:\w+ ){{0,{between}}}{any_word_pattern(nouns)}"


_PATTERNS = {
    AnswerType.TIME: rf"(?:^|, |\b(?:and|since|until|by) )when\b|{_which(TIME_NOUNS, 1)}|\bhow long ago\b",
    AnswerType.NUMBER: rf"\bhow {any_word_pattern(MEASURE_ADJECTIVES)}"
    rf"|\bwhat (?:is|was|were|are) the (?:\w+ )?{any_word_pattern(QUANTITY_NOUNS)}"
    rf"|{_which(SHARE_NOUNS, 0)}",
    AnswerType.REASON: r"\bwhy\b|\bhow (?:do|does|did|can|could|is|are|was|were|should|would|to|come)\b|\bfor what reason\b"
    r"|\bwhat (?:made|caused|happens|happened)\b|\bwhat (?:does|did) .* do\b",
    AnswerType.PERSON: rf"\b(?:who|whom|whose)\b|{_which(PERSON_NOUNS, 3)}",
    AnswerType.PLACE: rf"\bwhere\b|{_which(PLACE_NOUNS, 2)}",
}
_TYPE_PATTERNS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _PATTERNS.items()}
_OPENS_YES_NO = re.compile(rf"^(?:and |but |so |then )?(?:{'|'.join(AUXILIARIES)})(?:n't)?\b", re.IGNORECASE)
_ENDS_YES_NO = re.compile(rf",\s*(?:{'|'.join(AUXILIARIES)})(?:n't)?\s+[^,?]*\?$", re.IGNORECASE)
_ASKS = re.compile(any_word_pattern(QUESTION_WORDS), re.IGNORECASE)
_OR = re.compile(r"\b([\w'’.-]+)\s*,?\s+or\s+(?!not\b)\w+", re.IGNORECASE)  # noqa: RUF001
_NO_OPTIONS = frozenset("one two three four five six more less sooner".split())


def expected_answer_type(question: str) -> AnswerType:
    """Return the kind of answer that a question asks for; of several question words the first decides."""
    asks = asking_part(question)
    yes_no = bool(_OPENS_YES_NO.match(asks) or (_ENDS_YES_NO.search(asks) and not _ASKS.search(asks)))
    if _offers_options(asks) and (yes_no or _ASKS.search(asks)):
        return AnswerType.CHOICE
    if yes_no:
        return AnswerType.YES_NO
    found = [(m.start(), order, kind) for order, (kind, test) in enumerate(_TYPE_PATTERNS.items()) if (m := test.search(asks))]
    return min(found)[2] if found else AnswerType.THING


def asking_part(question: str) -> str:
    """Return the last sentences of a question that ask, without what is told before and after; all of it where none asks."""
    asking: list[Span] = []
    for sentence in reversed(sentences(question)):
        if sentence.text.endswith("?"):
            asking.append(sentence)
        elif asking:
            break
    return question[asking[-1].start : asking[0].end] if asking else question.strip()


def _offers_options(text: str) -> bool:
    """Tell whether an "or" separates two options, rather than as in "two or three" or "more or less"."""
    found = list(_OR.finditer(text))
    return bool(found) and found[-1].group(1).lower() not in _NO_OPTIONS


_NAMES_A_KIND = re.compile(
    r"\bwhich\b|\bwhat (?!is\b|are\b|was\b|were\b|does\b|do\b|did\b|can\b|could\b|should\b|would\b|will\b|has\b|have\b|about\b"
    r"|if\b|happens\b|happened\b|makes\b|made\b|causes\b|caused\b|kind of advice\b)\w+",
    re.IGNORECASE,
)
_QUESTION = re.compile(rf"\?\W*$|^\W*(?:{'|'.join((*QUESTION_WORDS, *AUXILIARIES))})\b", re.IGNORECASE)


_REQUEST = re.compile(
    r"\W*(?:please )?(?:can|could|would|will) you (?:please |kindly |briefly )?(?:explain|tell|describe|say|show|give|help|define"
    r"|summari[sz]e|write|list|name|teach|elaborate|clarify|recommend|suggest)\b(?: (?:me|us|to me|to us))*\s*",
    re.IGNORECASE,
)
"""A request in the form of a yes-or-no question."""
_ASKS_DETAIL = re.compile(r"(?:who|whom|whose|when|where|which|how (?:many|much|old|long|far|tall|high|deep))\b", re.IGNORECASE)


def is_checkable(question: str) -> bool:
    """Tell whether rules can see if an answer gives what is asked for: who, when, where, how many, which, or yes or no.

    Requests, definitions, reasons, advice and open questions are none of these.
    """
    if not _QUESTION.search(question.strip()):
        return False
    if request := _REQUEST.match(question):
        return bool(_ASKS_DETAIL.match(question[request.end() :]))
    kind = expected_answer_type(question)
    return bool(_NAMES_A_KIND.search(question)) if kind is AnswerType.THING else kind is not AnswerType.REASON


def choice_options(question: str) -> list[str]:
    """Return the content words next to the last "or" of a choice question, those of either option joined."""
    left, _, right = asking_part(question).rstrip("?").rpartition(" or ")
    left = re.split(r"[,:]", left)[-1] or left
    return [" ".join(content_words(left)[-4:]), " ".join(content_words(right)[:4])]


_YEAR = re.compile(r"\b(?:1\d{3}|20\d{2})\b")
_FIGURE = re.compile(r"[$€£]?\b\d[\d,.]*(?: ?%| percent| million| billion)?")


def general_query(claim: str) -> str:
    """Replace the last checkable detail of a claim, a date, a number or a name, with a question word.

    "Marie Curie was born in Warsaw" becomes "Marie Curie was born in what?" Without such a detail the last words are dropped.
    """
    text = claim.strip().rstrip(".!")
    for pattern, put in ((_YEAR, "what year"), (DATE_PATTERN, "what date"), (_FIGURE, "how many")):
        found = list(pattern.finditer(text))
        if found and (put != "what date" or any(c.isalpha() for c in found[-1].group())):
            return f"{text[: found[-1].start()]}{put}{text[found[-1].end() :]}?"
    names = [m for m in NAME_PATTERN.finditer(text) if m.start() > 0 and m.group().lower() not in STOPWORDS]
    if names:
        return f"{text[: names[-1].start()]}what{text[names[-1].end() :]}?"
    kept = words(text)
    half = kept[max(1, (2 * len(kept)) // 3) - 1].end if kept else len(text)
    return f"{text[:half]} what?"


def declines_to_answer(text: str, *, in_other_words: bool = False) -> bool:
    """Tell whether a text declines to answer in every part with content; a hedge followed by a claim does not."""
    parts = [part.strip() for s in sentences(text) for part in lexicon.CLAUSE_BREAK_PATTERN.split(s.text)]
    contentful = [part for part in parts if content_words(part)]
    declining = [part for part in contentful or parts if _part_declines(part, in_other_words=in_other_words)]
    return bool(declining) and all(part in declining or lexicon.REFUSAL_COURTESY_PATTERN.search(part) for part in contentful)


def hedges(text: str) -> bool:
    """Tell whether any part of a text declines to answer."""
    return any(_part_declines(part.strip(), in_other_words=True) for part in lexicon.CLAUSE_BREAK_PATTERN.split(text))


def _part_declines(part: str, *, in_other_words: bool) -> bool:
    if lexicon.REFUSAL_PATTERN.search(part.strip()):
        return True
    if not in_other_words or lexicon.OPINION_PATTERN.search(part) or re.search(r"\d", part):
        return False
    return bool(lexicon.FIRST_PERSON_PATTERN.search(part) and lexicon.INABILITY_PATTERN.search(part))
