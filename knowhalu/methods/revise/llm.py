"""Rewording with a language model: one sentence for guarded revision, or a whole response in the published ways.

A reply that cannot be read proposes nothing where a sentence is reworded, and fails the revision where a whole response is
rewritten.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from knowhalu.errors import ReplyError, StageError
from knowhalu.methods.revise.edits import ProposedRewrite, RewriteInput
from knowhalu.prompts.book import REVISION, PromptBook
from knowhalu.prompts.format import format_passages
from knowhalu.prompts.generate import generate_with_retry
from knowhalu.prompts.template import PromptText, join_sections, section, unshield
from knowhalu.requests import Completion, Conversation, Generate
from knowhalu.settings import LLMOptions
from knowhalu.text.sentences import sentences, word_count, words
from knowhalu.types import Passage

NONE_REPLY = "NONE"
MAX_TOKENS_PER_WORD = 3
"""Tokens allowed for each word of a response that is rewritten."""
RETRY_TEMPERATURE = 0.7
"""Temperature of a request whose first reply could not be read."""
_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’"}  # noqa: RUF001
_HEADING = re.compile(r"^[ \t]*(?:#{2,6}[ \t]*)?[*_]{0,2}(?:corrected text|rewrite|critique|feedback)[*_]{0,2}:[*_]{0,2}", re.I)


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
        request = self._request("rewrite", sources=_format_sources(sources), doubted=join_sections(lines))
        try:
            _, text = yield from generate_with_retry(
                request, lambda c: _read_sentence(c, fault.sentence, request.stop), lambda c: _retry_request(request)
            )
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

    def critique(self, fault: RewriteInput, sources: Sequence[Passage]) -> Conversation[str]:
        """Criticise one sentence by the sources."""
        request = self._request("critique", sources=_format_sources(sources), sentence=section("Sentence", fault.sentence))
        return (yield from self._remark(request, "critique"))

    def feedback(self, response: str, sources: Sequence[Passage]) -> Conversation[str]:
        """Criticise a whole response by the sources; "" where the model finds nothing."""
        request = self._request("correction", sources=_format_sources(sources), response=section("Text", response))
        text = yield from self._remark(request, "feedback")
        return "" if is_none_reply(text) else text

    def _remark(self, request: Generate, stage: str) -> Conversation[str]:
        _, text = yield from generate_with_retry(
            request, lambda c: _read_text(c, stage, request.stop), lambda c: _retry_request(request)
        )
        return text

    def _whole(self, name: str, response: str, sources: Sequence[Passage], **values: PromptText) -> Conversation[str]:
        request = self._request(name, sources=_format_sources(sources), response=section("Text", response), **values)
        for stop in request.stop:
            if stop in f"\n{response}":
                file = self.book.prompt(name).file
                raise StageError("revise", f"the text holds {stop!r}, where {file} ends the reply; change the text, or that stop")
        request = replace(request, max_tokens=max(request.max_tokens, MAX_TOKENS_PER_WORD * word_count(response)))
        _, text = yield from generate_with_retry(
            request, lambda c: _read_text(c, "revise", request.stop), lambda c: _retry_request(request)
        )
        return "" if is_none_reply(text) else text

    def _request(self, name: str, **values: PromptText) -> Generate:
        return self.book.request(name, **values)


def _retry_request(request: Generate) -> Generate:
    """Repeat the request with more tokens and at a temperature: at temperature 0 the reply would be the same."""
    return replace(request, max_tokens=2 * request.max_tokens, temperature=RETRY_TEMPERATURE, seed=request.seed + 1)


def _format_sources(sources: Iterable[Passage]) -> PromptText:
    return join_sections(format_passages(sources)) or section("Passage", "(nothing was found)")


def is_none_reply(text: str) -> bool:
    """Tell whether a reply says NONE, and nothing else."""
    return text.strip(" .*_\"'") == NONE_REPLY


def _read_text(reply: Completion, stage: str, stops: Sequence[str]) -> str:
    """Return the text of a reply, with its line breaks; raises ReplyError where it is empty or was cut off."""
    text = "\n" + _HEADING.sub("", reply.text.strip(), count=1)
    text = text[: min((text.index(stop) for stop in stops if stop in text), default=len(text))]
    text = unshield(text).strip()
    if not any(c.isalnum() for c in text):
        raise ReplyError(stage, "the reply is empty", reply=reply.text)
    if reply.finish_reason == "length":
        raise ReplyError(stage, "the reply was cut off", reply=reply.text)
    return text


def _read_sentence(reply: Completion, old: str, stops: Sequence[str]) -> str:
    """Return the one new sentence of a reply, "" for NONE; raises ReplyError where it is anything else."""
    text = " ".join(_read_text(reply, "rewrite", stops).split())
    if is_none_reply(text):
        return ""
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and old[:1] != text[0]:
        text = text[1:-1].strip()
    if len(sentences(text)) > len(sentences(old)):
        raise ReplyError("rewrite", "the reply is more than the one sentence that was asked for", reply=reply.text)
    if [w.text for w in words(text)] == [w.text for w in words(old)]:
        raise ReplyError("rewrite", "the reply is the sentence as it was", reply=reply.text)
    return text
