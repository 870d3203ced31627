"""Parsing of replies: queries, knowledge and labels. What cannot be parsed is a ReplyError, never a guess.

Headings are recognised as models write them (with or without `###`, bold, numbered or not); text between them may hold
anything: `#`, brackets, quotes, several lines. Shielded text that a model copied is restored.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from knowhalu.errors import ReplyError
from knowhalu.prompts.format import (
    ASKED_FOR,
    ENTITY,
    GENERAL,
    JUDGMENT,
    KNOWLEDGE,
    LABEL,
    REASON,
    SPECIFIC,
    THOUGHT,
    JudgedClaim,
)
from knowhalu.prompts.template import unshield
from knowhalu.requests import Completion
from knowhalu.text.sentences import sentences
from knowhalu.text.wordlists import HELPERS, VERBS
from knowhalu.types import NO_INFORMATION, KnowledgeForm, Label, Query, Triplet

HEADINGS = (ASKED_FOR, REASON, ENTITY, THOUGHT, SPECIFIC, GENERAL, KNOWLEDGE, JUDGMENT, LABEL)
SHORT_QUERY_HEADING = "Query"
"""How models shorten the heading of a query."""
_HEADING = re.compile(
    r"^[ \t>-]*(?P<hashes>#{2,6})?[ \t]*[*_]{0,2}(?P<name>[a-z]+(?: [a-z]+)?)(?:[ -]?\d+)?[*_]{0,2}[ \t]*[:\uff1a][*_]{0,2}",
    re.MULTILINE | re.IGNORECASE,
)
_NO_MORE = re.compile(r"\bno (?:further|more|other|additional) (?:quer(?:y|ies)|questions?)\b", re.IGNORECASE)
_END = re.compile(r"(?:done\b[^?]*|none|stop|finished|n/?a|nothing(?: more)?(?: to ask)?)", re.IGNORECASE)
_NEGATION = r"((?i:\bnot|n['\u2019]t)\W+)?"


class ReplySections(NamedTuple):
    """A reply split at its headings: the first text under each, and the heading of the last one."""

    texts: dict[str, str]
    last: str

    def without_last(self) -> "ReplySections":
        """Return the sections without the last one, which is incomplete where the reply was cut off."""
        return ReplySections({k: v for k, v in self.texts.items() if k != self.last}, "")


class NextStep(NamedTuple):
    """The next step by a model; `query` is None where it ends the chain."""

    thought: str
    query: Query | None


def one_line(text: str) -> str:
    """Return an unshielded text on one line."""
    return " ".join(unshield(text).split())


def split_sections(reply: str, begins: str, wanted: Iterable[str]) -> ReplySections:
    """Split a reply that begins under the heading `begins`.

    A line is a heading if it is marked as one (`###`), or is one of those in `wanted`.
    """
    wanted = {name.lower(): name for name in wanted}
    known = {name.lower(): name for name in HEADINGS}
    texts: dict[str, str] = {}
    name, start = begins, 0
    last = begins

    def keep(until: int) -> None:
        nonlocal last
        if found := one_line(reply[start:until]):
            texts.setdefault(name, found)
            last = name

    for match in _HEADING.finditer(reply):
        said = match["name"].lower()
        if said not in wanted and not match["hashes"]:
            continue
        keep(match.start())
        name, start = wanted.get(said) or known.get(said) or said, match.end()
    keep(len(reply))
    return ReplySections(texts, last)


def is_end_of_queries(text: str) -> bool:
    """Tell whether a query ends the chain."""
    bare = text.strip(" .!*_\"'()[]")
    return bool(_END.fullmatch(bare) or (_NO_MORE.search(bare) and "?" not in bare))


def read_next_step(found: ReplySections, asked: tuple[str, ...], raw: str) -> NextStep:
    """Read thought and query; raises ReplyError where a formulation is missing."""
    texts = dict(found.texts)
    if SHORT_QUERY_HEADING in texts:
        texts.setdefault(asked[0], texts[SHORT_QUERY_HEADING])
    thought = texts.get(THOUGHT, "")
    said = [texts[name] for name in asked if name in texts]
    if said and is_end_of_queries(said[0]):
        return NextStep(thought, None)
    if not said and _NO_MORE.search(thought):
        return NextStep(thought, None)
    missing = [name for name in asked if not any(c.isalnum() for c in texts.get(name, ""))]
    if missing:
        raise ReplyError("query", f"the reply has no {missing[0].lower()}", reply=raw)
    specific, general = (texts[name] if name in asked else "" for name in (SPECIFIC, GENERAL))
    return NextStep(thought, Query(specific=specific, general="" if is_end_of_queries(general) and specific else general))


def read_label(text: str, raw: str, words: Mapping[str, Label] = Label.__members__) -> Label:
    """Return the last label of a text by its word; raises ReplyError where there is none, or where it is negated."""
    bare = text.strip(" \n\t.*_\"'()[]").upper()
    if bare in words:
        return words[bare]
    found = list(re.finditer(rf"{_NEGATION}\b({'|'.join(words)})\b", text))
    if not found or found[-1][1]:
        raise ReplyError("judge", "the reply denies its label" if found else "the reply has no label", reply=raw)
    return words[found[-1][2]]


class ExtractedAnswer(NamedTuple):
    """The words of an answer that the question asks for; None where there are none, or where the answer declines."""

    entity: str | None
    refusal: bool = False


def read_extraction(text: str, answer: str, raw: str) -> ExtractedAnswer:
    """Read the extraction; raises ReplyError where the reply is empty.

    "None" is an extracted word where the answer has "none" itself and the model does not write it in capitals.
    """
    found = one_line(text).strip("*_ ")
    if not any(c.isalnum() for c in found):
        raise ReplyError("extract", "the reply names no entity", reply=raw)
    for word, piece in (("NONE", ExtractedAnswer(None)), ("REFUSAL", ExtractedAnswer(None, refusal=True))):
        shouted = re.search(rf"\b{word}\b", found) and not re.search(rf"\b{word}\b", answer)
        said = re.match(rf"\W*{word}\b", found, re.IGNORECASE) and not re.search(rf"\b{word}\b", answer, re.IGNORECASE)
        if shouted or said:
            return piece
    return ExtractedAnswer(found)


def complete_sentences(text: str) -> str:
    """Return the complete sentences of a text that was cut off."""
    ends = list(re.finditer(r"[.!?。！？][\"”’)\]]*(?=\s|$)", text))  # noqa: RUF001
    return text[: ends[-1].end()] if ends else ""


_LIST_ITEM = re.compile(r"\s*(?:[*_]{0,2}\(?(?P<number>\d{1,3})[*_]{0,2}[.):][*_]{0,2}|[-*\u2022])\s+(?P<text>.*\S)")
"""The blank after a number matters: a model that continues a given "1." begins with one, another repeats the number."""
_JUDGED_CLAIM = re.compile(
    r"(?P<text>.*\w.*?)\s*[:.(|\[=>\u2013\u2014-]+\s*[*_\"']*(?P<label>CORRECT|INCORRECT|INCONCLUSIVE)\b\W*"
)
_NO_CLAIMS = re.compile(r"\W*(?:none|no claims?)\b[\w\s]{0,30}\W*", re.IGNORECASE)


def read_claim_list(reply: Completion) -> list[str]:
    """Return the claims of a reply, each once; an empty list where it states that there are none.

    Raises ReplyError where it has no list, or was cut off, as a lost claim would stay unchecked.
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
    """Return the items of a list; raises ReplyError where a number is missing, as a claim is lost then."""
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


