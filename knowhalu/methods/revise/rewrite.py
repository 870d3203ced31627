"""The published ways to revise, and rewording with a language model.

The whole response is rewritten in the published ways, so sentences that were not flagged may change too.

CoNLI rewrites by the reasons found (section 3.2). Factored Verification revises by one critique for every unsupported claim, all
joined into one (Algorithm 1). Self-correction is its baseline (section 4.1): the model criticises the text itself, without
the findings of a detector. A reply that cannot be read fails the revision there, and proposes nothing where guarded revision
has a sentence reworded.
"""

from collections.abc import Sequence
from dataclasses import replace

from knowhalu.critiques import Critique
from knowhalu.errors import ReplyError, StageError
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.common.protocol import Detector
from knowhalu.methods.options import ReviseOptions
from knowhalu.methods.revise.critique import Critic, join_critiques
from knowhalu.methods.revise.edits import (
    FlaggedSentence,
    ProposedRewrite,
    RewriteInput,
    changed_sentences,
    diff_edits,
    editable_spans,
    flagged_sentences,
    judged_sentences,
    make_unified_diff,
    off_target_reason,
    refused_revision,
    unchanged_revision,
)
from knowhalu.methods.revise.evidence import passages_for_sentence, passages_for_text
from knowhalu.methods.revise.replies import format_sources, generate_revision, is_none_reply, read_text
from knowhalu.prompts.book import REVISION, PromptBook
from knowhalu.prompts.template import PromptText, join_sections, section
from knowhalu.requests import WRITER, Completion, Conversation, Generate
from knowhalu.results import Change, Revision, Verdict
from knowhalu.text.edits import TextEdit
from knowhalu.text.probabilities import all_measured
from knowhalu.text.sentences import Span, sentences, word_count, words
from knowhalu.types import HallucinationKind, Passage, Sample

WHITESPACE_NOTE, UNFLAGGED_NOTE = "only white space", "changed although it was not flagged"
NO_FAULT_NOTE = "the critiques find every sentence supported that they were asked about"


class ResponseRevision:
    """Revise a response in one go, in one of the published ways."""

    def __init__(self, detector: Detector, writer: "LLMRewriter", options: ReviseOptions, critic: Critic | None = None) -> None:
        self.detector, self.writer, self.options, self.name = detector, writer, options, options.how
        self.critic = critic or Critic(writer.options)

    def check(self, sample: Sample) -> Conversation[Revision]:
        """Revise one sample's response; the verdict after it is a measurement and changes nothing."""
        how, critiques = self.options.how, tuple[Critique, ...]()
        before = yield from self.detector.check(sample)
        if before.kind is HallucinationKind.OFF_TARGET:
            return refused_revision(sample, before, how, off_target_reason(before))
        spans = editable_spans(sample.response)
        flagged = flagged_sentences(spans, before, self.options)
        if how == "factored":
            judged = judged_sentences(spans, before) if self.options.critique == "all" else flagged
            critiques = yield from self._criticise(sample, judged)
            pairs = zip(judged, critiques, strict=True)
            flagged = [f._replace(why=critique.critique) for f, critique in pairs if not critique.supported]
        if not flagged and how != "self-correction":
            same = unchanged_revision(sample, before, how)
            note = {"reason": NO_FAULT_NOTE} if critiques and same.status == "unchanged" else {}
            return same.model_copy(update={"critiques": critiques, **note})
        text = yield from self._rewrite(sample, flagged, critiques)
        if not any(c.isalnum() for c in text):
            refused = refused_revision(sample, before, how, "the model found nothing in it that the sources support")
            return refused.model_copy(update={"critiques": critiques})
        after = before
        if text != sample.response:
            after = yield from self.detector.check(sample.model_copy(update={"response": text}))
        revision = self._revision(sample, text, spans, flagged, before, after)
        return revision.model_copy(update={"critiques": critiques})

    def _criticise(self, sample: Sample, sentences: Sequence[FlaggedSentence]) -> Conversation[tuple[Critique, ...]]:
        """Criticise each sentence by its own sources: of a text with citations by the cited ones only (section 3.2)."""
        critiques = []
        for flagged in sentences:
            words, method = self.options.source_words, self.detector.name
            passages = yield from passages_for_sentence(method, sample, flagged.span.text, words=words)
            critiques.append((yield from self.critic.criticise(flagged, passages)))
        return tuple(critiques)

    def _rewrite(self, sample: Sample, flagged: Sequence[FlaggedSentence], critiques: Sequence[Critique]) -> Conversation[str]:
        response, how = sample.response, self.options.how
        queries = [response] if how == "self-correction" else [f.span.text for f in flagged]
        sources = yield from passages_for_text(self.detector.name, sample, queries, words=self.options.source_words)
        if how == "conli":
            faults = [RewriteInput(f.span.text, f.why, response) for f in flagged]
            return (yield from self.writer.by_reasons(response, sources, faults))
        if how == "self-correction":
            feedback = yield from self.writer.feedback(response, sources)
        else:
            feedback = join_critiques(c for c in critiques if not c.supported)
        return (yield from self.writer.by_feedback(response, sources, feedback)) if feedback else response

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


