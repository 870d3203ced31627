"""Evidence of a claim for the verifier: single sentences, a window of each source, and sentences of several sources together.

Everything is chosen by the words of claim and question, never by what the verifier says, so that what sounds decisive cannot
crowd out what settles the claim. Only retrieved sentences and their neighbours are considered, so that text elsewhere in a
document does not change the choice.
"""

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import NamedTuple

from knowhalu.methods.common.sources import SourceSentence, is_from_document, source_sentences
from knowhalu.requests import Conversation, Entail, EntailmentPair, Probabilities, ask
from knowhalu.text.blocks import read_units
from knowhalu.text.overlap import coverage, name_words
from knowhalu.text.probabilities import require_measured
from knowhalu.text.sentences import content_words, sentences, split_long_sentences, word_count
from knowhalu.text.triplets import as_triplets, extract_triplets
from knowhalu.text.values import align_values
from knowhalu.types import Document, Knowledge, KnowledgeForm, Passage, Query, Quote, Sample, Step, Triplet

META_CONTEXT = "context"
"""Key of a sample's `meta` for the sentence that its response refers back to."""
META_CODE = "code"
"""Key of a sample's `meta` that tells that its response is a line of code."""
MAX_SENTENCES_READ, MAX_SENTENCES_KEPT = 8, 6
"""Sentences read for one query, and kept of it."""
MAX_WINDOW_WORDS, MAX_WINDOWS = 320, 3
"""Words of a window, about as many as the verifier reads at once, and windows of a claim."""
MAX_JOINED_WORDS = 130
"""Words of sentences of several sources that are read together, and of a unit that stays whole."""
MAX_READ_AGAIN = 2
"""Quotes that are read again by the larger of two verifiers."""
MIN_SUPPORT = 0.5
"""Minimum support for a sentence without any of the claim's words to count as knowledge."""
BLANK_SENTENCE = re.compile(r"[\W_]*(?:n\W?a|none|null|nil|nan)?[\W_]*", re.IGNORECASE)
"""A sentence without content, such as "N/A"."""


def reading_of(part: Sample) -> str | None:
    """Return what the verifier reads with a claim: its question, or the sentence that it refers back to."""
    return part.question or part.meta.get(META_CONTEXT) or None


def wanted_words(part: Sample) -> frozenset[str]:
    """Return the content words of a claim and of its question or context."""
    return frozenset(content_words(f"{reading_of(part) or ''} {part.response}"))


def subject_names(part: Sample, source: str) -> frozenset[str]:
    """Return the names in a claim and its question, as content words."""
    return frozenset(name_words(part.question or "", source) | name_words(part.response, source))


def select_sentences(
    passages: Iterable[Passage],
    query: Query,
    read: set[tuple[str, int]],
    documents: Sequence[Document] = (),
    limit: int = MAX_SENTENCES_READ,
) -> list[SourceSentence]:
    """Choose the sentences that share most words with a query, in the order of the sources, without those already read."""
    unread = [
        s
        for s in source_sentences(passages, documents)
        if (s.passage.id, s.start) not in read and not BLANK_SENTENCE.fullmatch(s.text)
    ]
    if len(unread) <= limit:
        return unread
    wanted = f"{query.specific} {query.general}"
    ranked = sorted(
        range(len(unread)), key=lambda i: (-coverage(wanted, unread[i].view) - 0.5 * coverage(unread[i].view, wanted), i)
    )
    return [unread[i] for i in sorted(ranked[:limit])]


