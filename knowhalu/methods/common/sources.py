"""The sources of a check: those given with a sample, or passages retrieved where it has none, or too many words."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from knowhalu.requests import Conversation, Search, ask
from knowhalu.text.blocks import Unit, UnitKind, read_units
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
    opens with a pronoun. A reason cites it without the heading.
    """

    passage: Passage
    start: int
    end: int
    text: str
    view: str
    cited: str

    def shaped(self, form: KnowledgeForm) -> str:
        """Return the sentence in a form of knowledge: with its title, or as triplets where they have all its words."""
        title = self.passage.title
        if form is KnowledgeForm.STRUCTURED:
            return as_triplets(self.view, title)
        return f"{title}: {self.view}" if title and title.lower() not in self.view.lower() else self.view


class PlacedSentence(NamedTuple):
    """A sentence or table row of a text; `cited` is what a reason quotes of it, `since` where the sentence before it begins.

    That one belongs to it where it opens with a pronoun: then it is quoted, too.
    """

    start: int
    end: int
    view: str
    cited: str
    since: int
    kind: UnitKind


@lru_cache(maxsize=512)
def read_sentences(text: str) -> tuple[PlacedSentence, ...]:
    """Return every sentence and table row of a text."""
    views: list[PlacedSentence] = []
    before: Unit | None = None
    for unit in read_units(text):
        if not any(c.isalnum() for c in unit.text):
            continue
        needed = before if before is not None and REFERS_BACK.match(unit.text) else None
        view = f"{needed.text} {unit.text}" if needed else unit.text
        above = " ".join(part for part in (unit.heading, unit.lead) if part and part.lower() not in view.lower())
        since = needed.start if needed else unit.start
        views.append(PlacedSentence(unit.start, unit.end, f"{above} {view}" if above else view, view, since, unit.kind))
        before = unit
    return tuple(views)


def source_sentences(passages: Iterable[Passage], documents: Sequence[Document] = ()) -> list[SourceSentence]:
    """Return every sentence and table row of the passages; a row has the header that it has in its document."""
    return [
        SourceSentence(p, s.start, s.end, p.text[s.start : s.end], s.view, s.cited)
        for p in passages
        for s in _placed(p, documents)
    ]


def _placed(passage: Passage, documents: Sequence[Document]) -> Sequence[PlacedSentence]:
    own = read_sentences(passage.text)
    document = next((d for n, d in enumerate(documents, 1) if is_from_document(passage, d, n)), None)
    if document is None or len(document.text) == len(passage.text):
        return own
    rows = [
        row._replace(start=row.start - passage.start, end=row.end - passage.start, since=row.start - passage.start)
        for row in read_sentences(document.text)
        if row.kind is UnitKind.TABLE_ROW and passage.start <= row.start and row.end <= passage.end
    ]
    others = [s for s in own if not any(s.start < row.end and row.start < s.end for row in rows)]
    return sorted((*others, *rows)) if rows else own


def is_from_document(passage: Passage, document: Document, number: int) -> bool:
    """Tell whether a passage comes from a document; its id alone is ambiguous where several documents share one."""
    is_named = passage.document == (document.id or f"document-{number}")
    return is_named and document.text[passage.start : passage.end] == passage.text
