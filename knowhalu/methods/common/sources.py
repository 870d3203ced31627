"""The sources of a check: what a sample brings along, or what is retrieved where it brings nothing, or too much."""

from collections.abc import Iterable, Sequence

from knowhalu.requests import Conversation, Search, ask
from knowhalu.text.sentences import word_count
from knowhalu.types import Document, Passage, Sample

MAX_CHUNK_WORDS = 40
"""Words of a retrieved chunk at most; so many fewer chunks are asked for than words have room."""


def given_passages(sample: Sample) -> tuple[Passage, ...]:
    """Return the knowledge and the documents of a sample as they are, each as one passage."""
    known = [(f"knowledge-{i}", "", text) for i, text in enumerate(sample.knowledge, 1)]
    own = [(d.id, d.title, d.text) for d in sample.documents]
    return tuple(
        Passage(id=name, document=name, title=title, text=text, start=0, end=len(text), score=1.0)
        for name, title, text in (*known, *own)
    )


def retrieve_passages(sample: Sample, queries: Sequence[str], k: int) -> Conversation[tuple[Passage, ...]]:
    """Fetch the `k` best passages of every query, merged without duplicates; those of documents in their order there.

    Given knowledge is read as it is, before them; where it comes without documents, nothing is searched.
    """
    known = given_passages(sample.model_copy(update={"documents": ()}))
    if known and not sample.documents:
        return known
    found = yield from ask(Search(tuple(queries), k, sample.documents))
    merged = {p.id: p for passages in found for p in passages}
    if sample.documents:
        order = {d.id: i for i, d in enumerate(sample.documents)}
        return (*known, *sorted(merged.values(), key=lambda p: (order.get(p.document, 0), p.start)))
    return tuple(merged.values())


def given_or_retrieved_passages(
    sample: Sample, queries: Iterable[str], *, words: int, k: int = 2
) -> Conversation[tuple[Passage, ...]]:
    """Return all that a sample brings along where it has at most `words` words, else its chunks nearest to the queries.

    A sample without any source gets the `k` best passages of an index for every query.
    """
    asked = tuple(queries)
    own = given_passages(sample)
    if own and sum(word_count(p.text) for p in own) <= words:
        return own
    if not own:
        return (yield from retrieve_passages(sample, asked, k))
    pool = tuple(Document(id=p.id, title=p.title, text=p.text) for p in own)
    room = max(1, words // MAX_CHUNK_WORDS // max(1, len(asked)))
    return (yield from retrieve_passages(sample.model_copy(update={"knowledge": (), "documents": pool}), asked, room))
