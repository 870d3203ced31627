"""Attribution: which sentences of the passages a judgment rests on, and which characters of the response they concern."""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from knowhalu.methods.common.sources import SourceSentence, read_sentences, source_sentences
from knowhalu.results import Evidence
from knowhalu.text.overlap import coverage, text_facts
from knowhalu.text.probabilities import complement
from knowhalu.text.quantities import number_value
from knowhalu.text.sentences import Span, content_words, sentences, stem, words
from knowhalu.types import NO_INFORMATION, Judgment, Knowledge, KnowledgeForm, Label, Passage, Query, Quote, Sample, Step, Triplet

MIN_QUOTE_COVERAGE = 0.5
"""Share of a claim's words that a sentence must have to be quoted where the model quotes nothing."""
MIN_QUOTATION_WORDS = 3
"""Minimum words of a quotation; fewer occur in too many sentences."""
_QUOTATION = re.compile(r"[\"“„«]([^\"“”„«»]{6,800})[\"”“»]")


def quote_step(claim: str, rationale: str, passages: Sequence[Passage], label: Label, supported: float | None) -> Step:
    """Return the step of a judgment: its passages, and as knowledge the sentences that its rationale quotes.

    A claim that is supported without a quotation gets the sentence that has most of its words. A claim that is not supported gets
    no quote then, as a missing statement cannot be quoted. Quotes by the model have relevance 1, as it decided by them.
    """
    quoted = list(dict.fromkeys(p for words in _quotations(rationale) for p in _quoted_sentences(words, passages)))
    found = [(p, s, 1.0) for p, s in quoted] or (_nearest_sentence(claim, passages) if label is Label.CORRECT else [])
    scores = {"supported": supported, "contradicted": complement(supported)}
    quotes = tuple(Quote(passage=p.id, text=s.text, start=s.start, end=s.end, relevance=r, **scores) for p, s, r in found)
    text = " ".join(q.text for q in quotes) or NO_INFORMATION
    knowledge = Knowledge(form=KnowledgeForm.UNSTRUCTURED, quotes=quotes, text=text)
    return Step(thought="", query=Query(specific=claim, general=""), passages=tuple(passages), knowledge=knowledge)


def _quotations(rationale: str) -> Iterator[list[str]]:
    """Yield the words of each quotation; one with an ellipsis is split there."""
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
"""Share of a statement's words that the passages together, with their titles, must have; all its numbers must be given."""
MIN_ADDED_COVERAGE = 0.25
"""Share of a statement's words that a further sentence must add to be quoted as well."""
_PASSAGE_REFERENCE = re.compile(r"\bpassages? \d{1,3}(?:(?:,| and|, and) \d{1,3})*\b", re.IGNORECASE)
_SAYING = frozenset(
    stem(w)
    for w in """
    according add added claim confirm describe detail explain indicate inform mention note passage report reveal said say specify
    spoke state suggest tell text told write written wrote
    """.split()
)
"""Words by which a statement says who says it; passages often have none for it."""
_KNOWLEDGE_REFERENCE = re.compile(r"\bknowledge[ -]?(\d{1,3})\b(?:(?:,| and| or|, and) (\d{1,3})\b)?", re.IGNORECASE)


def ground_statements(
    form: KnowledgeForm,
    statements: Sequence[str],
    triplets: Sequence[Triplet],
    part: Sample,
    query: Query,
    passages: Sequence[Passage],
) -> Knowledge:
    """Make knowledge of statements, each with the sentences that support it; statements without any are set apart.

    `triplets` are the statements of the structured form, in the same order; empty for the unstructured one.
    """
    places = source_sentences(passages)
    rests_on = {s: _supporting_sentences(s, passages, places) if _has_figures(s, query, passages) else [] for s in statements}
    cited = list(dict.fromkeys(place for s in statements for place in rests_on[s]))
    grounded = [s for s in statements if rests_on[s]]
    return Knowledge(
        form=form,
        quotes=tuple(_make_quote(place, part, query) for place in cited),
        triplets=tuple(
            t.model_copy(update={"quote": cited.index(rests_on[s][0])})
            for s, t in zip(statements, triplets, strict=False) if rests_on[s]
        ),
        text=" ".join(grounded) or NO_INFORMATION,
        unsupported=" ".join(s for s in statements if not rests_on[s]),
    )  # fmt: skip


def _has_figures(statement: str, query: Query, passages: Sequence[Passage]) -> bool:
    """Tell whether a statement's numbers are all in the passages, or in the query that it answers."""
    numbers = {number_value(w.text) for w in words(_PASSAGE_REFERENCE.sub("", statement)) if any(c.isdigit() for c in w.text)}
    given = text_facts(" ".join((query.specific, query.general, *map(str, passages)))).numbers
    return numbers - {None} <= given


