"""A small search server: GET or POST `/search` with `query` and `k`, answered in the format of ColBERT's server.

It is meant for one machine or a trusted network: it has no login and no encryption, and listens on the local address unless
another is given. It uses `http.server` of the standard library, as no web server is part of every installation.
"""

import json
import math
import socket
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from knowhalu.errors import InputError, KnowHaluError
from knowhalu.index.protocols import Retriever
from knowhalu.types import Passage

MAX_PASSAGES = 1000
"""The most passages for one query."""
MAX_BODY_BYTES = 2**20
"""Bytes of the largest request; also characters of the longest query."""


class _SearchRequest(NamedTuple):
    query: str
    k: int


class SearchServer(ThreadingHTTPServer):
    """Serve one retriever, called by one thread at a time; `/info` returns `info` as JSON.

    Raises InputError where the server cannot listen on the address.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, retriever: Retriever, host: str = "127.0.0.1", port: int = 8893, *, info: Any = None) -> None:
        self.retriever, self.info, self.lock = retriever, info, threading.Lock()
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise InputError(f"cannot listen on {host}:{port} ({error.strerror}). Give another address or port.") from error

    @property
    def url(self) -> str:
        """The URL of the search, with the port in use."""
        host, port = self.server_address[:2]
        return f"http://{f'[{host!s}]' if ':' in str(host) else host!s}:{port}/search"


class _Handler(BaseHTTPRequestHandler):
    server: SearchServer
    server_version = "knowhalu"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 30  # seconds after which the thread of a silent client ends

    def do_GET(self) -> None:
        parts = urllib.parse.urlsplit(self.path)
        if parts.path.rstrip("/") in ("/info", ""):
            self._reply(200, self.server.info or {})
        elif parts.path.rstrip("/") in ("/search", "/api/search"):
            fields = urllib.parse.parse_qs(parts.query, keep_blank_values=True)
            self._answer({name: values[-1] for name, values in fields.items()})
        else:
            self._reply(404, {"error": "no such page. Request /search?query=...&k=..."})

    def do_POST(self) -> None:
        size = self.headers.get("Content-Length", "")
        if not size.isdigit() or int(size) > MAX_BODY_BYTES:
            self.close_connection = True
            self._reply(413, {"error": f"a request needs a Content-Length of at most {MAX_BODY_BYTES} bytes"})
            return
        body = self.rfile.read(int(size))
        if urllib.parse.urlsplit(self.path).path.rstrip("/") not in ("/search", "/api/search"):
            self._reply(404, {"error": "no such page. Post to /search"})
            return
        try:
            fields = json.loads(body)
        except (ValueError, RecursionError):
            self._reply(400, {"error": 'the request is not JSON. Send {"query": "...", "k": 3}'})
            return
        self._answer(fields if isinstance(fields, dict) else {})

    def _answer(self, fields: dict[str, Any]) -> None:
        try:
            request = _parse_search_request(fields)
            with self.server.lock:
                (passages,) = self.server.retriever.search([request.query], request.k)
            self._reply(200, {"query": request.query, "topk": passages_as_json(passages)})
        except InputError as error:
            self._reply(400, {"error": str(error)})
        except KnowHaluError as error:
            self._reply(500, {"error": str(error)})

    def _reply(self, status: int, content: Any) -> None:
        data = json.dumps(content, ensure_ascii=True).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: queries are private."""


def _parse_search_request(fields: dict[str, Any]) -> _SearchRequest:
    query, k = fields.get("query"), fields.get("k", 10)
    if not isinstance(query, str) or len(query) > MAX_BODY_BYTES:
        raise InputError("the query is missing or too long. Request /search?query=...&k=...")
    try:
        number = int(k)
    except (TypeError, ValueError) as error:
        raise InputError(f"k is {k!r}. Give a number from 1 to {MAX_PASSAGES}") from error
    if not 1 <= number <= MAX_PASSAGES:
        raise InputError(f"k is {number}. Give a number from 1 to {MAX_PASSAGES}")
    return _SearchRequest(query, number)


def passages_as_json(passages: list[Passage]) -> list[dict[str, Any]]:
    """Return passages in the format of ColBERT's server, with ids, titles and offsets as further fields.

    `prob` is the softmax over the scores of this reply.
    """
    top = max((p.score for p in passages), default=0.0)
    weights = [math.exp(p.score - top) for p in passages]
    total = sum(weights)
    return [
        {"rank": rank, "prob": weight / total, "pid": p.id, **p.model_dump(mode="json")}
        for rank, (p, weight) in enumerate(zip(passages, weights, strict=True), 1)
    ]
