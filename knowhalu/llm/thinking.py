"""Thinking: what a reasoning model writes before its answer, cut off from the reply and kept apart.

Servers return it in a field of its own, or leave it in the text between marks that depend on the model. Where a template opens
the thinking itself, as that of DeepSeek-R1 does, only the closing mark is in the text.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from knowhalu.errors import ReplyError
from knowhalu.requests import Completion

_WORDS = r"(?:[a-z]+:)?(?:think|thinking|thoughts?|reasoning|reflection)"
_FINAL = r"<\|channel\|>final<\|message\|>"
_MARKS = (
    (rf"<(?P<tag>{_WORDS})>", r"</{tag}>"),
    (r"\[THINK\]", r"\[/THINK\]"),
    (r"\u25c1think\u25b7", r"\u25c1/think\u25b7"),  # Kimi
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),  # Command
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),  # Apertus
    (r"<\|channel>thought\b", r"<channel\|>"),  # Gemma 4
    (r"<unused94>thought\b", r"<unused95>"),  # MedGemma
    (r"<\|channel\|>(?!final)[^<]*<\|message\|>", rf"(?:<\|end\|>)?(?:<\|start\|>assistant)?{_FINAL}"),  # gpt-oss
    (r"analysis(?=[A-Z].*assistantfinal)", r"assistantfinal"),  # gpt-oss, its special tokens left out
)
"""The marks that open and close the thinking, by family."""
_OPENING = tuple(re.compile(rf"\s*(?:{opening})", re.DOTALL) for opening, _ in _MARKS)
_HEADLESS = re.compile(
    rf"</{_WORDS}>(?=\s*(?:\n|$))|(?<=\n)</{_WORDS}>|\[/THINK\]|\u25c1/think\u25b7|<\|END_THINKING\|>|{_FINAL}", re.IGNORECASE
)
"""What closes a thinking that the template opened."""
_OPEN_AT_END = re.compile(rf"([<\[\u25c1])({_WORDS}|THINK)([>\]\u25b7])\s*$")
_HARMONY_TURN = re.compile(r"<\|start\|>assistant$")


class SplitReply(NamedTuple):
    """A reply without its thinking; `open` tells that the reply ends within it, so that there is no answer."""

    thinking: str
    answer: str
    open: bool = False


class _Token(Protocol):
    @property
    def token(self) -> str: ...


T = TypeVar("T", bound=_Token)


def split_thinking(text: str) -> SplitReply:
    """Split a reply into what the model thought and its answer; a reply without thinking is returned as it is."""
    thoughts: list[str] = []
    rest = text
    while opened := _opened(rest):
        begin, closing = opened
        end = re.compile(closing).search(rest, begin)
        thoughts.append((rest[begin:] if end is None else rest[begin : end.start()]).strip())
        if end is None:
            return SplitReply("\n".join(filter(None, thoughts)), "", open=True)
        rest = rest[end.end() :]
    if closed := [*_HEADLESS.finditer(rest)]:
        thoughts.append(rest[: closed[-1].start()].strip())
        rest = rest[closed[-1].end() :]
    return SplitReply("\n".join(filter(None, thoughts)), rest.lstrip() if thoughts else text)


def _opened(text: str) -> tuple[int, str] | None:
    """Return where the thinking begins that a text opens with, and the pattern of what closes it."""
    for pattern, (_, closing) in zip(_OPENING, _MARKS, strict=True):
        if match := pattern.match(text):
            return match.end(), closing.replace("{tag}", re.escape(match.groupdict().get("tag") or ""))
    return None


def opens_thinking(token: str) -> bool:
    """Tell whether a generated token opens the thinking."""
    return _opened(token) is not None or token.strip() in ("<|channel|>", "<|channel>")


def close_thinking(prompt: str) -> str:
    """Return a prompt whose next token belongs to the answer: a thinking that the template opened is closed empty."""
    if opened := _OPEN_AT_END.search(prompt):
        first, word, last = opened.groups()
        return f"{prompt.rstrip()}\n{first}/{word}{last}\n\n"
    return f"{prompt}<|channel|>final<|message|>" if _HARMONY_TURN.search(prompt) else prompt


def template_opens_thinking(folder: Path) -> bool:
    """Tell whether the chat template in the folder of a model opens the thinking before every reply, as that of DeepSeek-R1."""
    try:
        template = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    except (OSError, ValueError):
        try:
            template = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8")).get("chat_template")
        except (OSError, ValueError, AttributeError):
            return False
    last_turn = template.rpartition("add_generation_prompt")[2] if isinstance(template, str) else ""
    return bool(re.search(rf"<{_WORDS}>", last_turn)) and not re.search(rf"</{_WORDS}>", last_turn)


def answer_tokens(tokens: Sequence[T], answer: str) -> list[T]:
    """Return the tokens of the answer, which ends a reply; none where they cannot be found."""
    wanted, written = answer.strip(), ""
    for at in range(len(tokens) - 1, -1, -1) if wanted else ():
        written = tokens[at].token + written
        if written.lstrip().startswith(wanted):
            return list(tokens[at:])
    return []


def without_thinking(reply: Completion) -> Completion:
    """Return a reply of a model in this process with its thinking apart; raises ReplyError where there is no answer.

    Log-probabilities of tokens are left out then: those of the answer alone are not known.
    """
    split = split_thinking(reply.text)
    if split.open or (split.thinking and not split.answer):
        reason = "the model thinks before it answers, and has not answered. Use an instruct model"
        raise ReplyError("generate", reason, reply=reply.text)
    if split.answer == reply.text:
        return reply
    return replace(reply, text=split.answer, thinking=split.thinking, logprobs=())


def thinking_error(thinking_tokens: int) -> str:
    """Explain that a model thinks instead of answering, and name the remedy."""
    return (
        f"the model thinks before it answers, and has not answered within the {thinking_tokens:,} tokens that it may think for. "
        "Switch its thinking off at the server (llama.cpp: --reasoning-budget 0; vLLM: no --reasoning-parser, which takes a "
        "begun answer for thinking), raise llm.thinking_tokens, or use an instruct model"
    )
