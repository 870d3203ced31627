"""Evidence selection for the encoder: the sentences and the passage window that a claim is judged by.

Only retrieved sentences and their neighbours are considered, so that text added elsewhere does not change the choice.
"""

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import NamedTuple

from knowhalu.methods.common.sources import SourceSentence, source_sentences
from knowhalu.requests import Conversation, Entail, EntailmentPair, Probabilities
from knowhalu.text.overlap import coverage
from knowhalu.text.sentences import MAX_CACHED_CHARS, Span, content_words, sentences, split_long_sentences, word_count
from knowhalu.text.triplets import extract_triplets, triplets_to_text
from knowhalu.types import Document, Knowledge, KnowledgeForm, Passage, Query, Quote, Sample, Step, Triplet


class WindowSentence(NamedTuple):
    """A sentence of a text, its number of words, its content words, and the number of its paragraph."""

    span: Span
    size: int
    content: frozenset[str]
    paragraph: int


class WindowSource(NamedTuple):
    """A text, and the start and end of every passage that was retrieved from it."""

    text: str
    found: Sequence[tuple[int, int]]


class SentenceRun(NamedTuple):
    """Sentences `first` to `last` and the number of content words that they share with a claim."""

    shared: int
    size: int
    first: int
    last: int


def window_sentences(text: str, limit: int) -> tuple[WindowSentence, ...]:
    """Return the sentences of a text; those of more than `limit` words are split."""
    return (_split_short if len(text) <= MAX_CACHED_CHARS else _split_long)(text, limit)


def _split_sentences(text: str, limit: int) -> tuple[WindowSentence, ...]:
    found: list[WindowSentence] = []
    for p in split_long_sentences(text, limit):
        parted = bool(found) and text.count("\n", found[-1].span.end, p.start) > 1
        paragraph = found[-1].paragraph + parted if found else 0
        found.append(WindowSentence(p, word_count(p.text), frozenset(content_words(p.text)), paragraph))
    return tuple(found)


_split_short = lru_cache(maxsize=256)(_split_sentences)
_split_long = lru_cache(maxsize=8)(_split_sentences)  # the result takes many times the memory of its text


def densest_run(
    parts: Sequence[WindowSentence], wanted: AbstractSet[str], near: AbstractSet[int], limit: int
) -> SentenceRun | None:
    """Return the shortest run of at most `limit` words that shares most words with a claim, the first of equals.

    A run contains at least one of the sentences `near` and stays in paragraphs that have one; None where none shares a word.
    """
    best: SentenceRun | None = None
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
            if touches and seen and (best is None or (len(seen), -size) > (best.shared, -best.size)):
                best = SentenceRun(len(seen), size, first, last)
    return best


def extend_run(text: str, parts: Sequence[WindowSentence], run: SentenceRun, limit: int) -> Span:
    """Return a run with its neighbours, before and after in turn, within the limit and their paragraphs."""
    _, size, first, last = run
    grows = True
    while grows:
        grows = False
        if first > 0 and parts[first - 1].paragraph == parts[first].paragraph and size + parts[first - 1].size <= limit:
            first, grows = first - 1, True
            size += parts[first].size
        after = parts[last + 1] if last + 1 < len(parts) else None
        if after is not None and after.paragraph == parts[last].paragraph and size + after.size <= limit:
            last, size, grows = last + 1, size + after.size, True
    a, b = parts[first].span.start, parts[last].span.end
    return Span(a, b, text[a:b])


def best_window(claim: str, sources: Sequence[WindowSource], limit: int) -> tuple[int, Span] | None:
    """Return the number of the source and its window of at most `limit` words that shares most words with a claim.

    The window contains a retrieved sentence. Of windows that share equally many words the shortest counts, then the first; None
    where none shares a word.
    """
    wanted = frozenset(content_words(claim))
    runs: list[tuple[int, SentenceRun]] = []
    for number, (text, found) in enumerate(sources):
        parts = window_sentences(text, limit) if found else ()
        near = {i for i, p in enumerate(parts) if any(a < p.span.end and p.span.start < b for a, b in found)}
        if (run := densest_run(parts, wanted, near, limit)) is not None:
            runs.append((number, run))
    if not runs:
        return None
    number, run = max(runs, key=lambda r: (r[1].shared, -r[1].size))
    text = sources[number].text
    return number, extend_run(text, window_sentences(text, limit), run, limit)


MAX_SENTENCES_READ = 8
"""Sentences read for one query."""
MAX_SENTENCES_KEPT = 6
"""Sentences kept of one query."""
MIN_SUPPORT = 0.5
"""Minimum support for a sentence without any of the claim's words to count as knowledge."""
MAX_JOINT_WORDS = 130
"""Words of the sentences that are judged together."""
BLANK_SENTENCE = re.compile(r"[\W_]*(?:n\W?a|none|null|nil|nan)?[\W_]*", re.IGNORECASE)
"""A sentence without content, such as "N/A"."""


def select_candidates(
    passages: Iterable[Passage], query: Query, read: set[tuple[str, int]], limit: int = MAX_SENTENCES_READ
) -> list[SourceSentence]:
    """Choose the sentences that share most words with a query, in the order of the sources, without those already read."""
    unread = (s for s in source_sentences(passages) if (s.passage.id, s.start) not in read)
    found = [s for s in unread if not BLANK_SENTENCE.fullmatch(s.text)]
    if len(found) <= limit:
        return found
    wanted = f"{query.specific} {query.general}"
    ranked = sorted(
        range(len(found)), key=lambda i: (-coverage(wanted, found[i].text) - 0.5 * coverage(found[i].text, wanted), i)
    )
    return [found[i] for i in sorted(ranked[:limit])]


