"""What every retriever must keep."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from knowhalu.errors import InputError
from knowhalu.retrieval.base import Retriever
from knowhalu.retrieval.build import build_index
from knowhalu.retrieval.documents import DocumentRetriever
from knowhalu.retrieval.index import FaissIndex
from knowhalu.retrieval.memory import MemoryRetriever
from knowhalu.types import Document, Passage
from tests.retrieval.conftest import FACTS, WordEmbedder, records


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


MAKERS = {"index": make_index, "memory": make_memory, "documents": lambda _: BoundDocuments()}


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
    (found,) = retriever.search(["wall that divided Berlin"], 5)
    assert len(found) == 5 and len({p.id for p in found}) == 5
    assert [p.score for p in found] == sorted((p.score for p in found), reverse=True)
    for p in found:
        source = FACTS[p.title]
        assert source[p.start : p.end] == p.text and p.id.startswith(f"{p.document}#")


def test_more_than_there_is_gives_all(retriever: Retriever) -> None:
    """A large k is no error and pads with nothing."""
    (found,) = retriever.search(["penicillin"], 1000)
    assert sorted(p.title for p in found) == sorted(FACTS)


def test_no_query_or_a_blank_one_finds_nothing(retriever: Retriever) -> None:
    """Results stay in step with the queries."""
    assert retriever.search([], 3) == []
    blank, full, space = retriever.search(["", "iceberg", "  \n"], 2)
    assert (len(blank), len(full), len(space)) == (0, 2, 0)


def test_the_same_search_gives_the_same(retriever: Retriever) -> None:
    """Searching is deterministic and does not depend on the neighbours in the batch."""
    alone = retriever.search(["iceberg"], 3)[0]
    again = retriever.search(["sunlight and sugar", "iceberg"], 3)[1]
    assert [p.id for p in alone] == [p.id for p in again]


@pytest.mark.parametrize("k", [0, -1])
def test_asking_for_no_passages_is_an_error(retriever: Retriever, k: int) -> None:
    """A k below one is refused in words."""
    with pytest.raises(InputError, match="at least 1"):
        retriever.search(["iceberg"], k)
