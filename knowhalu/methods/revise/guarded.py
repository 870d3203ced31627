"""Revision guarded by the detector: only flagged sentences change, and no change stays that was not checked again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from knowhalu.methods.common.sources import given_or_retrieved_passages
from knowhalu.methods.revise.edits import (
    LABEL_SEVERITY,
    LIST_MARKER,
    ProposedRewrite,
    RewriteInput,
    SentenceVerdict,
    SentenceVerdicts,
    changed_sentences,
    editable_spans,
    make_edits,
    make_unified_diff,
    spans_after_edits,
)
from knowhalu.methods.revise.flagged import (
    FlaggedSentence,
    flagged_sentences,
    off_target_reason,
    refused_revision,
    shift_evidence,
    unchanged_revision,
)
from knowhalu.methods.revise.options import ReviseOptions
from knowhalu.requests import Conversation
from knowhalu.results import (
    Change,
    Evidence,
    Revision,
    TextEdit,
    Verdict,
    apply_edits,
)
from knowhalu.text.sentences import Span
from knowhalu.types import HallucinationKind, Label, Passage, Sample

SUPPORTED_ALONE_NOTE = "it stands beside what is in doubt, and is supported when it is read by itself"
NO_REWRITE_NOTE = "no wording was found that the sources bear out"


@dataclass
class SentenceRevision:
    """A doubted sentence, and how it stands with it: `new` is None while it stands as it was, "" where it is dropped."""

    doubt: FlaggedSentence
    new: str | None = None
    how: Literal["rewritten", "substituted", "dropped", "kept"] = "kept"
    note: str = ""
    support: tuple[Evidence, ...] = ()
    sources: tuple[Passage, ...] | None = None
    waiting: list[ProposedRewrite] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)

    def drop(self) -> None:
        """Leave the sentence out."""
        self.new, self.how, self.note = "", "dropped", NO_REWRITE_NOTE

    def keep(self, note: str) -> None:
        """Let the sentence stand as it was."""
        self.new, self.how, self.note = None, "kept", note

    def change(self, text: str, edit: TextEdit | None, after: SentenceVerdicts, place: Span | None) -> Change:
        """Return what was done, in the end; `place` is where the sentence stands in the text that `after` reads."""
        start, end, new = edit or TextEdit(self.doubt.span.start, self.doubt.span.end, self.doubt.span.text)
        why = self.note if self.note == SUPPORTED_ALONE_NOTE else "; ".join(w for w in (self.doubt.why, self.note) if w)
        return Change(
            start=start, end=end, text=text[start:end], new=new, how=self.how, why=why, evidence=self.doubt.evidence,
            support=shift_evidence(self.support, place.start) if place and self.new else (), before=self.doubt.probability,
            after=after.of(place).probability if place else None,
        )  # fmt: skip


def summarize_revisions(mends: Iterable[SentenceRevision]) -> str:
    """Say how many sentences were in doubt, and what became of them."""
    hows = [m.how for m in mends]
    return "sentences in doubt: " + ", ".join(f"{hows.count(how)} {how}" for how in dict.fromkeys(hows))


CONTEXT_SENTENCES = 3
"""Sentences on each side that are shown with one that is reworded."""
MAX_FINAL_ROUNDS = 3
"""Checks of the whole after the last new wording: drops, drops taken back, and the text that is left then."""


class Detector(Protocol):
    """Any method of checking."""

    name: str

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Check one sample."""


class SentenceRewriter(Protocol):
    """Who proposes wordings."""

    def propose(
        self, fault: RewriteInput, sources: Sequence[Passage], refused: Sequence[str]
    ) -> Conversation[tuple[ProposedRewrite, ...]]:
        """Propose wordings for a sentence, best first, none that was `refused_revision`; nothing where there is no other."""


class GuardedRevision:
    """Revise a text sentence by sentence under the eyes of a detector."""

    name = "guarded"

    def __init__(self, detector: Detector, writer: SentenceRewriter, options: ReviseOptions | None = None) -> None:
        self.detector, self.writer, self.options = detector, writer, options or ReviseOptions()

    def check(self, sample: Sample) -> Conversation[Revision]:
        """Revise one sample's response."""
        return (yield from _RevisionRun(self.detector, self.writer, self.options, sample).revise())