_NOTHING = re.compile(
    r"\W*(?:no (?:specific |relevant |further |such |direct )*information\b|no information\b"
    r"|(?:the |these )?(?:passages?|sources?|documents?|texts?)(?: given| provided)? "
    r"(?:do(?:es)? not|don't|says? nothing|(?:contain|ha[vs]|giv|provid)(?:e|s|es)? no)\b|not (?:mentioned|stated|specified)\b)",
    re.IGNORECASE,
)
_CONTRAST = re.compile(r"\b(?:but|however|although|though|only)\b", re.IGNORECASE)
_OPENING = re.compile(r"^[ \t]*(?:#{2,6}[ \t]*)?[*_]{0,2}(?:knowledge|answer)(?: \d+)?[*_]{0,2}:[*_]{0,2}[ \t]*", re.IGNORECASE)
_BULLET = re.compile(r"^[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]+", re.MULTILINE)
_OPEN, _CLOSE = "([{", ")]}"


def read_sentences(text: str, raw: str) -> list[str]:
    """Return the sentences of unstructured knowledge; an empty list where it states that there is none.

    Raises ReplyError where the reply is empty.
    """
    body = one_line(_BULLET.sub("", _OPENING.sub("", text)))
    if not any(c.isalnum() for c in body):
        raise ReplyError("knowledge", "the reply is empty", reply=raw)
    return [s.text for s in sentences(body) if not says_nothing(s.text)]


