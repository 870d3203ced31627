"""Searches of the engine: each request reaches its own source, and every mode opens what it needs or names what is missing."""

import threading
from functools import partial

import pytest

from knowhalu.engine import search_backend
from knowhalu.engine.search_backend import SearchBackend, VerifierScorer, open_retriever, query_coverage
from knowhalu.errors import BackendError, IndexFormatError, InputError, SettingsError
from knowhalu.index.build import build_index
from knowhalu.index.extension import extend_index, open_stored_passages
from knowhalu.index.late_part import build_late_part
from knowhalu.index.update import delete_documents
from knowhalu.requests import Probabilities, Search
from knowhalu.retrieval.bm25 import build_lexical_part
from knowhalu.retrieval.documents import MemoryRetriever
from knowhalu.retrieval.hybrid import QueryPassage, RerankingRetriever
from knowhalu.retrieval.late import LateInteractionIndex
from knowhalu.retrieval.options import RetrievalOptions
from knowhalu.retrieval.server import SearchServer
from knowhalu.types import Document, Passage
from tests.support.indexing import WordEmbedder, folder, records, words  # noqa: F401 - fixtures
from tests.support.searching import WordVectors, facts

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


@pytest.fixture
def extended(folder):  # noqa: F811
    stored = open_stored_passages(folder)
    extend_index(stored, "lexical", build_lexical_part)
    extend_index(stored, "late", partial(build_late_part, encoder=WordVectors()))
    return folder


@pytest.mark.parametrize(
    "options",
    [{"mode": "dense"}, {"mode": "lexical"}, {"mode": "hybrid"}, {"mode": "hybrid", "fusion": "ranks"}, {"mode": "late"}],
)
def test_every_mode_finds_the_fact(extended, options, monkeypatch):
    monkeypatch.setattr("knowhalu.encoder.embedder.load_token_encoder", lambda name: WordVectors())
    found = open_retriever(RetrievalOptions(index=extended, **options), WordEmbedder())
    assert found.search(["Which ship struck an iceberg?"], 2)[0][0].title == "Titanic"


@pytest.mark.parametrize("mode", ["lexical", "late"])
def test_lexical_and_late_modes_load_no_embedder(extended, mode, monkeypatch):
    monkeypatch.setattr("knowhalu.encoder.embedder.load_token_encoder", lambda name: WordVectors())
    monkeypatch.setattr("knowhalu.encoder.embedder.load_embedder", None)
    searcher = SearchBackend(RetrievalOptions(index=extended, mode=mode))
    ((found,),) = searcher.answer_many([Search(("iceberg",), 1)])
    assert found[0].title == "Titanic"


def test_the_query_prefix_reaches_the_embedder_of_indexes_and_of_documents(extended, monkeypatch):
    given = []

    def load(name, *, query_prefix):
        given.append((name, query_prefix))
        return WordEmbedder()

    monkeypatch.setattr("knowhalu.encoder.embedder.load_embedder", load)
    searcher = SearchBackend(RetrievalOptions(index=extended, embedder="bge", query_prefix="Find: "))
    searcher.answer_many([Search(("honey",), 1), Search(("honey",), 1, (Document(id="d", text="Bees make honey."),))])
    assert given and set(given) == {("bge", "Find: ")}


@pytest.mark.parametrize("mode", ["lexical", "hybrid", "late"])
def test_missing_index_part_is_an_error_with_the_command(folder, mode, monkeypatch):  # noqa: F811
    monkeypatch.setattr("knowhalu.encoder.embedder.load_token_encoder", lambda name: WordVectors())
    with pytest.raises(IndexFormatError, match="knowhalu index extend .*index --l"):
        open_retriever(RetrievalOptions(index=folder, mode=mode), WordEmbedder())


@pytest.mark.parametrize(("mode", "said"), [("lexical", "set retrieval.index"), ("http", "set retrieval.url"), ("qdrant", "url")])
def test_mode_without_index_or_address_is_refused(mode, said):
    with pytest.raises(SettingsError, match=said):
        SearchBackend(RetrievalOptions(mode=mode))


def test_search_server_answers_the_engine():
    with SearchServer(MemoryRetriever(facts()), port=0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        searcher = SearchBackend(RetrievalOptions(mode="http", url=server.url))
        ((first, second),) = searcher.answer_many([Search(("iceberg", "penicillin"), 1)])
        server.shutdown()
    assert (first[0].title, second[0].title) == ("Titanic", "Penicillin")


def test_invalid_address_is_refused():
    with pytest.raises(InputError, match="is not the address of a server"):
        SearchBackend(RetrievalOptions(mode="http", url="nowhere"))


def test_reranker_reorders_any_mode(extended, monkeypatch):
    monkeypatch.setattr(
        search_backend, "load_reranker", lambda name: lambda pairs: [float(p.passage.title == "Python") for p in pairs]
    )
    found = open_retriever(RetrievalOptions(index=extended, reranker="folder", rerank=12), WordEmbedder())
    assert isinstance(found, RerankingRetriever) and found.blend is None
    assert found.search(["iceberg"], 2)[0][0].title == "Python"
    options = RetrievalOptions(index=extended, mode="lexical", reranker="verifier")
    assert open_retriever(options).blend == search_backend.DEFAULT_VERIFIER_WEIGHT


class Encoder:
    """A verifier that is sure of what it is told to be sure of."""

    def score(self, pairs):
        return [Probabilities(0.0, 0.0, 1.0) if "no" in p.premise else Probabilities(0.6, 0.4, 0.0) for p in pairs]


def test_verifier_reranks_by_entailment_and_shared_words():
    pairs = [QueryPassage("river stone", Passage(id=t, text=t)) for t in ("no river stone", "river stone", "river", "cloud")]
    none, both, one, other = VerifierScorer(Encoder())(pairs)
    assert none < other < one < both
    assert query_coverage("the river, the stone", "A stone.") == 0.5 and query_coverage("the", "a") == 0.0


def test_late_mode_opens_a_late_index(extended, monkeypatch):
    monkeypatch.setattr("knowhalu.encoder.embedder.load_token_encoder", lambda name: WordVectors())
    assert isinstance(open_retriever(RetrievalOptions(index=extended, mode="late")), LateInteractionIndex)
