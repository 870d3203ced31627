"""Parsing of replies that list claims or number their answers. What cannot be parsed is a ReplyError."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from knowhalu.errors import ReplyError
from knowhalu.prompts.format import JUDGMENT, LABEL
from knowhalu.prompts.replies import one_line, read_label
from knowhalu.prompts.template import PromptText, join_sections, shield, unshield
from knowhalu.requests import Completion
from knowhalu.text.clauses import claims_nothing
from knowhalu.text.overlap import coverage, text_facts
from knowhalu.text.quantities import number_value
from knowhalu.text.sentences import words
from knowhalu.types import Label

_LIST_ITEM = re.compile(r"\s*(?:[*_]{0,2}\(?(?P<number>\d{1,3})[*_]{0,2}[.):][*_]{0,2}|[-*\u2022])\s+(?P<text>.*\S)")
"""The blank after a number matters: a model that goes on from a begun "1." writes one, and one that does not begins anew."""
_JUDGED_CLAIM = re.compile(
    r"(?P<text>.*\w.*?)\s*[:.(|\[=>\u2013\u2014-]+\s*[*_\"']*(?P<label>CORRECT|INCORRECT|INCONCLUSIVE)\b\W*"
)
_NO_CLAIMS = re.compile(r"\W*(?:none|no claims?)\b[\w\s]{0,30}\W*", re.IGNORECASE)


class JudgedClaim(NamedTuple):
    """A claim in words of its own, and what the model says of it."""

    text: str
    label: Label


def read_claim_list(reply: Completion) -> list[str]:
    """Return the claims of a reply, each once; none where it says that there are none.

    Raises ReplyError where it holds no list, or was cut off: a claim that is lost would pass unchecked.
    """
    items = _items(reply, "claims")
    if not items and _NO_CLAIMS.fullmatch(reply.text):
        return []
    _check_complete(reply, items, "claims")
    return list(dict.fromkeys(items))


def read_judged_claims(reply: Completion) -> list[JudgedClaim]:
    """Return the claims of a reply with their labels; raises ReplyError where one has none, or the reply was cut off."""
    items = _items(reply, "judge")
    _check_complete(reply, items, "judge")
    found = []
    for item in items:
        match = _JUDGED_CLAIM.fullmatch(item)
        if match is None:
            raise ReplyError("judge", f"the claim {item[:80]!r} has no label", reply=reply.text)
        found.append(JudgedClaim(match["text"].strip(), Label(match["label"])))
    return found


def _items(reply: Completion, stage: str) -> list[str]:
    """Return the items of the list; where a number is missing, a claim is lost."""
    found = [
        m for line in unshield(reply.text).splitlines() if (m := _LIST_ITEM.fullmatch(line)) and any(map(str.isalnum, m["text"]))
    ]
    numbers = [int(m["number"]) for m in found if m["number"]]
    for due, number in enumerate(numbers, 1):
        if number != due:
            raise ReplyError(stage, f"the list of claims has number {number} where {due} is due", reply=reply.text)
    return [m["text"] for m in found]


def _check_complete(reply: Completion, items: list[str], stage: str) -> None:
    if not items:
        raise ReplyError(stage, "the reply lists no claims", reply=reply.text)
    if reply.finish_reason == "length":
        raise ReplyError(stage, "the reply was cut off before its list of claims ended", reply=reply.text)


def format_judged_claims(claims: Iterable[JudgedClaim]) -> PromptText:
    """Write judged claims as prompts show them."""
    return join_sections(PromptText(f"{i}. {shield(c.text)}: {c.label}") for i, c in enumerate(claims, 1))


_NUMBERED_LINE = re.compile(r"[ \t>*_-]*(?:sentence )?[\[(]?(\d{1,3})[\])]?[*_]*[ \t]*[.:)][*_]*[ \t]*(.*)", re.IGNORECASE)
_LEAD = re.compile(r"[ \t#*_]*(?:the |here are the )?claims(?: are)?[*_]*:[*_ \t]*", re.IGNORECASE)
_NONE = re.compile(r"\W*(?:none|no claims?|nothing|n/?a)\W*", re.IGNORECASE)
_YES_NO = re.compile(r"[\W_]*(yes|no)[\W_]*", re.IGNORECASE)
MAX_CLAIMS = 16
"""Claims of one sentence at most; a model that lists more runs in circles."""
MIN_CLAIM_COVERAGE = 0.5
"""Share of a claim's words that the text must have; its figures must all be there."""


