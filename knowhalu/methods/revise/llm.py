"""Rewording with a language model: one sentence under guard, or a whole response in the ways of the papers.

A reply that cannot be read as what was asked for is no text: where a sentence is reworded it proposes nothing, where a whole
response is written it fails that revision.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from knowhalu.errors import PromptError, ReplyError, StageError
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.revise.edits import ProposedRewrite, RewriteInput
from knowhalu.prompts.format import format_passages
from knowhalu.prompts.generate import generate_with_retry, make_request
from knowhalu.prompts.template import Prompt, PromptText, join_sections, load_prompt, section, unshield
from knowhalu.requests import Completion, Conversation, Generate
from knowhalu.text.sentences import sentences, word_count, words
from knowhalu.types import Passage

PROMPT_FAMILY = "revise"
PROMPT_HOLES = {
    "rewrite": ("sources", "doubted"),
    "response": ("sources", "response", "problems"),
    "critique": ("sources", "sentence"),
    "correction": ("sources", "response"),
    "revision": ("sources", "response", "feedback"),
}
"""The prompts and what fills their holes."""
NONE_REPLY = "NONE"
MAX_TOKENS_PER_WORD = 3
"""Tokens that a word of a response may take when it is written again."""
RETRY_TEMPERATURE = 0.7
"""Temperature of a request whose first reply could not be read."""
_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’"}  # noqa: RUF001
_HEADING = re.compile(r"^[ \t]*(?:#{2,6}[ \t]*)?[*_]{0,2}(?:corrected text|rewrite|critique|feedback)[*_]{0,2}:[*_]{0,2}", re.I)


def load_revision_prompt(name: str, folder: Path | None = None) -> Prompt:
    """Load a prompt of revision; raises PromptError where it has other holes than it must."""
    prompt = load_prompt(f"{PROMPT_FAMILY}/{name}", folder)
    if prompt.holes != PROMPT_HOLES[name]:
        raise PromptError(f"{prompt.file}: needs the holes {list(PROMPT_HOLES[name])}, and has {list(prompt.holes)}")
    return prompt


class LLMRewriter:
    """Write new wordings and whole responses with an instruct or completion model."""

    name = "llm"

    def __init__(self, options: LLMOptions | None = None) -> None:
        """Load all prompts; raises PromptError where one cannot be used."""
        self.options = options or LLMOptions()
        self.prompts = {name: load_revision_prompt(name, self.options.prompts) for name in PROMPT_HOLES}

    def propose(
        self, fault: RewriteInput, sources: Sequence[Passage], refused: Sequence[str]
    ) -> Conversation[tuple[ProposedRewrite, ...]]:
        """Propose one other wording; none where the model says so, or where its reply is not one new sentence."""
        doubted = [section("Text", fault.context), section("Sentence", fault.sentence), section("Problem", fault.why)]
        doubted += [section(f"Refused {i}", text) for i, text in enumerate(refused, 1)]
        request = self._request("rewrite", sources=_format_sources(sources), doubted=join_sections(doubted))
        try:
            _, text = yield from generate_with_retry(
                request, lambda c: _read_sentence(c, fault.sentence, request.stop), lambda c: _retry_request(request)
            )
        except ReplyError:
            return ()
        return (ProposedRewrite(text, "rewritten"),) if text and text not in refused else ()

    def by_reasons(self, response: str, sources: Sequence[Passage], faults: Sequence[RewriteInput]) -> Conversation[str]:
        """Rewrite a response by the sentences in doubt and the reasons for it (CoNLI, section 3.2)."""
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
        said = yield from self._remark(request, "feedback")
        return "" if is_none_reply(said) else said

    def _remark(self, request: Generate, stage: str) -> Conversation[str]:
        _, text = yield from generate_with_retry(
            request, lambda c: _read_text(c, stage, request.stop), lambda c: _retry_request(request)
        )
        return text

    def _whole(self, name: str, response: str, sources: Sequence[Passage], **values: PromptText) -> Conversation[str]:
        request = self._request(name, sources=_format_sources(sources), response=section("Text", response), **values)
        for stop in request.stop:
            if stop in f"\n{response}":
                file = self.prompts[name].file
                raise StageError("revise", f"the text holds {stop!r}, where {file} ends the reply; change the text, or that stop")
        request = replace(request, max_tokens=max(request.max_tokens, MAX_TOKENS_PER_WORD * word_count(response)))
        _, text = yield from generate_with_retry(
            request, lambda c: _read_text(c, "revise", request.stop), lambda c: _retry_request(request)
        )
        return "" if is_none_reply(text) else text

    def _request(self, name: str, **values: PromptText) -> Generate:
        return make_request(self.prompts[name], self.options, **values)


def _retry_request(request: Generate) -> Generate:
    """Ask the same with more room and by chance: at temperature 0 the reply would be the same again."""
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
    """Return the one new sentence of a reply, "" for NONE; raises ReplyError where it is another thing."""
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
