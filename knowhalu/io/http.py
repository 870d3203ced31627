"""HTTP requests to a server that the user names: connections, limits of time and size, typed faults and retries.

A request goes to the given address and nowhere else: no proxy is taken from the environment, no redirect is followed and
no cookie is kept. What a reply means is up to the caller.
"""

import asyncio
import random
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, NamedTuple, TypedDict
from urllib.parse import SplitResult, urlsplit

import httpx2
import tenacity

from knowhalu.errors import hide_password

MAX_RETRY_SECONDS = 30.0
CONNECT_SECONDS = 10.0
KEEPALIVE_SECONDS = 4.0
"""An idle connection is closed before the server closes it (uvicorn does after 5 s), so that no request is sent into it."""
RETRYABLE_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
WAIT_STATUS = frozenset({429, 503})
"""The statuses with which a server may say how long to wait (RFC 9110, section 10.2.3; RFC 6585, section 4)."""


class TransientFault(Exception):
    """A fault that may not occur at the next try; `wait` is the number of seconds for which the server wants to be left alone."""

    def __init__(self, reason: str, remedy: str = "", *, wait: float | None = None, reply: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.remedy, self.wait, self.reply = reason, remedy, wait, reply

    def explain(self, retries: int, max_wait: float) -> str:
        """Return reason and remedy after the last of `retries` tries, or where the server demands a longer wait."""
        if (self.wait or 0.0) > max_wait:
            return f"{self.reason}; the server asks to wait {self.wait:.0f} s, longer than the timeout of {max_wait:g} s"
        tries = f" (tried {retries + 1} times)" if retries else ""
        return f"{self.reason}{tries}" + (f". {self.remedy}" if self.remedy else "")


class NoConnection(TransientFault):
    """The server cannot be reached."""


class NoReply(TransientFault):
    """The server accepted a request and did not answer it in time."""


class ServerBusy(TransientFault):
    """The server refused a request because it has too much to do, or is starting (`status` 429 or 503)."""

    def __init__(
        self, status: int, reason: str, remedy: str = "", *, wait: float | None = None, reply: str | None = None
    ) -> None:
        super().__init__(reason, remedy, wait=wait, reply=reply)
        self.status = status


class ReplyTooLong(Exception):
    """A reply of more than the allowed number of bytes; `start` is its beginning."""

    def __init__(self, start: bytes) -> None:
        super().__init__(f"a reply that starts with {start[:40]!r}")
        self.start = start


def split_address(url: str) -> SplitResult:
    """Return the parts of the address of a web server; raises ValueError where the URL is not one."""
    parts = urlsplit(url)
    try:
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{hide_password(url)!r} has no http:// or no host")
        httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise ValueError(f"{hide_password(url)!r}: {error}") from error
    return parts


class Exchange(NamedTuple):
    """What one request and its reply may take, and the remedies to name where they fail."""

    timeout: float
    """Seconds from connecting to the last byte of the reply."""
    max_bytes: int
    no_connection: str = ""
    no_reply: str = ""
    broken: str = ""


class HttpReply(NamedTuple):
    """Status, body and the seconds that the server asks to wait before another try."""

    status: int
    body: bytes
    wait: float | None


class ClientOptions(TypedDict):
    """Arguments of `httpx2.Client` and `httpx2.AsyncClient`."""

    trust_env: bool
    follow_redirects: bool
    verify: ssl.SSLContext
    cookies: CookieJar
    headers: dict[str, str]
    limits: httpx2.Limits
    timeout: httpx2.Timeout


def client_options(timeout: float, headers: dict[str, str] | None = None) -> ClientOptions:
    """Return the arguments with which every client is made; `timeout` is in seconds."""
    return {
        "trust_env": False,
        "follow_redirects": False,
        "verify": _ssl_context(),
        "cookies": CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        "headers": {"User-Agent": "knowhalu", "Accept": "application/json", "Accept-Encoding": "identity", **(headers or {})},
        # the callers bound how many requests are in flight
        "limits": httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEEPALIVE_SECONDS),
        "timeout": httpx2.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS), pool=None),
    }


