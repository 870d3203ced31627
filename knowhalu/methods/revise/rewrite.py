"""The published ways to revise: the whole response is written anew, so sentences that were not in doubt may change too.

CoNLI rewrites by the reasons found (section 3.2). Factored Verification revises by one critique for every unsupported claim, all
joined into one (Algorithm 1). Self-correction is its baseline (section 4.1): the model criticises the text itself, and is told
nothing by a detector.
"""

from collections.abc import Sequence
from typing import Protocol

from knowhalu.methods.common.sources import given_or_retrieved_passages
from knowhalu.methods.revise.edits import RewriteInput, changed_sentences, diff_edits, editable_spans, make_unified_diff
from knowhalu.methods.revise.flagged import (
    FlaggedSentence,
    flagged_sentences,
    off_target_reason,
    refused_revision,
    unchanged_revision,
)
from knowhalu.methods.revise.guarded import Detector
from knowhalu.methods.revise.options import ReviseOptions
from knowhalu.requests import Conversation
from knowhalu.results import Change, Revision, TextEdit, Verdict
from knowhalu.text.sentences import Span
from knowhalu.types import HallucinationKind, Passage, Sample

WHITESPACE_NOTE, UNFLAGGED_NOTE = "only white space", "changed though it was not in doubt"


class ResponseRewriter(Protocol):
    """Who writes whole responses anew; "" says that nothing of the response can be left."""

    def by_reasons(self, response: str, sources: Sequence[Passage], faults: Sequence[RewriteInput]) -> Conversation[str]:
        """Rewrite a response by the sentences in doubt and the reasons for it."""

    def critique(self, fault: RewriteInput, sources: Sequence[Passage]) -> Conversation[str]:
        """Criticise one sentence by the sources."""

    def feedback(self, response: str, sources: Sequence[Passage]) -> Conversation[str]:
        """Criticise a whole response by the sources; "" where there is nothing to criticise."""

    def by_feedback(self, response: str, sources: Sequence[Passage], feedback: str) -> Conversation[str]:
        """Revise a response by the criticism of it."""


class ResponseRevision:
    """Revise a response in one go, in one of the published ways."""

    def __init__(self, detector: Detector, writer: ResponseRewriter, options: ReviseOptions) -> None:
        self.detector, self.writer, self.options, self.name = detector, writer, options, options.how

    def check(self, sample: Sample) -> Conversation[Revision]:
        """Revise one sample's response; the verdict after it is a measurement and changes nothing."""
        before = yield from self.detector.check(sample)
        if before.kind is HallucinationKind.OFF_TARGET:
            return refused_revision(sample, before, self.options.how, off_target_reason(before))
        spans = editable_spans(sample.response)
        found = flagged_sentences(spans, before, self.options)
        if not found and self.options.how != "self-correction":
            return unchanged_revision(sample, before, self.options.how)
        asked = [d.span.text for d in found] if self.options.how != "self-correction" else [sample.response]
        sources = yield from given_or_retrieved_passages(sample, asked, words=self.options.source_words)
        text = yield from self._written(sample, sources, found)
        if not any(c.isalnum() for c in text):
            return refused_revision(sample, before, self.options.how, "the model found nothing in it that the sources bear out")
        after = before
        if text != sample.response:
            after = yield from self.detector.check(sample.model_copy(update={"response": text}))
        return self._revision(sample, text, spans, found, before, after)

    def _written(self, sample: Sample, sources: Sequence[Passage], found: Sequence[FlaggedSentence]) -> Conversation[str]:
        response, faults = sample.response, [RewriteInput(d.span.text, d.why, sample.response) for d in found]
        if self.options.how == "conli":
            return (yield from self.writer.by_reasons(response, sources, faults))
        if self.options.how == "self-correction":
            feedback = yield from self.writer.feedback(response, sources)
            return (yield from self.writer.by_feedback(response, sources, feedback)) if feedback else response
        critiques = []
        for fault in faults:
            own = yield from given_or_retrieved_passages(sample, (fault.sentence,), words=self.options.source_words)
            critique = yield from self.writer.critique(fault, own)
            critiques.append(f"- The sentence “{fault.sentence}”: {critique}")
        return (yield from self.writer.by_feedback(response, sources, "\n".join(critiques)))

    def _revision(
        self, sample: Sample, text: str, spans: Sequence[Span], found: Sequence[FlaggedSentence], before: Verdict, after: Verdict
    ) -> Revision:
        made = diff_edits(sample.response, text)
        unasked = changed_sentences(spans, made) - {d.number for d in found}
        return Revision(
            id=sample.id, method=before.method, how=self.options.how, status="revised" if made else "unchanged",
            reason=f"{len(found)} of {len(spans)} sentences were in doubt", original=sample.response, revised=text,
            diff=make_unified_diff(sample.response, text), changes=tuple(_make_change(sample.response, e, found) for e in made),
            unflagged_changed=len(unasked), before=before, after=after,
        )  # fmt: skip


def _touches(edit: TextEdit, span: Span) -> bool:
    return edit.start < span.end and span.start < edit.end


def _make_change(text: str, edit: TextEdit, found: Sequence[FlaggedSentence]) -> Change:
    old, mine = text[edit.start : edit.end], [d for d in found if _touches(edit, d.span)]
    blank = not old.strip() and not edit.new.strip()
    return Change(
        start=edit.start, end=edit.end, text=old, new=edit.new,
        how="rewritten" if blank or (old.strip() and edit.new.strip()) else "dropped" if old.strip() else "added",
        why="; ".join(d.why for d in mine) or (WHITESPACE_NOTE if blank else UNFLAGGED_NOTE),
        evidence=tuple(e for d in mine for e in d.evidence), before=max((d.probability for d in mine), default=None),
    )  # fmt: skip
