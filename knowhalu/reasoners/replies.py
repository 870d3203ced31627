"""Reading an LLM's replies: what cannot be read is a ReplyError with the raw reply, never a guess.

Headings are recognised as models write them (with or without `###`, bold, numbered or not); text between them may hold
anything: `#`, brackets, quotes, several lines. What `shield` marked in a prompt and a model copied is given back.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from knowhalu.errors import ReplyError
from knowhalu.prompts import unshield
from knowhalu.reasoners.layout import ASKED_FOR, ENTITY, GENERAL, JUDGMENT, KNOWLEDGE, LABEL, REASON, SPECIFIC, THOUGHT
from knowhalu.types import Label, Query

HEADINGS = (ASKED_FOR, REASON, ENTITY, THOUGHT, SPECIFIC, GENERAL, KNOWLEDGE, JUDGMENT, LABEL)
QUERY = "Query"
"""How models shorten the heading of a query."""
_HEADING = re.compile(
    r"^[ \t>-]*(?P<hashes>#{2,6})?[ \t]*[*_]{0,2}(?P<name>[a-z]+(?: [a-z]+)?)(?:[ -]?\d+)?[*_]{0,2}[ \t]*[:\uff1a][*_]{0,2}",
    re.MULTILINE | re.IGNORECASE,
)
_NO_MORE = re.compile(r"\bno (?:further|more|other|additional) (?:quer(?:y|ies)|questions?)\b", re.IGNORECASE)
_END = re.compile(r"(?:done\b[^?]*|none|stop|finished|n/?a|nothing(?: more)?(?: to ask)?)", re.IGNORECASE)
_NOT = r"((?i:\bnot|n['\u2019]t)\W+)?"


class Sections(NamedTuple):
    """A reply parted at its headings: the first text under each, and whether the last one was cut off."""

    texts: dict[str, str]
    last: str

    def without_last(self) -> "Sections":
        """Return the sections that are whole where the reply was cut off."""
        return Sections({k: v for k, v in self.texts.items() if k != self.last}, "")


class Hop(NamedTuple):
    """What a model says of the next step; `query` is None where it ends the chain."""

    thought: str
    query: Query | None


def line(text: str) -> str:
    """Return a text as the model meant it, on one line."""
    return " ".join(unshield(text).split())


def sections(reply: str, begins: str, wanted: Iterable[str]) -> Sections:
    """Part a reply that goes on under the heading `begins`.

    A line is taken for a heading if it has the marks of one (`###`), or if it is one of those that are wanted here.
    """
    wanted = {name.lower(): name for name in wanted}
    known = {name.lower(): name for name in HEADINGS}
    texts: dict[str, str] = {}
    name, start = begins, 0
    last = begins

    def keep(until: int) -> None:
        nonlocal last
        if found := line(reply[start:until]):
            texts.setdefault(name, found)
            last = name

    for match in _HEADING.finditer(reply):
        said = match["name"].lower()
        if said not in wanted and not match["hashes"]:
            continue
        keep(match.start())
        name, start = wanted.get(said) or known.get(said) or said, match.end()
    keep(len(reply))
    return Sections(texts, last)


def is_end(text: str) -> bool:
    """Tell whether a query says that there is nothing more to ask."""
    bare = text.strip(" .!*_\"'()[]")
    return bool(_END.fullmatch(bare) or (_NO_MORE.search(bare) and "?" not in bare))


def read_hop(found: Sections, asked: tuple[str, ...], raw: str) -> Hop:
    """Read thought and query; raises ReplyError where a formulation is missing."""
    texts = dict(found.texts)
    if QUERY in texts:
        texts.setdefault(asked[0], texts[QUERY])
    thought = texts.get(THOUGHT, "")
    said = [texts[name] for name in asked if name in texts]
    if said and is_end(said[0]):
        return Hop(thought, None)
    if not said and _NO_MORE.search(thought):
        return Hop(thought, None)
    missing = [name for name in asked if not any(c.isalnum() for c in texts.get(name, ""))]
    if missing:
        raise ReplyError("query", f"the reply has no {missing[0].lower()}", reply=raw)
    specific, general = (texts[name] if name in asked else "" for name in (SPECIFIC, GENERAL))
    return Hop(thought, Query(specific=specific, general="" if is_end(general) and specific else general))


def read_label(text: str, raw: str, words: Mapping[str, Label] = Label.__members__) -> Label:
    """Return the last label of a text, as `words` write it; raises ReplyError where there is none, or where it is denied."""
    bare = text.strip(" \n\t.*_\"'()[]").upper()
    if bare in words:
        return words[bare]
    found = list(re.finditer(rf"{_NOT}\b({'|'.join(words)})\b", text))
    if not found or found[-1][1]:
        raise ReplyError("judge", "the reply denies its label" if found else "the reply has no label", reply=raw)
    return words[found[-1][2]]


class Piece(NamedTuple):
    """What was taken out of an answer: the piece that the question asks for, nothing, or a refusal."""

    entity: str | None
    refusal: bool = False


def read_piece(text: str, answer: str, raw: str) -> Piece:
    """Read what was taken out of an answer; raises ReplyError where the reply is empty.

    "None" is a piece of the answer where the answer says "none" itself and the model does not write it in capitals.
    """
    found = line(text).strip("*_ ")
    if not any(c.isalnum() for c in found):
        raise ReplyError("extract", "the reply names no entity", reply=raw)
    for word, piece in (("NONE", Piece(None)), ("REFUSAL", Piece(None, refusal=True))):
        shouted = re.search(rf"\b{word}\b", found) and not re.search(rf"\b{word}\b", answer)
        said = re.match(rf"\W*{word}\b", found, re.IGNORECASE) and not re.search(rf"\b{word}\b", answer, re.IGNORECASE)
        if shouted or said:
            return piece
    return Piece(found)


def whole_sentences(text: str) -> str:
    """Return what is whole of a text that was cut off: all up to its last end of a sentence."""
    ends = list(re.finditer(r"[.!?。！？][\"”’)\]]*(?=\s|$)", text))  # noqa: RUF001
    return text[: ends[-1].end()] if ends else ""