def read_triplets(text: str, raw: str) -> list[Triplet]:
    """Return the triplets of structured knowledge; an empty list where it states that there is none.

    Raises ReplyError where the reply has neither.
    """
    body = unshield(_OPENING.sub("", text))
    found = [t for group in _bracket_groups(body) if (t := _triplet(group)) is not None]
    if not found and not says_nothing(one_line(body)):
        raise ReplyError("knowledge", "the reply has no triplet (subject, predicate, object)", reply=raw)
    return found


def says_nothing(sentence: str) -> bool:
    """Tell whether a sentence states that the passages have no information."""
    start = _NOTHING.match(sentence)
    return start is not None and not _CONTRAST.search(sentence, start.end())


def _bracket_groups(text: str) -> Iterator[str]:
    """Yield the contents of outermost round brackets; a bracket that is never closed ends with its line."""
    at = 0
    while (at := text.find("(", at)) >= 0:
        end = _closing(text, at) or _closing(text[: _line_end(text, at)] + ")", at)
        if end is None:
            at += 1
            continue
        yield text[at + 1 : end]
        at = end + 1


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _closing(text: str, at: int) -> int | None:
    """Return the offset of the bracket that closes that at `at`, or None; a new line that begins with a bracket ends it."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
        if text[i] == "\n" and text[i + 1 :].lstrip(" \t").startswith("("):
            return None
    return None


def _triplet(group: str) -> Triplet | None:
    """Split a group into three; of more than two commas, those around the predicate count."""
    parts = next((p for mark in "|;" if len(p := _split_at(group, mark)) == 3), None) or _split_at(group, ",")
    parts = [p for p in (one_line(p) for p in parts) if p]
    if len(parts) < 3 or says_nothing(parts[0]):
        return None
    at = next((i for i in range(1, len(parts) - 1) if _is_predicate(parts[i])), 1)
    return Triplet(subject=", ".join(parts[:at]), predicate=parts[at], object=", ".join(parts[at + 1 :]))


def _is_predicate(part: str) -> bool:
    words = part.split()
    verb = words[1] if words[0].lower() in ("also", "not", "never") and len(words) > 1 else words[0]
    return verb[:1].islower() and (verb in VERBS or verb in HELPERS or verb.endswith(("ed", "s")))


def _split_at(group: str, mark: str) -> list[str]:
    """Split at a mark, but not within brackets or double quotes."""
    quoted = group.count('"') % 2 == 0
    parts, depth, within, start = [], 0, False, 0
    for i, c in enumerate(group):
        depth += (c in _OPEN) - (c in _CLOSE)
        within ^= quoted and c == '"'
        if c == mark and depth <= 0 and not within:
            parts.append(group[start:i])
            start = i + 1
    return [*parts, group[start:]]


def format_statements(form: KnowledgeForm, statements: list[str]) -> str:
    """Join statements as prompts show them."""
    return " ".join(statements) if statements else NO_INFORMATION
