"""The replies of OpenAI-compatible servers, parsed: text, thinking, log-probabilities and token counts."""

import math
import os.path
from collections.abc import Sequence
from typing import Any, NamedTuple

from knowhalu.errors import ReplyError
from knowhalu.io.http import TransientFault
from knowhalu.llm.label_probabilities import TokenLogprobs
from knowhalu.llm.thinking import answer_tokens, split_thinking

STOP_FINISH_REASONS = {"stop", "eos", "eos_token", "stop_sequence", "end_turn"}
LENGTH_FINISH_REASONS = {"length", "max_tokens"}
MIN_ECHO_CHARACTERS = 4
"""A prefill that is shorter than this is not looked for: a reply may begin with it by chance."""


class ServerReply(NamedTuple):
    """One reply of a server; `tokens` are the generated ones, where it returns log-probabilities.

    `thinking` is what the model thought before; `unanswered` tells that it did nothing else.
    """

    text: str
    finish_reason: str
    tokens: tuple[TokenLogprobs, ...]
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    thinking: str = ""
    unanswered: bool = False

    @property
    def logprobs(self) -> tuple[float, ...]:
        """The log-probability of each generated token."""
        return tuple(t.logprob for t in self.tokens)

    @property
    def positions(self) -> tuple[TokenLogprobs, ...]:
        """The generated tokens; none where one of them has no alternatives."""
        return self.tokens if all(t.top for t in self.tokens) else ()

    @property
    def thought(self) -> bool:
        """Tell whether the model thought before it answered, or instead."""
        return bool(self.thinking) or self.unanswered

    def as_thinking(self) -> "ServerReply":
        """Return a reply whose text is no answer but the beginning of a thinking."""
        return self._replace(text="", thinking=self.text, unanswered=True, tokens=())


def parse_reply(payload: Any, where: str, raw: str) -> ServerReply:
    """Parse one reply; `where` and `raw` are for the error.

    Raises TransientFault where there is no reply at all, ReplyError where it is not text that ended by itself or by length.
    """
    choices = payload.get("choices") if isinstance(payload, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise TransientFault("the reply has no choices", "See the server's log", reply=raw)
    first = choices[0]
    finish = _finish_reason(first.get("finish_reason"), where, raw)
    written, thought = _texts(first, where, raw)
    split = split_thinking(written.lstrip() if thought.strip() else written)
    thinking = "\n".join(filter(None, (thought.strip(), split.thinking)))
    tokens = _logprobs(first.get("logprobs"))
    if thinking or split.answer != written:
        tokens = answer_tokens(tokens, split.answer)
    unanswered = split.open or (bool(thinking) and not split.answer.strip())
    return ServerReply(split.answer, finish, tuple(tokens), *_token_counts(payload), thinking, unanswered)


def _texts(choice: dict[str, Any], where: str, raw: str) -> tuple[str, str]:
    """Return the text of a reply, and what the server tells apart as thinking."""
    thought: Any = ""
    message = choice.get("message")
    if isinstance(message, dict):
        role, text = message.get("role", "assistant"), message.get("content")
        if role != "assistant":
            raise ReplyError("generate", f"{where}: the reply has the role {role!r}, not 'assistant'", reply=raw)
        thought = message.get("reasoning") or message.get("reasoning_content") or ""
        text = "" if text is None and thought else text
    else:
        text = choice.get("text")
    if not isinstance(text, str):
        raise ReplyError("generate", f"{where}: the reply has no text", reply=raw)
    # JSON may hold a lone surrogate, which becomes "?"; UTF-8 may not
    return text.encode(errors="replace").decode(), str(thought).encode(errors="replace").decode()


def _finish_reason(reason: Any, where: str, raw: str) -> str:
    if reason is None or reason in STOP_FINISH_REASONS:
        return "stop"
    if reason in LENGTH_FINISH_REASONS:
        return "length"
    if reason == "abort":
        raise TransientFault("the server aborted the reply", "See the server's log", reply=raw)
    remedy = "Serve the model without its content filter" if reason == "content_filter" else "See the server's log"
    raise ReplyError("generate", f"{where}: the reply is not complete (finish_reason {reason!r}). {remedy}", reply=raw)


def _logprobs(value: Any) -> list[TokenLogprobs]:
    """Parse log-probabilities in either of OpenAI's two formats; one that is not a number discards them all."""
    if not isinstance(value, dict):
        return []
    try:
        return _chat_logprobs(value["content"]) if value.get("content") else _completion_logprobs(value)
    except (KeyError, TypeError, ValueError, AttributeError):
        return []


def _chat_logprobs(content: Sequence[dict[str, Any]]) -> list[TokenLogprobs]:
    return [
        TokenLogprobs(
            str(entry["token"]),
            _number(entry["logprob"]),
            tuple((str(t["token"]), _number(t["logprob"])) for t in entry.get("top_logprobs") or ()),
        )
        for entry in content
    ]


def _completion_logprobs(value: dict[str, Any]) -> list[TokenLogprobs]:
    tokens, logprobs = value["tokens"], value["token_logprobs"]
    tops = value.get("top_logprobs") or [None] * len(tokens)
    return [
        TokenLogprobs(str(token), _number(logprob), tuple((str(t), _number(p)) for t, p in (top or {}).items()))
        for token, logprob, top in zip(tokens, logprobs, tops, strict=True)
    ]


def _number(value: Any) -> float:
    number = float(value)
    if math.isnan(number) or number > 1e-3:
        raise ValueError(f"{value!r} is not a log-probability")
    return min(number, 0.0)


def _token_counts(payload: dict[str, Any]) -> tuple[int, int, int]:
    usage, timings = (v if isinstance(v := payload.get(name), dict) else {} for name in ("usage", "timings"))
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else timings.get("cache_n")
    counts = (usage.get("prompt_tokens"), cached, usage.get("completion_tokens"))
    prompt, cached, completion = (n if isinstance(n, int) and n > 0 else 0 for n in counts)
    return prompt, min(cached, prompt), completion


def cut_at_stop(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """Return the text before the first stop string, and whether there was one."""
    starts = [at for stop in stops if stop and (at := text.find(stop)) >= 0]
    return (text[: min(starts)], True) if starts else (text, False)


def strip_echo(reply: ServerReply, prefill: str) -> ServerReply:
    """Remove the prefill from the front of a reply, where the server returns it or the model repeats it.

    The tokens may be those of the whole text, or of what follows the prefill alone, as those of llama.cpp, which tell even a
    short prefill from a reply that happens to begin alike. None are kept where they fit neither.
    """
    start = prefill if reply.text.startswith(prefill) else prefill.strip()
    if not start.strip() or not reply.text.lstrip().startswith(start.lstrip()):
        return reply
    at = reply.text.index(start) + len(start)
    rest, written = reply.text[at:], "".join(t.token for t in reply.tokens)
    if reply.tokens and (written in ("", rest) or _shared_length(written, rest) > _shared_length(written, reply.text)):
        return reply._replace(text=rest)
    if len(start) < MIN_ECHO_CHARACTERS:
        return reply
    tokens, length = list(reply.tokens), 0
    while tokens and length < at:
        length += len(tokens.pop(0).token)
    exact = length == at and written.startswith(reply.text[:at])
    return reply._replace(text=rest, tokens=tuple(tokens) if exact else ())


def _shared_length(a: str, b: str) -> int:
    """Return with how many characters two texts begin alike: either may be cut, and a part of a character is no text."""
    return len(os.path.commonprefix((a, b)))