def _make_change(text: str, edit: TextEdit, flagged: Sequence[FlaggedSentence]) -> Change:
    old, touched = text[edit.start : edit.end], [f for f in flagged if edit.start < f.span.end and f.span.start < edit.end]
    blank = not old.strip() and not edit.new.strip()
    measured = all_measured(f.probability for f in touched)
    return Change(
        start=edit.start, end=edit.end, text=old, new=edit.new,
        how="rewritten" if blank or (old.strip() and edit.new.strip()) else "dropped" if old.strip() else "added",
        why="; ".join(f.why for f in touched) or (WHITESPACE_NOTE if blank else UNFLAGGED_NOTE),
        evidence=tuple(e for f in touched for e in f.evidence), before=max(measured) if measured else None,
    )  # fmt: skip


MAX_TOKENS_PER_WORD = 3
"""Tokens allowed for each word of a response that is rewritten."""
_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’"}  # noqa: RUF001


class LLMRewriter:
    """Write new wordings and whole responses with an instruct or completion model."""

    name = "llm"

    def __init__(self, options: LLMOptions | None = None) -> None:
        """Load all prompts; raises PromptError where one cannot be used."""
        self.options = options or LLMOptions()
        self.book = PromptBook(REVISION, self.options)

    def propose(
        self, fault: RewriteInput, sources: Sequence[Passage], refused: Sequence[str]
    ) -> Conversation[tuple[ProposedRewrite, ...]]:
        """Propose one other wording; none where the model replies NONE, or not with one new sentence."""
        lines = [section("Text", fault.context), section("Sentence", fault.sentence), section("Problem", fault.why)]
        lines += [section(f"Refused {i}", text) for i, text in enumerate(refused, 1)]
        request = self._request("rewrite", sources=format_sources(sources), doubted=join_sections(lines))
        try:
            text = yield from generate_revision(request, lambda c: _read_sentence(c, fault.sentence, request.stop))
        except ReplyError:
            return ()
        return (ProposedRewrite(text, "rewritten"),) if text and text not in refused else ()

    def by_reasons(self, response: str, sources: Sequence[Passage], faults: Sequence[RewriteInput]) -> Conversation[str]:
        """Rewrite a response by its flagged sentences and the reasons (CoNLI, section 3.2)."""
        problems = join_sections(section(f"Problem {i}", f"“{f.sentence}” {f.why}") for i, f in enumerate(faults, 1))
        return (yield from self._whole("response", response, sources, problems=problems))

    def by_feedback(self, response: str, sources: Sequence[Passage], feedback: str) -> Conversation[str]:
        """Revise a response by the criticism of it (Factored Verification, Algorithm 1)."""
        return (yield from self._whole("revision", response, sources, feedback=section("Feedback", feedback)))

    def feedback(self, response: str, sources: Sequence[Passage]) -> Conversation[str]:
        """Criticise a whole response by the sources; "" where the model finds nothing."""
        request = self._request("correction", sources=format_sources(sources), response=section("Text", response))
        text = yield from generate_revision(request, lambda c: read_text(c, "feedback", request.stop))
        return "" if is_none_reply(text) else text

    def _request(self, name: str, **values: PromptText) -> Generate:
        return replace(self.book.request(name, **values), role=WRITER)

    def _whole(self, name: str, response: str, sources: Sequence[Passage], **values: PromptText) -> Conversation[str]:
        request = self._request(name, sources=format_sources(sources), response=section("Text", response), **values)
        for stop in request.stop:
            if stop in f"\n{response}":
                file = self.book.prompt(name).file
                raise StageError("revise", f"the text holds {stop!r}, where {file} ends the reply; change the text, or that stop")
        request = replace(request, max_tokens=max(request.max_tokens, MAX_TOKENS_PER_WORD * word_count(response)))
        text = yield from generate_revision(request, lambda c: read_text(c, "revise", request.stop))
        return "" if is_none_reply(text) else text


def _read_sentence(reply: Completion, old: str, stops: Sequence[str]) -> str:
    """Return the one new sentence of a reply, "" for NONE; raises ReplyError where it is anything else."""
    text = " ".join(read_text(reply, "rewrite", stops).split())
    if is_none_reply(text):
        return ""
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and old[:1] != text[0]:
        text = text[1:-1].strip()
    if len(sentences(text)) > len(sentences(old)):
        raise ReplyError("rewrite", "the reply is more than the one sentence that was asked for", reply=reply.text)
    if [w.text for w in words(text)] == [w.text for w in words(old)]:
        raise ReplyError("rewrite", "the reply is the sentence as it was", reply=reply.text)
    return text
