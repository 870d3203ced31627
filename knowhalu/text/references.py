"""What a sentence refers back to: the subject that "She" or "The latter" at its beginning stands for.

Only a sure reference is resolved: one candidate of the right kind in the sentence before. The rest is left to the verifier, which
reads the sentence before as context.
"""

import re
from typing import NamedTuple

from knowhalu.text.clauses import find_subject
from knowhalu.text.entities import find_names

REFERS_BACK = re.compile(
    r"\W*(?:he|she|it|they|his|her|its|their|this|that|these|those|such|there|both"
    r"|the (?:former|latter|two|same|company|film|book|song|album|team|building|ship|show|series|group"
    r"|man|woman|couple|event|project|law|species))\b",
    re.IGNORECASE,
)
"""The opening of a sentence that is understood only with the one before."""
_OPENING = re.compile(
    r"(?P<person>he|she)\b|(?P<thing>it)\b(?! (?:(?:is|was|will be|has been)"
    r" (?:said|known|believed|thought|true|clear|likely|possible|not)|rain|snow|seems|appears|takes|took)\w*)"
    r"|(?P<owner>his|her|its)\b(?= [a-z])|(?P<place>the (?:former|latter))\b",
    re.IGNORECASE,
)
_PAIR = re.compile(r"(?P<former>[A-Z][\w’'.-]*(?: [A-Z][\w’'.-]*)*) and (?P<latter>[A-Z][\w’'.-]*(?: [A-Z][\w’'.-]*)*)")  # noqa: RUF001
_NO_PERSON = frozenset("place organisation nationality".split())
_SOURCE = re.compile(
    r"(?:the|this|these|your) (?:\w+ )?(?:texts?|documents?|contexts?|sources?|passages?|articles?|excerpts?|materials?"
    r"|information)",
    re.IGNORECASE,
)
"""Where a claim comes from; what follows is about the world."""
_MODIFIES = re.compile(r"\b(?:of|in|at|from|near|the|to|for|on|a|an) $", re.IGNORECASE)


class Reference(NamedTuple):
    """The first `length` characters of a sentence stand for `subject`."""

    length: int
    subject: str


def resolve_opening(text: str, before: str) -> Reference | None:
    """Return what the opening of a sentence refers to in the sentence before; None where that is not certain."""
    m = _OPENING.match(text)
    if m is None:
        return None
    if m["place"]:
        pairs = list(_PAIR.finditer(before))
        found = pairs[0]["latter" if m["place"].lower().endswith("latter") else "former"] if len(pairs) == 1 else None
    elif m["person"] or (m["owner"] and m["owner"].lower() != "its"):
        found = _person(before)
    else:
        found = _thing(before)
    if found is None:
        return None
    return Reference(m.end(), f"{found}'s" if m["owner"] else found)


def _person(before: str) -> str | None:
    """Return the only name of a sentence that can be a person's, or the one that is its subject."""
    names = [
        n.text
        for n in find_names(before)
        if n.type not in _NO_PERSON and not _MODIFIES.search(before[: n.start]) and not (n.type == "name" and " " not in n.text)
    ]
    candidates = list(dict.fromkeys(names))
    if len(candidates) == 1:
        return candidates[0]
    return next((name for name in candidates if name == find_subject(before)), None)


def _thing(before: str) -> str | None:
    """Return the subject of a sentence if it is a thing."""
    subject = find_subject(before)
    if subject is None or subject == _person(before) or _SOURCE.fullmatch(subject):
        return None
    return subject
