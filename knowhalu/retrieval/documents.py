"""Search without an index: the documents of a sample by a model, or a few passages by their words."""

import hashlib
import heapq
import math
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from knowhalu.index.protocols import Embedder, check_k
from knowhalu.text.sentences import Span, chunks, content_words
from knowhalu.types import Document, Passage

if TYPE_CHECKING:
    from knowhalu.index.protocols import Vectors


class DocumentSearch(NamedTuple):
    """A search: documents, queries, and the number of chunks for each query."""

    documents: tuple[Document, ...]
    queries: Sequence[str]
    k: int


class _EmbeddedDocument(NamedTuple):
    spans: list[Span]
    vectors: "Vectors | None"
    size: int


class DocumentRetriever:
    """Find the chunks of given documents that are most relevant to a query (KnowHalu, section 4.3).

    Chunks have at most `words` words. The last `cache` documents stay embedded, keyed by their text, as long as they have at
    most `characters` together. Thread-safe; one thread embeds at a time, so no document is embedded twice.
    """

    def __init__(self, embedder: Embedder, words: int = 40, cache: int = 256, characters: int = 50_000_000) -> None:
        self.embedder, self.words, self.cache, self.characters = embedder, words, cache, characters
        self._known: OrderedDict[bytes, _EmbeddedDocument] = OrderedDict()
        self._lock = threading.Lock()

    def search(self, documents: tuple[Document, ...], queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return the `k` best chunks for each query, in document order; none for a blank query.

        `passage.text == document.text[passage.start:passage.end]`; the score is the cosine. Raises InputError where `k`
        is not positive.
        """
        return self.search_many([DocumentSearch(documents, queries, k)])[0]

    def search_many(self, searches: Sequence[DocumentSearch]) -> list[list[list[Passage]]]:
        """Run many searches at once; all new chunks and all queries are embedded together."""
        for search in searches:
            check_k(search.k)
        unique = list(dict.fromkeys(q for s in searches if s.documents for q in s.queries if q.strip()))
        if not unique:
            return [[[] for _ in search.queries] for search in searches]
        known, vectors = self._embed({d.text for s in searches for d in s.documents}, unique)
        rows = dict(zip(unique, vectors, strict=True))
        return [[_top_chunks(s, known, rows[q]) if q in rows else [] for q in s.queries] for s in searches]

    def _embed(self, texts: Iterable[str], queries: list[str]) -> tuple[dict[str, _EmbeddedDocument], "Vectors"]:
        """Return every document split and embedded, and the vectors of the queries."""
        keys = {text: hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest() for text in texts}
        with self._lock:
            known = {text: self._known[key] for text, key in keys.items() if key in self._known}
            new_spans = {text: chunks(text, self.words) for text in keys if text not in known}
            new_texts = [span.text for spans in new_spans.values() for span in spans]
            vectors, query_vectors = self._encode(new_texts, queries) if new_texts else (None, None)
            start = 0
            for text, spans in new_spans.items():
                rows = vectors[start : start + len(spans)].copy() if vectors is not None else None
                known[text] = _EmbeddedDocument(spans, rows, len(text))
                start += len(spans)
            self._remember({keys[text]: known[text] for text in keys})
        return known, self.embedder.encode(queries, query=True) if query_vectors is None else query_vectors

    def _encode(self, new: list[str], queries: list[str]) -> tuple["Vectors", "Vectors"]:
        if not self.embedder.symmetric:
            return self.embedder.encode(new), self.embedder.encode(queries, query=True)
        together = self.embedder.encode([*new, *queries])
        return together[: len(new)], together[len(new) :]

    def _remember(self, used: dict[bytes, _EmbeddedDocument]) -> None:
        for key, value in used.items():
            self._known[key] = value
            self._known.move_to_end(key)
        while len(self._known) > self.cache:
            self._known.popitem(last=False)
        size = sum(value.size for value in self._known.values())
        while size > self.characters and (oldest := next(iter(self._known))) not in used:
            size -= self._known.pop(oldest).size


def _top_chunks(search: DocumentSearch, known: dict[str, _EmbeddedDocument], query: "Vectors") -> list[Passage]:
    """Score the chunks of all documents together and return the best in document order; of ties, the first."""
    scored: list[tuple[float, int, int]] = []
    for d, document in enumerate(search.documents):
        vectors = known[document.text].vectors
        scores = [] if vectors is None else (vectors @ query).tolist()
        scored += [(-score, d, i) for i, score in enumerate(scores)]
    names, passages = _document_names(search.documents), []
    for d, i, negative in sorted((d, i, negative) for negative, d, i in heapq.nsmallest(search.k, scored)):
        document = search.documents[d]
        start, end, text = known[document.text].spans[i]
        passage = Passage(
            id=f"{names[d]}#{i + 1}",
            text=text,
            title=document.title,
            score=-negative,
            document=document.id or f"document-{d + 1}",
            start=start,
            end=end,
        )
        passages.append(passage)
    return passages


def _document_names(documents: Sequence[Document]) -> list[str]:
    """Return a unique name for each document: its id, with its position appended where an earlier one has the same id."""
    names = dict[str, None]()
    for place, document in enumerate(documents, 1):
        name = document.id or f"document-{place}"
        while name in names:
            name += f"-{place}"
        names[name] = None
    return list(names)


class MemoryRetriever:
    """Search a few passages without a model, for tests and examples: rare words count more, ties keep the given order."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = tuple(passages)
        self._words = [frozenset(content_words(str(p))) for p in self.passages]
        self._holders = Counter(w for words in self._words for w in words)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return at most `k` passages for each query, best first; passages without a shared word are last."""
        check_k(k)
        return [self._rank(query, k) if query.strip() else [] for query in queries]

    def _rank(self, query: str, k: int) -> list[Passage]:
        query_words = sorted(set(content_words(query)))
        weights = {w: math.log(1 + len(self.passages) / (1 + self._holders[w])) for w in query_words}
        total = sum(weights.values()) or 1.0
        scores = [sum(weights[w] for w in query_words if w in words) / total for words in self._words]
        order = sorted(range(len(scores)), key=lambda i: -scores[i])[:k]
        return [self.passages[i].model_copy(update={"score": scores[i]}) for i in order]
