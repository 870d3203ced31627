"""Evidence on two sides: characters of the response beside characters of a source, taken from the quotes of a judgment."""

from collections.abc import Iterable

from knowhalu.results import Evidence
from knowhalu.text.sentences import Span, content_words, words
from knowhalu.types import Judgment, Label, Passage, Quote

MIN_DECISIVE_PROBABILITY = 0.5
"""Probability from which a quote counts as supporting or contradicting."""
MIN_RELEVANCE = 0.34
"""Share of the words in question from which a quote speaks of the matter at all."""


def evidence_for(segment: Span, judgment: Judgment, limit: int = 3) -> tuple[Evidence, ...]:
    """Pair the segment with the quotes that bear out the judgment: those first that are sure and speak of the matter."""
    passages = {p.id: p for s in judgment.steps for p in s.passages}
    quotes = {(q.passage, q.start): q for s in judgment.steps for q in s.knowledge.quotes}.values()
    found = []
    for quote in quotes:
        supports = quote.supported >= quote.contradicted
        probability = quote.supported if supports else quote.contradicted
        fits = judgment.label is not Label.INCONCLUSIVE and supports == (judgment.label is Label.CORRECT)
        if probability >= MIN_DECISIVE_PROBABILITY and quote.relevance >= MIN_RELEVANCE and fits:
            pair = _make_evidence(segment, quote, passages[quote.passage], supports, probability)
            found.append((probability * quote.relevance, pair))
    return tuple(pair for _, pair in sorted(found, key=lambda f: -f[0])[:limit])


def has_conflicting_quotes(judgments: Iterable[Judgment]) -> bool:
    """Tell whether quotes that are sure and speak of the matter stand on both sides."""
    quotes = [q for j in judgments for s in j.steps for q in s.knowledge.quotes if q.relevance >= MIN_RELEVANCE]
    return any(q.supported >= MIN_DECISIVE_PROBABILITY for q in quotes) and any(
        q.contradicted >= MIN_DECISIVE_PROBABILITY for q in quotes
    )


def _make_evidence(segment: Span, quote: Quote, passage: Passage, supports: bool, probability: float) -> Evidence:
    start, end = _overlap_offsets(segment, quote.text, supports)
    return Evidence(
        response_start=start, response_end=end, relation="supports" if supports else "contradicts", probability=probability,
        passage=passage.id, title=passage.title, quote=passage.text[quote.start : quote.end], start=quote.start, end=quote.end,
        document=passage.document, document_start=passage.start + quote.start,
    )  # fmt: skip


def _overlap_offsets(segment: Span, quote: str, supports: bool) -> tuple[int, int]:
    """Return the stretch of the segment that the quote speaks of: its shared words, or where it contradicts, the others."""
    there = set(content_words(quote))
    tokens = [w for w in words(segment.text) if content_words(w.text)]
    chosen = [w for w in tokens if bool(there.intersection(content_words(w.text))) == supports]
    if not chosen:
        return segment.start, segment.end
    return segment.start + chosen[0].start, segment.start + chosen[-1].end


def keep_quoted_passages(judgment: Judgment) -> Judgment:
    """Return the judgment with no more of its passages than what is quoted: each quote becomes a passage of its own.

    Many claims are judged by the same whole sources, which a verdict must not hold once for each of them.
    """
    steps = []
    for step in judgment.steps:
        passages = {p.id: p for p in step.passages}
        cut = {(q.passage, q.start): _quote_as_passage(q, passages[q.passage]) for q in step.knowledge.quotes}
        quotes = tuple(
            q.model_copy(update={"passage": cut[q.passage, q.start].id, "start": 0, "end": len(q.text)})
            for q in step.knowledge.quotes
        )
        known = step.knowledge.model_copy(update={"quotes": quotes})
        steps.append(step.model_copy(update={"passages": tuple(cut.values()), "knowledge": known}))
    return judgment.model_copy(update={"steps": tuple(steps)})


def _quote_as_passage(quote: Quote, passage: Passage) -> Passage:
    place = {"start": passage.start + quote.start, "end": passage.start + quote.end}
    return passage.model_copy(update={"id": f"{passage.id}:{quote.start}", "text": quote.text, **place})
