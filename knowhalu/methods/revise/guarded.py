"""Revision guarded by the detector: only flagged sentences change, and no change stays that was not checked again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from knowhalu.methods.common.sources import whole_or_retrieved
from knowhalu.methods.revise.edits import MARKER, RANK, Reading, Readings, changed, edits, places, units
from knowhalu.methods.revise.flagged import Doubt, doubts, off_target, refused, shifted, unchanged
from knowhalu.requests import Steps
from knowhalu.results import Change, Edit, Evidence, Fault, Proposal, Revision, Verdict, applied, unified
from knowhalu.settings import ReviseOptions
from knowhalu.text.sentences import Span
from knowhalu.types import Kind, Label, Passage, Sample

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


AROUND = 3
"""Sentences on each side that are shown with one that is reworded."""
LAST_TURNS = 3
"""Checks of the whole after the last new wording: drops, drops taken back, and the text that is left then."""


class Detector(Protocol):
    """Any method of checking."""

    name: str

    def check(self, sample: Sample) -> Steps[Verdict]:
        """Check one sample."""


class Writer(Protocol):
    """Who proposes wordings."""

    def propose(self, fault: Fault, sources: Sequence[Passage], refused: Sequence[str]) -> Steps[tuple[Proposal, ...]]:
        """Propose wordings for a sentence, best first, none that was `refused`; nothing where there is no other."""


class Guarded:
    """Revise a text sentence by sentence under the eyes of a detector."""

    name = "guarded"

    def __init__(self, detector: Detector, writer: Writer, options: ReviseOptions | None = None) -> None:
        self.detector, self.writer, self.options = detector, writer, options or ReviseOptions()

    def check(self, sample: Sample) -> Steps[Revision]:
        """Revise one sample's response."""
        return (yield from _Work(self.detector, self.writer, self.options, sample).revise())


