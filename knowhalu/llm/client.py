"""The HTTP client of language model servers: JSON to and from their addresses, with a pool of connections for each event loop."""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

import httpx2
import tenacity

from knowhalu.errors import BackendError, ReplyError, SettingsError, hide_password
from knowhalu.io import http
from knowhalu.io.http import ServerBusy, TransientFault
from knowhalu.llm.dispatch import Dispatcher, PromptPrefix
from knowhalu.llm.options import SHORTER_PROMPT_HINT, LLMOptions

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]
ReplyParser = Callable[[Any, str, str], T]
"""Reads (JSON, URL, beginning of the raw reply); raises TransientFault where another try may help."""
RequestWriter = Callable[[], tuple[str, dict[str, Any]]]
"""Returns the path and the JSON of a request."""

MAX_REPLY_BYTES = 32 * 2**20
LONGER_CONTEXT_HINT = (
    "Serve the model with a longer context (vLLM: --max-model-len; llama.cpp: -c, which its -np slots share), "
    + SHORTER_PROMPT_HINT
)
ROOT_PATHS = ("/tokenize", "/props")
"""Paths that servers have beside /v1, not below it."""


class RequestRefused(BackendError):
    """A refusal that another try would meet again; `message` is the server's own text."""

    retryable = False

    def __init__(self, reason: str, status: int, message: str) -> None:
        super().__init__("generate", reason, reply=message)
        self.status, self.message = status, message


class _ConnectionPool(NamedTuple):
    """The connections of one event loop, and the places at the servers for its requests."""

    client: httpx2.AsyncClient
    dispatcher: Dispatcher


class JsonClient:
    """Exchange JSON with one server, or with several that have the same model. Tests replace `sleep` and `clock`.

    `examine` is called with the address of a server that is back, before it gets a request; it raises TransientFault where the
    server cannot be used. `slots` has the number of slots of each server that has some.
    """

    def __init__(self, options: LLMOptions, sleep: Sleep = asyncio.sleep, clock: Clock = time.monotonic) -> None:
        self.options, self.urls, self._sleep, self._clock = options, options.urls, sleep, clock
        self.shown_url = ", ".join(map(hide_password, self.urls))
        self.slots: dict[str, int] = {}
        self.examine: Callable[[str], Awaitable[None]] | None = None
        self._exchange = http.Exchange(
            options.timeout,
            MAX_REPLY_BYTES,
            no_connection="Start the server (knowhalu serve-model MODEL), or set llm.url to its address",
            no_reply="Raise llm.timeout, or lower llm.concurrency",
            broken="See the server's log",
        )
        self._pools: dict[asyncio.AbstractEventLoop, _ConnectionPool] = {}

    async def get_each(self, path: str, read: ReplyParser[T]) -> dict[str, T]:
        """Get a resource of every server, by address; one that does not answer is left out while others do.

        Raises what `post` raises.
        """

        async def get_all(tried: dict[str, str]) -> dict[str, T]:
            results = await asyncio.gather(*(self.get(url, path, read) for url in self.urls), return_exceptions=True)
            replies: dict[str, T] = {}
            for url, result in zip(self.urls, results, strict=True):
                if isinstance(result, TransientFault):
                    tried[url] = path
                    self._pool().dispatcher.drop(url)
                elif isinstance(result, BaseException):
                    raise result
                else:
                    replies[url] = result
            if not replies:
                raise next(r for r in results if isinstance(r, TransientFault))
            return replies

        return await self._retry(get_all)

    async def get(self, url: str, path: str, read: ReplyParser[T]) -> T:
        """Get a resource of one server and read it, in one try; raises TransientFault, RequestRefused and ReplyError."""
        return await self._send_once("GET", _address(url, path), None, read)

    async def post(self, write: RequestWriter, read: ReplyParser[T], prefix: PromptPrefix) -> T:
        """Send JSON to the server that suits the prompt, and read the JSON of the reply.

        The request is written once it has a place, with what was learned while it waited. A server that fails is followed by the
        next one at once; where all have failed, they are tried again after a wait. A body with `id_slot` gets the number of a
        slot of its server, if that has any. Raises RequestRefused where a server refuses, BackendError where all tries failed,
        ReplyError where the reply is too long, and SettingsError where `llm.url` has what is not an address or the key cannot
        be sent.
        """

        async def post_to_any(tried: dict[str, str]) -> T:
            dispatcher = self._pool().dispatcher
            while True:
                try:
                    async with dispatcher.place(prefix, tried) as place:
                        url = place.server.url
                        tried[url] = ""
                        if place.probe and self.examine is not None:
                            await self.examine(url)
                        tried[url], body = write()
                        pinned = {"id_slot": place.slot.number} if place.slot and "id_slot" in body else {}
                        content = json.dumps({**body, **pinned}).encode("utf-8", "surrogatepass")
                        return await self._send_once("POST", _address(url, tried[url]), content, read)
                except TransientFault:
                    if not dispatcher.untried(tried):
                        raise

        return await self._retry(post_to_any)

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        if pool := self._pools.pop(asyncio.get_running_loop(), None):
            await pool.client.aclose()

    async def _retry(self, attempt: Callable[[dict[str, str]], Awaitable[T]]) -> T:
        """Try all servers, and again after a wait; `attempt` records the path that it tries at each server in its argument."""
        options, tried = self.options, dict[str, str]()

        async def one_round() -> T:
            tried.clear()
            return await attempt(tried)

        try:
            rule = http.retry_options(options.retries, max_wait=options.timeout)
            return await tenacity.AsyncRetrying(sleep=self._sleep, **rule)(one_round)
        except TransientFault as fault:
            reason = fault.explain(options.retries, options.timeout)
            url, path = next(reversed(tried.items()))
            where = "no server of llm.url answered; the last was " if len(self.urls) > 1 else ""
            raise BackendError("generate", f"{where}{hide_password(url)}{path}: {reason}", reply=fault.reply) from fault

    async def _send_once(self, method: str, address: str, body: bytes | None, read: ReplyParser[T]) -> T:
        url = hide_password(address)
        try:
            reply = await http.send_async(self._pool().client, method, address, body, self._exchange)
        except http.ReplyTooLong as error:
            reason = f"{url}: the reply is longer than {self._exchange.max_bytes // 2**20} MB"
            raise ReplyError("generate", reason, reply=error.start.decode("utf-8", "replace")) from error
        text = reply.body.decode("utf-8", "replace")
        if reply.status != 200:
            if key := read_api_key(self.options):  # a server may quote it, and failures are stored
                text = text.replace(key, "***")
            raise self._refusal(reply, text, url)
        try:
            payload = json.loads(text)
        except (ValueError, RecursionError) as error:
            remedy = "Check that llm.url is the address of an OpenAI-compatible API; it usually ends in /v1"
            raise TransientFault("the reply is not JSON", remedy, reply=text[:2000]) from error
        return read(payload, url, text[:2000])

    def _refusal(self, reply: http.HttpReply, text: str, url: str) -> TransientFault | RequestRefused:
        message = error_text(text)
        if reply.status in http.RETRYABLE_STATUS and not _is_permanent(message):
            reason = f"HTTP {reply.status}: {message or 'no message'}"
            if reply.status in http.WAIT_STATUS:
                return ServerBusy(reply.status, reason, "See the server's log", wait=reply.wait, reply=text[:2000])
            return TransientFault(reason, "See the server's log", reply=text[:2000])
        reason = _explain_refusal(reply.status, message, self.options.api_key_env)
        return RequestRefused(f"{url}: {reason}", reply.status, message)

    def _pool(self) -> _ConnectionPool:
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            self._pools = {other: pool for other, pool in self._pools.items() if not other.is_closed()}
            for url in self.urls:
                try:
                    http.split_address(url)
                except ValueError as error:
                    shown = hide_password(url)
                    raise SettingsError(f"llm.url: {shown!r} is not an address; write it as http://HOST:PORT/v1") from error
            key = read_api_key(self.options)
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            client = httpx2.AsyncClient(**http.client_options(self.options.timeout, headers))
            options = self.options
            self._pools[loop] = _ConnectionPool(
                client, Dispatcher(self.urls, options.concurrency, options.timeout, self.slots, self._clock)
            )
        return self._pools[loop]


