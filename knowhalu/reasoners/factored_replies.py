"""Reading what a model says in Factored Verification: numbered claims, and Yes or No; all else is a ReplyError."""

import re
from collections.abc import Iterator, Sequence

from knowhalu.errors import ReplyError
from knowhalu.reasoners.clauses import claims_nothing
from knowhalu.reasoners.features import coverage, facts
from knowhalu.reasoners.quantities import number_of
from knowhalu.reasoners.replies import line
from knowhalu.text import words

_LINE = re.compile(r"[ \t>*_-]*(?:sentence )?[\[(]?(\d{1,3})[\])]?[*_]*[ \t]*[.:)][*_]*[ \t]*(.*)", re.IGNORECASE)
_LEAD = re.compile(r"[ \t#*_]*(?:the |here are the )?claims(?: are)?[*_]*:[*_ \t]*", re.IGNORECASE)
_NONE = re.compile(r"\W*(?:none|no claims?|nothing|n/?a)\W*", re.IGNORECASE)
_YES_NO = re.compile(r"[\W_]*(yes|no)[\W_]*", re.IGNORECASE)
MOST = 16
"""Claims of one sentence at most; a model that lists more runs in circles."""
FOUNDED = 0.5
"""Share of a claim's words that the text must have; its figures must all be there."""


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a reply; raises ReplyError at one that has no number."""
    lead = _LEAD.match(text.lstrip())
    body = text.lstrip()[lead.end() :] if lead else text
    for one in body.split("\n"):
        if not one.strip():
            continue
        match = _LINE.fullmatch(one.rstrip("\r"))
        if match is None:
            raise ReplyError("claims", f"a line has no number of a sentence: {one.strip()[:80]!r}", reply=text)
        yield int(match[1]), line(match[2]).removeprefix(f"{match[1]}: ")  # said twice where the reply was begun with it


def read_claims(text: str, sentences: Sequence[str], told: str, raw: str) -> list[list[str]]:
    """Return the claims of every sentence; `told` is all that the model was shown of the text.

    Raises ReplyError where a sentence is passed over, or where a claim says what the text does not: the text, or a sentence
    in it that plays the master, must not make a model list other claims.
    """
    found: list[list[str]] = [[] for _ in sentences]
    seen: set[int] = set()
    for number, claim in numbered(text):
        if not 1 <= number <= len(sentences):
            raise ReplyError("claims", f"there is no sentence {number}", reply=raw)
        seen.add(number)
        if _NONE.fullmatch(claim) or claim in found[number - 1]:
            continue
        if not any(c.isalnum() for c in claim):
            raise ReplyError("claims", f"a claim of sentence {number} is empty", reply=raw)
        if coverage(claim, told) < FOUNDED or not _figures(claim) <= facts(told).numbers:
            raise ReplyError("claims", f"the text does not say what is listed as its claim: {claim[:80]!r}", reply=raw)
        found[number - 1].append(claim)
    if missing := [i for i in range(1, len(sentences) + 1) if i not in seen]:
        raise ReplyError("claims", f"sentence {missing[0]} is passed over", reply=raw)
    if any(len(claims) > MOST for claims in found):
        raise ReplyError("claims", f"more than {MOST} claims of one sentence", reply=raw)
    return found


def readable(text: str) -> list[tuple[int, str]]:
    """Return the lines that can be read, up to the first that cannot."""
    found = []
    try:
        for number, claim in numbered(text):
            found.append((number, claim))
    except ReplyError:
        pass
    return found


def completed(sentence: str, claims: Sequence[str], *, answers: bool) -> list[str]:
    """Return the claims of a sentence, and itself where they leave out one of its figures or names.

    So no claim goes unchecked because a model does not list it.
    """
    listed = facts(" ".join(claims))
    whole = _figures(sentence) <= listed.numbers and facts(sentence).names <= set(listed.content)
    return list(claims) if whole or (not claims and claims_nothing(sentence, answers=answers)) else [*claims, sentence]


def _figures(text: str) -> set[str]:
    """Return the numbers that are written with digits; "one" is too often a pronoun."""
    return {n for w in words(text) if any(c.isdigit() for c in w.text) and (n := number_of(w.text)) is not None}


def read_supported(text: str, raw: str) -> bool:
    """Read Yes or No; raises ReplyError where it is neither alone."""
    match = _YES_NO.fullmatch(text)
    if match is None:
        raise ReplyError("supported", "the reply is neither Yes nor No", reply=raw)
    return match[1].lower() == "yes"
