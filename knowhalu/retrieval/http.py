"""A client of a running search server: `/search?query=...&k=...`, answered by `{"topk": [{"text", "score", "pid"}, ...]}`.

ColBERT's and WikiChat's servers have this interface, and so has `knowhalu index serve`.
"""

import json
import math
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import httpx2
import tenacity

from knowhalu.errors import BackendError, InputError, hide_password
from knowhalu.index.protocols import check_k
from knowhalu.io import http
from knowhalu.io.http import TransientFault
from knowhalu.types import Passage

MAX_REPLY_BYTES = 2**26
STAGE = "retrieval"
TOO_LONG_STATUS = frozenset({413, 414, 431})
MAX_GET_BYTES = 2**16 - 100
"""The longest URL that is sent by GET; servers in Python read lines of 65,536 bytes."""


class HttpRetriever:
    """Search through a server; the queries of one call are sent by up to `concurrency` threads.

    A query that is too long for GET is sent by POST. Transient faults (broken connections, timeouts, the statuses of
    `knowhalu.io.http.RETRYABLE_STATUS`) are followed by up to `retries` further tries, the first after `pause` seconds.
    Raises InputError where the URL is not the address of a web server.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 30.0,
        retries: int = 3,
        pause: float = 0.5,
        concurrency: int = 16,
        method: Literal["GET", "POST"] = "GET",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url, self.shown_url, self.method = url, hide_password(url), method
        self._address, self._retries, self._concurrency = _parse_address(url), retries, concurrency
        self._exchange = http.Exchange(
            timeout,
            MAX_REPLY_BYTES,
            no_connection="Start the server (knowhalu index serve FOLDER), or correct the address",
            no_reply="See whether the server is overloaded",
            broken="See the server's log",
        )
        self._sleep, self._retry = sleep, http.retry_options(retries, max_wait=timeout, first_wait=pause)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return at most `k` passages for each query, best first; none for a blank query, which is not sent.

        Raises BackendError, with the server's reply, where the server does not answer as it should.
        """
        check_k(k)
        distinct = list(dict.fromkeys(q for q in queries if q.strip()))
        if not distinct:
            return [[] for _ in queries]
        with (
            httpx2.Client(**http.client_options(self._exchange.timeout)) as client,
            ThreadPoolExecutor(min(self._concurrency, len(distinct))) as pool,
        ):
            passages = dict(zip(distinct, pool.map(lambda q: self._search_one(client, q, k), distinct), strict=True))
        return [list(passages[q]) if q.strip() else [] for q in queries]

    def _search_one(self, client: httpx2.Client, query: str, k: int) -> list[Passage]:
        try:
            body = tenacity.Retrying(sleep=self._sleep, **self._retry)(self._send, client, query, k)
        except TransientFault as fault:
            reason = fault.explain(self._retries, self._exchange.timeout)
            raise BackendError(STAGE, f"{self.shown_url}: {reason}", reply=fault.reply) from fault
        except http.ReplyTooLong as error:
            raise BackendError(STAGE, f"{self.shown_url}: the reply is longer than {MAX_REPLY_BYTES:,} bytes") from error
        return parse_search_reply(body, k, self.shown_url)

    def _send(self, client: httpx2.Client, query: str, k: int) -> bytes:
        parameters = urllib.parse.urlencode({"query": query, "k": str(k)}, errors="replace")
        url = f"{self._address}{'&' if '?' in self._address else '?'}{parameters}"
        if self.method == "POST" or len(url) > MAX_GET_BYTES:
            body = json.dumps({"query": query.encode(errors="replace").decode(), "k": k}).encode()
            reply = http.send(client, "POST", self._address, body, self._exchange)
        else:
            reply = http.send(client, "GET", url, None, self._exchange)
        if reply.status == 200:
            return reply.body
        text = reply.body[:500].decode(errors="replace")
        if reply.status in http.RETRYABLE_STATUS:
            raise TransientFault(f"HTTP {reply.status}", "See the server's log", wait=reply.wait, reply=text)
        reason = f"HTTP {reply.status}"
        if reply.status in TOO_LONG_STATUS or len(url) > MAX_GET_BYTES:
            reason += f": a query of {len(query):,} characters is too long for this server. Shorten it"
        raise BackendError(STAGE, f"{self.shown_url}: {reason}", reply=text)


def _parse_address(url: str) -> str:
    """Return the URL without its fragment, with the path `/search` where it has none."""
    try:
        parts = http.split_address(url)
    except ValueError as error:
        shown, example = hide_password(url), "http://127.0.0.1:8893/search"
        raise InputError(f"{shown!r} is not the address of a server. Give one such as {example}") from error
    return parts._replace(path=parts.path or "/search", fragment="").geturl()


def parse_search_reply(body: bytes, k: int, url: str) -> list[Passage]:
    """Parse `{"topk": [...]}` into passages, best first; raises BackendError, with the reply, where it is anything else."""
    try:
        rows = json.loads(body)["topk"]
        passages = [_passage(row) for row in rows]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        text = body[:500].decode(errors="replace")
        reason = f"{url}: the reply is not that of a search server ({type(error).__name__}: {error})"
        raise BackendError(STAGE, reason, reply=text) from error
    return sorted(passages, key=lambda p: -p.score)[:k]


def _passage(row: Mapping[str, Any]) -> Passage:
    """Parse one row; ColBERT's server writes the title before the text, separated by " | "."""
    text, title = str(row["text"]), row.get("title")
    if title is None and " | " in text:
        title, _, text = text.partition(" | ")
    score = float(row.get("score", row.get("prob", 0.0)))
    if not text.strip() or not math.isfinite(score):
        raise ValueError("a passage without text, or a score that is not a number")
    start = int(row.get("start", 0))
    return Passage(
        id=str(row.get("id") or row["pid"]),
        text=text,
        title=str(title or ""),
        score=score,
        document=str(row.get("document") or row.get("pid", "")),
        start=start,
        end=int(row.get("end", start + len(text))),
    )
