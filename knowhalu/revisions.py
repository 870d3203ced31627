"""What a revision ends in: the revised text, every change with its reason and evidence, and the verdicts before and after."""

from collections.abc import Iterable, Sequence
from difflib import unified_diff
from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from knowhalu.text import sentences
from knowhalu.types import Record
from knowhalu.verdicts import Evidence, Failure, Usage, Verdict

How = Literal["guarded", "conli", "factored", "self-correction"]
"""Ways to revise: our own, and three that were published."""


class Edit(NamedTuple):
    """Characters of a text, and what is to stand in their place."""

    start: int
    end: int
    new: str


class Fault(NamedTuple):
    """A sentence that is doubted, why, and the text that it stands in."""

    sentence: str
    why: str
    context: str


class Proposal(NamedTuple):
    """A wording that might take the place of a sentence."""

    text: str
    how: Literal["rewritten", "substituted"]


class Change(Record):
    """A stretch of the original, `text == original[start:end]`, and what stands in its place: "" where it was dropped.

    What was "kept" stands as it was although it was doubted; what was "added" has no stretch in the original. `before` and
    `after` are probabilities of being hallucinated, None where they were not judged. `evidence` speaks of the original, `support`
    of the revised text; their spans are of those texts.
    """

    start: int
    end: int
    text: str
    new: str
    how: Literal["rewritten", "substituted", "dropped", "added", "kept"]
    why: str
    evidence: tuple[Evidence, ...] = ()
    support: tuple[Evidence, ...] = ()
    before: float | None = None
    after: float | None = None


class Revision(Record):
    """A text made to say what its sources bear out, with all that was changed in it.

    `method` is the detector's name. A refused revision has no `revised` text; its changes say what would have had to go.
    `unflagged_changed` counts sentences that were changed though the detector had passed them. Usage and seconds are of the
    whole revision, with all of its checks; those within `before` and `after` are empty. `index` is the seal of the index that was
    searched, None where none was.
    """

    id: str
    method: str
    how: How
    status: Literal["revised", "unchanged", "refused"]
    reason: str
    original: str
    revised: str | None
    diff: str = ""
    changes: tuple[Change, ...] = ()
    unflagged_changed: int = 0
    before: Verdict
    after: Verdict | None
    usage: Usage = Usage()
    seconds: dict[str, float] = Field(default_factory=dict)
    index: str | None = None

    @model_validator(mode="after")
    def _fits(self) -> "Revision":
        if any(self.original[c.start : c.end] != c.text for c in self.changes):
            raise ValueError("a change does not quote the original")
        if (self.revised is None) != (self.status == "refused"):
            raise ValueError("a revision has a text unless it is refused")
        if self.revised is not None and applied(self.original, self.edits) != self.revised:
            raise ValueError("the changes do not make the revised text")
        return self

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Return the changes without their reasons."""
        return tuple(Edit(c.start, c.end, c.new) for c in self.changes)


Revised = Revision | Failure


def applied(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with its edits made; raises ValueError where two of them overlap."""
    parts, at = [], 0
    for edit in sorted(edits):
        if edit.start < at:
            raise ValueError(f"two changes overlap at character {edit.start}")
        parts += [text[at : edit.start], edit.new]
        at = edit.end
    return "".join([*parts, text[at:]])


def unified(original: str, revised: str) -> str:
    """Return what differs as a unified diff, one sentence on each line."""
    lines = unified_diff(_lines(original), _lines(revised), "original", "revised", lineterm="", n=1)
    return "\n".join(lines)


def _lines(text: str) -> Sequence[str]:
    return [" ".join(s.text.split()) for s in sentences(text)]
