"""Reading a reply to several numbered hypotheses: each number has one judgment and one label, or it has no answer."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from knowhalu.errors import ReplyError
from knowhalu.reasoners.layout import JUDGMENT, LABEL
from knowhalu.reasoners.replies import line, read_label
from knowhalu.types import Label

_HEADING = re.compile(
    rf"^[ \t>-]*(?:#{{2,6}})?[ \t]*[*_]{{0,2}}({JUDGMENT}|{LABEL})[ -]?(\d{{1,3}})[*_]{{0,2}}[ \t]*[:\uff1a][*_]{{0,2}}",
    re.MULTILINE | re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(?:no|not|nor|neither|never|without)\b|n['\u2019]t\b", re.IGNORECASE)


class Answer(NamedTuple):
    """What was said of one hypothesis."""

    reason: str
    label: Label


def read_answers(reply: str, count: int, words: Mapping[str, Label], *, whole: bool) -> dict[int, Answer]:
    """Read the answers to hypotheses 1 to `count`; the reply goes on under the heading of the first judgment.

    A number with no judgment or label, with several, or with one that cannot be read, is left out; of a reply that is not
    `whole`, so is the last text.
    """
    texts: dict[tuple[str, int], list[str]] = {}
    key, start = (JUDGMENT, 1), 0
    for match in _HEADING.finditer(reply):
        _keep(texts, key, reply[start : match.start()])
        key, start = (match[1].capitalize(), int(match[2])), match.end()
    if whole or key[0] == LABEL:
        _keep(texts, key, reply[start:])
    found = {}
    for n in range(1, count + 1):
        reasons, labels = texts.get((JUDGMENT, n), []), texts.get((LABEL, n), [])
        if len(reasons) == 1 and len(labels) == 1:
            try:
                found[n] = Answer(line(reasons[0]), _label(labels[0], reply, words))
            except ReplyError:
                continue
    return found


def _keep(texts: dict[tuple[str, int], list[str]], key: tuple[str, int], text: str) -> None:
    if any(c.isalnum() for c in text):
        texts.setdefault(key, []).append(text)


def _label(text: str, reply: str, words: Mapping[str, Label]) -> Label:
    """Read a label in the first line, as nothing holds a model back from talking on; raises ReplyError unless it names one."""
    first = line(text.strip().partition("\n")[0])
    named = list(re.finditer(rf"\b(?:{'|'.join(words)})\b", first))
    if len({m[0] for m in named}) > 1 or (named and _DENIAL.search(first, 0, named[0].start())):
        raise ReplyError("judge", "the reply names several labels, or denies one", reply=reply)
    return read_label(first, reply, words)
