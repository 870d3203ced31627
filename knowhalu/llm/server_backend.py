"""A language model behind an OpenAI-compatible server: `vllm serve` first, also llama.cpp, SGLang, Ollama and their kin.

What the server is follows from /v1/models, once. With `style = "auto"` the chat API is taken until the server says that its
model has no chat template; from then on plain completions are. A field that the server turns down by name is left out
from then on. llama.cpp and Ollama give every model some template: set `llm.style` to "completion" for a base model there.
"""

import asyncio
import json
import re
from dataclasses import replace
from typing import Any, NamedTuple

from knowhalu.errors import BackendError, ReplyError, StageError
from knowhalu.llm.client import HttpClient, RequestRefused, Sleep
from knowhalu.llm.dialects import DIALECTS, UNKNOWN_DIALECT, ServerSession
from knowhalu.llm.label_probabilities import LabelProbabilitySearch, pick_label
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.parse import RetryableFault, ServerReply, cut_at_stop, parse_reply, strip_echo
from knowhalu.requests import Completion, Generate


class ServerInfo(NamedTuple):
    """What kind of server it is, the model that is asked there, and all that it lists."""

    kind: str
    model: str
    models: tuple[str, ...]


class ServerBackend:
    """Answer `Generate` requests by a server's HTTP API; one object serves any number of event loops."""

    def __init__(self, options: LLMOptions, *, sleep: Sleep = asyncio.sleep) -> None:
        self.options = options
        self._wire = HttpClient(options, sleep)
        self._cards: list[dict[str, Any]] = []
        self._manner: ServerSession | None = None
        self._meetings: dict[asyncio.AbstractEventLoop, asyncio.Task[ServerSession]] = {}

    async def answer(self, request: Generate) -> Completion:
        """Answer one request.

        Raises BackendError where the server does not answer or refuses, ReplyError where its reply cannot be used.
        """
        manner = await self._meet()
        return await (self._choose(request, manner) if request.choices else self._continue(request, manner))

    async def identity(self) -> str:
        """Return which model answers, as far as the server tells: its name, its files and its size."""
        manner = await self._meet()
        card = next((c for c in self._cards if c.get("id") == manner.model), {})
        told = {name: card[name] for name in ("root", "owned_by", "meta", "parent") if card.get(name)}
        return json.dumps({"model": manner.model, **told}, sort_keys=True)

    async def about(self) -> ServerInfo:
        """Return what the server tells of itself; raises BackendError where it does not answer."""
        manner = await self._meet()
        return ServerInfo(manner.dialect.name, manner.model, tuple(str(card.get("id")) for card in self._cards))

    async def close(self) -> None:
        """Close the connections of the running event loop; the next request opens new ones."""
        if task := self._meetings.pop(asyncio.get_running_loop(), None):
            task.cancel()
        await self._wire.close()

    async def _meet(self) -> ServerSession:
        """Ask once what the server is; whoever comes meanwhile waits for the same answer."""
        if self._manner is not None:
            return self._manner
        loop = asyncio.get_running_loop()
        if loop not in self._meetings:
            self._meetings[loop] = asyncio.create_task(self._introduce())
        meeting = self._meetings[loop]
        try:
            self._manner = await asyncio.shield(meeting)
        except StageError:
            if self._meetings.get(loop) is meeting:  # the next request asks anew
                del self._meetings[loop]
            raise
        return self._manner

    async def _introduce(self) -> ServerSession:
        options = self.options
        try:
            self._cards = await self._wire.get("/models", _parse_models)
        except RequestRefused as error:
            if not options.model:  # without a list, only the user can say which model it is
                reason = f"{error.reason}. Is llm.url right? It usually ends in /v1"
                raise BackendError("generate", reason, reply=error.reply) from error
        names = [str(card.get("id")) for card in self._cards]
        if not options.model and len(names) != 1:
            raise BackendError("generate", f"{options.url}: {_list_models(names)}. Set llm.model to the one that is to think")
        model = options.model or names[0]
        card = next((c for c in self._cards if c.get("id") == model), self._cards[0] if self._cards else {})
        dialect = DIALECTS.get(str(card.get("owned_by")), UNKNOWN_DIALECT)
        constrain: str = options.constrain
        if constrain == "auto" or (constrain == "grammar" and dialect.constrain == "regex"):
            constrain = dialect.constrain
        return ServerSession(dialect, model, options.style, constrain)

    async def _continue(self, request: Generate, manner: ServerSession) -> Completion:
        """Let the model write on."""
        said = strip_echo(await self._ask(request, manner, request.max_tokens), request.begun)
        text, stopped = cut_at_stop(said.text.removeprefix(manner.begun(request)[1]), request.stop)
        return Completion(
            text, "stop" if stopped else said.finish_reason, {}, said.logprobs,
            said.prompt_tokens, said.cached_tokens, said.completion_tokens,
        )  # fmt: skip

    async def _choose(self, request: Generate, manner: ServerSession) -> Completion:
        """Let the model take one of the choices, and ask on until the probabilities of all are known."""
        walk = LabelProbabilitySearch(request.choices)
        asked = [await self._first_choice(request, manner)]
        walk.read("", asked[0].positions or ())
        begun, _ = manner.begun(request)
        while (text := walk.next()) is not None:
            further = replace(request, begun=begun + text, temperature=0.0)
            if manner.begun(further)[1]:  # a template might trim it, and the model would not be where it seems to be
                walk.read(text, ())
                continue
            asked.append(strip_echo(await self._ask(further, manner, 1, held=False), further.begun))
            walk.read(text, asked[-1].positions or ())
        probabilities = walk.probabilities()
        label = (
            pick_label(probabilities, request.temperature, request.seed) if probabilities else self._named(asked[0], walk, manner)
        )
        return Completion(
            label, "stop", probabilities, asked[0].logprobs, sum(s.prompt_tokens for s in asked),
            sum(s.cached_tokens for s in asked), sum(s.completion_tokens for s in asked),
        )  # fmt: skip

    async def _first_choice(self, request: Generate, manner: ServerSession) -> ServerReply:
        """Let the model write a choice; where nothing holds it to them, what it would say first tells more than a draw."""
        longest = max(map(len, request.choices)) + 4
        if manner.constrain == "logprobs" and manner.top and request.temperature > 0:
            said = await self._ask(replace(request, temperature=0.0), manner, longest)
            if said.positions:
                return strip_echo(said, request.begun)
        return strip_echo(await self._ask(request, manner, longest), request.begun)

    def _named(self, said: ServerReply, walk: LabelProbabilitySearch, manner: ServerSession) -> str:
        """Return the choice that the reply begins with, where there are no log-probabilities and it names no other."""
        words = said.text.strip()
        named = [c for c in walk.choices if re.search(rf"(?<!\w){re.escape(c)}(?!\w)", words)]
        if len(named) == 1 and words.startswith(named[0]):
            return named[0]
        cure = f"{manner.dialect.name} was asked by llm.constrain = {manner.constrain!r}; try another, or another server"
        reason = f"the reply is none of {', '.join(walk.choices)}, and comes without log-probabilities. {cure}"
        raise ReplyError("generate", f"{self.options.url}: {reason}", reply=said.text)

    async def _ask(self, request: Generate, manner: ServerSession, max_tokens: int, *, held: bool = True) -> ServerReply:
        """Send one request, and once more for everything that the server turns out not to know."""
        while True:
            body = manner.body(request, max_tokens=max_tokens, held=held)
            path = manner.path
            try:
                said = await self._wire.post(path, body, parse_reply)
                manner.style_is_open = False
                return said
            except RequestRefused as error:
                changed = path != manner.path or manner.learn(error.status, error.said, body)
                if not changed:
                    raise self._named_models(error) from error

    def _named_models(self, error: RequestRefused) -> BackendError:
        names = [str(card.get("id")) for card in self._cards]
        if error.status != 404 or not self.options.model or self.options.model in names or not names:
            return error
        reason = f"{self.options.url}: no model {self.options.model!r} here; {_list_models(names)}. Set llm.model"
        return BackendError("generate", reason, reply=error.reply)


def _parse_models(payload: Any, where: str, raw: str) -> list[dict[str, Any]]:
    found = payload.get("data") if isinstance(payload, dict) else None
    if not isinstance(found, list):
        raise RetryableFault(
            "the list of models cannot be read", "Is llm.url the address of an OpenAI-compatible API?", reply=raw
        )
    return [card for card in found if isinstance(card, dict) and card.get("id")]


def _list_models(names: list[str]) -> str:
    return f"the server has {', '.join(names)}" if names else "the server lists no model"
