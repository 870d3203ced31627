"""The sources of a check: those given with a sample, or passages retrieved where it has none, or too many words."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from knowhalu.requests import Conversation, Search
from knowhalu.text.sentences import sentences, word_count
from knowhalu.text.triplets import extract_triplets, triplets_to_text
from knowhalu.types import Document, KnowledgeForm, Passage, Sample

MAX_CHUNK_WORDS = 40
"""Maximum words of a retrieved chunk, by which the number of chunks is chosen."""


def given_passages(sample: Sample) -> tuple[Passage, ...]:
    """Return the knowledge and the documents of a sample as they are, each as one passage."""
    known = [(f"knowledge-{i}", "", text) for i, text in enumerate(sample.knowledge, 1)]
    documents = [(d.id, d.title, d.text) for d in sample.documents]
    return tuple(
        Passage(id=name, document=name, title=title, text=text, start=0, end=len(text), score=1.0)
        for name, title, text in (*known, *documents)
    )


def retrieve_passages(sample: Sample, queries: Sequence[str], k: int) -> Conversation[tuple[Passage, ...]]:
    """Fetch the `k` best passages of every query, merged without duplicates; those of documents in their order there.

    Given knowledge comes first, as it is; without documents, nothing else is retrieved.
    """
    known = given_passages(sample.model_copy(update={"documents": ()}))
    if known and not sample.documents:
        return known
    found: list[list[Passage]] = yield Search(tuple(queries), k, sample.documents)
    merged = {p.id: p for passages in found for p in passages}
    if sample.documents:
        order = {d.id: i for i, d in enumerate(sample.documents)}
        return (*known, *sorted(merged.values(), key=lambda p: (order.get(p.document, 0), p.start)))
    return tuple(merged.values())


def given_or_retrieved_passages(
    sample: Sample, queries: Iterable[str], *, words: int, k: int = 2
) -> Conversation[tuple[Passage, ...]]:
    """Return all given sources where they have at most `words` words, else the chunks nearest to the queries.

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


class SourceSentence(NamedTuple):
    """A sentence of a passage: `text == passage.text[start:end]`."""

    passage: Passage
    start: int
    end: int
    text: str

    def shaped(self, form: KnowledgeForm) -> str:
        """Return the sentence as the verifier reads it: with its title, or as triplets."""
        if form is KnowledgeForm.STRUCTURED:
            return triplets_to_text(extract_triplets(self.text, self.passage.title))
        title = self.passage.title
        return f"{title}: {self.text}" if title and title.lower() not in self.text.lower() else self.text


def source_sentences(passages: Iterable[Passage]) -> list[SourceSentence]:
    """Return every sentence of the passages."""
    return [SourceSentence(p, s.start, s.end, s.text) for p in passages for s in sentences(p.text)]
