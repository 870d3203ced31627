"""A sentence that is being mended: which wordings were tried, which one stands, and what is told of it in the end."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from knowhalu.methods.doubts import Doubt, shifted
from knowhalu.methods.drafting import Readings
from knowhalu.revisions import Change, Edit, Proposal
from knowhalu.text import Span
from knowhalu.types import Passage
from knowhalu.verdicts import Evidence

BY_ITSELF = "it stands beside what is in doubt, and is supported when it is read by itself"
NO_WORDING = "no wording was found that the sources bear out"


@dataclass
class Mend:
    """A doubted sentence, and how it stands with it: `new` is None while it stands as it was, "" where it is dropped."""

    doubt: Doubt
    new: str | None = None
    how: Literal["rewritten", "substituted", "dropped", "kept"] = "kept"
    note: str = ""
    support: tuple[Evidence, ...] = ()
    sources: tuple[Passage, ...] | None = None
    waiting: list[Proposal] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)

    def drop(self) -> None:
        """Leave the sentence out."""
        self.new, self.how, self.note = "", "dropped", NO_WORDING

    def keep(self, note: str) -> None:
        """Let the sentence stand as it was."""
        self.new, self.how, self.note = None, "kept", note

    def change(self, text: str, edit: Edit | None, after: Readings, place: Span | None) -> Change:
        """Return what was done, in the end; `place` is where the sentence stands in the text that `after` reads."""
        start, end, new = edit or Edit(self.doubt.span.start, self.doubt.span.end, self.doubt.span.text)
        why = self.note if self.note == BY_ITSELF else "; ".join(w for w in (self.doubt.why, self.note) if w)
        return Change(
            start=start, end=end, text=text[start:end], new=new, how=self.how, why=why, evidence=self.doubt.evidence,
            support=shifted(self.support, place.start) if place and self.new else (), before=self.doubt.probability,
            after=after.of(place).probability if place else None,
        )  # fmt: skip


def counted(mends: Iterable[Mend]) -> str:
    """Say how many sentences were in doubt, and what became of them."""
    hows = [m.how for m in mends]
    return "sentences in doubt: " + ", ".join(f"{hows.count(how)} {how}" for how in dict.fromkeys(hows))