def score_sentences(part: Sample, query: Query, places: Sequence[SourceSentence], form: KnowledgeForm) -> Conversation[Knowledge]:
    """Score sentences against the claim, and keep the nearest ones and the most decisive ones as knowledge."""
    if not places:
        return Knowledge(form=form)
    asked, claim = reading_of(part), part.response
    scores = yield from ask(
        Entail(tuple(EntailmentPair(s.shaped(form), align_values(claim, s.view), asked) for s in places), light=True)
    )
    relevance = [max(coverage(part.question or claim, s.view), coverage(claim, s.view)) for s in places]
    weight = [max(p.supported, p.contradicted) + r for p, r in zip(scores, relevance, strict=True)]
    nearest = sorted(range(len(places)), key=lambda i: -relevance[i])[: MAX_SENTENCES_KEPT // 2]
    decisive = [i for i in sorted(range(len(places)), key=lambda i: -weight[i]) if i not in nearest]
    kept = sorted([*nearest, *decisive[: MAX_SENTENCES_KEPT - len(nearest)]])
    quotes = tuple(
        Quote(
            passage=places[i].passage.id, text=places[i].text, start=places[i].start, end=places[i].end,
            supported=scores[i].supported, contradicted=scores[i].contradicted, relevance=relevance[i],
        )
        for i in kept
    )  # fmt: skip
    triplets: tuple[Triplet, ...] = ()
    if form is KnowledgeForm.STRUCTURED:
        triplets = tuple(t for n, i in enumerate(kept) for t in extract_triplets(places[i].view, places[i].passage.title, n))
    known = Knowledge(form=form, quotes=quotes, triplets=triplets)
    if not any(relevance[i] > 0 or scores[i].supported >= MIN_SUPPORT for i in kept):
        return known
    best = sorted(sorted(range(len(kept)), key=lambda n: -weight[kept[n]])[:2])
    statements = [str(t) for t in triplets if t.quote in best] or [quotes[n].text for n in best]
    return known.model_copy(update={"text": " ".join(statements)})


def read_nearest_again(part: Sample, steps: Sequence[Step], form: KnowledgeForm) -> Conversation[tuple[Step, ...]]:
    """Ask the larger verifier about the nearest quotes of a supported claim, where by the smaller one none supports it."""
    quotes = {(q.passage, q.start): q for s in steps for q in s.knowledge.quotes}
    nearest = sorted(quotes.values(), key=lambda q: -q.relevance)[:MAX_READ_AGAIN]
    if not nearest or any(
        require_measured(q.supported) >= max(MIN_SUPPORT, require_measured(q.contradicted)) for q in quotes.values()
    ):
        return tuple(steps)
    places = {(s.passage.id, s.start): s for step in steps for s in source_sentences(step.passages, part.documents)}
    views = [places[q.passage, q.start] for q in nearest]
    asked, claim = reading_of(part), part.response
    scores = yield from ask(Entail(tuple(EntailmentPair(v.shaped(form), align_values(claim, v.view), asked) for v in views)))
    read = {
        (q.passage, q.start): q.model_copy(update={"supported": p.supported, "contradicted": p.contradicted})
        for q, p in zip(nearest, scores, strict=True)
    }
    known = [tuple(read.get((q.passage, q.start), q) for q in s.knowledge.quotes) for s in steps]
    return tuple(
        s.model_copy(update={"knowledge": s.knowledge.model_copy(update={"quotes": quotes})})
        for s, quotes in zip(steps, known, strict=True)
    )


class WindowPart(NamedTuple):
    """A unit of a text without marks: its place, its words, and the number of its paragraph."""

    start: int
    end: int
    text: str
    size: int
    content: frozenset[str]
    paragraph: int


@lru_cache(maxsize=64)
def window_parts(text: str) -> tuple[WindowPart, ...]:
    """Return the units of a text; those of more words than a window are split."""
    parts: list[WindowPart] = []
    for unit in read_units(text):
        pieces = [(0, len(unit.text))]
        if word_count(unit.text) > MAX_JOINED_WORDS:
            pieces = [(p.start, p.end) for p in split_long_sentences(unit.text, MAX_JOINED_WORDS)]
        for a, b in pieces:
            start, end = unit.place(a, b)
            piece = unit.text[a:b]
            parts.append(WindowPart(start, end, piece, word_count(piece), frozenset(content_words(piece)), unit.paragraph))
    return tuple(parts)


class Window(NamedTuple):
    """Parts of one source that stand together: their text with its title, and how many of the wanted words it has."""

    source: str
    text: str
    shared: int
    size: int


def _window(
    source: str, title: str, text: str, found: Sequence[tuple[int, int]], wanted: AbstractSet[str], limit: int
) -> Window | None:
    parts = window_parts(text)
    near = {i for i, p in enumerate(parts) if any(a < p.end and p.start < b for a, b in found)}
    if not near:
        return None
    first, last, shared = _densest_run(parts, wanted, near, limit) or (min(near), min(near), 0)
    first, last = _extend_run(parts, first, last, limit)
    body = " ".join(_ended(p.text) for p in parts[first : last + 1])
    body = f"{title}: {body}" if title and title.lower() not in body.lower() else body
    return Window(source, body, shared, sum(p.size for p in parts[first : last + 1]))


def _ended(text: str) -> str:
    """End a table row, list item or heading like a sentence, so that it is not read as one with the next."""
    return text if text.rstrip("\"'”’)] ").endswith((".", "!", "?", ":", ";", ",", "…")) else f"{text}."  # noqa: RUF001


def _densest_run(
    parts: Sequence[WindowPart], wanted: AbstractSet[str], near: AbstractSet[int], limit: int
) -> tuple[int, int, int] | None:
    """Return the shortest run of at most `limit` words that shares most words, the first of equals, and how many.

    A run contains at least one of the parts `near` and stays in paragraphs that have one; None where none shares a word.
    """
    best: tuple[int, int, int] | None = None
    best_key = (0, 0)
    paragraphs = {parts[i].paragraph for i in near}
    shared = [p.content & wanted for p in parts]
    for first in range(len(parts)):
        seen: set[str] = set()
        size, touches = 0, False
        for last in range(first, len(parts) if shared[first] or first in near else first):
            size += parts[last].size
            if (size > limit and last > first) or parts[last].paragraph not in paragraphs:
                break
            seen |= shared[last]
            touches = touches or last in near
            if touches and seen and (best is None or (len(seen), -size) > best_key):
                best, best_key = (first, last, len(seen)), (len(seen), -size)
    return best


def _extend_run(parts: Sequence[WindowPart], first: int, last: int, limit: int) -> tuple[int, int]:
    """Extend a run by its neighbours in its paragraphs, before and after in turn, within `limit` words."""
    size, grows = sum(p.size for p in parts[first : last + 1]), True
    while grows:
        grows = False
        for i, edge in ((first - 1, first), (last + 1, last)):
            if not 0 <= i < len(parts) or size + parts[i].size > limit:
                continue
            if parts[i].paragraph == parts[edge].paragraph:
                first, last, size, grows = min(first, i), max(last, i), size + parts[i].size, True
    return first, last


def source_windows(part: Sample, steps: Sequence[Step], limit: int = MAX_WINDOW_WORDS) -> list[Window]:
    """Return the windows of the sources nearest to a claim, at most one of each source, the nearest first."""
    wanted, windows = wanted_words(part), list[Window | None]()
    places = list({p.id: p for s in steps for p in s.passages}.values())
    for number, document in enumerate(part.documents, 1):
        found = [(p.start, p.end) for p in places if is_from_document(p, document, number)]
        windows.append(_window(document.id or str(number), document.title, document.text, found, wanted, limit))
    for p in places:
        if not any(is_from_document(p, d, n) for n, d in enumerate(part.documents, 1)):
            windows.append(_window(p.id, p.title, p.text, [(0, len(p.text))], wanted, limit))
    kept = [w for w in windows if w is not None]
    return sorted(kept, key=lambda w: (-w.shared, w.size))[:MAX_WINDOWS]


def in_form(text: str, form: KnowledgeForm, title: str = "") -> str:
    """Return a window in a form of knowledge: as it is, or as triplets."""
    if form is KnowledgeForm.UNSTRUCTURED:
        return text
    return " ".join(as_triplets(s.text, title) for s in sentences(text))


class ReadSentence(NamedTuple):
    """A quoted sentence as the verifier read it, its passage, its probabilities and its share of the claim's words."""

    passage: str
    document: str
    view: str
    scores: Probabilities
    relevance: float


def read_sentences_of(steps: Sequence[Step], form: KnowledgeForm, documents: Sequence[Document] = ()) -> list[ReadSentence]:
    """Return the quotes of all steps, each once, in the order of retrieval."""
    kept: dict[tuple[str, int], ReadSentence] = {}
    for step in steps:
        views = {(s.passage.id, s.start): s for s in source_sentences(step.passages, documents)}
        for q in step.knowledge.quotes:
            supported, contradicted = require_measured(q.supported), require_measured(q.contradicted)
            scores = Probabilities(supported, contradicted, max(0.0, 1 - supported - contradicted))
            known, place = kept.get((q.passage, q.start)), views.get((q.passage, q.start))
            if known is None or scores.supported > known.scores.supported:
                view = place.shaped(form) if place else q.text
                document = (place.passage.document if place else "") or q.passage
                kept[q.passage, q.start] = ReadSentence(q.passage, document, view, scores, q.relevance)
    return list(kept.values())


def joined_sentences(part: Sample, read: Sequence[ReadSentence]) -> list[ReadSentence]:
    """Return the sentences of several passages that a claim needs together; none where one suffices or nothing connects them.

    Sentences are added by how many of the wanted words they add. Those of several documents belong together where a name that
    the claim does not have stands in both, as the author between a book and a birthplace: else they may be of two things.
    """
    missing, chosen, room = set(wanted_words(part)), list[int](), MAX_JOINED_WORDS
    content = [set(content_words(r.view)) for r in read]
    while missing:
        best = max((i for i in range(len(read)) if i not in chosen), key=lambda i: len(content[i] & missing), default=None)
        if best is None or not content[best] & missing or word_count(read[best].view) > room:
            break
        chosen.append(best)
        missing -= content[best]
        room -= word_count(read[best].view)
    together = [read[i] for i in sorted(chosen)]
    if len({r.passage for r in together}) < 2 or (len({r.document for r in together}) > 1 and not bridging_names(part, together)):
        return []
    return together


def bridging_names(part: Sample, read: Sequence[ReadSentence]) -> frozenset[str]:
    """Return the names that sentences of several documents share and that the claim does not have, as content words."""
    sources: dict[str, set[str]] = {}
    for r in read:
        others = " ".join(o.view for o in read if o.document != r.document)
        for name in name_words(r.view, others) - wanted_words(part):
            sources.setdefault(name, set()).add(r.document)
    return frozenset(name for name, found in sources.items() if len(found) > 1)
