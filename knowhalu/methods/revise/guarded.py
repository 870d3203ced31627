"""Revision guarded by the detector: only flagged sentences change, and every change is checked again."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from knowhalu.methods.common.protocol import Detector
from knowhalu.methods.options import ReviseOptions
from knowhalu.methods.revise.edits import (
    LABEL_SEVERITY,
    LIST_MARKER,
    FlaggedSentence,
    ProposedRewrite,
    RewriteInput,
    SentenceVerdict,
    SentenceVerdicts,
    changed_sentences,
    editable_spans,
    flagged_sentences,
    make_edits,
    make_unified_diff,
    off_target_reason,
    refused_revision,
    shift_evidence,
    spans_after_edits,
    unchanged_revision,
)
from knowhalu.methods.revise.evidence import passages_for_sentence
from knowhalu.requests import Conversation
from knowhalu.results import Change, Evidence, Revision, Verdict
from knowhalu.text.edits import TextEdit, apply_edits
from knowhalu.text.sentences import Span
from knowhalu.types import HallucinationKind, Label, Passage, Sample

SUPPORTED_ALONE_NOTE = "supported when it is read by itself; another sentence of its segment is not"
NO_REWRITE_NOTE = "no wording was found that the sources support"


@dataclass
class SentenceRevision:
    """A flagged sentence and its revision so far: `new` is None while the sentence is unchanged, "" where it is dropped."""

    flagged: FlaggedSentence
    new: str | None = None
    how: Literal["rewritten", "substituted", "dropped", "kept"] = "kept"
    note: str = ""
    support: tuple[Evidence, ...] = ()
    sources: tuple[Passage, ...] | None = None
    waiting: list[ProposedRewrite] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)

    def drop(self) -> None:
        """Drop the sentence."""
        self.new, self.how, self.note = "", "dropped", NO_REWRITE_NOTE

    def keep(self, note: str) -> None:
        """Leave the sentence unchanged."""
        self.new, self.how, self.note = None, "kept", note

    def change(self, text: str, edit: TextEdit | None, after: SentenceVerdicts, place: Span | None) -> Change:
        """Return the change; `place` is the span of the sentence in the text of `after`, None where it was dropped."""
        start, end, new = edit or TextEdit(self.flagged.span.start, self.flagged.span.end, self.flagged.span.text)
        why = self.note if self.note == SUPPORTED_ALONE_NOTE else "; ".join(w for w in (self.flagged.why, self.note) if w)
        return Change(
            start=start, end=end, text=text[start:end], new=new, how=self.how, why=why, evidence=self.flagged.evidence,
            support=shift_evidence(self.support, place.start) if place and self.new else (), before=self.flagged.probability,
            after=after.of(place).probability if place else None,
        )  # fmt: skip


CONTEXT_SENTENCES = 3
"""Sentences on each side that are shown with one that is reworded."""
MAX_FINAL_ROUNDS = 3
"""Checks of the whole text after the last new wording: after drops, after drops are undone, and of the remaining text."""


class SentenceRewriter(Protocol):
    """Proposes wordings for a sentence."""

    def propose(
        self, fault: RewriteInput, sources: Sequence[Passage], refused: Sequence[str]
    ) -> Conversation[tuple[ProposedRewrite, ...]]:
        """Propose wordings for a sentence, best first, without those in `refused`; an empty tuple where there is none."""


class GuardedRevision:
    """Revise a text sentence by sentence, and check every change with a detector."""

    name = "guarded"

    def __init__(self, detector: Detector, writer: SentenceRewriter, options: ReviseOptions | None = None) -> None:
        self.detector, self.writer, self.options = detector, writer, options or ReviseOptions()

    def check(self, sample: Sample) -> Conversation[Revision]:
        """Revise one sample's response."""
        return (yield from _RevisionRun(self.detector, self.writer, self.options, sample).revise())


