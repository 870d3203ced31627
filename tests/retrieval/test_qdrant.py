"""The adapter to Qdrant, against its engine in memory (the contract of retrievers is tested beside the others)."""

import builtins

import pytest

from knowhalu.errors import BackendError, IndexFormatError, InputError, MissingExtra
from knowhalu.retrieval.qdrant import QdrantRetriever, fill_collection
from tests.support.indexing import FACTS, WordEmbedder
from tests.support.searching import facts


@pytest.fixture
def client():
    return pytest.importorskip("qdrant_client").QdrantClient(":memory:")


def test_filling_again_changes_nothing(client):
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


def test_points_of_others_are_an_error_and_no_passage(client):
    fill_collection(client, "facts", facts(), WordEmbedder())
    client.set_payload("facts", payload={"start": "here"}, points=[0])
    with pytest.raises(BackendError, match="no passage"):
        QdrantRetriever(client, "facts", WordEmbedder()).search(["iceberg"], 100)


def test_a_server_that_fails_is_an_error_of_the_backend(client):
    with pytest.raises(BackendError, match="Qdrant did not answer"):
        QdrantRetriever(client, "gone", WordEmbedder()).search(["iceberg"], 1)


@pytest.mark.parametrize("url", ["/tmp/qdrant", "localhost:6333", ""])
def test_a_folder_is_refused_since_the_client_unpickles_what_lies_there(url):
    with pytest.raises(InputError, match="is not the address"):
        QdrantRetriever.connect(url, "c", WordEmbedder())


def test_without_the_library_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("qdrant_client"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"knowhalu\[qdrant\]"):
        QdrantRetriever.connect(":memory:", "c", WordEmbedder())
