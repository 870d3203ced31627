"""Attribution: which sentences of the passages an LLM's knowledge and judgments rest on."""

import re
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from knowhalu.text.overlap import coverage, text_facts
from knowhalu.text.quantities import number_value
from knowhalu.text.sentences import Span, content_words, sentences, words
from knowhalu.types import NO_INFORMATION, Judgment, Knowledge, KnowledgeForm, Label, Passage, Query, Quote, Sample, Step, Triplet

MIN_QUOTE_COVERAGE = 0.5
"""Share of a claim's words that a sentence must have to be quoted where the model quotes nothing."""
MIN_QUOTATION_WORDS = 3
"""Words of a quotation at least; fewer stand in too many sentences."""
_QUOTATION = re.compile(r"[\"“„«]([^\"“”„«»]{6,800})[\"”“»]")


def quote_step(claim: str, rationale: str, passages: Sequence[Passage], supported: float) -> Step:
    """Return the step of a judgment: its passages, and as knowledge the sentences that it quotes.

    A claim that is supported without a quotation rests on the sentence that has most of its words. One that is not is
    contradicted by nothing then: that a source is silent stands nowhere in it. What the model quotes is relevant because it
    decided by it, whether it shares words with the claim or not.
    """
    quoted = list(dict.fromkeys(p for words in _quotations(rationale) for p in _quoted_sentences(words, passages)))
    found = [(p, s, 1.0) for p, s in quoted] or (_nearest_sentence(claim, passages) if supported >= 0.5 else [])
    quotes = tuple(
        Quote(passage=p.id, text=s.text, start=s.start, end=s.end, supported=supported, contradicted=1 - supported, relevance=r)
        for p, s, r in found
    )
    text = " ".join(q.text for q in quotes) or NO_INFORMATION
    knowledge = Knowledge(form=KnowledgeForm.UNSTRUCTURED, quotes=quotes, text=text)
    return Step(thought="", query=Query(specific=claim, general=""), passages=tuple(passages), knowledge=knowledge)


def _quotations(rationale: str) -> Iterator[list[str]]:
    """Yield the words of each quotation, one that leaves something out in its pieces."""
    for match in _QUOTATION.finditer(rationale):
        for piece in re.split(r"\.\.\.|…|\[[^\]]*\]", match[1]):
            words = piece.strip(" .,;:!?").split()
            if len(words) >= MIN_QUOTATION_WORDS:
                yield words


def _quoted_sentences(words: Sequence[str], passages: Sequence[Passage]) -> Iterator[tuple[Passage, Span]]:
    """Yield the sentences, of the first passage that has it, over which a quotation runs."""
    pattern = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
    for passage in passages:
        if match := pattern.search(passage.text):
            yield from ((passage, s) for s in sentences(passage.text) if s.start < match.end() and match.start() < s.end)
            return


def _nearest_sentence(claim: str, passages: Sequence[Passage]) -> list[tuple[Passage, Span, float]]:
    places = [(p, s, coverage(claim, f"{p.title} {s.text}")) for p in passages for s in sentences(p.text)]
    best = max(places, key=lambda place: place[2], default=None)
    return [best] if best and best[2] >= MIN_QUOTE_COVERAGE else []


MIN_GROUNDING_COVERAGE = 0.4
"""Share of a statement's words that one passage, with its title, must have; its figures must all be found."""
MIN_ADDED_COVERAGE = 0.25
"""Share of a statement's words that a second sentence must add to be quoted beside the first."""
_KNOWLEDGE_REFERENCE = re.compile(r"\bknowledge[ -]?(\d{1,3})\b(?:(?:,| and| or|, and) (\d{1,3})\b)?", re.IGNORECASE)


class SourceSentence(NamedTuple):
    """A sentence of a passage, byte for byte."""

    passage: Passage
    start: int
    end: int
    text: str


def ground_statements(
    form: KnowledgeForm,
    statements: Sequence[str],
    triplets: Sequence[Triplet],
    part: Sample,
    query: Query,
    passages: Sequence[Passage],
) -> Knowledge:
    """Make knowledge of statements, each with the sentences that it rests on; what rests on none is put aside.

    `triplets` are the statements of the structured form, in the same order; none for the unstructured one.
    """
    places = [SourceSentence(p, s.start, s.end, s.text) for p in passages for s in sentences(p.text)]
    rests_on = {s: _supporting_sentences(s, passages, places) if _has_figures(s, query, passages) else [] for s in statements}
    cited = list(dict.fromkeys(place for s in statements for place in rests_on[s]))
    kept = [s for s in statements if rests_on[s]]
    return Knowledge(
        form=form,
        quotes=tuple(_make_quote(place, part, query) for place in cited),
        triplets=tuple(
            t.model_copy(update={"quote": cited.index(rests_on[s][0])})
            for s, t in zip(statements, triplets, strict=False) if rests_on[s]
        ),
        text=" ".join(kept) or NO_INFORMATION,
        unsupported=" ".join(s for s in statements if not rests_on[s]),
    )  # fmt: skip


