"""Dialects: how the same request is written for each kind of OpenAI-compatible server, and how their replies are parsed."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from knowhalu.errors import ReplyError
from knowhalu.io.http import TransientFault
from knowhalu.llm.label_probabilities import TokenLogprobs
from knowhalu.requests import Generate

TOP_LOGPROBS = (20, 5, 0)
"""How many alternative tokens to request; a server that allows fewer gets the next number."""
DROPPABLE_FIELDS = (
    "structured_outputs", "grammar", "regex", "continue_final_message", "add_generation_prompt", "chat_template_kwargs",
    "repetition_penalty", "id_slot", "cache_prompt", "top_k", "min_p", "top_p", "seed",
)  # fmt: skip
"""Fields that are left out where a server does not know them."""
NO_TEMPLATE_MESSAGES = ("chat template", "chat_template", "does not support chat")


@dataclass(frozen=True)
class Dialect:
    """What a server understands beyond the common part of the API.

    `constrain` is how a reply is constrained to labels. `plain` are the fields that switch off the server's own sampling
    defaults, so that every server decodes alike. `continues`: the server continues a prefilled reply only on request; others do
    so by themselves. `thinks`: its chat template takes a switch for the thinking mode. `has_slots`: it keeps
    one prompt in each of its slots, and takes the number of a slot with a request.
    """

    name: str
    constrain: str
    plain: tuple[tuple[str, Any], ...] = ()
    continues: bool = False
    thinks: bool = False
    has_slots: bool = False


_NO_TRUNCATION = (("top_p", 1.0), ("min_p", 0.0))
DIALECTS = {
    "vllm": Dialect(
        "vLLM", "structured", (*_NO_TRUNCATION, ("top_k", -1), ("repetition_penalty", 1.0)), continues=True, thinks=True
    ),
    "sglang": Dialect(
        "SGLang", "regex", (*_NO_TRUNCATION, ("top_k", -1), ("repetition_penalty", 1.0)), continues=True, thinks=True
    ),
    "llamacpp": Dialect(
        "llama.cpp",
        "grammar",
        (*_NO_TRUNCATION, ("top_k", 0), ("cache_prompt", True), ("id_slot", -1)),
        thinks=True,
        has_slots=True,
    ),
    "me": Dialect("llama-cpp-python", "grammar", (*_NO_TRUNCATION, ("top_k", 0))),
    "library": Dialect("Ollama", "logprobs", (("top_p", 1.0),)),
}
"""Dialects by the field `owned_by` of /v1/models."""
UNKNOWN_DIALECT = Dialect("an unknown server", "logprobs", (("top_p", 1.0),), continues=True)


@dataclass
class ServerSession:
    """How requests to one server are written, adapted to what it has rejected so far."""

    dialect: Dialect
    model: str
    style: str
    constrain: str
    top: int = TOP_LOGPROBS[0]

    def __post_init__(self) -> None:
        self.dropped: set[str] = set()
        self.style_is_open = self.style == "auto"
        if self.style_is_open:
            self.style = "chat"

    @property
    def path(self) -> str:
        """The path to which requests are sent."""
        return "/chat/completions" if self.style == "chat" else "/completions"

    def learn(self, status: int, message: str, body: dict[str, Any]) -> bool:
        """Adapt to a refusal of `body`; return whether a changed request is worth another try."""
        words = message.lower()
        no_route = status in (404, 405) and "model" not in words
        if self.style_is_open and self.style == "chat" and (no_route or any(w in words for w in NO_TEMPLATE_MESSAGES)):
            self.style = "completion"
            return True
        if status not in (400, 404, 422, 500, 501):
            return False
        for name in DROPPABLE_FIELDS:
            if name in body and name in words:
                self.dropped.add(name)
                return True
        requested = body.get("top_logprobs", body.get("logprobs", 0))
        if requested and ("logprobs" in words or "logits_all" in words):
            self.top = min(self.top, next((n for n in TOP_LOGPROBS if n < requested), 0)) if requested is not True else 0
            return True
        return False

    def body(self, request: Generate, *, max_tokens: int, constrained: bool = True) -> dict[str, Any]:
        """Return the JSON of a request; a reply is constrained to its choices if `constrained` and the server can do so."""
        body: dict[str, Any] = {"model": self.model, "max_tokens": max_tokens, "temperature": request.temperature}
        body |= {"stream": False, **dict(self.dialect.plain)}
        if request.temperature > 0:  # vLLM is slower with a seed, and greedy decoding needs none
            body["seed"] = request.seed
        if request.stop and not request.choices:
            body["stop"] = list(request.stop)
        body |= self._text_fields(request)
        body |= self._logprob_fields(bool(request.choices))
        if request.choices and constrained:
            body |= self._constraint_fields(request)
        return {name: value for name, value in body.items() if name not in self.dropped}

    def _text_fields(self, request: Generate) -> dict[str, Any]:
        if self.style == "completion":
            return {"prompt": render_completion_prompt(request)}
        prefill, _ = self.prefill(request)
        turns = (("system", request.system), ("user", request.prompt), ("assistant", prefill))
        fields: dict[str, Any] = {"messages": [{"role": role, "content": text} for role, text in turns if text]}
        if prefill and self.dialect.continues:
            fields |= {"continue_final_message": True, "add_generation_prompt": False}
        if self.dialect.thinks:
            fields["chat_template_kwargs"] = {"enable_thinking": False}
        return fields

    def _logprob_fields(self, alternatives: bool) -> dict[str, Any]:
        if not self.top:
            return {}
        if self.style == "completion":
            return {"logprobs": self.top if alternatives else 1}
        return {"logprobs": True, "top_logprobs": self.top} if alternatives else {"logprobs": True}

    def _constraint_fields(self, request: Generate) -> dict[str, Any]:
        """Constrain the reply to the choices, after the spaces that the model still has to write, or after an optional one."""
        prefill, spaces = self.prefill(request)
        before = render_completion_prompt(request) if self.style == "completion" else prefill
        leads = [spaces] if spaces else ["", " "] if before and not before[-1].isspace() else [""]
        allowed = [lead + choice for lead in leads for choice in request.choices]
        match self.constrain:
            case "structured":
                return {"structured_outputs": {"choice": allowed}}
            case "regex":
                return {"regex": f"({'|'.join(map(_escape_regex, allowed))})"}
            case "grammar":  # a GBNF literal has the syntax of a JSON string
                return {"grammar": f"root ::= {' | '.join(json.dumps(a, ensure_ascii=False) for a in allowed)}"}
        return {}

    def prefill(self, request: Generate) -> tuple[str, str]:
        """Return the prefill as it is sent, and the trailing spaces, which the model has to write itself.

        Many chat templates trim the end of a message; a model that does not see the line break would write it first.
        """
        if self.style == "completion":
            return request.prefill, ""
        trimmed = request.prefill.rstrip()
        return trimmed, request.prefill[len(trimmed) :]


def render_completion_prompt(request: Generate) -> str:
    """Return the text that a plain completion continues: system prompt, prompt and prefill."""
    return f"{request.system}\n\n{request.prompt}{request.prefill}" if request.system else request.prompt + request.prefill


def _escape_regex(text: str) -> str:
    return re.sub(r"([^\w\s])", r"\\\1", text).replace("\n", r"\n")


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
    return text.encode(errors="replace").decode()  # JSON may hold a lone surrogate, which becomes "?"; UTF-8 may not


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
