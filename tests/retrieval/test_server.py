"""The search server: replies to the client, error messages and the address it listens on."""

import http.client
import json
import socket
import threading
from urllib.parse import urlsplit

import pytest

from knowhalu.errors import BackendError, IndexFormatError, InputError
from knowhalu.retrieval.documents import MemoryRetriever
from knowhalu.retrieval.http import HttpRetriever
from knowhalu.retrieval.server import MAX_BODY_BYTES, SearchServer
from tests.support.hanging import HANG
from tests.support.indexing import FACTS
from tests.support.searching import facts


class Broken:
    def search(self, queries, k):
        raise IndexFormatError("the index is damaged")


@pytest.fixture
def serve():
    started = []

    def start(retriever, **options):
        server = SearchServer(retriever, port=0, **options)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def ask(server, method, path, body=None, headers=None):
    parts = urlsplit(server.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=HANG)
    connection.request(method, path, body, headers or {})
    reply = connection.getresponse()
    status, content = reply.status, json.loads(reply.read())
    connection.close()
    return status, content


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_client_gets_the_passages_of_the_retriever(serve, method):
    memory = MemoryRetriever(facts())
    client = HttpRetriever(serve(memory).url, method=method)
    queries = [*FACTS.values(), "Größe & 東京 ?", "", "iceberg"]
    assert client.search(queries, 4) == memory.search(queries, 4)


def test_a_reply_has_the_format_of_colberts_server(serve):
    status, reply = ask(serve(MemoryRetriever(facts())), "GET", "/api/search?query=iceberg&k=2")
    assert status == 200 and reply["query"] == "iceberg"
    assert [(row["rank"], row["pid"], row["title"]) for row in reply["topk"]][0] == (1, "d12#1", "Titanic")
    assert sum(row["prob"] for row in reply["topk"]) == pytest.approx(1)
    assert reply["topk"][0]["text"][reply["topk"][0]["start"] :] == FACTS["Titanic"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("GET", "/search", None, 400, "the query is missing"),
        ("GET", "/search?query=x&k=0", None, 400, "from 1 to 1000"),
        ("GET", "/search?query=x&k=many", None, 400, "from 1 to 1000"),
        ("GET", "/search?query=x&k=1001", None, 400, "from 1 to 1000"),
        ("GET", "/elsewhere", None, 404, "no such page"),
        ("POST", "/search", b"not json", 400, "not JSON"),
        ("POST", "/search", b"[1]", 400, "the query is missing"),
        ("POST", "/search", b'{"query": 3}', 400, "the query is missing"),
        ("POST", "/search", b"[" * 100_000, 400, "not JSON"),
        ("POST", "/elsewhere", b"{}", 404, "no such page"),
    ],
)
def test_an_invalid_request_is_refused_with_the_reason(serve, method, path, body, status, said):
    found, reply = ask(serve(MemoryRetriever(facts())), method, path, body)
    assert found == status and said in reply["error"]


def test_a_request_that_is_too_large_is_not_read(serve):
    status, reply = ask(serve(MemoryRetriever(facts())), "POST", "/search", None, {"Content-Length": str(MAX_BODY_BYTES + 1)})
    assert status == 413 and str(MAX_BODY_BYTES) in reply["error"]


def test_an_error_of_the_index_reaches_the_client(serve):
    with pytest.raises(BackendError, match="HTTP 500") as caught:
        HttpRetriever(serve(Broken()).url, retries=0).search(["x"], 1)
    assert "damaged" in caught.value.reply


def test_the_server_describes_its_index_and_listens_locally(serve):
    server = serve(MemoryRetriever(facts()), info={"passages": 12})
    assert ask(server, "GET", "/info") == (200, {"passages": 12})
    assert server.server_address[0] == "127.0.0.1"


def test_the_server_may_listen_on_ipv6(serve):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    server = serve(MemoryRetriever(facts()), host="::1")
    assert server.url.startswith("http://[::1]:") and len(HttpRetriever(server.url).search(["iceberg"], 1)[0]) == 1


def test_concurrent_clients_get_their_own_answers(serve):
    client = HttpRetriever(serve(MemoryRetriever(facts())).url, concurrency=16)
    found = client.search(list(FACTS.values()), 1)
    assert [f[0].title for f in found] == list(FACTS)


def test_an_address_in_use_is_an_error(serve):
    port = serve(MemoryRetriever(facts())).server_address[1]
    with pytest.raises(InputError, match=f"cannot listen on 127.0.0.1:{port}.*another"):
        SearchServer(MemoryRetriever(facts()), port=port)