class _RevisionRun:
    """One revision under way."""

    def __init__(self, detector: Detector, writer: SentenceRewriter, options: ReviseOptions, sample: Sample) -> None:
        self.detector, self.writer, self.options, self.sample = detector, writer, options, sample
        self.spans = editable_spans(sample.response)
        self.checked: dict[tuple[str, str | None], Verdict] = {}

    def revise(self) -> Conversation[Revision]:
        before = yield from self._check(self.sample)
        if before.kind is HallucinationKind.OFF_TARGET:
            return refused_revision(self.sample, before, "guarded", off_target_reason(before))
        found = flagged_sentences(self.spans, before, self.options)
        if not found:
            return unchanged_revision(self.sample, before, "guarded")
        mends, was = {d.number: SentenceRevision(d) for d in found}, SentenceVerdicts(before)
        yield from self._clear(mends)
        for mend in mends.values():
            if not mend.note:
                yield from self._next(mend)
        for turn in range(self.options.rounds + MAX_FINAL_ROUNDS):
            made = self._edits(mends)
            text = apply_edits(self.sample.response, made.values())
            if not any(c.isalnum() for c in text):
                return self._refused(mends, before, f"the sources bear out none of it: {found[0].why}")
            after = yield from self._check(self._of(text))
            if after.kind is HallucinationKind.OFF_TARGET and not any(m.new for m in mends.values()):
                return self._refused(mends, before, "what the sources bear out of it does not answer the question")
            put = spans_after_edits(self.spans, made)
            rejected = yield from self._rejected(mends, put, was, SentenceVerdicts(after), everything=turn > self.options.rounds)
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

    def _check(self, sample: Sample) -> Conversation[Verdict]:
        key = (sample.response, sample.question)
        if key not in self.checked:
            self.checked[key] = yield from self.detector.check(sample)
        return self.checked[key]

    def _clear(self, mends: Mapping[int, SentenceRevision]) -> Conversation[None]:
        """Keep the sentences that share a doubted segment with others and are supported by themselves.

        Where all of a segment are, nothing tells them apart, and all stay in doubt.
        """
        groups: dict[tuple[int, int], list[SentenceRevision]] = {}
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
                mend.keep(SUPPORTED_ALONE_NOTE)

    def _next(self, mend: SentenceRevision) -> Conversation[None]:
        """Take the next wording that the detector passes by itself; where none is left, drop the sentence."""
        text = mend.doubt.span.text
        marker = found.group() if (found := LIST_MARKER.match(text)) else ""
        fault = RewriteInput(text[len(marker) :], mend.doubt.why, self._around(mend.doubt.number))
        if mend.sources is None:
            words = self.options.source_words
            mend.sources = yield from given_or_retrieved_passages(self.sample, (fault.sentence,), words=words)
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
        first, last = max(0, number - CONTEXT_SENTENCES), min(len(self.spans) - 1, number + CONTEXT_SENTENCES)
        return self.sample.response[self.spans[first].start : self.spans[last].end]

    def _edits(self, mends: Mapping[int, SentenceRevision]) -> dict[int, TextEdit]:
        return make_edits(self.sample.response, self.spans, {i: m.new for i, m in mends.items() if m.new is not None})

    def _rejected(
        self,
        mends: Mapping[int, SentenceRevision],
        put: Mapping[int, Span],
        was: SentenceVerdicts,
        now: SentenceVerdicts,
        *,
        everything: bool,
    ) -> Conversation[list[tuple[SentenceRevision, str]]]:
        """Return the changes that must be undone, and why: those not supported in the whole, and those that made others worse."""
        found = {i: "" for i, m in mends.items() if m.new and now.of(put[i]).label is not Label.CORRECT}
        edited = {i: m for i, m in mends.items() if m.new is not None}
        for i, span in put.items() if edited else ():
            cleared = i in mends and mends[i].note == SUPPORTED_ALONE_NOTE
            label = Label.CORRECT if cleared else was.of(self.spans[i]).label
            if i in edited or not (yield from self._is_worse(span, label, now.of(span))):
                continue
            blamed = edited if everything else [min(edited, key=lambda j: (abs(i - j), j > i))]
            found |= {j: f"without it, the detector would doubt “{span.text}”" for j in blamed}
        return [(mends[i], note) for i, note in found.items()]

    def _is_worse(self, span: Span, was: Label | None, now: SentenceVerdict) -> Conversation[bool]:
        """Tell whether a sentence is less supported than it was.

        Sentences may share a segment with others than before. What that does to the label counts only if the sentence is in
        doubt by itself too.
        """
        if now.label is None or LABEL_SEVERITY[now.label] <= LABEL_SEVERITY[was or Label.CORRECT]:
            return False
        if all(s.text.strip() == span.text for s in now.segments):
            return True
        alone = yield from self._check(self._of(span.text, alone=True))
        return not _passes(alone)

    def _retreat(self, mend: SentenceRevision, note: str, *, is_late: bool) -> Conversation[None]:
        """Undo a change: another wording, or none; a drop is taken back."""
        if not mend.new:
            mend.keep(note)
        elif is_late:
            mend.drop()
        else:
            yield from self._next(mend)

    def _refused(self, mends: Mapping[int, SentenceRevision], before: Verdict, reason: str) -> Revision:
        return refused_revision(self.sample, before, "guarded", reason, self._changes(mends, before, {}))

    def _revision(
        self, mends: Mapping[int, SentenceRevision], before: Verdict, after: Verdict, put: Mapping[int, Span]
    ) -> Revision:
        changes = self._changes(mends, after, put)
        made = self._edits(mends).values()
        text = apply_edits(self.sample.response, made)
        return Revision(
            id=self.sample.id, method=before.method, how="guarded",
            status="unchanged" if text == self.sample.response else "revised",
            reason=summarize_revisions(mends.values()), original=self.sample.response, revised=text,
            diff=make_unified_diff(self.sample.response, text), changes=changes,
            unflagged_changed=len(changed_sentences(self.spans, made) - mends.keys()), before=before, after=after,
        )  # fmt: skip

    def _changes(self, mends: Mapping[int, SentenceRevision], after: Verdict, put: Mapping[int, Span]) -> tuple[Change, ...]:
        """Say of every sentence in doubt what was done; `put` tells where it stands in the text that `after` speaks of."""
        made, now = self._edits(mends), SentenceVerdicts(after)
        return tuple(m.change(self.sample.response, made.get(i), now, put.get(i)) for i, m in mends.items())


def _passes(verdict: Verdict) -> bool:
    return verdict.hallucinated is False and bool(verdict.segments)
