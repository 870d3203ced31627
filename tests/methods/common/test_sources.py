"""The sources of a check: given sources, nearest chunks of long ones, or an index."""

from knowhalu.methods.common.sources import given_or_retrieved_passages, given_passages, retrieve_passages, source_sentences
from knowhalu.requests import Search
from knowhalu.types import Document, Passage, Sample

A = Document(id="a", title="Sea", text="The sea is salt.")
B = Document(id="b", text="The lake is sweet.")


def run(conversation, *replies):
    """Return the requests of a conversation and what it ends in."""
    asked, waiting = [], list(replies)
    try:
        asked.append(next(conversation))
        while True:
            asked.append(conversation.send(waiting.pop(0)))
    except StopIteration as end:
        return asked, end.value


def found(document, start, text):
    return Passage(id=f"{document}:{start}", document=document, start=start, end=start + len(text), text=text)


def test_given_texts_are_passages_of_their_own_with_their_titles():
    knowledge, sea, lake = given_passages(Sample(response="x", knowledge=("Water is wet.",), documents=(A, B)))
    assert (knowledge.document, knowledge.text) == ("knowledge-1", "Water is wet.")
    assert (sea.document, sea.title, sea.text[sea.start : sea.end]) == ("a", "Sea", A.text)
    assert lake.document == "b"


def test_sources_within_the_limit_are_read_whole_without_a_search():
    asked, passages = run(given_or_retrieved_passages(Sample(response="x", documents=(A, B)), ["x"], words=8))
    assert not asked
    assert [p.document for p in passages] == ["a", "b"]


def test_long_sources_are_read_by_nearest_chunks_in_document_order():
    sample = Sample(response="x", documents=(A, B), knowledge=("word " * 200,))
    late, early = found("b", 0, B.text), found("a", 0, A.text)
    asked, passages = run(given_or_retrieved_passages(sample, ["q1", "q2"], words=160), [[late], [early, late]])
    assert asked == [Search(("q1", "q2"), 2, asked[0].documents)]
    assert {d.id for d in asked[0].documents} == {"knowledge-1", "a", "b"}
    assert passages == (early, late)


def test_without_sources_the_index_is_searched():
    one = found("w", 0, "x")
    asked, passages = run(given_or_retrieved_passages(Sample(response="x"), ["q"], words=100, k=3), [[one]])
    assert asked == [Search(("q",), 3)]
    assert passages == (one,)


def test_given_knowledge_alone_is_read_instead_of_searching():
    asked, passages = run(retrieve_passages(Sample(response="x", knowledge=("k",)), ["q"], 2))
    assert not asked
    assert [p.text for p in passages] == ["k"]


def test_documents_are_searched_beside_given_knowledge():
    early, late = found("a", 0, A.text), found("b", 0, B.text)
    asked, passages = run(retrieve_passages(Sample(response="x", knowledge=("k",), documents=(A, B)), ["q"], 2), [[late, early]])
    assert asked == [Search(("q",), 2, (A, B))]
    assert [p.text for p in passages] == ["k", A.text, B.text]


def test_a_row_of_a_chunk_has_the_header_that_it_has_in_its_document():
    text = "Rents are due in May.\n\n| Room | Seats |\n|---|---|\n| Attic | 12 |\n| Cellar | 30 |"
    cellar, whole = found("a", text.index("| Cellar"), "| Cellar | 30 |"), Document(id="a", text=text)
    (row,) = source_sentences([cellar], [whole])
    assert (row.view, row.cited, row.text) == ("Room: Cellar; Seats: 30", "Room: Cellar; Seats: 30", "Cellar | 30")
    assert text[cellar.start + row.start : cellar.start + row.end] == row.text
    assert source_sentences([cellar])[0].view != row.view


def test_a_sentence_is_cited_with_the_one_that_its_pronoun_refers_to():
    text = "# Mill\nThe mill stands in Tarn. It burnt down twice."
    assert [s.cited for s in source_sentences([found("a", 0, text)])][-2:] == [
        "The mill stands in Tarn.", "The mill stands in Tarn. It burnt down twice.",
    ]  # fmt: skip
