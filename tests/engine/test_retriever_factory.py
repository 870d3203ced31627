"""From settings to a retriever: every mode opens what it needs, and names what is missing."""

import threading
from functools import partial

import pytest

from knowhalu.engine import retriever_factory as retrievers
from knowhalu.engine.retriever_factory import VerifierScorer, open_retriever, query_coverage
from knowhalu.engine.search_backend import SearchBackend
from knowhalu.errors import IndexFormatError, InputError, SettingsError
from knowhalu.index.bm25_part import build_lexical_part
from knowhalu.index.extension import extend_index, open_stored_passages
from knowhalu.index.late_part import build_late_part
from knowhalu.requests import Probabilities, Search
from knowhalu.retrieval.late import LateInteractionIndex
from knowhalu.retrieval.memory import MemoryRetriever
from knowhalu.retrieval.options import RetrievalOptions
from knowhalu.retrieval.rerank import QueryPassage, RerankingRetriever
from knowhalu.server import SearchServer
from knowhalu.types import Passage
from tests.support.indexing import WordEmbedder, folder, words  # noqa: F401 - fixtures
from tests.support.searching import WordVectors, facts


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
        retrievers, "load_reranker", lambda name: lambda pairs: [float(p.passage.title == "Python") for p in pairs]
    )
    found = open_retriever(RetrievalOptions(index=extended, reranker="folder", rerank=12), WordEmbedder())
    assert isinstance(found, RerankingRetriever) and found.blend is None
    assert found.search(["iceberg"], 2)[0][0].title == "Python"
    options = RetrievalOptions(index=extended, mode="lexical", reranker="verifier")
    assert open_retriever(options).blend == retrievers.DEFAULT_VERIFIER_WEIGHT


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
