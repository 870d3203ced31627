"""Turns a request into the tokens that a model in this process goes on with, and tokens back into text."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from knowhalu.errors import ModelError, StageError
from knowhalu.llm.local.prefix_tree import TokenIds, count_shared_prefix
from knowhalu.requests import Generate

Style = Literal["auto", "chat", "completion"]
TAIL_TOKENS = 8
"""Tokens of the prompt that are decoded together with a reply: some tokenizers drop the blank that a text begins with."""


@dataclass(frozen=True)
class EncodedPrompt:
    """What the model reads (`context`) and, where the reply must be one of some choices, each choice's own tokens.

    Choices are tokenized together with what they follow. Where the border between the two runs through a token, the
    context ends before it.
    """

    context: TokenIds
    choices: tuple[TokenIds, ...] = ()


class PromptEncoder:
    """Frame requests for one tokenizer; raises ModelError where a chat is wanted of a model without a chat template."""

    def __init__(self, tokenizer: Any, style: Style, limit: int | None) -> None:
        self.tokenizer, self.limit = tokenizer, limit
        self.is_chat = bool(tokenizer.chat_template) if style == "auto" else style == "chat"
        if self.is_chat and not tokenizer.chat_template:
            raise ModelError("the model has no chat template; set llm.style to completion, or name an instruct model")

    @cached_property
    def _lead(self) -> list[int]:
        """Return what the tokenizer puts before every text, such as a token for its beginning."""
        plain = self.tokenizer("a", add_special_tokens=False)["input_ids"]
        whole = self.tokenizer("a")["input_ids"]
        at = next((i for i in range(len(whole)) if whole[i : i + len(plain)] == plain), 0)
        return list(whole[:at])

    @cached_property
    def _knows_system(self) -> bool:
        """Tell whether the chat template has a place for a system prompt; some refuse it, some leave it out."""
        try:
            return "system prompt" in self._chat([{"role": "system", "content": "system prompt"}, *_user_message("question")])
        except Exception:  # noqa: BLE001 - a template raises what it likes
            return False

    def _chat(self, messages: list[dict[str, str]]) -> str:
        """Write a chat up to the model's turn; a model that can think aloud first is told not to: `prefill` opens the reply."""
        written = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, enable_thinking=False)
        return str(written)

    @cached_property
    def _borders(self) -> list[str]:
        """Return the special tokens that begin and end the turns of a chat: inside a text they would do so too."""
        if not self.is_chat:
            return []
        written = self._chat(_user_message("question")) + str(self.tokenizer.eos_token or "")
        return [token for token in map(str, self.tokenizer.all_special_tokens) if token in written]

    def text(self, request: Generate) -> str:
        """Write the request as the one text that the model goes on with."""
        together = f"{request.system}\n\n{request.prompt}" if request.system else request.prompt
        if not self.is_chat:
            return together + request.prefill
        if request.system and self._knows_system:
            return self._chat([{"role": "system", "content": request.system}, *_user_message(request.prompt)]) + request.prefill
        return self._chat(_user_message(together)) + request.prefill

    def tokens(self, text: str) -> TokenIds:
        """Return the tokens of a text; a chat template has written its special tokens itself."""
        found = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return tuple(found if self.is_chat else [*self._lead, *found])

    def frame(self, request: Generate) -> EncodedPrompt:
        """Frame one request; raises StageError where the model cannot read so much, or tell the choices apart."""
        text = self.text(request)
        self._check_borders(request)
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
        for i, one in enumerate(choices):
            for j, other in enumerate(choices):
                if i != j and other[: len(one)] == one:
                    names = f"{request.choices[i]!r} is the beginning of {request.choices[j]!r}"
                    raise StageError("generate", f"the choices cannot be told apart: {names}")
        return EncodedPrompt(context[:start], choices)

    def _check_borders(self, request: Generate) -> None:
        for token in self._borders:
            if any(token in part for part in (request.system, request.prompt, request.prefill)):
                reason = f"the text holds {token!r}, by which this model parts its turns. Take it out of the text"
                raise StageError("generate", f"{reason}, or use another model")

    def _check_length(self, prompt: int, reply: int) -> None:
        if self.limit is not None and prompt + reply > self.limit:
            raise StageError(
                "generate",
                f"the prompt has {prompt} tokens and the reply may have {reply}, more than the {self.limit} that the model "
                "reads. Use a model with a longer context, or fewer passages or steps; nothing is cut.",
            )

    def reply(self, context: Sequence[int], tokens: Sequence[int]) -> str:
        """Return the text of tokens that follow the context."""
        tail = [int(t) for t in context[-TAIL_TOKENS:]]
        before, whole = self._decode(tail), self._decode([*tail, *tokens])
        return whole[len(before) :] if whole.startswith(before) else self._decode(list(tokens))

    def _decode(self, tokens: list[int]) -> str:
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False))


def _user_message(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]