def _supporting_sentences(statement: str, passages: Sequence[Passage], places: Sequence[SourceSentence]) -> list[SourceSentence]:
    """Return the few sentences that have most of a statement's words; none where the passages together have too few."""
    said = content_words(_PASSAGE_REFERENCE.sub("", statement))
    claimed = [w for w in said if w not in _SAYING] or said
    given = {w for p in passages for w in content_words(str(p))}
    if not claimed or not places or sum(w in given for w in claimed) < MIN_GROUNDING_COVERAGE * len(claimed):
        return []
    wanted = set(claimed)
    shares = [wanted & set(content_words(f"{p.passage.title} {p.text}")) for p in places]
    best = max(range(len(places)), key=lambda i: len(shares[i]))
    cited, covered, home = [places[best]], shares[best], places[best].passage.id
    while True:
        more = max(range(len(places)), key=lambda i: (len(shares[i] - covered), places[i].passage.id == home))
        if len(shares[more] - covered) < max(1.0, MIN_ADDED_COVERAGE * len(wanted)):
            return cited
        cited.append(places[more])
        covered = covered | shares[more]


def _make_quote(place: SourceSentence, part: Sample, query: Query) -> Quote:
    """Quote a sentence; its relevance is measured with its title, also by the query that it answers."""
    source = f"{place.passage.title} {place.text}"
    topics = [text for text in (part.question, part.response, query.specific, query.general) if text]
    return Quote(
        passage=place.passage.id, text=place.text, start=place.start, end=place.end, supported=0.0, contradicted=0.0,
        relevance=max(coverage(text, source) for text in topics),
    )  # fmt: skip


def assign_quote_scores(steps: Sequence[Step], judgment: Judgment, *, contradicted: float | None) -> tuple[Step, ...]:
    """Give the quotes that a judgment rests on its probabilities, None where they were not measured.

    A CORRECT label rests on all knowledge. An INCORRECT one rests on the knowledge that the rationale names last (it ends at the
    first contradiction), else on that of the last step that has any, and there on the sentences that cover most of it.
    """
    if judgment.label is Label.INCONCLUSIVE:
        return tuple(steps)
    decisive = {_key(q) for step in steps for q in step.knowledge.quotes}
    if judgment.label is Label.INCORRECT:
        decisive = {_key(q) for step in _deciding_steps(steps, judgment.rationale) for q in _main_quotes(step.knowledge)}
    scores = {"supported": judgment.p_supported, "contradicted": contradicted}
    return tuple(_with_scores(step, decisive, scores) for step in steps)


def _key(quote: Quote) -> tuple[str, int]:
    return quote.passage, quote.start


def _main_quotes(knowledge: Knowledge) -> list[Quote]:
    """Return the quote that covers most of each statement."""
    quotes = knowledge.quotes
    if knowledge.triplets:
        return [quotes[t.quote] for t in knowledge.triplets]
    return [max(quotes, key=lambda q: coverage(s.text, q.text)) for s in sentences(knowledge.text) if quotes]


def _deciding_steps(steps: Sequence[Step], rationale: str) -> list[Step]:
    named = [int(n) for match in _KNOWLEDGE_REFERENCE.finditer(rationale) for n in match.groups() if n]
    quoting = {n: step for n, step in enumerate(steps, 1) if step.knowledge.quotes}
    last = next((n for n in reversed(named) if n in quoting), max(quoting, default=0))
    return [quoting[last]] if quoting else []


def _with_scores(step: Step, decisive: Container[tuple[str, int]], scores: dict[str, float | None]) -> Step:
    quotes = tuple(q.model_copy(update=scores) if _key(q) in decisive else q for q in step.knowledge.quotes)
    return step.model_copy(update={"knowledge": step.knowledge.model_copy(update={"quotes": quotes})})


MIN_DECISIVE_PROBABILITY = 0.5
"""Probability from which a quote counts as supporting or contradicting."""
MAX_CHARACTERS_BEFORE, MAX_SCORE_DIFFERENCE = 300, 0.25
"""Characters of a sentence that is quoted with the next one, and difference of the probabilities of two that say the same."""
MIN_RELEVANCE = 0.34
"""Minimum share of the words in question for a quote to count as relevant."""


def evidence_for(segment: Span, judgment: Judgment, limit: int = 3) -> tuple[Evidence, ...]:
    """Pair a segment with the quotes that agree with its judgment, the most probable and relevant ones first.

    Quotes without probabilities are those that a label without one rests on: they agree with it.
    """
    passages = {p.id: p for s in judgment.steps for p in s.passages}
    quotes = {(q.passage, q.start): q for s in judgment.steps for q in s.knowledge.quotes}.values()
    found = []
    for quote in quotes:
        supports, probability = _decisive_side(quote, judgment.label)
        fits = judgment.label is not Label.INCONCLUSIVE and supports == (judgment.label is Label.CORRECT)
        if (probability is None or probability >= MIN_DECISIVE_PROBABILITY) and quote.relevance >= MIN_RELEVANCE and fits:
            start = _opening(quote, passages[quote.passage], set(content_words(segment.text)))
            if start < quote.start and _says_the_same(segment, quote, passages[quote.passage].text[start : quote.start], quotes):
                continue
            pair = _make_evidence(segment, quote, passages[quote.passage], supports, probability, start)
            found.append(((1.0 if probability is None else probability) * quote.relevance, pair))
    return tuple(pair for _, pair in sorted(found, key=lambda f: -f[0])[:limit])


