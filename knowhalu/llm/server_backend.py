"""A language model behind an OpenAI-compatible server: vLLM, llama.cpp, SGLang, Ollama and others.

The kind of server is read once from /v1/models. With `llm.style = "auto"`, chat completions are used until the server reports
that its model has no chat template, and plain completions from then on. A field that the server rejects by name is left out
from then on. llama.cpp and Ollama give every model a template: set `llm.style` to "completion" for a base model there.
"""

import asyncio
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

from knowhalu.errors import BackendError, ReplyError, StageError, hide_password
from knowhalu.io.http import TransientFault
from knowhalu.llm.client import LONGER_CONTEXT_HINT, Clock, JsonClient, RequestRefused, Sleep
from knowhalu.llm.dialects import DIALECTS, OWNERS, ServerSession
from knowhalu.llm.dispatch import PromptPrefix
from knowhalu.llm.framing import without_heading
from knowhalu.llm.label_tokens import LabelTokens
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.server_choice import ServerChoice
from knowhalu.llm.server_reply import ServerReply, cut_at_stop, parse_reply, strip_echo
from knowhalu.llm.thinking import template_opens_thinking, thinking_error
from knowhalu.llm.turn_tokens import TurnTokens, read_special_tokens
from knowhalu.requests import Completion, Generate

DESCRIPTION = ("root", "owned_by", "meta", "parent")
"""The fields of a server's list of models that describe a model."""


class ServerInfo(NamedTuple):
    """The kind of server, the model in use, and the names of all models that the server lists."""

    kind: str
    model: str
    models: tuple[str, ...]


class _SentRequest(NamedTuple):
    """A request as it was sent: whether its answer was `begun`, and the `room` for thinking in tokens."""

    path: str
    body: dict[str, Any]
    begun: bool
    room: int


