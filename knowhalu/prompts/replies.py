"""Parsing of replies: queries, knowledge and labels. What cannot be parsed is a ReplyError, never a guess.

Headings are recognised as models write them (with or without `###`, bold, numbered or not); text between them may hold
anything: `#`, brackets, quotes, several lines. What `shield` marked in a prompt and a model copied is given back.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from knowhalu.errors import ReplyError
from knowhalu.prompts.format import ASKED_FOR, ENTITY, GENERAL, JUDGMENT, KNOWLEDGE, LABEL, REASON, SPECIFIC, THOUGHT
from knowhalu.prompts.generate import generate_with_retry
from knowhalu.prompts.template import unshield
from knowhalu.requests import Completion, Conversation, Generate
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
    """A reply parted at its headings: the first text under each, and whether the last one was cut off."""

    texts: dict[str, str]
    last: str

    def without_last(self) -> "ReplySections":
        """Return the sections that are whole where the reply was cut off."""
        return ReplySections({k: v for k, v in self.texts.items() if k != self.last}, "")


class NextStep(NamedTuple):
    """What a model says of the next step; `query` is None where it ends the chain."""

    thought: str
    query: Query | None


def one_line(text: str) -> str:
    """Return a text as the model meant it, on one line."""
    return " ".join(unshield(text).split())


def split_sections(reply: str, begins: str, wanted: Iterable[str]) -> ReplySections:
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
    """Tell whether a query says that there is nothing more to ask."""
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
    """Return the last label of a text, as `words` write it; raises ReplyError where there is none, or where it is denied."""
    bare = text.strip(" \n\t.*_\"'()[]").upper()
    if bare in words:
        return words[bare]
    found = list(re.finditer(rf"{_NEGATION}\b({'|'.join(words)})\b", text))
    if not found or found[-1][1]:
        raise ReplyError("judge", "the reply denies its label" if found else "the reply has no label", reply=raw)
    return words[found[-1][2]]


class ExtractedAnswer(NamedTuple):
    """What was taken out of an answer: the piece that the question asks for, nothing, or a refusal."""

    entity: str | None
    refusal: bool = False


def read_extraction(text: str, answer: str, raw: str) -> ExtractedAnswer:
    """Read what was taken out of an answer; raises ReplyError where the reply is empty.

    "None" is a piece of the answer where the answer says "none" itself and the model does not write it in capitals.
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
    """Return what is whole of a text that was cut off: all up to its last end of a sentence."""
    ends = list(re.finditer(r"[.!?。！？][\"”’)\]]*(?=\s|$)", text))  # noqa: RUF001
    return text[: ends[-1].end()] if ends else ""


MAX_CHOICE_TOKENS = 8


def generate_choice(request: Generate, choices: Sequence[str], stage: str) -> Conversation[str]:
    """Go on from an open section to one of the choices; raises ReplyError where two replies name none, or several."""
    ask = replace(request, prefill="\n", stop=(), max_tokens=MAX_CHOICE_TOKENS, choices=tuple(choices))
    restated = replace(ask, prefill=f"\nOne of {', '.join(choices)}:\n")
    _, choice = yield from generate_with_retry(ask, lambda c: _read_choice(c, choices, stage), lambda c: restated)
    return choice


def _read_choice(reply: Completion, choices: Sequence[str], stage: str) -> str:
    if set(reply.choices) == set(choices) and sum(reply.choices.values()) > 0:
        return max(choices, key=lambda one: (reply.choices[one], one == reply.text.strip()))
    bare = reply.text.strip(" \n\t.*_\"'()[]").casefold()
    for one in choices:
        if bare == one.casefold():
            return one
    words = "|".join(map(re.escape, choices))
    found = set(re.findall(rf"(?<![\w/])(?:{words})(?![\w/])", reply.text))
    if len(found) != 1:
        raise ReplyError(stage, f"the reply names {'several' if found else 'none'} of {', '.join(choices)}", reply=reply.text)
    return str(found.pop())


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
    """Return the sentences of unstructured knowledge, all of its lines; none where it says that there is nothing.

    Raises ReplyError where the reply is empty.
    """
    body = one_line(_BULLET.sub("", _OPENING.sub("", text)))
    if not any(c.isalnum() for c in body):
        raise ReplyError("knowledge", "the reply is empty", reply=raw)
    return [s.text for s in sentences(body) if not says_nothing(s.text)]


def read_triplets(text: str, raw: str) -> list[Triplet]:
    """Return the triplets of structured knowledge; none where it says that there is nothing.

    Raises ReplyError where the reply has neither.
    """
    body = unshield(_OPENING.sub("", text))
    found = [t for group in _bracket_groups(body) if (t := _triplet(group)) is not None]
    if not found and not says_nothing(one_line(body)):
        raise ReplyError("knowledge", "the reply has no triplet (subject, predicate, object)", reply=raw)
    return found


def says_nothing(sentence: str) -> bool:
    """Tell whether a sentence says that the passages do not tell."""
    start = _NOTHING.match(sentence)
    return start is not None and not _CONTRAST.search(sentence, start.end())


def _bracket_groups(text: str) -> Iterator[str]:
    """Yield what stands in outermost round brackets; a bracket that is never closed ends with its line."""
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
    """Return where the bracket at `at` is closed, or None; a line break before that is a break of the whole."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
        if text[i] == "\n" and text[i + 1 :].lstrip(" \t").startswith("("):
            return None
    return None


def _triplet(group: str) -> Triplet | None:
    """Part a group into three; of more than two commas, those around the predicate count."""
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
    """Put statements together as prompts show them."""
    return " ".join(statements) if statements else NO_INFORMATION
