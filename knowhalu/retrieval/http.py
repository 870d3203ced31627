"""A client for a running retrieval server: `search?query=...&k=...`, answered by `{"topk": [{"text", "score", "pid"}, ...]}`.

This is what ColBERT's and WikiChat's servers speak, and `knowhalu index serve`. Only the address that is given is asked; no
proxy and no redirect is followed.
"""

import http.client
import json
import math
import random
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple

from knowhalu.errors import BackendError, InputError
from knowhalu.index.protocols import check_k
from knowhalu.types import Passage

MAX_REPLY_BYTES = 2**26
"""Bytes of the largest reply that is read."""
STAGE = "retrieval"
CONNECTION_ERRORS = (OSError, http.client.HTTPException)
RETRYABLE_STATUS = frozenset({429, 500, 502, 503, 504})
TOO_LONG_STATUS = frozenset({413, 414, 431})
MAX_GET_BYTES = 2**16 - 100
"""Bytes of the longest address that is asked by GET; servers in Python read lines of 65,536."""


class _ServerAddress(NamedTuple):
    make: Callable[..., http.client.HTTPConnection]
    host: str
    port: int | None
    path: str
    query: str


class HttpRetriever:
    """Search through a server; queries of one call are asked side by side in `concurrency` threads.

    A query that is too long for GET is asked by POST.
    Connection errors, timeouts and the statuses 429 and 5xx are tried again `retries` times, after `pause` seconds that
    double each time. Raises InputError where the address is not a web address.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 30.0,
        retries: int = 3,
        pause: float = 0.25,
        concurrency: int = 16,
        method: Literal["GET", "POST"] = "GET",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url, self.timeout, self.retries, self.pause = url, timeout, retries, pause
        self.method, self._sleep, self._concurrency = method, sleep, concurrency
        self._server = _parse_address(url)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return at most `k` passages for each query, best first; none for a blank query, which is not asked.

        Raises BackendError with address, reason and the server's own words where it does not answer as it should.
        """
        check_k(k)
        asked = list(dict.fromkeys(q for q in queries if q.strip()))
        if not asked:
            return [[] for _ in queries]
        with ThreadPoolExecutor(min(self._concurrency, len(asked))) as pool:
            found = dict(zip(asked, pool.map(lambda q: self._one(q, k), asked), strict=True))
        return [list(found[q]) if q.strip() else [] for q in queries]

    def _one(self, query: str, k: int) -> list[Passage]:
        for attempt in range(self.retries + 1):
            try:
                status, body = self._send(query, k)
            except CONNECTION_ERRORS as error:
                failure = BackendError(STAGE, f"{self.url}: no answer ({type(error).__name__}: {error}). Is the server running?")
            else:
                if status == 200:
                    return parse_search_reply(body, k, self.url)
                text = body[:500].decode(errors="replace")
                failure = BackendError(STAGE, f"{self.url}: {self._refusal(query, k, status)}", reply=text)
                if status not in RETRYABLE_STATUS:
                    raise failure
            if attempt < self.retries:
                self._sleep(self.pause * 2**attempt * random.uniform(0.75, 1.25))
        raise failure

    def _refusal(self, query: str, k: int, status: int) -> str:
        if status in TOO_LONG_STATUS or (status not in RETRYABLE_STATUS and len(self._line(query, k)) > MAX_GET_BYTES):
            return f"status {status}: a query of {len(query):,} characters is too long for this server. Shorten it"
        return f"status {status}"

    def _line(self, query: str, k: int) -> str:
        given = urllib.parse.urlencode({"query": query, "k": str(k)}, errors="replace")
        return f"{self._server.path}?{'&'.join(filter(None, (self._server.query, given)))}"

    def _send(self, query: str, k: int) -> tuple[int, bytes]:
        server, line = self._server, self._line(query, k)
        connection = server.make(server.host, server.port, timeout=self.timeout)
        try:
            if self.method == "POST" or len(line) > MAX_GET_BYTES:
                body = json.dumps({"query": query.encode(errors="replace").decode(), "k": k}).encode()
                path = server.path + (f"?{server.query}" if server.query else "")
                connection.request("POST", path, body, {"Content-Type": "application/json", "Accept": "application/json"})
            else:
                connection.request("GET", line, headers={"Accept": "application/json"})
            return self._received(connection.getresponse())
        finally:
            connection.close()

    def _received(self, response: http.client.HTTPResponse) -> tuple[int, bytes]:
        """Read a reply piece by piece, so that neither its size nor its slowness is without bound."""
        ends, parts, size = time.monotonic() + self.timeout, [], 0
        while piece := response.read1(2**16):
            parts.append(piece)
            size += len(piece)
            if size > MAX_REPLY_BYTES:
                raise BackendError(STAGE, f"{self.url}: the reply is over {MAX_REPLY_BYTES} bytes")
            if time.monotonic() > ends:
                raise TimeoutError(f"the reply took over {self.timeout} seconds")
        if response.length:  # it was announced longer than what came
            raise http.client.IncompleteRead(b"", response.length)
        return response.status, b"".join(parts)


def _parse_address(url: str) -> _ServerAddress:
    try:
        parts = urllib.parse.urlsplit(url)
        kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        if not parts.hostname:
            raise ValueError("no host")
        return _ServerAddress(kinds[parts.scheme], parts.hostname, parts.port, parts.path or "/search", parts.query)
    except (ValueError, KeyError) as error:
        raise InputError(f"{url!r} is no address of a server. Give one such as http://127.0.0.1:8893/search") from error


def parse_search_reply(body: bytes, k: int, url: str) -> list[Passage]:
    """Read `{"topk": [...]}` into passages, best first; raises BackendError where it is anything else, with the reply."""
    try:
        rows = json.loads(body)["topk"]
        found = [_passage(row) for row in rows]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        text = body[:500].decode(errors="replace")
        raise BackendError(STAGE, f"{url}: the reply is not what a search server says ({error!r})", reply=text) from error
    return sorted(found, key=lambda p: -p.score)[:k]


def _passage(row: Mapping[str, Any]) -> Passage:
    """Read one row; ColBERT's server puts the title before the text, parted by " | "."""
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