class _Work:
    """One revision under way."""

    def __init__(self, detector: Detector, writer: Writer, options: ReviseOptions, sample: Sample) -> None:
        self.detector, self.writer, self.options, self.sample = detector, writer, options, sample
        self.spans = units(sample.response)
        self.checked: dict[tuple[str, str | None], Verdict] = {}

    def revise(self) -> Steps[Revision]:
        before = yield from self._check(self.sample)
        if before.kind is Kind.OFF_TARGET:
            return refused(self.sample, before, "guarded", off_target(before))
        found = doubts(self.spans, before, self.options)
        if not found:
            return unchanged(self.sample, before, "guarded")
        mends, was = {d.number: Mend(d) for d in found}, Readings(before)
        yield from self._clear(mends)
        for mend in mends.values():
            if not mend.note:
                yield from self._next(mend)
        for turn in range(self.options.rounds + LAST_TURNS):
            made = self._edits(mends)
            text = applied(self.sample.response, made.values())
            if not any(c.isalnum() for c in text):
                return self._refused(mends, before, f"the sources bear out none of it: {found[0].why}")
            after = yield from self._check(self._of(text))
            if after.kind is Kind.OFF_TARGET and not any(m.new for m in mends.values()):
                return self._refused(mends, before, "what the sources bear out of it does not answer the question")
            put = places(self.spans, made)
            rejected = yield from self._rejected(mends, put, was, Readings(after), everything=turn > self.options.rounds)
            if not rejected:
                return self._revision(mends, before, after, put)
            for mend, note in rejected:
                yield from self._retreat(mend, note, is_late=turn >= self.options.rounds)
        return self._refused(
            mends, before, "no revision was found that leaves the other sentences as well supported as they were"
        )

    def _of(self, text: str, *, alone: bool = False) -> Sample:
        """Return the sample with another response; one sentence of several answers no question by itself."""
        question = None if alone and len(self.spans) > 1 else self.sample.question
        return self.sample.model_copy(update={"response": text, "question": question})

    def _check(self, sample: Sample) -> Steps[Verdict]:
        key = (sample.response, sample.question)
        if key not in self.checked:
            self.checked[key] = yield from self.detector.check(sample)
        return self.checked[key]

    def _clear(self, mends: Mapping[int, Mend]) -> Steps[None]:
        """Keep the sentences that share a doubted segment with others and are supported by themselves.

        Where all of a segment are, nothing tells them apart, and all stay in doubt.
        """
        groups: dict[tuple[int, int], list[Mend]] = {}
        for mend in mends.values():
            for segment in mend.doubt.segments:
                groups.setdefault((segment.start, segment.end), []).append(mend)
        for group in groups.values():
            if len(group) < 2:
                continue
            passing = []
            for mend in group:
                alone = yield from self._check(self._of(mend.doubt.span.text, alone=True))
                mend.doubt = mend.doubt.alone(alone)
                if _passes(alone) and len(mend.doubt.segments) == 1:
                    passing.append(mend)
            for mend in passing if len(passing) < len(group) else ():
                mend.keep(BY_ITSELF)

    def _next(self, mend: Mend) -> Steps[None]:
        """Take the next wording that the detector passes by itself; where none is left, drop the sentence."""
        text = mend.doubt.span.text
        marker = found.group() if (found := MARKER.match(text)) else ""
        fault = Fault(text[len(marker) :], mend.doubt.why, self._around(mend.doubt.number))
        if mend.sources is None:
            words = self.options.source_words
            mend.sources = yield from whole_or_retrieved(self.sample, (fault.sentence,), words=words)
        while len(mend.tried) < self.options.rounds:
            if not mend.waiting:
                mend.waiting = list((yield from self.writer.propose(fault, mend.sources, tuple(mend.tried))))
            if not mend.waiting:
                break
            proposal = mend.waiting.pop(0)
            mend.tried.append(proposal.text)
            if proposal.text.strip() in ("", fault.sentence):
                continue
            alone = yield from self._check(self._of(marker + proposal.text, alone=True))
            if _passes(alone):
                mend.new, mend.how, mend.note = marker + proposal.text, proposal.how, ""
                mend.support = tuple(e for e in alone.evidence if e.relation == "supports")
                return
        mend.drop()

    def _around(self, number: int) -> str:
        """Return the text of a sentence and of those beside it, by which it is understood."""
        first, last = max(0, number - AROUND), min(len(self.spans) - 1, number + AROUND)
        return self.sample.response[self.spans[first].start : self.spans[last].end]

    def _edits(self, mends: Mapping[int, Mend]) -> dict[int, Edit]:
        return edits(self.sample.response, self.spans, {i: m.new for i, m in mends.items() if m.new is not None})

    def _rejected(
        self, mends: Mapping[int, Mend], put: Mapping[int, Span], was: Readings, now: Readings, *, everything: bool
    ) -> Steps[list[tuple[Mend, str]]]:
        """Return the changes that must be undone, and why: those not supported in the whole, and those that made others worse."""
        found = {i: "" for i, m in mends.items() if m.new and now.of(put[i]).label is not Label.CORRECT}
        edited = {i: m for i, m in mends.items() if m.new is not None}
        for i, span in put.items() if edited else ():
            cleared = i in mends and mends[i].note == BY_ITSELF
            label = Label.CORRECT if cleared else was.of(self.spans[i]).label
            if i in edited or not (yield from self._is_worse(span, label, now.of(span))):
                continue
            blamed = edited if everything else [min(edited, key=lambda j: (abs(i - j), j > i))]
            found |= {j: f"without it, the detector would doubt “{span.text}”" for j in blamed}
        return [(mends[i], note) for i, note in found.items()]

    def _is_worse(self, span: Span, was: Label | None, now: Reading) -> Steps[bool]:
        """Tell whether a sentence is less supported than it was.

        Sentences may share a segment with others than before. What that does to the label counts only if the sentence is in
        doubt by itself too.
        """
        if now.label is None or RANK[now.label] <= RANK[was or Label.CORRECT]:
            return False
        if all(s.text.strip() == span.text for s in now.segments):
            return True
        alone = yield from self._check(self._of(span.text, alone=True))
        return not _passes(alone)

    def _retreat(self, mend: Mend, note: str, *, is_late: bool) -> Steps[None]:
        """Undo a change: another wording, or none; a drop is taken back."""
        if not mend.new:
            mend.keep(note)
        elif is_late:
            mend.drop()
        else:
            yield from self._next(mend)

    def _refused(self, mends: Mapping[int, Mend], before: Verdict, reason: str) -> Revision:
        return refused(self.sample, before, "guarded", reason, self._changes(mends, before, {}))

    def _revision(self, mends: Mapping[int, Mend], before: Verdict, after: Verdict, put: Mapping[int, Span]) -> Revision:
        changes = self._changes(mends, after, put)
        made = self._edits(mends).values()
        text = applied(self.sample.response, made)
        return Revision(
            id=self.sample.id, method=before.method, how="guarded",
            status="unchanged" if text == self.sample.response else "revised",
            reason=counted(mends.values()), original=self.sample.response, revised=text,
            diff=unified(self.sample.response, text), changes=changes,
            unflagged_changed=len(changed(self.spans, made) - mends.keys()), before=before, after=after,
        )  # fmt: skip

    def _changes(self, mends: Mapping[int, Mend], after: Verdict, put: Mapping[int, Span]) -> tuple[Change, ...]:
        """Say of every sentence in doubt what was done; `put` tells where it stands in the text that `after` speaks of."""
        made, now = self._edits(mends), Readings(after)
        return tuple(m.change(self.sample.response, made.get(i), now, put.get(i)) for i, m in mends.items())


def _passes(verdict: Verdict) -> bool:
    return verdict.hallucinated is False and bool(verdict.segments)