def read_numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a reply; raises ReplyError at one that has no number."""
    lead = _LEAD.match(text.lstrip())
    body = text.lstrip()[lead.end() :] if lead else text
    for one in body.split("\n"):
        if not one.strip():
            continue
        match = _NUMBERED_LINE.fullmatch(one.rstrip("\r"))
        if match is None:
            raise ReplyError("claims", f"a line has no number of a sentence: {one.strip()[:80]!r}", reply=text)
        yield int(match[1]), one_line(match[2]).removeprefix(f"{match[1]}: ")  # said twice where the reply was begun with it


def read_claims(text: str, sentences: Sequence[str], told: str, raw: str) -> list[list[str]]:
    """Return the claims of every sentence; `told` is all that the model was shown of the text.

    Raises ReplyError where a sentence is passed over, or where a claim says what the text does not: the text, or a sentence
    in it that plays the master, must not make a model list other claims.
    """
    found: list[list[str]] = [[] for _ in sentences]
    seen: set[int] = set()
    for number, claim in read_numbered_lines(text):
        if not 1 <= number <= len(sentences):
            raise ReplyError("claims", f"there is no sentence {number}", reply=raw)
        seen.add(number)
        if _NONE.fullmatch(claim) or claim in found[number - 1]:
            continue
        if not any(c.isalnum() for c in claim):
            raise ReplyError("claims", f"a claim of sentence {number} is empty", reply=raw)
        if coverage(claim, told) < MIN_CLAIM_COVERAGE or not _figures(claim) <= text_facts(told).numbers:
            raise ReplyError("claims", f"the text does not say what is listed as its claim: {claim[:80]!r}", reply=raw)
        found[number - 1].append(claim)
    if missing := [i for i in range(1, len(sentences) + 1) if i not in seen]:
        raise ReplyError("claims", f"sentence {missing[0]} is passed over", reply=raw)
    if any(len(claims) > MAX_CLAIMS for claims in found):
        raise ReplyError("claims", f"more than {MAX_CLAIMS} claims of one sentence", reply=raw)
    return found


def read_valid_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines that can be read, up to the first that cannot."""
    found = []
    try:
        for number, claim in read_numbered_lines(text):
            found.append((number, claim))
    except ReplyError:
        pass
    return found


def complete_claims(sentence: str, claims: Sequence[str], *, answers: bool) -> list[str]:
    """Return the claims of a sentence, and itself where they leave out one of its figures or names.

    So no claim goes unchecked because a model does not list it.
    """
    listed = text_facts(" ".join(claims))
    whole = _figures(sentence) <= listed.numbers and text_facts(sentence).names <= set(listed.content)
    return list(claims) if whole or (not claims and claims_nothing(sentence, answers=answers)) else [*claims, sentence]


def _figures(text: str) -> set[str]:
    """Return the numbers that are written with digits; "one" is too often a pronoun."""
    return {n for w in words(text) if any(c.isdigit() for c in w.text) and (n := number_value(w.text)) is not None}


def read_supported(text: str, raw: str) -> bool:
    """Read Yes or No; raises ReplyError where it is neither alone."""
    match = _YES_NO.fullmatch(text)
    if match is None:
        raise ReplyError("supported", "the reply is neither Yes nor No", reply=raw)
    return match[1].lower() == "yes"


_HEADING = re.compile(
    rf"^[ \t>-]*(?:#{{2,6}})?[ \t]*[*_]{{0,2}}({JUDGMENT}|{LABEL})[ -]?(\d{{1,3}})[*_]{{0,2}}[ \t]*[:\uff1a][*_]{{0,2}}",
    re.MULTILINE | re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(?:no|not|nor|neither|never|without)\b|n['\u2019]t\b", re.IGNORECASE)


class HypothesisAnswer(NamedTuple):
    """What was said of one hypothesis."""

    reason: str
    label: Label


def read_hypothesis_answers(reply: str, count: int, words: Mapping[str, Label], *, whole: bool) -> dict[int, HypothesisAnswer]:
    """Read the answers to hypotheses 1 to `count`; the reply goes on under the heading of the first judgment.

    A number with no judgment or label, with several, or with one that cannot be read, is left out; of a reply that is not
    `whole`, so is the last text.
    """
    texts: dict[tuple[str, int], list[str]] = {}
    key, start = (JUDGMENT, 1), 0
    for match in _HEADING.finditer(reply):
        _add_text(texts, key, reply[start : match.start()])
        key, start = (match[1].capitalize(), int(match[2])), match.end()
    if whole or key[0] == LABEL:
        _add_text(texts, key, reply[start:])
    found = {}
    for n in range(1, count + 1):
        reasons, labels = texts.get((JUDGMENT, n), []), texts.get((LABEL, n), [])
        if len(reasons) == 1 and len(labels) == 1:
            try:
                found[n] = HypothesisAnswer(one_line(reasons[0]), _read_first_label(labels[0], reply, words))
            except ReplyError:
                continue
    return found


def _add_text(texts: dict[tuple[str, int], list[str]], key: tuple[str, int], text: str) -> None:
    if any(c.isalnum() for c in text):
        texts.setdefault(key, []).append(text)


def _read_first_label(text: str, reply: str, words: Mapping[str, Label]) -> Label:
    """Read a label in the first line, as nothing holds a model back from talking on; raises ReplyError unless it names one."""
    first = one_line(text.strip().partition("\n")[0])
    named = list(re.finditer(rf"\b(?:{'|'.join(words)})\b", first))
    if len({m[0] for m in named}) > 1 or (named and _DENIAL.search(first, 0, named[0].start())):
        raise ReplyError("judge", "the reply names several labels, or denies one", reply=reply)
    return read_label(first, reply, words)
