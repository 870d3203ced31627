"""Reading what an OpenAI-compatible server sends back: chat and plain completions, log-probabilities, token counts."""

import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from knowhalu.errors import BackendError, ReplyError
from knowhalu.llm.label_probabilities import TokenLogprobs

STOP_FINISH_REASONS = {"stop", "eos", "eos_token", "stop_sequence", "end_turn"}
LENGTH_FINISH_REASONS = {"length", "max_tokens"}
MIN_ECHO_CHARACTERS = 4
"""A reply that begins like a shorter text need not be an echo of it."""


class RetryableFault(Exception):
    """A fault that a further try may mend; `wait` is how long the server asks to wait, in seconds."""

    def __init__(self, reason: str, cure: str = "", *, wait: float | None = None, reply: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.cure, self.wait, self.reply = reason, cure, wait, reply


class ServerReply(NamedTuple):
    """One reply as the server gave it; `positions` is None without log-probabilities of the tokens that were not chosen."""

    text: str
    finish_reason: str
    logprobs: tuple[float, ...]
    positions: tuple[TokenLogprobs, ...] | None
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


def parse_reply(payload: Any, where: str, raw: str) -> ServerReply:
    """Read one reply; `raw` is kept with errors.

    Raises Again where there is no reply at all, ReplyError where it is not text that the model ended by itself or by length.
    """
    choices = payload.get("choices") if isinstance(payload, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise RetryableFault("the reply has no choices", "See the server's log", reply=raw)
    first = choices[0]
    finish = _finish_reason(first.get("finish_reason"), where, raw)
    logprobs, positions = _logprobs(first.get("logprobs"))
    return ServerReply(_text(first, where, raw), finish, logprobs, positions, *_token_counts(payload))


def _text(choice: dict[str, Any], where: str, raw: str) -> str:
    message = choice.get("message")
    if isinstance(message, dict):
        role, text = message.get("role", "assistant"), message.get("content")
        if role != "assistant":
            raise ReplyError("generate", f"{where}: the reply is in the role {role!r}, not the assistant's", reply=raw)
        if text is None and (message.get("reasoning") or message.get("reasoning_content")):
            cure = "Serve it without its thinking mode, or take an instruct model"
            raise ReplyError("generate", f"{where}: the model only thought and wrote no reply. {cure}", reply=raw)
    else:
        text = choice.get("text")
    if not isinstance(text, str):
        raise ReplyError("generate", f"{where}: the reply has no text", reply=raw)
    return _replace_surrogates(text)


def _replace_surrogates(text: str) -> str:
    """Put "?" in the place of every half of a surrogate pair, which JSON may hold and no file."""
    return text.encode(errors="replace").decode()


def _finish_reason(reason: Any, where: str, raw: str) -> str:
    if reason is None or reason in STOP_FINISH_REASONS:
        return "stop"
    if reason in LENGTH_FINISH_REASONS:
        return "length"
    if reason == "abort":
        raise RetryableFault("the server broke the reply off", "See the server's log", reply=raw)
    cure = "A content filter stands before this model: serve it without" if reason == "content_filter" else "See the server's log"
    raise ReplyError("generate", f"{where}: the reply ended by {reason!r}, not by itself. {cure}", reply=raw)


def _logprobs(value: Any) -> tuple[tuple[float, ...], tuple[TokenLogprobs, ...] | None]:
    """Read log-probabilities in either of OpenAI's two shapes; one that is not a number voids them all."""
    if not isinstance(value, dict):
        return (), None
    try:
        found = _chat_logprobs(value["content"]) if value.get("content") else _completion_logprobs(value)
    except (KeyError, TypeError, ValueError, AttributeError):
        return (), None
    logprobs = tuple(p.logprob for p in found)
    return logprobs, tuple(found) if found and all(p.top for p in found) else None


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
        raise ValueError(f"{value!r} is no log-probability")
    return min(number, 0.0)


def _token_counts(payload: dict[str, Any]) -> tuple[int, int, int]:
    usage, timings = (v if isinstance(v := payload.get(name), dict) else {} for name in ("usage", "timings"))
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else timings.get("cache_n")
    found = (usage.get("prompt_tokens"), cached, usage.get("completion_tokens"))
    prompt, cached, completion = (n if isinstance(n, int) and n > 0 else 0 for n in found)
    return prompt, min(cached, prompt), completion


def cut_at_stop(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """Return the text before the first stop string, and whether there was one."""
    found = [at for stop in stops if stop and (at := text.find(stop)) >= 0]
    return (text[: min(found)], True) if found else (text, False)


def strip_echo(said: ServerReply, begun: str) -> ServerReply:
    """Drop the begun reply from the front, where a server gives it back or a model says it once more."""
    start = begun if said.text.startswith(begun) else begun.strip()
    if len(start) < MIN_ECHO_CHARACTERS or not said.text.lstrip().startswith(start.lstrip()):
        return said
    at = said.text.index(start) + len(start)
    positions, length = list(said.positions or ()), 0
    while positions and length < at:
        length += len(positions.pop(0).token)
    exact = said.positions is not None and length == at
    return said._replace(text=said.text[at:], positions=tuple(positions) if exact else None)


def explain_refusal(status: int, said: str, where: str, key_env: str) -> BackendError:
    """Say what a server's refusal means and what to do."""
    if is_context_overflow(said):
        cure = "Serve the model with a longer context (vLLM: --max-model-len, llama.cpp: -c), or take fewer passages a query"
        reason = f"the prompt is longer than the model's context: {said}. {cure} (knowhalu.passages)"
    elif status in (401, 403):
        reason = f"the server wants a key ({said}). Put it into the environment variable {key_env}"
    elif 300 <= status < 400:
        reason = f"the server sends on to another address (HTTP {status}). Set llm.url to that one"
    else:
        reason = f"the server refused (HTTP {status}): {said or 'without a word'}"
    return BackendError("generate", f"{where}: {reason}", reply=said)


def is_context_overflow(said: str) -> bool:
    """Tell whether an error speaks of a context that is too short for the prompt."""
    words = said.lower()
    return any(w in words for w in ("context length", "context size", "context window", "max_model_len", "too many tokens"))


def is_permanent(said: str) -> bool:
    """Tell whether an error speaks of something that no further try will change, whatever its status code."""
    words = said.lower()
    return is_context_overflow(said) or any(
        w in words for w in ("logits_all", "chat template", "not supported", "not implemented")
    )


def error_text(body: str) -> str:
    """Return the words of an error body, whatever its shape."""
    try:
        payload = json.loads(body)
    except ValueError:
        return " ".join(body.split())[:300]
    for name in ("error", "message", "detail"):
        if isinstance(payload, dict) and payload.get(name):
            payload = payload[name]
    return _replace_surrogates(payload if isinstance(payload, str) else json.dumps(payload))[:600]