class ServerBackend:
    """Answer `Generate` requests through the HTTP API of one or several servers; one object serves any number of event loops."""

    def __init__(self, options: LLMOptions, *, sleep: Sleep = asyncio.sleep, clock: Clock = time.monotonic) -> None:
        self.options = options
        self._client = JsonClient(options, sleep, clock)
        self._client.examine = self._examine
        self._choice = ServerChoice(self._post, self._tokenize, self._client.shown_url)
        self._cards: list[dict[str, Any]] = []
        self._session: ServerSession | None = None
        self._turn_tokens = TurnTokens()
        self._opening: dict[asyncio.AbstractEventLoop, asyncio.Task[ServerSession]] = {}

    async def answer(self, request: Generate) -> Completion:
        """Answer one request.

        Raises BackendError where the server does not answer or refuses, ReplyError where its reply cannot be used, and StageError
        where a text of a chat has a special token of the model.
        """
        session = await self._open_session()
        if session.style == "chat":
            self._turn_tokens.check(request)
        return await (self._choice.choose(request, session) if request.choices else self._continue(request, session))

    async def identity(self) -> str:
        """Return JSON that identifies the model as far as the server describes it: its name, files and size."""
        session = await self._open_session()
        card = next((c for c in self._cards if c.get("id") == session.model), {})
        return json.dumps({"model": session.model, **_describe(card)}, sort_keys=True)

    async def about(self) -> ServerInfo:
        """Describe the server; raises BackendError where it does not answer."""
        session = await self._open_session()
        return ServerInfo(session.dialect.name, session.model, tuple(str(card.get("id")) for card in self._cards))

    async def close(self) -> None:
        """Close the connections of the running event loop; the next request opens new ones."""
        if task := self._opening.pop(asyncio.get_running_loop(), None):
            task.cancel()
        await self._client.close()

    async def _open_session(self) -> ServerSession:
        """Read once what the server is; requests that arrive meanwhile wait for the same answer."""
        if self._session is not None:
            return self._session
        loop = asyncio.get_running_loop()
        if loop not in self._opening:
            self._opening[loop] = asyncio.create_task(self._read_models())
        opening = self._opening[loop]
        try:
            self._session = await asyncio.shield(opening)
        except StageError:
            if self._opening.get(loop) is opening:  # the next request tries again
                del self._opening[loop]
            raise
        return self._session

    async def _read_models(self) -> ServerSession:
        options = self.options
        lists: dict[str, list[dict[str, Any]]] = {}
        try:
            lists = await self._client.get_each("/models", _parse_models)
        except RequestRefused as error:
            if not options.model:  # without a list, only the user can name the model
                reason = f"{error.reason}. Check llm.url: it usually ends in /v1"
                raise BackendError("generate", reason, reply=error.reply) from error
        self._cards = next(iter(lists.values()), [])
        names = [str(card.get("id")) for card in self._cards]
        if not options.model and len(names) != 1:
            shown = hide_password(next(iter(lists)))
            raise BackendError("generate", f"{shown}: {_list_models(names)}. Set llm.model to the one to use")
        model = options.model or names[0]
        for url, cards in lists.items():
            if problem := _other_model(cards, self._cards, model):
                raise BackendError("generate", f"{hide_password(url)}: {problem}")
        card = next((c for c in self._cards if c.get("id") == model), self._cards[0] if self._cards else {})
        owner = OWNERS.get(str(card.get("owned_by")), "other")
        dialect = DIALECTS[owner if options.dialect == "auto" else options.dialect]
        if dialect.has_slots:
            await asyncio.gather(*map(self._count_slots, lists))
        opens = False
        if card.get("root"):  # the model's folder, which is here where a server runs on this machine
            folder = Path(str(card["root"]))
            self._turn_tokens = TurnTokens(await asyncio.to_thread(read_special_tokens, folder))
            opens = await asyncio.to_thread(template_opens_thinking, folder)
        constrain: str = options.constrain
        if constrain == "auto" or (constrain == "grammar" and dialect.constrain == "regex"):
            constrain = dialect.constrain
        return ServerSession(dialect, model, options.style, constrain, thinks=opens, opens_thinking=opens)

    async def _examine(self, url: str) -> None:
        """Raise TransientFault where a server that is back lists no model, or another one than the others.

        Servers that refused to list their models at first need not do so now.
        """
        try:
            cards = await self._client.get(url, "/models", _parse_models)
        except RequestRefused as error:
            if not self._cards:
                return
            raise TransientFault(error.reason, reply=error.reply) from error
        if self._session is None or not self._cards:
            return
        if problem := _other_model(cards, self._cards, self._session.model):
            raise TransientFault(problem)
        if self._session.dialect.has_slots:
            await self._count_slots(url)

    async def _count_slots(self, url: str) -> None:
        """Record the number of a server's slots; a server that does not tell it keeps its own choice of slots."""
        try:
            count = await self._client.get(url, "/props", lambda payload, *_: payload["total_slots"])
        except (TransientFault, StageError, KeyError, TypeError):
            return
        if isinstance(count, int) and count > 0:
            self._client.slots[url] = count

    async def _continue(self, request: Generate, session: ServerSession) -> Completion:
        """Generate free text after the prompt and its prefill."""
        reply = await self._post(request, session, request.max_tokens)
        text = reply.text.removeprefix(session.prefill(request)[1])
        if session.style == "chat" and not request.prefill:
            text = without_heading(text, request)
        text, stopped = cut_at_stop(text, request.stop)
        return Completion(
            text, "stop" if stopped else reply.finish_reason, {}, reply.logprobs,
            reply.prompt_tokens, reply.cached_tokens, reply.completion_tokens, thinking=reply.thinking,
        )  # fmt: skip

    async def _tokenize(self, request: Generate, text: str) -> list[int] | None:
        """Return the tokens of a text by the server that suits a request; None where it offers no tokenizer."""
        session = await self._open_session()
        body = {"model": session.model, "prompt": text, "add_special_tokens": False}
        try:
            return await self._client.post(lambda: ("/tokenize", body), _parse_tokens, PromptPrefix.of(request))
        except RequestRefused:
            return None

    async def _post(
        self, request: Generate, session: ServerSession, max_tokens: int, *,
        constrained: bool = True, tokens: LabelTokens | None = None,
    ) -> ServerReply:  # fmt: skip
        """Send one request, and again without each thing that the server turns out not to support.

        A model that thinks although it was told not to gets room for it; if its answer is begun, only once it has thought there.
        """
        prefix, has_thought, sent = PromptPrefix.of(request), False, _SentRequest("", {}, False, 0)

        def write() -> tuple[str, dict[str, Any]]:
            nonlocal sent
            begun = bool(session.prefill(request)[0])
            room = self.options.thinking_tokens if has_thought or (session.thinks and not begun) else 0
            body = session.body(request, max_tokens=max_tokens + room, constrained=constrained, tokens=None if room else tokens)
            sent = _SentRequest(session.path, body, begun, room)
            return sent.path, body

        while True:
            try:
                reply = await self._client.post(write, parse_reply, prefix)
                session.style_is_open = False
                if session.opens_thinking and session.style == "chat" and not (sent.begun or reply.thought):
                    reply = reply.as_thinking()
                session.thinks |= reply.thought
                is_cut = reply.unanswered or reply.finish_reason == "length"
                if reply.thought and is_cut and not sent.room and self.options.thinking_tokens:
                    has_thought = True
                    continue
                if reply.unanswered:
                    reason = f"{self._client.shown_url}: {thinking_error(sent.room)}"
                    raise ReplyError("generate", reason, reply=reply.thinking)
                if is_cut and not reply.thought and 0 < reply.completion_tokens < max_tokens:  # llama.cpp cuts it there
                    ended = f"the model's context ended within the reply, after {reply.completion_tokens} tokens"
                    raise ReplyError("generate", f"{self._client.shown_url}: {ended}. {LONGER_CONTEXT_HINT}", reply=reply.text)
                return strip_echo(reply, session.prefill(request)[0] or request.prefill)
            except RequestRefused as error:
                adapted = sent.path != session.path or session.learn(error.status, error.message, sent.body)
                if not adapted:
                    raise self._with_model_names(error) from error

    def _with_model_names(self, error: RequestRefused) -> BackendError:
        names = [str(card.get("id")) for card in self._cards]
        if error.status != 404 or not self.options.model or self.options.model in names or not names:
            return error
        reason = f"{self._client.shown_url}: no model {self.options.model!r} here; {_list_models(names)}. Set llm.model"
        return BackendError("generate", reason, reply=error.reply)


