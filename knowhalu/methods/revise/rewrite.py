"""The published ways to revise: the whole response is rewritten, so sentences that were not flagged may change too.

CoNLI rewrites by the reasons found (section 3.2). Factored Verification revises by one critique for every unsupported claim, all
joined into one (Algorithm 1). Self-correction is its baseline (section 4.1): the model criticises the text itself, without
the findings of a detector.
"""

from collections.abc import Sequence
from typing import Protocol

from knowhalu.methods.common.protocol import Detector
from knowhalu.methods.common.sources import given_or_retrieved_passages
from knowhalu.methods.options import ReviseOptions
from knowhalu.methods.revise.edits import (
    FlaggedSentence,
    RewriteInput,
    changed_sentences,
    diff_edits,
    editable_spans,
    flagged_sentences,
    make_unified_diff,
    off_target_reason,
    refused_revision,
    unchanged_revision,
)
from knowhalu.requests import Conversation
from knowhalu.results import Change, Revision, Verdict
from knowhalu.text.edits import TextEdit
from knowhalu.text.sentences import Span
from knowhalu.types import HallucinationKind, Passage, Sample

WHITESPACE_NOTE, UNFLAGGED_NOTE = "only white space", "changed although it was not flagged"


class ResponseRewriter(Protocol):
    """Rewrites whole responses; "" means that nothing of the response can be kept."""

    def by_reasons(self, response: str, sources: Sequence[Passage], faults: Sequence[RewriteInput]) -> Conversation[str]:
        """Rewrite a response by its flagged sentences and the reasons."""

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
        flagged = flagged_sentences(spans, before, self.options)
        if not flagged and self.options.how != "self-correction":
            return unchanged_revision(sample, before, self.options.how)
        queries = [f.span.text for f in flagged] if self.options.how != "self-correction" else [sample.response]
        sources = yield from given_or_retrieved_passages(sample, queries, words=self.options.source_words)
        text = yield from self._rewrite(sample, sources, flagged)
        if not any(c.isalnum() for c in text):
            return refused_revision(sample, before, self.options.how, "the model found nothing in it that the sources support")
        after = before
        if text != sample.response:
            after = yield from self.detector.check(sample.model_copy(update={"response": text}))
        return self._revision(sample, text, spans, flagged, before, after)

    def _rewrite(self, sample: Sample, sources: Sequence[Passage], flagged: Sequence[FlaggedSentence]) -> Conversation[str]:
        response, faults = sample.response, [RewriteInput(f.span.text, f.why, sample.response) for f in flagged]
        if self.options.how == "conli":
            return (yield from self.writer.by_reasons(response, sources, faults))
        if self.options.how == "self-correction":
            feedback = yield from self.writer.feedback(response, sources)
            return (yield from self.writer.by_feedback(response, sources, feedback)) if feedback else response
        critiques = []
        for fault in faults:
            passages = yield from given_or_retrieved_passages(sample, (fault.sentence,), words=self.options.source_words)
            critique = yield from self.writer.critique(fault, passages)
            critiques.append(f"- The sentence “{fault.sentence}”: {critique}")
        return (yield from self.writer.by_feedback(response, sources, "\n".join(critiques)))

    def _revision(
        self,
        sample: Sample,
        text: str,
        spans: Sequence[Span],
        flagged: Sequence[FlaggedSentence],
        before: Verdict,
        after: Verdict,
    ) -> Revision:
        edits = diff_edits(sample.response, text)
        unflagged = changed_sentences(spans, edits) - {f.number for f in flagged}
        return Revision(
            id=sample.id, method=before.method, how=self.options.how, status="revised" if edits else "unchanged",
            reason=f"{len(flagged)} of {len(spans)} sentences were flagged", original=sample.response, revised=text,
            diff=make_unified_diff(sample.response, text),
            changes=tuple(_make_change(sample.response, e, flagged) for e in edits),
            unflagged_changed=len(unflagged), before=before, after=after,
        )  # fmt: skip


def _touches(edit: TextEdit, span: Span) -> bool:
    return edit.start < span.end and span.start < edit.end


def _make_change(text: str, edit: TextEdit, flagged: Sequence[FlaggedSentence]) -> Change:
    old, touched = text[edit.start : edit.end], [f for f in flagged if _touches(edit, f.span)]
    blank = not old.strip() and not edit.new.strip()
    return Change(
        start=edit.start, end=edit.end, text=old, new=edit.new,
        how="rewritten" if blank or (old.strip() and edit.new.strip()) else "dropped" if old.strip() else "added",
        why="; ".join(f.why for f in touched) or (WHITESPACE_NOTE if blank else UNFLAGGED_NOTE),
        evidence=tuple(e for f in touched for e in f.evidence), before=max((f.probability for f in touched), default=None),
    )  # fmt: skip
