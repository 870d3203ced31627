"""Encode a request as the tokens that a model in this process continues, and decode tokens to text."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any, Literal

from knowhalu.errors import ModelError, StageError
from knowhalu.llm.framing import chat_messages, render_completion_prompt, reply_heading
from knowhalu.llm.options import SHORTER_PROMPT_HINT
from knowhalu.llm.thinking import close_thinking
from knowhalu.llm.turn_tokens import TurnTokens
from knowhalu.requests import Generate

TokenIds = tuple[int, ...]
Style = Literal["auto", "chat", "completion"]
TAIL_TOKENS = 8
"""Tokens of the prompt decoded together with a reply: some tokenizers drop the space at the beginning of a text."""


def count_shared_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """Count the tokens of the longest common prefix of two texts."""
    if one[: len(other)] == other[: len(one)]:
        return min(len(one), len(other))
    return next(i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)


@dataclass(frozen=True)
class EncodedPrompt:
    """The tokens of the prompt (`context`) and, where the reply must be one of several choices, the tokens of each choice.

    Choices are tokenized together with the prompt. Where a token spans the end of the prompt and the start of a choice, the
    context ends before that token.
    """

    context: TokenIds
    choices: tuple[TokenIds, ...] = ()


class PromptEncoder:
    """Encode requests for one tokenizer; raises ModelError for the style "chat" without a chat template."""

    def __init__(self, tokenizer: Any, style: Style, limit: int | None) -> None:
        self.tokenizer, self.limit = tokenizer, limit
        self.is_chat = bool(tokenizer.chat_template) if style == "auto" else style == "chat"
        if self.is_chat and not tokenizer.chat_template:
            raise ModelError("the model has no chat template. Set llm.style to completion, or llm.model to an instruct model")

    @cached_property
    def _leading_tokens(self) -> list[int]:
        """The tokens that the tokenizer puts before every text, such as one for its beginning."""
        plain = self.tokenizer("a", add_special_tokens=False)["input_ids"]
        whole = self.tokenizer("a")["input_ids"]
        at = next((i for i in range(len(whole)) if whole[i : i + len(plain)] == plain), 0)
        return list(whole[:at])

    @cached_property
    def _takes_system_prompt(self) -> bool:
        """Whether the chat template writes a system prompt; some refuse it, some leave it out."""
        try:
            return "system prompt" in self._chat(chat_messages(Generate("question", system="system prompt")))
        except Exception:  # noqa: BLE001 - a template may raise anything
            return False

    def _chat(self, messages: list[dict[str, str]]) -> str:
        """Write a chat up to the answer in the model's turn, without thinking: `prefill` opens the answer."""
        text = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, enable_thinking=False, thinking=False
        )
        return close_thinking(str(text))

    @cached_property
    def _turn_tokens(self) -> TurnTokens:
        """The special tokens of the tokenizer, which would begin or end a turn inside the text of a chat."""
        if not self.is_chat:
            return TurnTokens()
        added = [str(token) for token in self.tokenizer.added_tokens_decoder.values() if token.special]
        return TurnTokens([*map(str, self.tokenizer.all_special_tokens), *added])

    def text(self, request: Generate) -> str:
        """Return the text that the model continues."""
        if not self.is_chat:
            return render_completion_prompt(request)
        messages = chat_messages(request, system_role=self._takes_system_prompt)
        return self._chat(messages) + reply_heading(request) + request.prefill

    def tokens(self, text: str) -> TokenIds:
        """Return the tokens of a text; a chat template writes its special tokens itself."""
        ids = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return tuple(ids if self.is_chat else [*self._leading_tokens, *ids])

    def frame(self, request: Generate) -> EncodedPrompt:
        """Encode one request; raises StageError where it exceeds the context, or a choice is a prefix of another."""
        text = self.text(request)
        self._turn_tokens.check(request)
        context = self.tokens(text)
        if not context:
            raise StageError("generate", "the prompt is empty")
        if not request.choices:
            self._check_length(len(context), request.max_tokens)
            return EncodedPrompt(context)
        whole = [self.tokens(text + choice) for choice in request.choices]
        start = min(count_shared_prefix(context, w) for w in whole)
        if start == 0:
            raise StageError("generate", "the prompt has no token before the choices")
        choices = tuple(w[start:] for w in whole)
        self._check_length(start, max(map(len, choices)))
        for (one, name), (other, other_name) in permutations(zip(choices, request.choices, strict=True), 2):
            if other[: len(one)] == one:
                names = f"{name!r} is a prefix of {other_name!r}"
                raise StageError("generate", f"the choices cannot be distinguished: {names}")
        return EncodedPrompt(context[:start], choices)

    def _check_length(self, prompt: int, reply: int) -> None:
        if self.limit is not None and prompt + reply > self.limit:
            sizes = f"the prompt has {prompt} tokens and the reply may have {reply}"
            reason = f"{sizes}, more than the model's context of {self.limit}; nothing is truncated"
            longer = f"Use a model with a longer context (vLLM: llm.max_length), {SHORTER_PROMPT_HINT}"
            raise StageError("generate", f"{reason}. {longer}")

    def reply(self, context: Sequence[int], tokens: Sequence[int]) -> str:
        """Return the text of tokens that follow the context."""
        tail = [int(t) for t in context[-TAIL_TOKENS:]]
        before, full = self._decode(tail), self._decode([*tail, *tokens])
        return full[len(before) :] if full.startswith(before) else self._decode(list(tokens))

    def _decode(self, tokens: list[int]) -> str:
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False))
