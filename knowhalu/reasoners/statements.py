"""Reading distilled knowledge: sentences or triplets, or that nothing specific is available."""

import re
from collections.abc import Iterator

from knowhalu.errors import ReplyError
from knowhalu.prompts import unshield
from knowhalu.reasoners.lexicon import HELPERS, VERBS
from knowhalu.reasoners.replies import line
from knowhalu.text import sentences
from knowhalu.types import NO_INFORMATION, Form, Triplet

_NOTHING = re.compile(
    r"\W*(?:no (?:specific |relevant |further |such |direct )*information\b|no information\b"
    r"|(?:the |these )?(?:passages?|sources?|documents?|texts?)(?: given| provided)? "
    r"(?:do(?:es)? not|don't|says? nothing|(?:contain|ha[vs]|giv|provid)(?:e|s|es)? no)\b|not (?:mentioned|stated|specified)\b)",
    re.IGNORECASE,
)
_BUT = re.compile(r"\b(?:but|however|although|though|only)\b", re.IGNORECASE)
_OPENING = re.compile(r"^[ \t]*(?:#{2,6}[ \t]*)?[*_]{0,2}(?:knowledge|answer)(?: \d+)?[*_]{0,2}:[*_]{0,2}[ \t]*", re.IGNORECASE)
_BULLET = re.compile(r"^[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]+", re.MULTILINE)
_OPEN, _CLOSE = "([{", ")]}"


def read_sentences(text: str, raw: str) -> list[str]:
    """Return the sentences of unstructured knowledge, all of its lines; none where it says that there is nothing.

    Raises ReplyError where the reply is empty.
    """
    body = line(_BULLET.sub("", _OPENING.sub("", text)))
    if not any(c.isalnum() for c in body):
        raise ReplyError("knowledge", "the reply is empty", reply=raw)
    return [s.text for s in sentences(body) if not says_nothing(s.text)]


def read_triplets(text: str, raw: str) -> list[Triplet]:
    """Return the triplets of structured knowledge; none where it says that there is nothing.

    Raises ReplyError where the reply has neither.
    """
    body = unshield(_OPENING.sub("", text))
    found = [t for group in _groups(body) if (t := _triplet(group)) is not None]
    if not found and not says_nothing(line(body)):
        raise ReplyError("knowledge", "the reply has no triplet (subject, predicate, object)", reply=raw)
    return found


def says_nothing(sentence: str) -> bool:
    """Tell whether a sentence says that the passages do not tell."""
    start = _NOTHING.match(sentence)
    return start is not None and not _BUT.search(sentence, start.end())


def _groups(text: str) -> Iterator[str]:
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
    parts = next((p for mark in "|;" if len(p := _parted(group, mark)) == 3), None) or _parted(group, ",")
    parts = [p for p in (line(p) for p in parts) if p]
    if len(parts) < 3 or says_nothing(parts[0]):
        return None
    at = next((i for i in range(1, len(parts) - 1) if _is_predicate(parts[i])), 1)
    return Triplet(subject=", ".join(parts[:at]), predicate=parts[at], object=", ".join(parts[at + 1 :]))


def _is_predicate(part: str) -> bool:
    words = part.split()
    verb = words[1] if words[0].lower() in ("also", "not", "never") and len(words) > 1 else words[0]
    return verb[:1].islower() and (verb in VERBS or verb in HELPERS or verb.endswith(("ed", "s")))


def _parted(group: str, mark: str) -> list[str]:
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


def written(form: Form, statements: list[str]) -> str:
    """Put statements together as prompts show them."""
    return " ".join(statements) if statements else NO_INFORMATION
