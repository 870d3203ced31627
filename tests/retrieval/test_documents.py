"""Search in given documents: the best chunks, in document order, each embedded once."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowhalu.encoder.embedder import MiniLMEmbedder
from knowhalu.retrieval.documents import DocumentRetriever, DocumentSearch
from knowhalu.types import Document
from tests.support.indexing import FACTS, QUESTIONS, WordEmbedder

STORY = Document(id="story", title="A story", text=" ".join(FACTS.values()))


def test_each_question_finds_the_chunk_that_answers_it(minilm: MiniLMEmbedder) -> None:
    """The real model finds the sentence in a document of twelve."""
    found = DocumentRetriever(minilm, words=15).search((STORY,), list(QUESTIONS), 1)
    assert [FACTS[title] in p.text for (p,), title in zip(found, QUESTIONS.values(), strict=True)] == [True] * len(QUESTIONS)


def test_the_best_chunks_are_in_document_order(words: WordEmbedder) -> None:
    """Ranked by cosine, shown as the document tells them (KnowHalu, section 4.3)."""
    first, second = Document(id="x", text=FACTS["Titanic"]), STORY
    (found,) = DocumentRetriever(words, words=15).search((first, second), ["iceberg Titanic Hamlet tragedy"], 3)
    assert [p.document for p in found] == ["x", "story", "story"]
    assert "Hamlet" in found[1].text and "Titanic" in found[2].text and found[1].start < found[2].start
    assert found[0].score == pytest.approx(found[2].score) and found[1].id == "story#1"


def test_unnamed_documents_are_numbered(words: WordEmbedder) -> None:
    """Two sources without an id stay apart."""
    both = (Document(text="Bees dance."), Document(text="Plants grow."))
    (found,) = DocumentRetriever(words).search(both, ["bees"], 5)
    assert [(p.id, p.document) for p in found] == [("document-1#1", "document-1"), ("document-2#1", "document-2")]


def test_documents_with_one_id_keep_their_own_passages(words: WordEmbedder) -> None:
    """Chunks may carry the id of the text that they were cut from; passages stay distinct."""
    several = [
        Document(id=i, text=t) for i, t in (("a", "Bees dance."), ("b", "Bees fly."), ("a", "Bees sing."), ("a-3", "Bees."))
    ]
    (found,) = DocumentRetriever(words).search(tuple(several), ["bees"], 5)
    assert [(p.id, p.document, p.text) for p in found] == [
        ("a#1", "a", "Bees dance."), ("b#1", "b", "Bees fly."), ("a-3#1", "a", "Bees sing."), ("a-3-4#1", "a-3", "Bees."),
    ]  # fmt: skip


TEXTS = st.text(st.sampled_from("ab é𝄞日.\n \t!?"), min_size=1, max_size=300)


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=3), st.integers(1, 8), st.integers(1, 5))
def test_every_chunk_quotes_its_document(texts: list[str], limit: int, k: int) -> None:
    """Whatever the text, `text == document.text[start:end]`, at most k, in order, within the limit."""
    documents = tuple(Document(id=str(i), text=t) for i, t in enumerate(texts))
    (found,) = DocumentRetriever(WordEmbedder(dimension=4), words=limit).search(documents, ["a"], k)
    assert len(found) <= k and [(int(p.document), p.start) for p in found] == sorted((int(p.document), p.start) for p in found)
    for p in found:
        assert texts[int(p.document)][p.start : p.end] == p.text and 0 < len(p.text.split()) <= limit


def test_a_document_is_embedded_once(words: WordEmbedder) -> None:
    """Later questions embed only the question, under whatever id the text comes."""
    retriever = DocumentRetriever(words)
    retriever.search((STORY,), ["bees", "bees", "Titanic"], 1)
    retriever.search((Document(id="other", text=STORY.text),), ["Titanic"], 1)
    assert len(words.calls) == 2 and words.calls[0][-2:] == ["bees", "Titanic"] and words.calls[1] == ["Titanic"]


def test_a_batch_is_one_call_with_the_results_of_single_searches() -> None:
    """All new chunks and queries go through the model together, and nothing is mixed up."""
    documents = [Document(id=t, text=f"{x} {t} again.") for t, x in FACTS.items()]
    searches = [DocumentSearch((d, STORY), [d.id, "", "bees"], n % 3 + 1) for n, d in enumerate(documents)]
    batch, single = WordEmbedder(), WordEmbedder()
    together = DocumentRetriever(batch, words=12).search_many(searches)
    alone = [DocumentRetriever(single, words=12).search(*s) for s in searches]
    assert len(batch.calls) == 1
    assert [[[(p.id, p.text) for p in q] for q in s] for s in together] == [
        [[(p.id, p.text) for p in q] for q in s] for s in alone
    ]


def test_the_cache_is_bounded_by_characters(words: WordEmbedder) -> None:
    """Memory is bounded by their length too; a document longer than that is still embedded once."""
    retriever, (short, long) = (
        DocumentRetriever(words, characters=20),
        (Document(text="Bees."), Document(text="Plants grow. " * 4)),
    )
    for documents, calls in (((short,), 1), ((long,), 2), ((long,), 3), ((short, long), 4), ((short,), 5)):
        retriever.search(documents, ["bees"], 1)
        assert len(words.calls) == calls
    assert [any("Plants" in text for text in call) for call in words.calls] == [False, True, False, False, False]


def test_an_asymmetric_embedder_gets_the_query_flag() -> None:
    """Where queries are encoded otherwise, chunks and queries go separately."""

    class Asymmetric(WordEmbedder):
        symmetric = False

        def encode(self, texts: list[str], *, query: bool = False) -> object:  # type: ignore[override]
            asked.append((query, len(texts)))
            return super().encode(texts)

    asked: list[tuple[bool, int]] = []
    DocumentRetriever(Asymmetric()).search((Document(text="Bees dance."),), ["bees", "plants"], 1)
    assert asked == [(False, 1), (True, 2)]


def test_the_least_recently_used_document_is_evicted_first(words: WordEmbedder) -> None:
    """The memory has a limit, and what was used last stays; one batch may still exceed it."""
    retriever = DocumentRetriever(words, cache=2)
    a, b, c = (Document(text=t) for t in ("Alpha.", "Beta.", "Gamma."))
    for document in (a, b, a, c, a):
        retriever.search((document,), ["q"], 1)
    assert [call[:-1] for call in words.calls] == [["Alpha."], ["Beta."], [], ["Gamma."], []]
    assert len(retriever.search((a, b, c), ["q"], 9)[0]) == 3


def test_threads_share_the_cache(words: WordEmbedder) -> None:
    """Many threads with one document embed it once and all get the same."""
    retriever = DocumentRetriever(words)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: retriever.search((STORY,), ["Titanic"], 2), range(32)))
    assert all(f == found[0] for f in found)
    assert sum(len(call) > 1 for call in words.calls) == 1


def test_no_documents_or_blank_ones_find_nothing(words: WordEmbedder) -> None:
    """Nothing to search is no error."""
    retriever = DocumentRetriever(words)
    assert retriever.search((), ["bees"], 2) == [[]]
    assert retriever.search((Document(text=" \n"),), ["bees", " "], 2) == [[], []]
