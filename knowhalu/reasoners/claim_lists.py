"""Lists of claims in a model's reply: one claim a line, with its number, and where each is judged, with its label."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from knowhalu.errors import ReplyError
from knowhalu.prompts import Shown, joined, shield, unshield
from knowhalu.steps import Completion
from knowhalu.types import Label

_ITEM = re.compile(r"\s*(?:[*_]{0,2}\(?(?P<number>\d{1,3})[*_]{0,2}[.):][*_]{0,2}|[-*\u2022])\s+(?P<text>.*\S)")
"""The blank after a number matters: a model that goes on from a begun "1." writes one, and one that does not begins anew."""
_JUDGED = re.compile(r"(?P<text>.*\w.*?)\s*[:.(|\[=>\u2013\u2014-]+\s*[*_\"']*(?P<label>CORRECT|INCORRECT|INCONCLUSIVE)\b\W*")
_NONE = re.compile(r"\W*(?:none|no claims?)\b[\w\s]{0,30}\W*", re.IGNORECASE)


class JudgedClaim(NamedTuple):
    """A claim in words of its own, and what the model says of it."""

    text: str
    label: Label


def read_claims(reply: Completion) -> list[str]:
    """Return the claims of a reply, each once; none where it says that there are none.

    Raises ReplyError where it holds no list, or was cut off: a claim that is lost would pass unchecked.
    """
    items = _items(reply, "claims")
    if not items and _NONE.fullmatch(reply.text):
        return []
    _whole(reply, items, "claims")
    return list(dict.fromkeys(items))


def read_judged_claims(reply: Completion) -> list[JudgedClaim]:
    """Return the claims of a reply with their labels; raises ReplyError where one has none, or the reply was cut off."""
    items = _items(reply, "judge")
    _whole(reply, items, "judge")
    found = []
    for item in items:
        match = _JUDGED.fullmatch(item)
        if match is None:
            raise ReplyError("judge", f"the claim {item[:80]!r} has no label", reply=reply.text)
        found.append(JudgedClaim(match["text"].strip(), Label(match["label"])))
    return found


def _items(reply: Completion, stage: str) -> list[str]:
    """Return the items of the list; where a number is missing, a claim is lost."""
    found = [m for line in unshield(reply.text).splitlines() if (m := _ITEM.fullmatch(line)) and any(map(str.isalnum, m["text"]))]
    numbers = [int(m["number"]) for m in found if m["number"]]
    for due, number in enumerate(numbers, 1):
        if number != due:
            raise ReplyError(stage, f"the list of claims has number {number} where {due} is due", reply=reply.text)
    return [m["text"] for m in found]


def _whole(reply: Completion, items: list[str], stage: str) -> None:
    if not items:
        raise ReplyError(stage, "the reply lists no claims", reply=reply.text)
    if reply.finish_reason == "length":
        raise ReplyError(stage, "the reply was cut off before its list of claims ended", reply=reply.text)


def listed(claims: Iterable[JudgedClaim]) -> Shown:
    """Write judged claims as prompts show them."""
    return joined(Shown(f"{i}. {shield(c.text)}: {c.label}") for i, c in enumerate(claims, 1))
