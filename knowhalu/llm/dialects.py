"""Dialects: how each kind of OpenAI-compatible server is asked for the same thing."""

import json
import re
from dataclasses import dataclass
from typing import Any

from knowhalu.requests import Generate

TOP_LOGPROBS = (20, 5, 0)
"""How many likeliest tokens are asked for; a server that allows fewer gets the next number."""
DROPPABLE_FIELDS = (
    "structured_outputs", "grammar", "regex", "continue_final_message", "add_generation_prompt", "chat_template_kwargs",
    "repetition_penalty", "top_k", "min_p", "top_p", "seed",
)  # fmt: skip
"""Fields that a request can do without, should a server not know them."""
NO_TEMPLATE_MESSAGES = ("chat template", "chat_template", "does not support chat")


@dataclass(frozen=True)
class Dialect:
    """What a server understands beyond the common part of the API.

    `plain` are the fields that switch off its own ideas of sampling, so that every server decodes alike; `continues` tells
    whether it must be told to go on with a begun reply (others do so by themselves); `constrain` is how it is held to labels.
    """

    name: str
    constrain: str
    plain: tuple[tuple[str, Any], ...] = ()
    continues: bool = False
    thinks: bool = False


_NO_TRUNCATION = (("top_p", 1.0), ("min_p", 0.0))
DIALECTS = {
    "vllm": Dialect(
        "vLLM", "structured", (*_NO_TRUNCATION, ("top_k", -1), ("repetition_penalty", 1.0)), continues=True, thinks=True
    ),
    "sglang": Dialect(
        "SGLang", "regex", (*_NO_TRUNCATION, ("top_k", -1), ("repetition_penalty", 1.0)), continues=True, thinks=True
    ),
    "llamacpp": Dialect("llama.cpp", "grammar", (*_NO_TRUNCATION, ("top_k", 0)), thinks=True),
    "me": Dialect("llama-cpp-python", "grammar", (*_NO_TRUNCATION, ("top_k", 0))),
    "library": Dialect("Ollama", "logprobs", (("top_p", 1.0),)),
}
"""By what /v1/models says of the owner of a model."""
UNKNOWN_DIALECT = Dialect("an unknown server", "logprobs", (("top_p", 1.0),), continues=True)


@dataclass
class ServerSession:
    """How a server is talked to; what it turns down is remembered here."""

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
        """Return where requests go."""
        return "/chat/completions" if self.style == "chat" else "/completions"

    def learn(self, status: int, said: str, body: dict[str, Any]) -> bool:
        """Change the manner by what the server turned down; return whether there is something to try anew."""
        words = said.lower()
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
        asked = body.get("top_logprobs", body.get("logprobs", 0))
        if asked and ("logprobs" in words or "logits_all" in words):
            self.top = min(self.top, next((n for n in TOP_LOGPROBS if n < asked), 0)) if asked is not True else 0
            return True
        return False

    def body(self, request: Generate, *, max_tokens: int, held: bool = True) -> dict[str, Any]:
        """Return the JSON of a request; with choices and `held`, the reply is constrained to them where the server can."""
        body: dict[str, Any] = {"model": self.model, "max_tokens": max_tokens, "temperature": request.temperature}
        body |= {"stream": False, **dict(self.dialect.plain)}
        if request.temperature > 0:  # a seed where nothing is drawn only slows vLLM down
            body["seed"] = request.seed
        if request.stop and not request.choices:
            body["stop"] = list(request.stop)
        body |= self._texts(request)
        body |= self._wanted_logprobs(bool(request.choices))
        if request.choices and held:
            body |= self._constraint(request)
        return {name: value for name, value in body.items() if name not in self.dropped}

    def _texts(self, request: Generate) -> dict[str, Any]:
        if self.style == "completion":
            return {"prompt": render_completion_prompt(request)}
        begun, _ = self.begun(request)
        said = (("system", request.system), ("user", request.prompt), ("assistant", begun))
        found: dict[str, Any] = {"messages": [{"role": r, "content": t} for r, t in said if t]}
        if begun and self.dialect.continues:
            found |= {"continue_final_message": True, "add_generation_prompt": False}
        if self.dialect.thinks:
            found["chat_template_kwargs"] = {"enable_thinking": False}
        return found

    def _wanted_logprobs(self, many: bool) -> dict[str, Any]:
        if not self.top:
            return {}
        if self.style == "completion":
            return {"logprobs": self.top if many else 1}
        return {"logprobs": True, "top_logprobs": self.top} if many else {"logprobs": True}

    def _constraint(self, request: Generate) -> dict[str, Any]:
        """Hold the reply to the choices, after the blanks that are to come first, or after one that may come."""
        begun, blanks = self.begun(request)
        before = render_completion_prompt(request) if self.style == "completion" else begun
        leads = [blanks] if blanks else ["", " "] if before and not before[-1].isspace() else [""]
        allowed = [lead + choice for lead in leads for choice in request.choices]
        match self.constrain:
            case "structured":
                return {"structured_outputs": {"choice": allowed}}
            case "regex":
                return {"regex": f"({'|'.join(map(_escape_regex, allowed))})"}
            case "grammar":  # a literal of GBNF is written like a string of JSON
                return {"grammar": f"root ::= {' | '.join(json.dumps(a, ensure_ascii=False) for a in allowed)}"}
        return {}

    def begun(self, request: Generate) -> tuple[str, str]:
        """Return the begun reply as it is sent, and the blanks that the model has to write itself.

        Many chat templates trim what a message ends in; a model that misses the line break would write it first.
        """
        if self.style == "completion":
            return request.prefill, ""
        kept = request.prefill.rstrip()
        return kept, request.prefill[len(kept) :]


def render_completion_prompt(request: Generate) -> str:
    """Return what a plain completion model goes on with: the system prompt, the prompt and the begun reply."""
    return f"{request.system}\n\n{request.prompt}{request.prefill}" if request.system else request.prompt + request.prefill


def _escape_regex(text: str) -> str:
    return re.sub(r"([^\w\s])", r"\\\1", text).replace("\n", r"\n")
