"""Dialects: how the same request is written for each kind of OpenAI-compatible server."""

import json
import re
from dataclasses import dataclass
from typing import Any

from knowhalu.llm.framing import chat_messages, render_completion_prompt, reply_heading
from knowhalu.llm.label_tokens import LabelTokens
from knowhalu.llm.options import DialectName
from knowhalu.requests import Generate

TOP_LOGPROBS = (20, 5, 0)
"""How many alternative tokens to request; a server that allows fewer gets the next number."""
DROPPABLE_FIELDS = (
    "logprob_token_ids", "allowed_token_ids", "structured_outputs", "grammar", "regex", "chat_template_kwargs",
    "reasoning_effort", "repetition_penalty", "id_slot", "cache_prompt", "top_k", "min_p", "top_p", "seed",
)  # fmt: skip
"""Fields that are left out where a server does not know them."""
NO_PREFILL_MESSAGES = (
    "prefill", "continue_final_message", "add_generation_prompt", "final message", "last message", "last role", "end with a user",
)  # fmt: skip
"""What servers say that do not continue a reply; its beginning is shown at the end of the user's message then."""
NO_SYSTEM_MESSAGES = ("system role", "system message", "system prompt", "roles must alternate", "role 'system'", "role: system")
"""What chat templates say that know no system role; the system prompt opens the user's message then."""
MAX_STOPS = 4
"""Stop strings for a server that limits them; a reply is cut at the others here."""
ADAPTABLE_STATUS = (400, 404, 422, 500, 501)
NO_TEMPLATE_MESSAGES = ("chat template", "chat_template", "does not support chat")


@dataclass(frozen=True)
class Dialect:
    """What a server understands beyond the common part of the API.

    `constrain` is how a reply is constrained to labels: "tokens" by the tokens of labels, whose log-probabilities the server
    returns, and by "structured" outputs where that cannot be done. `plain` are the fields that switch off the server's own
    sampling defaults, so that every server decodes alike, `no_thinking` those that switch off the thinking of a chat model.
    `continues`: the server continues a prefilled reply only on request; others do so by themselves. `has_slots`: it keeps one
    prompt in each of its slots, and takes the number of a slot with a request.
    """

    name: str
    constrain: str
    plain: tuple[tuple[str, Any], ...] = ()
    no_thinking: tuple[tuple[str, Any], ...] = ()
    continues: bool = False
    has_slots: bool = False


_NO_TRUNCATION = (("top_p", 1.0), ("min_p", 0.0))
_VLLM_PLAIN = (*_NO_TRUNCATION, ("top_k", -1), ("repetition_penalty", 1.0))
_LLAMA_PLAIN = (*_NO_TRUNCATION, ("top_k", 0))
_TEMPLATE_SWITCH = ("chat_template_kwargs", {"enable_thinking": False, "thinking": False})
"""The names of the switch in the templates of all families; a template ignores what it does not know."""
_NO_EFFORT = ("reasoning_effort", "none")
_SLOT = (("cache_prompt", True), ("id_slot", -1))
DIALECTS: dict[DialectName, Dialect] = {
    "vllm": Dialect("vLLM", "tokens", _VLLM_PLAIN, (_TEMPLATE_SWITCH,), continues=True),
    "sglang": Dialect("SGLang", "regex", _VLLM_PLAIN, (_TEMPLATE_SWITCH,), continues=True),
    "llama.cpp": Dialect("llama.cpp", "grammar", (*_LLAMA_PLAIN, *_SLOT), (_TEMPLATE_SWITCH,), has_slots=True),
    "llama-cpp-python": Dialect("llama-cpp-python", "grammar", _LLAMA_PLAIN),
    "ollama": Dialect("Ollama", "logprobs", (("top_p", 1.0),), (_NO_EFFORT,)),
    "other": Dialect("an unknown server", "logprobs", (("top_p", 1.0),), (_TEMPLATE_SWITCH, _NO_EFFORT), continues=True),
}
"""Dialects by `llm.dialect`."""
OWNERS: dict[str, DialectName] = {
    "vllm": "vllm", "sglang": "sglang", "llamacpp": "llama.cpp", "me": "llama-cpp-python", "library": "ollama",
}  # fmt: skip
"""Dialects by the field `owned_by` of /v1/models; any other server is of the dialect "other"."""


