"""Every search mode on a changing index: deleted passages are not returned, new ones are, and results name their place."""

import threading
from functools import partial

import pytest

from knowhalu.engine.search_backend import open_retriever
from knowhalu.errors import IndexFormatError
from knowhalu.index.compact import compact_index
from knowhalu.index.extension import extend_index, open_stored_passages
from knowhalu.index.late_part import build_late_part
from knowhalu.index.update import add_documents, delete_documents
from knowhalu.ingest.sources import SourceRecord
from knowhalu.retrieval.bm25 import LexicalIndex, build_lexical_part
from knowhalu.retrieval.faiss import FaissIndex
from knowhalu.retrieval.options import RetrievalOptions
from knowhalu.retrieval.qdrant import QdrantRetriever, fill_collection
from knowhalu.retrieval.server import SearchServer
from tests.support.indexing import WordEmbedder
from tests.support.searching import WordVectors

WORDS = WordEmbedder()
QUERY = "Which ship struck an iceberg in 1912?"
MODES = {
    "dense": {"mode": "dense"}, "lexical": {"mode": "lexical"}, "late": {"mode": "late"}, "scores": {"mode": "hybrid"},
    "ranks": {"mode": "hybrid", "fusion": "ranks"}, "reranked": {"mode": "hybrid", "reranker": "folder"},
    "late reranked": {"mode": "late", "reranker": "folder"},
}  # fmt: skip


@pytest.fixture(autouse=True)
def models(monkeypatch):
    monkeypatch.setattr("knowhalu.encoder.embedder.load_token_encoder", lambda name: WordVectors())
    monkeypatch.setattr(
        "knowhalu.engine.search_backend.load_reranker", lambda name: lambda pairs: [len(p.passage.text) for p in pairs]
    )


def extended(folder):
    stored = open_stored_passages(folder)
    extend_index(stored, "lexical", build_lexical_part)
    extend_index(stored, "late", partial(build_late_part, encoder=WordVectors(), bits=8))
    return folder


def search(folder, mode, query=QUERY, k=50):
    return open_retriever(RetrievalOptions(index=folder, **MODES[mode]), WORDS).search([query], k)[0]


@pytest.mark.parametrize("mode", MODES)
def test_a_deleted_document_is_never_found_and_needs_no_new_parts(folder, mode):
    extended(folder)
    assert "d12" in [p.document for p in search(folder, mode)]
    delete_documents(["d12"], folder)
    assert all(p.document != "d12" and "iceberg" not in p.text for p in search(folder, mode))
    compact_index(folder)
    assert all("iceberg" not in p.text for p in search(extended(folder), mode))


@pytest.mark.parametrize("mode", MODES)
def test_a_replaced_document_is_found_by_its_new_text_only(folder, mode):
    extended(folder)
    add_documents([SourceRecord("d12", "Titanic", "The ship that hit an iceberg lies deep.", "")], folder, WORDS)
    if mode != "dense":
        with pytest.raises(IndexFormatError, match=f"outdated .*knowhalu index extend {folder} --l"):
            search(folder, mode)
    found = [p for p in search(extended(folder), mode) if p.document == "d12"]
    assert [p.text for p in found] == ["The ship that hit an iceberg lies deep."]


@pytest.mark.parametrize("mode", MODES)
def test_moved_passages_name_their_new_document(folder, mode):
    record = SourceRecord("twin", "Titanic", "A lifeboat held sixty. The Titanic sank in 1912 after it struck an iceberg.", "")
    add_documents([record], folder, WORDS)
    found = {p.document: p for p in search(extended(folder), mode)}
    for passage in found.values():
        assert passage.id and passage.title and passage.end - passage.start == len(passage.text)
    assert record.text[found["twin"].start : found["twin"].end] == found["twin"].text


@pytest.mark.parametrize("mode", MODES)
def test_a_server_returns_the_results_of_the_index(folder, mode):
    found = open_retriever(RetrievalOptions(index=extended(folder), **MODES[mode]), WORDS)
    with SearchServer(found, port=0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        there = open_retriever(RetrievalOptions(mode="http", url=server.url)).search([QUERY, ""], 5)
        server.shutdown()
    assert there == found.search([QUERY, ""], 5)


def test_refilling_a_collection_removes_deleted_passages(folder):
    client = pytest.importorskip("qdrant_client").QdrantClient(":memory:")
    assert fill_collection(client, "c", open_stored_passages(folder).passages, WORDS) == 12
    delete_documents(["d12", "d3"], folder)
    assert fill_collection(client, "c", open_stored_passages(folder).passages, WORDS) == 10
    found = QdrantRetriever(client, "c", WORDS).search([QUERY], 50)[0]
    assert len(found) == 10 and not {"d12", "d3"} & {p.document for p in found}
    compact_index(folder)
    fill_collection(client, "c", open_stored_passages(folder).passages, WORDS)
    there, here = (r.search([QUERY], 50)[0] for r in (QdrantRetriever(client, "c", WORDS), FaissIndex.open(folder, WORDS)))
    assert [(p.id, p.text, p.start, p.end) for p in there] == [(p.id, p.text, p.start, p.end) for p in here]
    assert [p.score for p in there] == pytest.approx([p.score for p in here], abs=1e-5)


def test_lexical_search_of_a_changed_index_matches_a_rebuilt_one(tmp_path):
    from knowhalu.index.build import build_index
    from knowhalu.index.manifest import Chunking

    texts = {"a": "Bees dance. Ice melts.", "b": "Rain falls. Bees dance.", "c": "Ice melts in rain. Bees sleep."}
    rows = [SourceRecord(name, "", text, "") for name, text in texts.items()]
    build_index(rows[:2], tmp_path / "edited", WORDS, chunking=Chunking(words=4))
    delete_documents(["a"], tmp_path / "edited")
    add_documents([*rows[2:], rows[0]], tmp_path / "edited", WORDS)
    build_index([rows[1], rows[2], rows[0]], tmp_path / "rebuilt", WORDS, chunking=Chunking(words=4))
    for query in ("bees", "ice rain", "melts sleep"):
        one, two = (
            LexicalIndex.open(open_stored_passages(extended(tmp_path / name))).search([query], 9)
            for name in ("edited", "rebuilt")
        )
        assert one == two
