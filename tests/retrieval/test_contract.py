"""The contract of every retriever."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from knowhalu.engine.search_backend import query_coverage
from knowhalu.errors import InputError
from knowhalu.index.build import build_index
from knowhalu.index.protocols import Retriever
from knowhalu.retrieval.bm25 import LexicalIndex
from knowhalu.retrieval.documents import DocumentRetriever, MemoryRetriever
from knowhalu.retrieval.faiss import FaissIndex
from knowhalu.retrieval.hybrid import HybridRetriever, RerankingRetriever
from knowhalu.retrieval.qdrant import QdrantRetriever, fill_collection
from knowhalu.testing import check_retriever
from knowhalu.types import Document, Passage
from tests.support.indexing import FACTS, WordEmbedder, records
from tests.support.searching import corpus, facts, late, lexical


class BoundDocuments:
    """A document retriever with its documents given once, so that it is a Retriever."""

    def __init__(self) -> None:
        self.inner = DocumentRetriever(WordEmbedder())
        self.documents = tuple(Document(id=f"d{i}", title=t, text=x) for i, (t, x) in enumerate(FACTS.items(), 1))

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Search the given documents; sorted by score, for the contract of retrievers is best first."""
        found = self.inner.search(self.documents, queries, k)
        return [sorted(passages, key=lambda p: -p.score) for passages in found]


def make_index(tmp_path: Path) -> Retriever:
    """Make an index of the facts."""
    build_index(records(), tmp_path / "index", WordEmbedder())
    return FaissIndex.open(tmp_path / "index", WordEmbedder())


def make_memory(tmp_path: Path) -> Retriever:
    """Make a memory retriever of the facts."""
    return MemoryRetriever(
        [Passage(id=f"{r.id}#1", text=r.text, title=r.title, document=r.id, end=len(r.text)) for r in records()]
    )


def make_lexical(tmp_path: Path) -> Retriever:
    """Make a lexical index of the facts."""
    return lexical(tmp_path, facts())


def make_late(tmp_path: Path) -> Retriever:
    """Make a late-interaction index of the facts."""
    return late(tmp_path, facts())


def make_hybrid(tmp_path: Path) -> Retriever:
    """Make a hybrid by ranks of an index and words."""
    return HybridRetriever([make_index(tmp_path), make_lexical(tmp_path)])


def make_scored(tmp_path: Path) -> Retriever:
    """Make a hybrid by scores of an index and words."""
    return HybridRetriever([make_index(tmp_path), make_lexical(tmp_path)], by="scores", weights=[1.0, 0.035])


def make_reranked(tmp_path: Path) -> Retriever:
    """Make a reranker that counts shared words."""
    return RerankingRetriever(
        make_index(tmp_path), lambda pairs: [query_coverage(p.query, str(p.passage)) for p in pairs], blend=1.0
    )


def make_qdrant(tmp_path: Path) -> Retriever:
    """Make a collection of the facts in memory."""
    client = pytest.importorskip("qdrant_client").QdrantClient(":memory:")
    fill_collection(client, "facts", facts(), WordEmbedder())
    return QdrantRetriever(client, "facts", WordEmbedder())


MAKERS = {
    "index": make_index, "memory": make_memory, "documents": lambda _: BoundDocuments(), "lexical": make_lexical,
    "late": make_late, "hybrid": make_hybrid, "scored": make_scored, "reranked": make_reranked, "qdrant": make_qdrant,
}  # fmt: skip


@pytest.fixture(params=MAKERS.values(), ids=MAKERS.keys())
def retriever(request: pytest.FixtureRequest, tmp_path: Path) -> Retriever:
    """Give each retriever over the same facts."""
    make: Callable[[Path], Retriever] = request.param
    return make(tmp_path)


def test_the_sentence_with_the_words_of_the_query_comes_first(retriever: Retriever) -> None:
    """Each fact finds itself."""
    found = retriever.search(list(FACTS.values()), 1)
    assert [[p.title for p in passages] for passages in found] == [[title] for title in FACTS]


def test_passages_are_ordered_by_score_and_quote_their_source(retriever: Retriever) -> None:
    """Best first, at most k, offsets true."""
    (found,) = retriever.search(["wall that divided Berlin, water, Paris, the Moon and Himalayas in the river"], 5)
    assert len(found) == 5 and len({p.id for p in found}) == 5
    assert [p.score for p in found] == sorted((p.score for p in found), reverse=True)
    for p in found:
        source = FACTS[p.title]
        assert source[p.start : p.end] == p.text and p.id.startswith(f"{p.document}#")


def test_a_k_above_the_number_of_passages_returns_all(retriever: Retriever) -> None:
    """A large k is no error and pads with nothing."""
    (found,) = retriever.search(["penicillin"], 1000)
    everything = ["Penicillin"] if isinstance(retriever, LexicalIndex) else sorted(FACTS)
    assert sorted(p.title for p in found) == everything


def test_blank_queries_find_nothing(retriever: Retriever) -> None:
    """Results stay in step with the queries."""
    assert retriever.search([], 3) == []
    blank, full, space = retriever.search(["", "iceberg or sunlight", "  \n"], 2)
    assert (len(blank), len(full), len(space)) == (0, 2, 0)


def test_search_is_deterministic(retriever: Retriever) -> None:
    """Searching is deterministic and does not depend on the neighbours in the batch."""
    queries = ["sunlight and sugar", "iceberg", "written by William", "iceberg"]
    together = retriever.search(queries, 3)
    assert together == [retriever.search([query], 3)[0] for query in queries]


def test_a_smaller_k_returns_a_prefix(retriever: Retriever) -> None:
    """What is best does not depend on how much is asked for."""
    (many,) = retriever.search(["the wall in Berlin and the water of the river"], 6)
    for k in (1, 3):
        (few,) = retriever.search(["the wall in Berlin and the water of the river"], k)
        assert [p.id for p in few] == [p.id for p in many[:k]]


def test_equal_passages_keep_the_order_of_the_source(tmp_path: Path) -> None:
    """Ties are settled by the row, whatever finds them."""
    twins = corpus(["river stone", "cloud", "river stone", "river stone"])
    for make in (lexical, late):
        (found,) = make(tmp_path / make.__name__, twins).search(["river stone"], 3)
        assert [p.document for p in found] == ["d0", "d2", "d3"]


@pytest.mark.parametrize("k", [0, -1])
def test_a_k_below_one_is_an_error(retriever: Retriever, k: int) -> None:
    """A k below one is refused in words."""
    with pytest.raises(InputError, match="at least 1"):
        retriever.search(["iceberg"], k)


def test_retriever_keeps_the_shipped_contract(retriever: Retriever) -> None:
    """Pass the contract tests of extensions."""
    check_retriever(retriever, "wall that divided Berlin")