@dataclass
class ServerSession:
    """How requests to one server are written, adapted to what it has rejected so far.

    `thinks`: replies begin with thinking; `opens_thinking`: the chat template opens it, so that only its end is marked.
    """

    dialect: Dialect
    model: str
    style: str
    constrain: str
    top: int = TOP_LOGPROBS[0]
    thinks: bool = False
    opens_thinking: bool = False
    prefills: bool = True
    system_role: bool = True
    max_stops: int | None = None

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
        if self._learn_roles(words, [turn["role"] for turn in body.get("messages", ())]):
            return True
        for name in DROPPABLE_FIELDS:
            if name in body and name in words and status in ADAPTABLE_STATUS:
                self.dropped.add(name)
                return True
        no_route = status in (404, 405) and "model" not in words
        if self.style_is_open and self.style == "chat" and (no_route or any(w in words for w in NO_TEMPLATE_MESSAGES)):
            self.style = "completion"
            return True
        if status not in ADAPTABLE_STATUS:
            return False
        if "stop" in words and (stops := len(body.get("stop", ()))):
            self.max_stops = MAX_STOPS if stops > MAX_STOPS else 0
            return True
        requested = body.get("top_logprobs", body.get("logprobs", 0)) or "logprob_token_ids" in body
        if requested and ("logprobs" in words or "logits_all" in words):
            self.top = min(self.top, next((n for n in TOP_LOGPROBS if n < requested), 0)) if requested is not True else 0
            return True
        return False

    def _learn_roles(self, words: str, roles: list[str]) -> bool:
        """Adapt to a refusal of the roles of a chat; another request may have met it before."""
        if roles[-1:] == ["assistant"] and any(w in words for w in NO_PREFILL_MESSAGES):
            self.prefills = False
            return True
        if "system" in roles and any(w in words for w in NO_SYSTEM_MESSAGES):
            self.system_role = False
            return True
        return False

    def body(
        self, request: Generate, *, max_tokens: int, constrained: bool = True, tokens: LabelTokens | None = None
    ) -> dict[str, Any]:
        """Return the JSON of a request; a reply is constrained to its choices if `constrained` and the server can do so.

        With `tokens`, it has the log-probabilities of these, and is constrained by them.
        """
        body: dict[str, Any] = {"model": self.model, "max_tokens": max_tokens, "temperature": request.temperature}
        body |= {"stream": False, **dict(self.dialect.plain)}
        if request.temperature > 0:  # vLLM is slower with a seed, and greedy decoding needs none
            body["seed"] = request.seed
        stops = () if request.choices or self.thinks else request.stop[: self.max_stops]  # one within the thinking would end it
        if stops:
            body["stop"] = list(stops)
        body |= self._text_fields(request)
        if tokens is not None and self.top:
            body |= {"logprobs": True if self.style == "chat" else 0, "logprob_token_ids": list(tokens.named)}
            body |= {"allowed_token_ids": list(tokens.allowed), "return_tokens_as_token_ids": True}
            return {name: value for name, value in body.items() if name not in self.dropped}
        body |= self._logprob_fields(bool(request.choices))
        if request.choices and constrained:
            body |= self._constraint_fields(request)
        return {name: value for name, value in body.items() if name not in self.dropped}

    def _text_fields(self, request: Generate) -> dict[str, Any]:
        if self.style == "completion":
            return {"prompt": render_completion_prompt(request)}
        prefill, _ = self.prefill(request)
        messages = chat_messages(request, system_role=self.system_role)
        if prefill:
            messages.append({"role": "assistant", "content": prefill})
        elif not self.prefills and (begun := _begun(request)):
            messages[-1]["content"] += f"\n{begun}" if request.turns else begun
        fields: dict[str, Any] = {"messages": messages}
        if prefill and self.dialect.continues:
            fields |= {"continue_final_message": True, "add_generation_prompt": False}
        return fields | dict(self.dialect.no_thinking) | ({"reasoning_effort": "low"} if self.thinks else {})

    def _logprob_fields(self, alternatives: bool) -> dict[str, Any]:
        if not self.top:
            return {}
        if self.style == "completion":
            return {"logprobs": self.top if alternatives else 1}
        return {"logprobs": True, "top_logprobs": self.top} if alternatives else {"logprobs": True}

    def leads(self, request: Generate) -> list[str]:
        """Return what may stand before a label: the spaces that the model still has to write, or an optional one."""
        prefill, spaces = self.prefill(request)
        before = render_completion_prompt(request) if self.style == "completion" else prefill
        return [spaces] if spaces else ["", " "] if before and not before[-1].isspace() else [""]

    def _constraint_fields(self, request: Generate) -> dict[str, Any]:
        """Constrain the reply to the choices, after a lead."""
        allowed = [lead + choice for lead in self.leads(request) for choice in request.choices]
        match self.constrain:
            case "structured" | "tokens":
                return {"structured_outputs": {"choice": allowed}}
            case "regex":
                return {"regex": f"({'|'.join(map(_escape_regex, allowed))})"}
            case "grammar":  # a GBNF literal has the syntax of a JSON string
                return {"grammar": f"root ::= {' | '.join(json.dumps(a, ensure_ascii=False) for a in allowed)}"}
        return {}

    def prefill(self, request: Generate) -> tuple[str, str]:
        """Return the prefill as it is sent, and the trailing spaces, which the model has to write itself.

        Many chat templates trim the end of a message; a model that does not see the line break would write it first. Nothing is
        sent to a server that refuses it.
        """
        if self.style == "completion":
            return request.prefill, ""
        if not self.prefills:
            return "", ""
        begun = _begun(request)
        trimmed = begun.rstrip()
        return trimmed, begun[len(trimmed) :]


def _begun(request: Generate) -> str:
    """Return the beginning of the model's turn; free text needs none, as examples show the heading that it begins with."""
    return reply_heading(request) + request.prefill if request.prefill or request.choices else ""


def _escape_regex(text: str) -> str:
    return re.sub(r"([^\w\s])", r"\\\1", text).replace("\n", r"\n")
