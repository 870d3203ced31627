"""Replies: asked for, with one retry, and parsed. What cannot be parsed is a ReplyError, never a guess.

Where a reply cannot be read, a second request gives its beginning. Headings are recognised as models write them (with or
without `###`, bold, numbered or not); text between them may hold anything: `#`, brackets, quotes, several lines. Shielded text
that a model copied is restored.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar

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
)
from knowhalu.prompts.shielding import shield, unshield
from knowhalu.prompts.template import section
from knowhalu.requests import Completion, Conversation, Generate, ask
from knowhalu.text.sentences import sentences
from knowhalu.text.wordlists import HELPERS, VERBS
from knowhalu.types import Label, Query, Triplet

T = TypeVar("T")
HEADINGS = (ASKED_FOR, REASON, ENTITY, THOUGHT, SPECIFIC, GENERAL, KNOWLEDGE, JUDGMENT, LABEL)
SHORT_QUERY_HEADING = "Query"
"""How models shorten the heading of a query."""
NONE_WORD, REFUSAL_WORD = "NONE", "REFUSAL"
"""The replies of an extraction for an answer without the piece, and for one that declines."""
_HEADING = re.compile(
    r"^[ \t>-]*(?P<hashes>#{2,6})?[ \t]*[*_]{0,2}(?P<name>[a-z]+(?: [a-z]+)?)(?:[ -]?\d+)?[*_]{0,2}[ \t]*[:\uff1a][*_]{0,2}",
    re.MULTILINE | re.IGNORECASE,
)
_NO_MORE = re.compile(r"\bno (?:further|more|other|additional) (?:quer(?:y|ies)|questions?)\b", re.IGNORECASE)
_END = re.compile(r"(?:done\b[^?]*|none|stop|finished|n/?a|nothing(?: more)?(?: to ask)?)", re.IGNORECASE)
_NEGATION = r"((?i:\bnot|n['\u2019]t)\W+)?"


def generate_with_retry(
    request: Generate, read: Callable[[Completion], T], again: Callable[[Completion], Generate], *, joins: bool = False
) -> Conversation[tuple[Completion, T]]:
    """Return the first reply that can be read, and what `read` makes of it; raises ReplyError with the last raw reply.

    `again` makes the second request. With `joins`, its reply may have to be read together with its given beginning; a server
    that cannot continue a reply repeats it, so the reply is read alone first. Replies from the cache that cannot be read are
    requested again from the model.
    """
    for fresh in (False, True):
        first = yield from ask(replace(request, bypass_cache=fresh))
        try:
            return first, read(first)
        except ReplyError:
            second = replace(again(first), bypass_cache=fresh)
        completion = yield from ask(second)
        try:
            return completion, read(completion)
        except ReplyError as error:
            last = error
        if joins:
            line_break = "\n" if completion.text.lstrip().startswith(("##", "**")) else ""  # where it repeats the given heading
            whole = replace(completion, text=f"{second.prefill}{line_break}{completion.text}")
            try:
                return whole, read(whole)
            except ReplyError as error:
                last = error
        if not (first.reused or completion.reused):
            break
    cut = f"; it was cut off after {second.max_tokens} tokens" if completion.finish_reason == "length" else ""
    raise ReplyError(last.stage, f"{last.reason}{cut}, also when asked again", reply=completion.text)


def reply_prefix(raw: str, first: str, *more: tuple[str, str], then: str) -> str:
    """Write the beginning of a reply: its first text, further sections, and the heading of the next section, `then`.

    It equals the model's own reply where that kept to the form, so that its KV cache can be reused. Its texts are data.
    """
    space = " " if raw[:1].isspace() else ""
    lines = [f"{space}{shield(first)}" if first else "", *(section(name, text) for name, text in more), section(then)]
    return "\n".join(lines)


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

    def add_section(end: int) -> None:
        nonlocal last
        if text := one_line(reply[start:end]):
            texts.setdefault(name, text)
            last = name

    for match in _HEADING.finditer(reply):
        heading = match["name"].lower()
        if heading not in wanted and not match["hashes"]:
            continue
        add_section(match.start())
        name, start = wanted.get(heading) or known.get(heading) or heading, match.end()
    add_section(len(reply))
    return ReplySections(texts, last)


def is_end_of_queries(text: str) -> bool:
    """Tell whether a query ends the chain."""
    bare = text.strip(" .!*_\"'()[]")
    return bool(_END.fullmatch(bare) or (_NO_MORE.search(bare) and "?" not in bare))


def read_next_step(reply: ReplySections, headings: tuple[str, ...], raw: str) -> NextStep:
    """Read thought and query; raises ReplyError where a formulation, named by its heading, is missing."""
    texts = dict(reply.texts)
    if SHORT_QUERY_HEADING in texts:
        texts.setdefault(headings[0], texts[SHORT_QUERY_HEADING])
    thought = texts.get(THOUGHT, "")
    first_query = next((texts[name] for name in headings if name in texts), None)
    if is_end_of_queries(first_query) if first_query is not None else _NO_MORE.search(thought):
        return NextStep(thought, None)
    missing = [name for name in headings if not any(c.isalnum() for c in texts.get(name, ""))]
    if missing:
        raise ReplyError("query", f"the reply has no {missing[0].lower()}", reply=raw)
    specific, general = (texts[name] if name in headings else "" for name in (SPECIFIC, GENERAL))
    return NextStep(thought, Query(specific=specific, general="" if is_end_of_queries(general) and specific else general))


def read_label(text: str, raw: str, words: Mapping[str, Label] = Label.__members__) -> Label:
    """Return the last label of a text by its word; raises ReplyError where there is none, or where it is negated."""
    bare = text.strip(" \n\t.*_\"'()[]").upper()
    if bare in words:
        return words[bare]
    matches = list(re.finditer(rf"{_NEGATION}\b({'|'.join(words)})\b", text))
    if not matches or matches[-1][1]:
        raise ReplyError("judge", "the reply denies its label" if matches else "the reply has no label", reply=raw)
    return words[matches[-1][2]]


class ExtractedAnswer(NamedTuple):
    """The words of an answer that the question asks for; None where there are none, or where the answer declines."""

    entity: str | None
    refusal: bool = False


def read_extraction(text: str, answer: str, raw: str) -> ExtractedAnswer:
    """Read the extraction; raises ReplyError where the reply is empty.

    "None" is an extracted word where the answer has "none" itself and the model does not write it in capitals.
    """
    entity = one_line(text).strip("*_ ")
    if not any(c.isalnum() for c in entity):
        raise ReplyError("extract", "the reply names no entity", reply=raw)
    for word in (NONE_WORD, REFUSAL_WORD):
        in_capitals = re.search(rf"\b{word}\b", entity) and not re.search(rf"\b{word}\b", answer)
        at_start = re.match(rf"\W*{word}\b", entity, re.IGNORECASE) and not re.search(rf"\b{word}\b", answer, re.IGNORECASE)
        if in_capitals or at_start:
            return ExtractedAnswer(None, refusal=word == REFUSAL_WORD)
    return ExtractedAnswer(entity)


def complete_sentences(text: str) -> str:
    """Return the complete sentences of a text that was cut off."""
    ends = list(re.finditer(r"[.!?。！？][\"”’)\]]*(?=\s|$)", text))  # noqa: RUF001
    return text[: ends[-1].end()] if ends else ""


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
    triplets = [t for group in _bracket_groups(body) if (t := _triplet(group)) is not None]
    if not triplets and not says_nothing(one_line(body)):
        raise ReplyError("knowledge", "the reply has no triplet (subject, predicate, object)", reply=raw)
    return triplets


def says_nothing(sentence: str) -> bool:
    """Tell whether a sentence states that the passages have no information."""
    start = _NOTHING.match(sentence)
    return start is not None and not _CONTRAST.search(sentence, start.end())


def _bracket_groups(text: str) -> Iterator[str]:
    """Yield the contents of outermost round brackets; a bracket that is never closed ends with its line."""
    at = 0
    while (at := text.find("(", at)) >= 0:
        end = _closing(text, at)
        if end is None:
            line_end = text.find("\n", at)
            end = _closing((text if line_end < 0 else text[:line_end]) + ")", at)
        if end is None:
            at += 1
            continue
        yield text[at + 1 : end]
        at = end + 1


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
