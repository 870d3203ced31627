"""The HTTP client of language model servers: JSON to and from one address, with a pool of connections for each event loop."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

import httpx2
import tenacity

from knowhalu.errors import BackendError, ReplyError, SettingsError, hide_password
from knowhalu.io import http
from knowhalu.io.http import TransientFault
from knowhalu.llm.options import SHORTER_PROMPT_HINT, LLMOptions

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]
ReplyParser = Callable[[Any, str, str], T]
"""Reads (JSON, URL, beginning of the raw reply); raises TransientFault where another try may help."""

MAX_REPLY_BYTES = 32 * 2**20


class RequestRefused(BackendError):
    """A refusal that another try would meet again; `message` is the server's own text."""

    retryable = False

    def __init__(self, reason: str, status: int, message: str) -> None:
        super().__init__("generate", reason, reply=message)
        self.status, self.message = status, message


class _ConnectionPool(NamedTuple):
    """The connections of one event loop, and a semaphore that bounds the requests in flight."""

    client: httpx2.AsyncClient
    slots: asyncio.Semaphore


class JsonClient:
    """Exchange JSON with one server. `sleep` waits between tries; tests replace it."""

    def __init__(self, options: LLMOptions, sleep: Sleep = asyncio.sleep) -> None:
        self.options, self.url, self._sleep = options, options.url.rstrip("/"), sleep
        self.shown_url = hide_password(self.url)
        self._exchange = http.Exchange(
            options.timeout,
            MAX_REPLY_BYTES,
            no_connection="Start the server (knowhalu serve-model MODEL), or set llm.url to its address",
            no_reply="Raise llm.timeout, or lower llm.concurrency",
            broken="See the server's log",
        )
        self._pools: dict[asyncio.AbstractEventLoop, _ConnectionPool] = {}

    async def get(self, path: str, read: ReplyParser[T]) -> T:
        """Get a resource and read it; raises what `post` raises."""
        return await self._send("GET", path, None, read)

    async def post(self, path: str, body: dict[str, Any], read: ReplyParser[T]) -> T:
        """Send JSON and read the JSON of the reply.

        Raises RequestRefused where the server refuses, BackendError where all tries failed, ReplyError where the reply is too
        long, and SettingsError where `llm.url` is not an address or the key cannot be sent.
        """
        return await self._send("POST", path, json.dumps(body).encode("utf-8", "surrogatepass"), read)

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        if pool := self._pools.pop(asyncio.get_running_loop(), None):
            await pool.client.aclose()

    async def _send(self, method: str, path: str, body: bytes | None, read: ReplyParser[T]) -> T:
        options = self.options
        rule = http.retry_options(options.retries, max_wait=options.timeout)
        try:
            return await tenacity.AsyncRetrying(sleep=self._sleep, **rule)(self._send_once, method, path, body, read)
        except TransientFault as fault:
            reason = fault.explain(options.retries, options.timeout)
            raise BackendError("generate", f"{self.shown_url}{path}: {reason}", reply=fault.reply) from fault

    async def _send_once(self, method: str, path: str, body: bytes | None, read: ReplyParser[T]) -> T:
        pool, url = self._pool(), self.shown_url + path
        try:
            async with pool.slots:
                reply = await http.send_async(pool.client, method, self.url + path, body, self._exchange)
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
            return TransientFault(reason, "See the server's log", wait=reply.wait, reply=text[:2000])
        reason = _explain_refusal(reply.status, message, self.options.api_key_env)
        return RequestRefused(f"{url}: {reason}", reply.status, message)

    def _pool(self) -> _ConnectionPool:
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            self._pools = {other: pool for other, pool in self._pools.items() if not other.is_closed()}
            try:
                http.split_address(self.url)
            except ValueError as error:
                raise SettingsError(f"llm.url: {self.shown_url!r} is not an address; write it as http://HOST:PORT/v1") from error
            key = read_api_key(self.options)
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            client = httpx2.AsyncClient(**http.client_options(self.options.timeout, headers))
            self._pools[loop] = _ConnectionPool(client, asyncio.Semaphore(self.options.concurrency))
        return self._pools[loop]


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
        longer = "Serve the model with a longer context (vLLM: --max-model-len; llama.cpp: -c, which its -np slots share)"
        return f"the prompt is longer than the model's context: {message.rstrip('.')}. {longer}, {SHORTER_PROMPT_HINT}"
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
