"""Parse the replies of OpenAI-compatible servers: chat and plain completions, log-probabilities, token counts and errors."""

import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from knowhalu.errors import BackendError, ReplyError
from knowhalu.io.http import TransientFault
from knowhalu.llm.label_probabilities import TokenLogprobs

STOP_FINISH_REASONS = {"stop", "eos", "eos_token", "stop_sequence", "end_turn"}
LENGTH_FINISH_REASONS = {"length", "max_tokens"}
MIN_ECHO_CHARACTERS = 4
"""A prefill that is shorter than this is not looked for: a reply may begin with it by chance."""


class ServerReply(NamedTuple):
    """One reply of a server; `positions` is None without log-probabilities of alternative tokens."""

    text: str
    finish_reason: str
    logprobs: tuple[float, ...]
    positions: tuple[TokenLogprobs, ...] | None
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


def parse_reply(payload: Any, where: str, raw: str) -> ServerReply:
    """Parse one reply; `where` and `raw` are for the error.

    Raises TransientFault where there is no reply at all, ReplyError where it is not text that ended by itself or by length.
    """
    choices = payload.get("choices") if isinstance(payload, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise TransientFault("the reply has no choices", "See the server's log", reply=raw)
    first = choices[0]
    finish = _finish_reason(first.get("finish_reason"), where, raw)
    logprobs, positions = _logprobs(first.get("logprobs"))
    return ServerReply(_text(first, where, raw), finish, logprobs, positions, *_token_counts(payload))


def _text(choice: dict[str, Any], where: str, raw: str) -> str:
    message = choice.get("message")
    if isinstance(message, dict):
        role, text = message.get("role", "assistant"), message.get("content")
        if role != "assistant":
            raise ReplyError("generate", f"{where}: the reply has the role {role!r}, not 'assistant'", reply=raw)
        if text is None and (message.get("reasoning") or message.get("reasoning_content")):
            remedy = "Serve it without its thinking mode, or use an instruct model"
            raise ReplyError("generate", f"{where}: the reply holds reasoning and no text. {remedy}", reply=raw)
    else:
        text = choice.get("text")
    if not isinstance(text, str):
        raise ReplyError("generate", f"{where}: the reply has no text", reply=raw)
    return _replace_surrogates(text)


def _replace_surrogates(text: str) -> str:
    """Replace each lone surrogate, which JSON may hold and UTF-8 may not, by "?"."""
    return text.encode(errors="replace").decode()


def _finish_reason(reason: Any, where: str, raw: str) -> str:
    if reason is None or reason in STOP_FINISH_REASONS:
        return "stop"
    if reason in LENGTH_FINISH_REASONS:
        return "length"
    if reason == "abort":
        raise TransientFault("the server aborted the reply", "See the server's log", reply=raw)
    remedy = "Serve the model without its content filter" if reason == "content_filter" else "See the server's log"
    raise ReplyError("generate", f"{where}: the reply is not complete (finish_reason {reason!r}). {remedy}", reply=raw)


def _logprobs(value: Any) -> tuple[tuple[float, ...], tuple[TokenLogprobs, ...] | None]:
    """Parse log-probabilities in either of OpenAI's two formats; one that is not a number discards them all."""
    if not isinstance(value, dict):
        return (), None
    try:
        tokens = _chat_logprobs(value["content"]) if value.get("content") else _completion_logprobs(value)
    except (KeyError, TypeError, ValueError, AttributeError):
        return (), None
    logprobs = tuple(t.logprob for t in tokens)
    return logprobs, tuple(tokens) if tokens and all(t.top for t in tokens) else None


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
    """Remove the prefill from the front of a reply, where the server returns it or the model repeats it."""
    start = prefill if reply.text.startswith(prefill) else prefill.strip()
    if len(start) < MIN_ECHO_CHARACTERS or not reply.text.lstrip().startswith(start.lstrip()):
        return reply
    at = reply.text.index(start) + len(start)
    positions, length = list(reply.positions or ()), 0
    while positions and length < at:
        length += len(positions.pop(0).token)
    exact = reply.positions is not None and length == at
    return reply._replace(text=reply.text[at:], positions=tuple(positions) if exact else None)


def explain_refusal(status: int, message: str, where: str, key_env: str) -> BackendError:
    """Explain a server's refusal and name the remedy."""
    if is_context_overflow(message):
        remedy = "Serve the model with a longer context (vLLM: --max-model-len, llama.cpp: -c), or use fewer passages per query"
        reason = f"the prompt is longer than the model's context: {message}. {remedy} (knowhalu.passages)"
    elif status in (401, 403):
        reason = f"the server requires a key ({message}). Put it into the environment variable {key_env}"
    elif 300 <= status < 400:
        reason = f"the server redirects to another address (HTTP {status}). Set llm.url to that address"
    else:
        reason = f"the server refused (HTTP {status}): {message or 'no message'}"
    return BackendError("generate", f"{where}: {reason}", reply=message)


def is_context_overflow(message: str) -> bool:
    """Return whether an error message is about a prompt that exceeds the context."""
    text = message.lower()
    return any(w in text for w in ("context length", "context size", "context window", "max_model_len", "too many tokens"))


def is_permanent(message: str) -> bool:
    """Return whether another try would meet the same error, whatever its status."""
    text = message.lower()
    return is_context_overflow(message) or any(
        w in text for w in ("logits_all", "chat template", "not supported", "not implemented")
    )


def error_text(body: str) -> str:
    """Extract the message from the body of an error, JSON or not."""
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        return " ".join(body.split())[:300]
    for name in ("error", "message", "detail"):
        if isinstance(payload, dict) and payload.get(name):
            payload = payload[name]
    return _replace_surrogates(payload if isinstance(payload, str) else json.dumps(payload))[:600]
