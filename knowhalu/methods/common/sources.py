"""The sources of a check: those given with a sample, or passages retrieved where it has none, or too many words."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from knowhalu.requests import Conversation, Search, ask
from knowhalu.text.blocks import read_units
from knowhalu.text.references import REFERS_BACK
from knowhalu.text.sentences import word_count
from knowhalu.text.triplets import as_triplets
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
    found = yield from ask(Search(tuple(queries), k, sample.documents))
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
    """A sentence or table row of a passage: `text == passage.text[start:end]`.

    `view` is the sentence as the verifier reads it: without marks, after its heading, and after the sentence before where it
    opens with a pronoun.
    """

    passage: Passage
    start: int
    end: int
    text: str
    view: str

    def shaped(self, form: KnowledgeForm) -> str:
        """Return the sentence in a form of knowledge: with its title, or as triplets where they have all its words."""
        title = self.passage.title
        if form is KnowledgeForm.STRUCTURED:
            return as_triplets(self.view, title)
        return f"{title}: {self.view}" if title and title.lower() not in self.view.lower() else self.view


@lru_cache(maxsize=512)
def read_sentences(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return start, end and view of every sentence and table row of a text."""
    views: list[tuple[int, int, str]] = []
    before = ""
    for unit in read_units(text):
        if not any(c.isalnum() for c in unit.text):
            continue
        view = f"{before} {unit.text}" if before and REFERS_BACK.match(unit.text) else unit.text
        above = " ".join(part for part in (unit.heading, unit.lead) if part and part.lower() not in view.lower())
        views.append((unit.start, unit.end, f"{above} {view}" if above else view))
        before = unit.text
    return tuple(views)


def source_sentences(passages: Iterable[Passage]) -> list[SourceSentence]:
    """Return every sentence and table row of the passages."""
    return [SourceSentence(p, a, b, p.text[a:b], view) for p in passages for a, b, view in read_sentences(p.text)]
