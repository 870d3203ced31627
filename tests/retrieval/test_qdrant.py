"""The Qdrant adapter, with its engine in memory; its retriever contract is in test_contract.py."""

import builtins

import pytest

from knowhalu.errors import BackendError, IndexFormatError, InputError, MissingExtra
from knowhalu.retrieval.qdrant import QdrantRetriever, fill_collection
from tests.support.indexing import FACTS, WordEmbedder
from tests.support.searching import facts


@pytest.fixture
def client():
    return pytest.importorskip("qdrant_client").QdrantClient(":memory:")


def test_refilling_changes_nothing(client):
    for _ in range(2):
        assert fill_collection(client, "facts", facts(), WordEmbedder()) == len(FACTS)
    found = QdrantRetriever(client, "facts", WordEmbedder()).search(["iceberg"], 100)[0]
    assert len(found) == len(FACTS) and found[0].title == "Titanic"
    assert found[0].text == FACTS["Titanic"][found[0].start : found[0].end]


def test_another_embedder_is_refused(client):
    fill_collection(client, "facts", facts(), WordEmbedder())
    with pytest.raises(IndexFormatError, match="'words', not with 'other'"):
        QdrantRetriever(client, "facts", WordEmbedder("other")).check()
    with pytest.raises(IndexFormatError):
        fill_collection(client, "facts", facts(), WordEmbedder("other"))


def test_a_missing_collection_says_how_to_make_it(client):
    with pytest.raises(IndexFormatError, match="Fill it first"):
        QdrantRetriever(client, "none", WordEmbedder()).check()


def test_a_point_that_is_not_a_passage_is_an_error(client):
    fill_collection(client, "facts", facts(), WordEmbedder())
    client.set_payload("facts", payload={"start": "here"}, points=[0])
    with pytest.raises(BackendError, match="no passage"):
        QdrantRetriever(client, "facts", WordEmbedder()).search(["iceberg"], 100)


def test_a_failing_server_is_a_backend_error(client):
    with pytest.raises(BackendError, match="Qdrant did not answer"):
        QdrantRetriever(client, "gone", WordEmbedder()).search(["iceberg"], 1)


@pytest.mark.parametrize("url", ["/tmp/qdrant", "localhost:6333", ""])
def test_a_local_folder_is_refused(url):
    with pytest.raises(InputError, match="is not the address"):
        QdrantRetriever.connect(url, "c", WordEmbedder())


def test_a_missing_client_names_the_extra(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("qdrant_client"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"knowhalu\[qdrant\]"):
        QdrantRetriever.connect(":memory:", "c", WordEmbedder())


def test_messages_hide_the_password_of_the_address():
    class Refusing:
        def collection_exists(self, name):
            raise ConnectionError("no route to http://me:secret@host:6333")

    with pytest.raises(BackendError, match="no route to http://host:6333"):
        QdrantRetriever(Refusing(), "c", WordEmbedder()).check()
    with pytest.raises(InputError) as caught:
        QdrantRetriever.connect("me:secret@host:6333", "c", WordEmbedder())
    assert "secret" not in str(caught.value)