@cache
def _ssl_context() -> ssl.SSLContext:
    """Trust the certificates of the operating system, as an own server may have one of its organisation."""
    return ssl.create_default_context()


def send(client: httpx2.Client, method: str, url: str, body: bytes | None, exchange: Exchange) -> HttpReply:
    """Send one request, whose body is JSON, and read its reply.

    Raises TransientFault where the connection or the reply fails, and ReplyTooLong.
    """
    end, content = time.monotonic() + exchange.timeout, bytearray()
    with _translate_errors(exchange), client.stream(method, url, content=body, headers=_headers(body)) as response:
        for piece in response.iter_bytes():
            _append_piece(content, piece, exchange.max_bytes)
            if time.monotonic() > end:
                raise TimeoutError
    return HttpReply(response.status_code, bytes(content), _requested_wait(response))


async def send_async(client: httpx2.AsyncClient, method: str, url: str, body: bytes | None, exchange: Exchange) -> HttpReply:
    """Send one request and read its reply; raises what `send` raises."""
    content = bytearray()
    with _translate_errors(exchange):
        async with (
            asyncio.timeout(exchange.timeout),
            client.stream(method, url, content=body, headers=_headers(body)) as response,
        ):
            async for piece in response.aiter_bytes():
                _append_piece(content, piece, exchange.max_bytes)
    return HttpReply(response.status_code, bytes(content), _requested_wait(response))


def _headers(body: bytes | None) -> dict[str, str]:
    return {} if body is None else {"Content-Type": "application/json"}


def _append_piece(content: bytearray, piece: bytes, max_bytes: int) -> None:
    content += piece
    if len(content) > max_bytes:
        raise ReplyTooLong(bytes(content[:2000]))


@contextmanager
def _translate_errors(exchange: Exchange) -> Iterator[None]:
    try:
        yield
    except httpx2.ConnectError as error:
        raise NoConnection(f"cannot connect ({_root_cause(error)})", exchange.no_connection) from error
    except (httpx2.TimeoutException, TimeoutError) as error:
        if isinstance(error, httpx2.ConnectTimeout) and exchange.timeout > CONNECT_SECONDS:
            raise NoConnection(f"no connection within {CONNECT_SECONDS:g} s", exchange.no_connection) from error
        raise NoReply(f"no reply within {exchange.timeout:g} s", exchange.no_reply) from error
    except (httpx2.HTTPError, OSError) as error:
        detail = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise TransientFault(f"the connection broke ({detail})", exchange.broken) from error


def _root_cause(error: BaseException) -> BaseException:
    """Return the error of the operating system, which says more than those that wrap it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno:
            return cause
        cause = cause.__cause__ or cause.__context__
    return error


class RetryOptions(TypedDict):
    """Arguments of `tenacity.Retrying` and `tenacity.AsyncRetrying`."""

    stop: Any
    wait: Any
    retry: Any
    reraise: bool


def retry_options(retries: int, max_wait: float, first_wait: float = 0.5) -> RetryOptions:
    """Return the rule of all retries: a `TransientFault` is followed by another try, `retries` times.

    The wait is what the server demands, else a random time between half of and all of `first_wait` seconds, which doubles
    with each try. Where the server demands more than `max_wait` seconds, there is no other try.
    """

    def wait(state: tenacity.RetryCallState) -> float:
        fault = state.outcome.exception() if state.outcome else None
        if isinstance(fault, TransientFault) and fault.wait is not None:
            return fault.wait
        longest: float = min(first_wait * 2.0 ** (state.attempt_number - 1), MAX_RETRY_SECONDS)
        return random.uniform(longest / 2, longest)

    return {
        "stop": tenacity.stop_after_attempt(retries + 1),
        "wait": wait,
        "retry": tenacity.retry_if_exception(lambda e: isinstance(e, TransientFault) and (e.wait or 0.0) <= max_wait),
        "reraise": True,
    }


def _requested_wait(response: httpx2.Response) -> float | None:
    """Read the header Retry-After: seconds or a date."""
    text = response.headers.get("Retry-After")
    if text is None or response.status_code not in WAIT_STATUS:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())