def _address(url: str, path: str) -> str:
    return (url.removesuffix("/v1") if path in ROOT_PATHS else url) + path


def read_api_key(options: LLMOptions) -> str:
    """Return the server's key from the environment, "" where there is none; raises SettingsError where it cannot be sent."""
    key = os.environ.get(options.api_key_env, "").strip()
    if not (key.isascii() and key.isprintable()):
        problem = f"the variable {options.api_key_env} holds a key with characters that cannot be sent"
        raise SettingsError(f"llm.api_key_env: {problem}; set it to the key alone")
    return key


def _explain_refusal(status: int, message: str, key_env: str) -> str:
    """Explain a server's refusal and name the remedy."""
    if _is_context_overflow(message):
        return f"the prompt is longer than the model's context: {message.rstrip('.')}. {LONGER_CONTEXT_HINT}"
    if status in (401, 403):
        return f"the server requires a key ({message}). Put it into the environment variable {key_env}"
    if 300 <= status < 400:
        return f"the server redirects to another address (HTTP {status}). Set llm.url to that address"
    return f"the server refused (HTTP {status}): {message or 'no message'}"


def _is_context_overflow(message: str) -> bool:
    text = message.lower()
    return any(w in text for w in ("context length", "context size", "context window", "max_model_len", "too many tokens"))


def _is_permanent(message: str) -> bool:
    """Return whether another try would meet the same error, whatever its status."""
    permanent = (
        "logits_all", "chat template", "not supported", "not implemented", "roles must alternate", "prefill",
        "does not match the expected",  # llama.cpp, where a reply does not fit the template's format
    )  # fmt: skip
    text = message.lower()
    return _is_context_overflow(message) or any(w in text for w in permanent)


def error_text(body: str) -> str:
    """Extract the message from the body of an error, JSON or not."""
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        return " ".join(body.split())[:300]
    for name in ("error", "message", "detail"):
        if isinstance(payload, dict) and payload.get(name):
            payload = payload[name]
    text = payload if isinstance(payload, str) else json.dumps(payload)
    return text.encode(errors="replace").decode()[:600]  # a lone surrogate becomes "?"