class _RevisionRun:
    """The state of one revision."""

    def __init__(self, detector: Detector, writer: SentenceRewriter, options: ReviseOptions, sample: Sample) -> None:
        self.detector, self.writer, self.options, self.sample = detector, writer, options, sample
        self.spans = editable_spans(sample.response)
        self.checked: dict[tuple[str, str | None], Verdict] = {}

    def revise(self) -> Conversation[Revision]:
        before = yield from self._check(self.sample)
        if before.kind is HallucinationKind.OFF_TARGET:
            return refused_revision(self.sample, before, "guarded", off_target_reason(before))
        flagged = flagged_sentences(self.spans, before, self.options)
        if not flagged:
            return unchanged_revision(self.sample, before, "guarded")
        revisions = {f.number: SentenceRevision(f) for f in flagged}
        yield from self._clear(revisions)
        for revision in revisions.values():
            if not revision.note:
                yield from self._next(revision)
        for turn in range(self.options.rounds + MAX_FINAL_ROUNDS):
            edits = self._edits(revisions)
            text = apply_edits(self.sample.response, edits.values())
            if not any(c.isalnum() for c in text):
                return self._refused(revisions, before, f"the sources support none of it: {flagged[0].why}")
            after = yield from self._check(self._of(text))
            if after.kind is HallucinationKind.OFF_TARGET and not any(r.new for r in revisions.values()):
                return self._refused(revisions, before, "what the sources support of it does not answer the question")
            places = spans_after_edits(self.spans, edits)
            rejected = yield from self._rejected(
                revisions, places, SentenceVerdicts(before), SentenceVerdicts(after), everything=turn > self.options.rounds
            )
            if not rejected:
                return self._revision(revisions, before, after, places)
            for revision, note in rejected:
                yield from self._retreat(revision, note, is_late=turn >= self.options.rounds)
        return self._refused(
            revisions, before, "no revision was found that leaves the other sentences as well supported as they were"
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

    def _clear(self, revisions: Mapping[int, SentenceRevision]) -> Conversation[None]:
        """Keep the sentences that share a flagged segment with others and are supported by themselves.

        Where all sentences of a segment are, nothing tells them apart, and all stay flagged.
        """
        groups: dict[tuple[int, int], list[SentenceRevision]] = {}
        for revision in revisions.values():
            for segment in revision.flagged.segments:
                groups.setdefault((segment.start, segment.end), []).append(revision)
        for group in groups.values():
            if len(group) < 2:
                continue
            passing = []
            for revision in group:
                alone = yield from self._check(self._of(revision.flagged.span.text, alone=True))
                revision.flagged = revision.flagged.alone(alone)
                if _passes(alone) and len(revision.flagged.segments) == 1:
                    passing.append(revision)
            for revision in passing if len(passing) < len(group) else ():
                revision.keep(SUPPORTED_ALONE_NOTE)

    def _next(self, revision: SentenceRevision) -> Conversation[None]:
        """Take the next wording that passes the detector by itself; drop the sentence where none is left."""
        text = revision.flagged.span.text
        marker = match.group() if (match := LIST_MARKER.match(text)) else ""
        fault = RewriteInput(text[len(marker) :], revision.flagged.why, self._around(revision.flagged.number))
        if revision.sources is None:
            words, method = self.options.source_words, self.detector.name
            revision.sources = yield from passages_for_sentence(method, self.sample, fault.sentence, words=words)
        while len(revision.tried) < self.options.rounds:
            if not revision.waiting:
                revision.waiting = list((yield from self.writer.propose(fault, revision.sources, tuple(revision.tried))))
            if not revision.waiting:
                break
            proposal = revision.waiting.pop(0)
            revision.tried.append(proposal.text)
            if proposal.text.strip() in ("", fault.sentence):
                continue
            alone = yield from self._check(self._of(marker + proposal.text, alone=True))
            if _passes(alone):
                revision.new, revision.how, revision.note = marker + proposal.text, proposal.how, ""
                revision.support = tuple(e for e in alone.evidence if e.relation == "supports")
                return
        revision.drop()

    def _around(self, number: int) -> str:
        """Return a sentence with its neighbours as context."""
        first, last = max(0, number - CONTEXT_SENTENCES), min(len(self.spans) - 1, number + CONTEXT_SENTENCES)
        return self.sample.response[self.spans[first].start : self.spans[last].end]

    def _edits(self, revisions: Mapping[int, SentenceRevision]) -> dict[int, TextEdit]:
        return make_edits(self.sample.response, self.spans, {i: r.new for i, r in revisions.items() if r.new is not None})

    def _rejected(
        self,
        revisions: Mapping[int, SentenceRevision],
        places: Mapping[int, Span],
        before: SentenceVerdicts,
        after: SentenceVerdicts,
        *,
        everything: bool,
    ) -> Conversation[list[tuple[SentenceRevision, str]]]:
        """Return the changes to undo, and why: those not supported in the whole, and those that made other sentences worse."""
        notes = {i: "" for i, r in revisions.items() if r.new and after.of(places[i]).label is not Label.CORRECT}
        edited = {i: r for i, r in revisions.items() if r.new is not None}
        for i, span in places.items() if edited else ():
            cleared = i in revisions and revisions[i].note == SUPPORTED_ALONE_NOTE
            label = Label.CORRECT if cleared else before.of(self.spans[i]).label
            if i in edited or not (yield from self._is_worse(span, label, after.of(span))):
                continue
            blamed = edited if everything else [min(edited, key=lambda j: (abs(i - j), j > i))]
            notes |= {j: f"without it, the detector would flag “{span.text}”" for j in blamed}
        return [(revisions[i], note) for i, note in notes.items()]

    def _is_worse(self, span: Span, before: Label | None, after: SentenceVerdict) -> Conversation[bool]:
        """Tell whether a sentence is less supported than it was.

        Sentences may share a segment with others than before. What that does to the label counts only if the sentence is
        flagged by itself too.
        """
        if after.label is None or LABEL_SEVERITY[after.label] <= LABEL_SEVERITY[before or Label.CORRECT]:
            return False
        if all(s.text.strip() == span.text for s in after.segments):
            return True
        alone = yield from self._check(self._of(span.text, alone=True))
        return not _passes(alone)

    def _retreat(self, revision: SentenceRevision, note: str, *, is_late: bool) -> Conversation[None]:
        """Undo a change: take another wording, drop the sentence, or undo its drop."""
        if not revision.new:
            revision.keep(note)
        elif is_late:
            revision.drop()
        else:
            yield from self._next(revision)

    def _refused(self, revisions: Mapping[int, SentenceRevision], before: Verdict, reason: str) -> Revision:
        return refused_revision(self.sample, before, "guarded", reason, self._changes(revisions, before, {}))

    def _revision(
        self, revisions: Mapping[int, SentenceRevision], before: Verdict, after: Verdict, places: Mapping[int, Span]
    ) -> Revision:
        changes, counts = self._changes(revisions, after, places), Counter(r.how for r in revisions.values())
        edits = self._edits(revisions).values()
        text = apply_edits(self.sample.response, edits)
        return Revision(
            id=self.sample.id, method=before.method, how="guarded",
            status="unchanged" if text == self.sample.response else "revised",
            reason="flagged sentences: " + ", ".join(f"{count} {how}" for how, count in counts.items()),
            original=self.sample.response, revised=text,
            diff=make_unified_diff(self.sample.response, text), changes=changes,
            unflagged_changed=len(changed_sentences(self.spans, edits) - revisions.keys()), before=before, after=after,
        )  # fmt: skip

    def _changes(
        self, revisions: Mapping[int, SentenceRevision], after: Verdict, places: Mapping[int, Span]
    ) -> tuple[Change, ...]:
        """Return what was done with every flagged sentence; `places` are their spans in the text of `after`."""
        edits, verdicts = self._edits(revisions), SentenceVerdicts(after)
        return tuple(r.change(self.sample.response, edits.get(i), verdicts, places.get(i)) for i, r in revisions.items())


def _passes(verdict: Verdict) -> bool:
    return verdict.hallucinated is False and bool(verdict.segments)
