"""Searches of the engine: each request reaches its own source, and a missing source fails one sample only."""

import pytest

from knowhalu.engine.search_backend import SearchBackend
from knowhalu.errors import BackendError
from knowhalu.index.bm25_part import build_lexical_part
from knowhalu.index.build import build_index
from knowhalu.index.extension import extend_index, open_stored_passages
from knowhalu.index.update import delete_documents
from knowhalu.requests import Search
from knowhalu.retrieval.memory import MemoryRetriever
from knowhalu.retrieval.options import RetrievalOptions
from knowhalu.types import Document, Passage
from tests.support.indexing import WordEmbedder, records

PAGES = [Passage(id=str(i), text=t) for i, t in enumerate(("Bees make honey.", "The tower is tall.", "Rivers flow to the sea."))]


class Documents:
    """Answer every query with the first document, cut to k."""

    def search_many(self, searches):
        return [[[Passage(id=s.documents[0].id, text=s.documents[0].text)] for _ in s.queries] for s in searches]


@pytest.fixture()
def searcher():
    made = SearchBackend(RetrievalOptions())
    made.__dict__["documents"] = Documents()
    return made


def test_document_and_index_searches_keep_their_order(searcher):
    searcher.__dict__["index"] = MemoryRetriever(PAGES)
    own = (Document(id="d", text="own text"),)
    replies = searcher.answer_many([Search(("honey", "tower"), 1), Search(("x",), 3, own), Search(("sea",), 2)])
    assert [[p.id for p in found] for found in replies[0]] == [["0"], ["1"]]
    assert replies[1][0][0].id == "d"
    assert replies[2][0][0].id == "2" and len(replies[2][0]) <= 2


class Picky(MemoryRetriever):
    """Refuse every call that has the query "bad" in it."""

    def __init__(self, reply):
        super().__init__(PAGES)
        self.reply, self.calls = reply, 0

    def search(self, queries, k):
        self.calls += 1
        if "bad" in queries:
            raise BackendError("retrieval", "status 400", reply=self.reply)
        return super().search(queries, k)


def test_refused_query_fails_only_its_own_sample(searcher):
    searcher.__dict__["index"] = Picky(reply="no")
    replies = searcher.answer_many([Search(("honey", "tower"), 1), Search(("bad",), 1), Search(("sea",), 1)])
    assert [[p.id for p in found] for found in replies[0]] == [["0"], ["1"]] and replies[2][0][0].id == "2"
    assert isinstance(replies[1], BackendError)


def test_silent_server_is_called_once_for_all_searches(searcher):
    index = searcher.__dict__["index"] = Picky(reply=None)
    replies = searcher.answer_many([Search(("honey",), 1), Search(("bad",), 1), Search(("sea",), 1)])
    assert index.calls == 1 and all(isinstance(reply, BackendError) for reply in replies)


def test_seal_is_that_of_the_opened_index(tmp_path):
    build_index(records(), tmp_path / "index", WordEmbedder())
    extend_index(open_stored_passages(tmp_path / "index"), "lexical", build_lexical_part)
    searcher = SearchBackend(RetrievalOptions(index=tmp_path / "index", mode="lexical"))
    before = searcher.seal
    delete_documents(["d12"], tmp_path / "index")
    assert searcher.seal == before != SearchBackend(RetrievalOptions(index=tmp_path / "index", mode="lexical")).seal
    assert searcher.index.search(["iceberg"], 1)[0]


def test_missing_index_fails_only_samples_without_documents(searcher):
    own = (Document(id="d", text="own text"),)
    missing, found = searcher.answer_many([Search(("honey",), 2), Search(("x",), 3, own)])
    assert isinstance(missing, BackendError) and "--index" in missing.reason
    assert found[0][0].id == "d"