def _parse_models(payload: Any, where: str, raw: str) -> list[dict[str, Any]]:
    cards = payload.get("data") if isinstance(payload, dict) else None
    if not isinstance(cards, list):
        remedy = "Check that llm.url is the address of an OpenAI-compatible API"
        raise TransientFault("the list of models cannot be read", remedy, reply=raw)
    return [card for card in cards if isinstance(card, dict) and card.get("id")]


def _describe(card: dict[str, Any]) -> dict[str, Any]:
    """Return what a server tells of a model, without the context of a slot that llama.cpp tells there: it changes no reply."""
    details = {name: card[name] for name in DESCRIPTION if card.get(name)}
    if isinstance(meta := details.get("meta"), dict):
        details["meta"] = {name: value for name, value in meta.items() if name != "n_ctx"}
    return details


def _parse_tokens(payload: Any, where: str, raw: str) -> list[int] | None:
    tokens = payload.get("tokens") if isinstance(payload, dict) else None
    return tokens if isinstance(tokens, list) and all(isinstance(token, int) for token in tokens) else None


def _other_model(cards: list[dict[str, Any]], expected: list[dict[str, Any]], model: str) -> str:
    """Say how a server's model differs from that of the first server; "" where both describe it alike."""
    ours, theirs = (
        next(({"id": card["id"], **_describe(card)} for card in found if card.get("id") == model), {})
        for found in (expected, cards)
    )
    if ours == theirs:
        return ""
    remedy = "All servers of llm.url must serve the same model, under the same name and from the same path"
    return f"the server describes its model {model!r} as {json.dumps(theirs)}, another one as {json.dumps(ours)}. {remedy}"


def _list_models(names: list[str]) -> str:
    return f"the server has {', '.join(names)}" if names else "the server lists no model"