def score_candidates(part: Sample, query: Query, found: Sequence[SourceSentence], form: KnowledgeForm) -> Conversation[Knowledge]:
    """Score sentences against the claim and keep the most decisive ones as knowledge.

    The claim is the whole answer to a question, else the specific formulation of the query.
    """
    if not found:
        return Knowledge(form=form)
    shaped = [c.shaped(form) for c in found]
    claim = part.response if part.question else query.specific
    scores: list[Probabilities] = yield Entail(tuple(EntailmentPair(s, claim, part.question) for s in shaped))
    relevance = [max(coverage(part.question or claim, c.text), coverage(claim, c.text)) for c in found]
    weight = [max(p.supported, p.contradicted) + r for p, r in zip(scores, relevance, strict=True)]
    kept = sorted(sorted(range(len(found)), key=lambda i: -weight[i])[:MAX_SENTENCES_KEPT])
    quotes = tuple(
        Quote(
            passage=found[i].passage.id, text=found[i].text, start=found[i].start, end=found[i].end,
            supported=scores[i].supported, contradicted=scores[i].contradicted, relevance=relevance[i],
        )
        for i in kept
    )  # fmt: skip
    facts: tuple[Triplet, ...] = ()
    if form is KnowledgeForm.STRUCTURED:
        facts = tuple(t for n, i in enumerate(kept) for t in extract_triplets(found[i].text, found[i].passage.title, n))
    known = Knowledge(form=form, quotes=quotes, triplets=facts)
    if not any(relevance[i] > 0 or scores[i].supported >= MIN_SUPPORT for i in kept):
        return known
    best = sorted(sorted(range(len(kept)), key=lambda n: -weight[kept[n]])[:2])
    statements = [str(t) for t in facts if t.quote in best] or [quotes[n].text for n in best]
    return known.model_copy(update={"text": " ".join(statements)})


def document_window(part: Sample, steps: Sequence[Step], form: KnowledgeForm) -> str | None:
    """Return the window of a sample's own documents that shares most words with the claim, in a form of knowledge.

    None without documents, or where they share no word with it. Neighbouring sentences explain one another ("he", "the
    match"), which single sentences do not.
    """
    places = {p.id: p for s in steps for p in s.passages}.values()
    sources = [
        WindowSource(d.text, [(p.start, p.end) for p in places if _is_from_document(p, d, number)])
        for number, d in enumerate(part.documents, 1)
    ]
    found = best_window(f"{part.question or ''} {part.response}", sources, MAX_JOINT_WORDS)
    if found is None:
        return None
    number, (_, _, text) = found
    if form is KnowledgeForm.STRUCTURED:
        return triplets_to_text([t for s in sentences(text) for t in extract_triplets(s.text, part.documents[number].title)])
    return text


def _is_from_document(passage: Passage, document: Document, number: int) -> bool:
    """Tell whether a passage comes from a document; its id alone is ambiguous where several documents share one."""
    is_named = passage.document == (document.id or f"document-{number}")
    return is_named and document.text[passage.start : passage.end] == passage.text


class GatheredEvidence(NamedTuple):
    """The evidence of all steps of a check: sentences as the verifier reads them, their texts and scores.

    `weakest` is the best support of the least supported statement; `nearest` the scores of the sentence nearest in words, of the
    step where it supports least.
    """

    shaped: tuple[str, ...]
    texts: tuple[str, ...]
    scores: tuple[Probabilities, ...]
    weakest: float
    nearest: Probabilities

    @property
    def joint(self) -> str:
        """Return the sentences to judge together: the most decisive ones that fit, in their order."""
        order = sorted(range(len(self.shaped)), key=lambda i: -max(self.scores[i][:2]))
        kept: list[int] = []
        room = MAX_JOINT_WORDS
        for i in order:
            size = word_count(self.shaped[i])
            if size <= room or not kept:
                kept.append(i)
                room -= size
        return " ".join(self.shaped[i] for i in sorted(kept))


def gather_evidence(steps: Sequence[Step], form: KnowledgeForm) -> GatheredEvidence:
    """Gather the quotes of all steps, each once, in the order of retrieval."""
    best = [max((q.supported for q in s.knowledge.quotes), default=0.0) for s in steps]
    near = [_probabilities(max(s.knowledge.quotes, key=lambda q: q.relevance)) for s in steps if s.knowledge.quotes]
    seen: dict[tuple[str, int], tuple[str, str, Probabilities]] = {}
    for step in steps:
        titles = {p.id: p for p in step.passages}
        for q in step.knowledge.quotes:
            shape = SourceSentence(titles[q.passage], q.start, q.end, q.text).shaped(form)
            score = _probabilities(q)
            known = seen.get((q.passage, q.start))
            if known is None or max(score[:2]) > max(known[2][:2]):
                seen[q.passage, q.start] = (shape, q.text, score)
    rows = list(seen.values())
    return GatheredEvidence(
        tuple(r[0] for r in rows), tuple(r[1] for r in rows), tuple(r[2] for r in rows),
        weakest=min(best, default=0.0), nearest=min(near, default=Probabilities(0.0, 0.0, 1.0)),
    )  # fmt: skip


def _probabilities(quote: Quote) -> Probabilities:
    return Probabilities(quote.supported, quote.contradicted, max(0.0, 1 - quote.supported - quote.contradicted))
