"""The client of a search server: its requests, accepted replies and failures."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.errors import BackendError, InputError
from knowhalu.retrieval.http import HttpRetriever, parse_search_reply
from tests.support.hanging import HANG

TOPK = [
    {"text": "Bees | Bees dance.", "pid": 7, "rank": 1, "score": 20.5, "prob": 0.9},
    {"text": "The tower is tall.", "title": "Tower", "pid": 3, "rank": 2, "score": 12.25, "prob": 0.1},
]


class Fake(ThreadingHTTPServer):
    """A server that answers each request with the next of `replies`, the last one repeatedly, and records the requests."""

    daemon_threads = True

    def __init__(self, replies):
        self.replies, self.asked = list(replies), []
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/api/search"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append({k: v[0] for k, v in parse_qs(urlsplit(self.path).query).items()})
        self.answer()

    def do_POST(self):
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.answer()

    def answer(self):
        reply = self.server.replies.pop(0) if len(self.server.replies) > 1 else self.server.replies[0]
        status, body, *length = reply if isinstance(reply, tuple) else (200, json.dumps({"topk": reply}).encode())
        if status == "drop":
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(status)
        self.send_header("Content-Length", str(length[0] if length else len(body)))
        self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def serve():
    started = []

    def start(*replies):
        started.append(Fake(replies))
        return started[-1]

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def client(server, **options):
    return HttpRetriever(server.url, **{"sleep": lambda seconds: None, "timeout": HANG, **options})


def test_a_colbert_reply_becomes_passages(serve):
    server = serve(TOPK)
    (found,) = client(server).search(["how do bees talk?"], 2)
    assert [(p.id, p.title, p.text, p.score) for p in found] == [
        ("7", "Bees", "Bees dance.", 20.5),
        ("3", "Tower", "The tower is tall.", 12.25),
    ]
    assert server.asked == [{"query": "how do bees talk?", "k": "2"}]


def test_a_post_carries_the_query_as_json(serve):
    server = serve(TOPK)
    client(server, method="POST").search(["größe & ?k=9"], 3)
    assert server.asked == [{"query": "größe & ?k=9", "k": 3}]


def test_a_query_too_long_for_get_is_sent_by_post(serve):
    server = serve(TOPK)
    query = "%" * 30_000 + "\ud83d"
    client(server).search([query], 2)
    assert server.asked == [{"query": "%" * 30_000 + "?", "k": 2}]


@pytest.mark.parametrize(("query", "status"), [("q", 414), ("%" * 30_000, 405)])
def test_a_query_too_long_for_the_server_is_an_error_with_the_remedy(serve, query, status):
    with pytest.raises(BackendError, match=f"HTTP {status}.*{len(query):,} characters.*Shorten it"):
        client(serve((status, b"no"))).search([query], 1)


def test_special_characters_reach_the_server_unchanged(serve):
    server = serve(TOPK)
    client(server).search(["größe & ?k=9 #x\n東京"], 3)
    assert server.asked[0] == {"query": "größe & ?k=9 #x\n東京", "k": "3"}


def test_queries_keep_their_order_and_equal_ones_are_sent_once(serve):
    server = serve(TOPK)
    found = client(server).search(["a", "", "b", "a", "  "], 1)
    assert [len(f) for f in found] == [1, 0, 1, 1, 0] and found[0] == found[3]
    assert sorted(asked["query"] for asked in server.asked) == ["a", "b"]


def test_passages_are_sorted_and_cut_to_k(serve):
    (found,) = client(serve(list(reversed(TOPK)))).search(["q"], 1)
    assert [p.id for p in found] == ["7"]


@pytest.mark.parametrize("fault", [(503, b"busy"), (429, b"slow down"), (500, b""), ("drop", b""), (200, b"{", 100)])
def test_a_transient_fault_is_followed_by_another_try(serve, fault):
    server = serve(fault, fault, TOPK)
    assert len(client(server, retries=2).search(["q"], 2)[0]) == 2
    assert len(server.asked) == 3


def test_waits_double_between_tries(serve):
    pauses = []
    with pytest.raises(BackendError, match="HTTP 503"):
        client(serve((503, b"busy")), retries=3, pause=1.0, sleep=pauses.append).search(["q"], 1)
    assert [0.5 <= p / 2**i <= 1 for i, p in enumerate(pauses)] == [True] * 3


@pytest.mark.parametrize(
    "reply",
    [
        (404, b"nothing here"),
        (302, b""),
        (200, b"<html>"),
        (200, b"[]"),
        (200, b'{"topk": 3}'),
        (200, b'{"topk": [{"pid": 1}]}'),
        (200, b'{"topk": [{"text": "x", "pid": 1, "score": "high"}]}'),
        (200, b'{"topk": [{"text": "x", "pid": 1, "score": NaN}]}'),
        (200, b'{"topk": [{"text": " ", "pid": 1, "score": 1}]}'),
        (200, b"[" * 100_000),
        (200, b"\xff\xfe"),
    ],
)
def test_an_invalid_reply_is_an_error_and_never_an_empty_result(serve, reply):
    server = serve(reply)
    with pytest.raises(BackendError, match="127.0.0.1") as caught:
        client(server).search(["q"], 1)
    assert caught.value.reply == reply[1][:500].decode(errors="replace")
    assert len(server.asked) == 1  # another try would not help


def test_a_refused_connection_names_the_remedy():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/search"
        with pytest.raises(BackendError, match="cannot connect.*refused.*Start the server"):
            HttpRetriever(url, retries=1, sleep=lambda s: None).search(["q"], 1)


def test_a_silent_server_times_out():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/search"
        with pytest.raises(BackendError, match="no reply within 0.05 s"):
            HttpRetriever(url, timeout=0.05, retries=0).search(["q"], 1)


def test_a_reply_over_the_size_limit_is_an_error(serve, monkeypatch):
    monkeypatch.setattr("knowhalu.retrieval.http.MAX_REPLY_BYTES", 1000)
    with pytest.raises(BackendError, match="longer than 1,000 bytes"):
        client(serve((200, b"x" * 5000))).search(["q"], 1)


@pytest.mark.parametrize("url", ["localhost:8893", "ftp://x/search", "http://[x", "http://h:port/", "", "http:///search"])
def test_an_invalid_address_is_refused(url):
    with pytest.raises(InputError, match="Give one such as"):
        HttpRetriever(url)


def test_parameters_of_the_address_are_sent(serve):
    server = serve(TOPK)
    HttpRetriever(f"{server.url}?collection=wiki").search(["q"], 1)
    assert server.asked == [{"collection": "wiki", "query": "q", "k": "1"}]


@given(st.binary(max_size=200))
def test_any_bytes_parse_or_raise_a_backend_error(body):
    try:
        parse_search_reply(body, 3, "u")
    except BackendError:
        pass


@pytest.mark.parametrize("url", ["ftp://me:secret@host/search", "me:secret@host:8893", "http://me:secret@:1"])
def test_a_refused_address_is_shown_without_its_password(url):
    with pytest.raises(InputError) as caught:
        HttpRetriever(url)
    assert "secret" not in f"{caught.value} {caught.value.__cause__}"