def _has_figures(statement: str, query: Query, passages: Sequence[Passage]) -> bool:
    """Tell whether a statement's figures all stand in the passages, or in the query that it answers."""
    told = {number_value(w.text) for w in words(statement) if any(c.isdigit() for c in w.text)}
    given = text_facts(" ".join((query.specific, query.general, *map(str, passages)))).numbers
    return told - {None} <= given


def _supporting_sentences(statement: str, passages: Sequence[Passage], places: Sequence[SourceSentence]) -> list[SourceSentence]:
    """Return the one or two sentences that have most of a statement's words; none where no passage has enough."""
    wanted = set(content_words(statement))
    if not wanted or not places or max(coverage(statement, str(p)) for p in passages) < MIN_GROUNDING_COVERAGE:
        return []
    shares = [wanted & set(content_words(f"{p.passage.title} {p.text}")) for p in places]
    best = max(range(len(places)), key=lambda i: len(shares[i]))
    home = places[best].passage.id
    more = max(range(len(places)), key=lambda i: (len(shares[i] - shares[best]), places[i].passage.id == home))
    second = [places[more]] if len(shares[more] - shares[best]) >= max(1.0, MIN_ADDED_COVERAGE * len(wanted)) else []
    return [places[best], *second]


def _make_quote(place: SourceSentence, part: Sample, query: Query) -> Quote:
    """Quote a sentence; how far it bears on the matter is seen with its title, also by the query that it answers."""
    source = f"{place.passage.title} {place.text}"
    asked = [text for text in (part.question, part.response, query.specific, query.general) if text]
    return Quote(
        passage=place.passage.id, text=place.text, start=place.start, end=place.end, supported=0.0, contradicted=0.0,
        relevance=max(coverage(text, source) for text in asked),
    )  # fmt: skip


def assign_quote_scores(steps: Sequence[Step], judgment: Judgment, *, contradicted: float) -> tuple[Step, ...]:
    """Give the quotes that bear on a judgment its probabilities.

    A confirmed text rests on all knowledge. A contradicted one is contradicted by the knowledge that the rationale names last
    (it ends at the first contradiction), else by that of the last step that has any, and there by the sentences that say most
    of it, not by those that only name whom it is about.
    """
    if judgment.label is Label.INCONCLUSIVE:
        return tuple(steps)
    bearing = {_key(q) for step in steps for q in step.knowledge.quotes}
    if judgment.label is Label.INCORRECT:
        bearing = {_key(q) for step in _deciding_steps(steps, judgment.rationale) for q in _main_quotes(step.knowledge)}
    scores = {"supported": judgment.p_supported, "contradicted": contradicted}
    return tuple(_with_scores(step, bearing, scores) for step in steps)


def _key(quote: Quote) -> tuple[str, int]:
    return quote.passage, quote.start


def _main_quotes(knowledge: Knowledge) -> list[Quote]:
    """Return the quotes that say most of each statement."""
    quotes = knowledge.quotes
    if knowledge.triplets:
        return [quotes[t.quote] for t in knowledge.triplets]
    return [max(quotes, key=lambda q: coverage(s.text, q.text)) for s in sentences(knowledge.text) if quotes]


def _deciding_steps(steps: Sequence[Step], rationale: str) -> list[Step]:
    named = [int(n) for match in _KNOWLEDGE_REFERENCE.finditer(rationale) for n in match.groups() if n]
    quoting = {n: step for n, step in enumerate(steps, 1) if step.knowledge.quotes}
    last = next((n for n in reversed(named) if n in quoting), max(quoting, default=0))
    return [quoting[last]] if quoting else []


def _with_scores(step: Step, bearing: Container[tuple[str, int]], scores: dict[str, float]) -> Step:
    quotes = tuple(q.model_copy(update=scores) if _key(q) in bearing else q for q in step.knowledge.quotes)
    return step.model_copy(update={"knowledge": step.knowledge.model_copy(update={"quotes": quotes})})