def _decisive_side(quote: Quote, label: Label) -> tuple[bool, float | None]:
    """Tell whether a quote supports rather than contradicts, and how probably."""
    if quote.supported is None or quote.contradicted is None:
        return label is Label.CORRECT, None
    supports = quote.supported >= quote.contradicted
    return supports, quote.supported if supports else quote.contradicted


def _opening(quote: Quote, passage: Passage, wanted: AbstractSet[str]) -> int:
    """Return where a quote begins with the sentence that its pronoun refers to, if that one has words of a segment."""
    since = next((s.since for s in read_sentences(passage.text) if s.start == quote.start), quote.start)
    added = wanted & set(content_words(passage.text[since : quote.start])) - set(content_words(quote.text))
    return since if added and quote.start - since <= MAX_CHARACTERS_BEFORE else quote.start


def _says_the_same(segment: Span, quote: Quote, before: str, quotes: Iterable[Quote]) -> bool:
    """Tell whether a quote adds no word of a segment to the sentence before it, which is quoted with about the same score.

    One that the judgment rests on is never left out.
    """
    added = set(content_words(segment.text)) & set(content_words(quote.text)) - set(content_words(before))
    said = (q for q in quotes if q.passage == quote.passage and q.end <= quote.start and q.text in before)
    return not added and quote.relevance < 1 and any(_scores_are_close(q.supported, quote.supported) for q in said)


def _scores_are_close(one: float | None, other: float | None) -> bool:
    return one is other if one is None or other is None else abs(one - other) < MAX_SCORE_DIFFERENCE


def has_conflicting_quotes(judgments: Iterable[Judgment]) -> bool:
    """Tell whether probable and relevant quotes both support and contradict."""
    quotes = [q for j in judgments for s in j.steps for q in s.knowledge.quotes if q.relevance >= MIN_RELEVANCE]
    return any((q.supported or 0.0) >= MIN_DECISIVE_PROBABILITY for q in quotes) and any(
        (q.contradicted or 0.0) >= MIN_DECISIVE_PROBABILITY for q in quotes
    )


def _make_evidence(
    segment: Span, quote: Quote, passage: Passage, supports: bool, probability: float | None, opening: int
) -> Evidence:
    start, end = _overlap_offsets(segment, quote.text, supports)
    return Evidence(
        response_start=start, response_end=end, relation="supports" if supports else "contradicts", probability=probability,
        passage=passage.id, title=passage.title, quote=passage.text[opening : quote.end], start=opening, end=quote.end,
        document=passage.document, document_start=passage.start + opening,
    )  # fmt: skip


def _overlap_offsets(segment: Span, quote: str, supports: bool) -> tuple[int, int]:
    """Return the span of the segment that a quote concerns: the shared words, or where it contradicts, the others."""
    quoted = set(content_words(quote))
    tokens = [w for w in words(segment.text) if content_words(w.text)]
    chosen = [w for w in tokens if bool(quoted.intersection(content_words(w.text))) == supports]
    if not chosen:
        return segment.start, segment.end
    return segment.start + chosen[0].start, segment.start + chosen[-1].end


def keep_quoted_passages(judgment: Judgment) -> Judgment:
    """Return the judgment with each quote as a passage of its own in place of its passages.

    Many claims are judged by the same whole sources, which a verdict should not hold once for each claim.
    """
    steps = []
    for step in judgment.steps:
        passages = {p.id: p for p in step.passages}
        cut = {(q.passage, q.start): cut_passage(passages[q.passage], q.start, q.end) for q in step.knowledge.quotes}
        quotes = tuple(
            q.model_copy(update={"passage": cut[q.passage, q.start].id, "start": 0, "end": len(q.text)})
            for q in step.knowledge.quotes
        )
        known = step.knowledge.model_copy(update={"quotes": quotes})
        steps.append(step.model_copy(update={"passages": tuple(cut.values()), "knowledge": known}))
    return judgment.model_copy(update={"steps": tuple(steps)})


def cut_passage(passage: Passage, start: int, end: int) -> Passage:
    """Return characters of a passage as a passage of their own."""
    place = {"start": passage.start + start, "end": passage.start + end}
    return passage.model_copy(update={"id": f"{passage.id}:{start}", "text": passage.text[start:end], **place})
