"""The line to a server: one pool of connections for each event loop, limits, timeouts, and further tries."""

import asyncio
import json
import os
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

from knowhalu.errors import BackendError, MissingExtra, ReplyError, SettingsError
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.parse import RetryableFault, error_text, explain_refusal, is_permanent

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]
ReplyParser = Callable[[Any, str, str], T]

FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS = 0.5, 30.0
CONNECT_SECONDS = 10.0
KEEPALIVE_SECONDS = 4.0
"""An idle connection is let go before a server lets go of it (uvicorn: after 5 s), or a request would meet a closed door."""
MAX_REPLY_BYTES = 32 * 2**20
RETRYABLE_STATUS = {408, 425, 429, 500, 502, 503, 504, 529}


class RequestRefused(BackendError):
    """A server that will not answer this request however often it is asked."""

    retryable = False

    def __init__(self, error: BackendError, status: int, said: str) -> None:
        super().__init__(error.stage, error.reason, reply=error.reply)
        self.status, self.said = status, said


class HttpClient:
    """Requests to one server. `sleep` may be replaced, so that tests need not wait."""

    def __init__(self, options: LLMOptions, sleep: Sleep = asyncio.sleep) -> None:
        self.options, self.url, self._sleep = options, options.url.rstrip("/"), sleep
        self._pools: dict[asyncio.AbstractEventLoop, _ConnectionPool] = {}

    async def get(self, path: str, read: ReplyParser[T]) -> T:
        """Ask for a resource and read it."""
        return await self._tried("GET", path, None, read)

    async def post(self, path: str, body: dict[str, Any], read: ReplyParser[T]) -> T:
        """Send JSON and read the JSON that comes back: `read(payload, url, raw text)` may raise Again.

        Raises Refused where the server refuses, BackendError where all tries failed.
        """
        return await self._tried("POST", path, json.dumps(body).encode("utf-8", "surrogatepass"), read)

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        if pool := self._pools.pop(asyncio.get_running_loop(), None):
            await pool.session.close()

    async def _tried(self, method: str, path: str, body: bytes | None, read: ReplyParser[T]) -> T:
        where = self.url + path
        for left in range(self.options.retries, -1, -1):
            try:
                return await self._once(method, where, body, read)
            except RetryableFault as fault:
                if not left:
                    cure = f". {fault.cure}" if fault.cure else ""
                    tries = f" (tried {self.options.retries + 1} times)" if self.options.retries else ""
                    raise BackendError("generate", f"{where}: {fault.reason}{tries}{cure}", reply=fault.reply) from fault
                await self._sleep(self._wait(fault, self.options.retries - left, where))
        raise AssertionError("unreachable: the last try returns or raises")

    def _wait(self, fault: RetryableFault, tried: int, where: str) -> float:
        """Return how long to wait: as long as the server asks, else twice as long each time, at random up to that."""
        if fault.wait is None:
            longest: float = min(FIRST_RETRY_SECONDS * 2.0**tried, MAX_RETRY_SECONDS)
            return random.uniform(longest / 2, longest)
        if fault.wait > self.options.timeout:
            asked = f"it asks to wait {fault.wait:.0f} s, longer than llm.timeout ({self.options.timeout:g} s)"
            raise BackendError("generate", f"{where}: {fault.reason}; {asked}", reply=fault.reply)
        return fault.wait

    async def _once(self, method: str, where: str, body: bytes | None, read: ReplyParser[T]) -> T:
        pool = self._pool()
        import aiohttp

        try:
            async with pool.room, pool.session.request(method, where, data=body, allow_redirects=False) as response:
                raw = await _read_body(response, where)
                status, headers = response.status, response.headers
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
            raise SettingsError(f"llm.url: {self.url!r} is no address; write it as http://HOST:PORT/v1") from error
        except aiohttp.ClientConnectorError as error:
            cure = "Start the server (knowhalu serve-model MODEL), or set llm.url to where it listens"
            raise RetryableFault(f"cannot connect ({error.os_error or error})", cure) from error
        except TimeoutError as error:
            cure = "Raise llm.timeout, or lower llm.concurrency"
            raise RetryableFault(f"no reply within {self.options.timeout:g} s", cure) from error
        except (aiohttp.ClientError, OSError) as error:
            raise RetryableFault(f"the connection broke ({type(error).__name__}: {error})", "See the server's log") from error
        if status != 200:
            raise self._fault(status, headers.get("Retry-After"), raw, where)
        try:
            payload = json.loads(raw)
        except (ValueError, RecursionError) as error:
            cure = "Is llm.url the address of an OpenAI-compatible API? It usually ends in /v1"
            raise RetryableFault("the reply is not JSON", cure, reply=raw[:2000]) from error
        return read(payload, where, raw[:2000])

    def _fault(self, status: int, retry_after: str | None, raw: str, where: str) -> Exception:
        said = error_text(raw)
        if status in RETRYABLE_STATUS and not is_permanent(said):
            wait = _retry_after_seconds(retry_after) if status in (429, 503) else None
            return RetryableFault(
                f"HTTP {status}: {said or 'without a word'}", "See the server's log", wait=wait, reply=raw[:2000]
            )
        return RequestRefused(explain_refusal(status, said, where, self.options.api_key_env), status, said)

    def _pool(self) -> "_ConnectionPool":
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            self._pools = {kept: pool for kept, pool in self._pools.items() if not kept.is_closed()}
            self._pools[loop] = _ConnectionPool(self.options)
        return self._pools[loop]


def read_api_key(options: LLMOptions) -> str:
    """Return the key for the server, "" where none is given; raises SettingsError where it cannot be sent."""
    key = os.environ.get(options.api_key_env, "").strip()
    if not (key.isascii() and key.isprintable()):
        what = "holds a key with characters that cannot be sent"
        raise SettingsError(f"llm.api_key_env: the variable {options.api_key_env} {what}; set it to the key alone")
    return key


class _ConnectionPool:
    """The connections of one event loop, and how many may be in use at once."""

    def __init__(self, options: LLMOptions) -> None:
        try:
            import aiohttp
        except ImportError as error:
            raise MissingExtra("aiohttp", "llm") from error
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if key := read_api_key(options):
            headers["Authorization"] = f"Bearer {key}"
        self.session: aiohttp.ClientSession = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=options.timeout, sock_connect=min(CONNECT_SECONDS, options.timeout)),
            trust_env=False,  # no proxy from the environment: texts go to llm.url and nowhere else
        )
        self.room = asyncio.Semaphore(options.concurrency)


async def _read_body(response: "aiohttp.ClientResponse", where: str) -> str:
    parts, size = list[bytes](), 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > MAX_REPLY_BYTES:
            response.close()
            start = b"".join(parts)[:2000].decode("utf-8", "replace")
            raise ReplyError("generate", f"{where}: the reply is longer than {MAX_REPLY_BYTES // 2**20} MB", reply=start)
    return b"".join(parts).decode("utf-8", "replace")


def _retry_after_seconds(retry_after: str | None) -> float | None:
    """Read a Retry-After header: seconds, or a date."""
    if retry_after is None:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
