"""What a label rests on: sentences of the sources that support or contradict a claim, alone or read together."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from knowhalu.methods.common.attribution import MIN_ADDED_COVERAGE, MIN_DECISIVE_PROBABILITY, MIN_RELEVANCE, cut_passage
from knowhalu.methods.common.evidence import ReadSentence, wanted_words
from knowhalu.methods.common.judgment_model import SETTLED, Reading, SupportBySteps
from knowhalu.methods.common.sources import SourceSentence, given_passages, source_sentences
from knowhalu.requests import Probabilities
from knowhalu.text.findings import Findings, sentences_of
from knowhalu.text.overlap import coverage, found_share, name_words, text_facts
from knowhalu.text.probabilities import require_measured
from knowhalu.text.sentences import content_words, sentences
from knowhalu.text.wordlists import MONTHS, NATIONALITIES, WEEKDAYS
from knowhalu.types import KnowledgeForm, Passage, Quote, Sample, Step

MAX_TOGETHER, MIN_ADDED_WORDS = 3, 2
"""Sentences that a label rests on together, and words of the claim that suffice for one more."""
MIN_NAMED_SHARE = 0.5
"""Minimum share of a claim's names for a sentence to be about what the claim is about."""
_COMMON_NAMES = frozenset(content_words(" ".join((*MONTHS, *WEEKDAYS, *NATIONALITIES))))
"""Names that connect no two sentences."""
MIN_FOUND_SHARE = 0.8
"""Share of the words of a text as it was read that a sentence must have to be where it was read."""


class ReadQuote(NamedTuple):
    """A quoted sentence: P(supported) and P(contradicted), and its share of the claim's words.

    `context` is the sentence as the verifier reads it, with its title and what it refers back to; `own` is its share without.
    `named` tells how many of the claim's names it has, as a share of those that the best sentence has; at least
    `MIN_NAMED_SHARE` where it has another name of such a sentence, as the director beside a film.
    """

    place: SourceSentence
    context: str
    supported: float
    contradicted: float
    share: float
    own: float
    named: float = 1.0

    @property
    def speaks(self) -> bool:
        """Tell whether the sentence is about what the claim is about; a name that it contradicts it need not have."""
        return self.named >= MIN_NAMED_SHARE


class Ground(NamedTuple):
    """The sentences that a label rests on, the probabilities of the claim by all of them, and how they were read.

    Alone: the verifier read one of them; together: with others; in steps: one after the other, by the entity `bridge`; compared:
    rules decided by them.
    """

    places: tuple[SourceSentence, ...]
    scores: Probabilities
    how: Literal["alone", "together", "in steps", "compared"]
    bridge: str = ""


def read_quotes(part: Sample, steps: Sequence[Step], names: frozenset[str]) -> list[ReadQuote]:
    """Return the quotes of all steps, each once, those with most of the claim's words first; `names` are those of the claim."""
    found: dict[tuple[str, int], ReadQuote] = {}
    topics = (part.response, part.question or part.response)
    for step in steps:
        places = {_key(s): s for s in source_sentences(step.passages, part.documents)}
        for q in step.knowledge.quotes:
            place = places[q.passage, q.start]
            context = f"{place.passage.title} {place.view}"
            share, own = (max(coverage(topic, text) for topic in topics) for text in (context, q.text))
            scores = require_measured(q.supported), require_measured(q.contradicted)
            found.setdefault(_key(place), ReadQuote(place, context, *scores, share, own))
    return _with_names(part, sorted(found.values(), key=lambda r: (-r.share, -r.own)), names)


def _with_names(part: Sample, read: Sequence[ReadQuote], names: frozenset[str]) -> list[ReadQuote]:
    """Return quotes with the share of the claim's names; a word that only begins sentences is none."""
    firm = {
        word for text in (part.response, part.question or "", *(r.place.view for r in read)) for word in text_facts(text).names
    }
    names &= firm.union(*(content_words(r.place.passage.title) for r in read))
    words = [set(content_words(r.context)) for r in read]
    most = max((len(names & w) for w in words), default=0)
    shares = [len(names & w) / most if most else 1.0 for w in words]
    source = " ".join(r.context for r in read)
    others = [name_words(r.context, source) - names - _COMMON_NAMES for r in read]
    beside = {word for found, share in zip(others, shares, strict=True) if share == 1 for word in found}
    return [
        r._replace(named=max(share, MIN_NAMED_SHARE if found & beside else 0.0))
        for r, share, found in zip(read, shares, others, strict=True)
    ]


def supporting_quote(read: Iterable[ReadQuote]) -> ReadQuote | None:
    """Return the nearest sentence that supports; one that has few of the words supports something else."""
    sure = [r for r in read if r.speaks and r.supported >= MIN_DECISIVE_PROBABILITY and r.supported > r.contradicted]
    return max((r for r in sure if r.share >= MIN_RELEVANCE), key=lambda r: r.share * r.supported, default=None)


def contradicting_quote(read: Sequence[ReadQuote]) -> ReadQuote | None:
    """Return the nearest sentence that contradicts; one far from the nearest of all contradicts something else."""
    sure = [r for r in read if r.speaks and r.contradicted >= MIN_DECISIVE_PROBABILITY and r.contradicted > r.supported]
    near = [r for r in sure if r.share >= MIN_RELEVANCE and not _is_far(r, read)]
    return max(near, key=lambda r: r.share, default=None)


def _is_far(quote: ReadQuote, read: Iterable[ReadQuote]) -> bool:
    return quote.own < max(r.own for r in read) / 2


class Texts(NamedTuple):
    """What a claim was read by: a window, the sentences that were joined, and the passages that they come from."""

    part: Sample
    steps: Sequence[Step]
    form: KnowledgeForm
    window: str
    joined: Sequence[ReadSentence]

    def locate(self, texts: Iterable[str]) -> list[SourceSentence]:
        """Return the sentences that texts come from, each once; a window may go beyond the passages that were retrieved."""
        here = self._candidates({p.id: p for step in self.steps for p in step.passages}.values())
        beyond: list[_Candidate] | None = None
        found: dict[tuple[str, int], SourceSentence] = {}
        for text in texts:
            place = _find(text, here)
            if place is None and self.part.documents:
                beyond = self._candidates(given_passages(self.part)) if beyond is None else beyond
                place = _find(text, beyond)
                place = place and _apart(place)
            if place is not None:
                found.setdefault(_key(place), place)
        return list(found.values())

    def _candidates(self, passages: Iterable[Passage]) -> list["_Candidate"]:
        read = [(s, s.shaped(self.form)) for s in source_sentences(passages, self.part.documents)]
        return [_Candidate(s, shaped, set(content_words(shaped)), set(content_words(s.text))) for s, shaped in read]

    def nearest(self, first: Iterable[str], among: Iterable[str], more: int = MIN_ADDED_WORDS) -> list[SourceSentence]:
        """Return the sentences `first`, and those of texts that have most of the claim's other words.

        A sentence is added for `more` words, fewer of a short claim, or for the last ones.
        """
        chosen, near = self.locate(first), self.locate(s.text for text in among for s in sentences(text))
        titles = {word for s in near for word in content_words(s.passage.title)}
        missing = wanted_words(self.part) - titles
        least = min(more, MIN_ADDED_COVERAGE * len(missing))
        missing = missing.difference(*(content_words(s.text) for s in chosen))
        while near and len(chosen) < MAX_TOGETHER:
            best = max(near, key=lambda s: len(missing & set(content_words(s.text))))
            added = missing & set(content_words(best.text))
            if not added or (chosen and len(added) < least and added != missing):
                break
            chosen.append(best)
            near.remove(best)
            missing -= added
        return chosen


class _Candidate(NamedTuple):
    place: SourceSentence
    shaped: str
    read: set[str]
    own: set[str]


def _find(text: str, candidates: Iterable[_Candidate]) -> SourceSentence | None:
    """Return the sentence that was read as a text, or else the one that has its words and fewest others."""
    words = set(content_words(text))
    near = [c for c in candidates if c.shaped == text or (words and len(words & c.read) >= MIN_FOUND_SHARE * len(words))]
    best = max(near, key=lambda c: (c.shaped == text, found_share(words, c.own), len(words & c.read)), default=None)
    return best.place if best else None


def _apart(place: SourceSentence) -> SourceSentence:
    """Return a sentence of a whole document as that of a passage of its own."""
    passage = cut_passage(place.passage, place.start, place.end)
    return place._replace(passage=passage, start=0, end=len(place.text))


def supporting_ground(
    texts: Texts, read: Sequence[ReadQuote], reading: Reading, window: Probabilities, found: Findings
) -> Ground | None:
    """Return what a supported claim rests on: two steps, a calculation, one sentence, or else several that were read together."""
    by = reading.bridged
    if by and by.settles and by.supported > window.supported and (places := texts.locate(by.sentences)):
        return Ground(tuple(places), Probabilities(by.supported, 0.0, 1 - by.supported), "in steps", by.name)
    calculated = [s for d in found.confirmed for s in sentences_of(d)]
    if found.settled and (places := texts.locate(calculated)):
        return Ground(tuple(places), Probabilities(SETTLED, 0.0, 1 - SETTLED), "compared")
    if (best := supporting_quote(read)) is not None:
        return _alone(best)
    joined = reading.scores.joined
    joined = joined if joined and joined.supported > window.supported else None
    scores = joined or window
    if scores.supported < MIN_DECISIVE_PROBABILITY:
        return None
    places = (
        texts.nearest(calculated, (r.view for r in texts.joined), more=1) if joined else texts.nearest(calculated, [texts.window])
    )
    return Ground(tuple(places), scores, "together") if places else None


def rule_ground(texts: Texts, sentence: str, supported: float) -> Ground | None:
    """Return the sentence or row by which a rule decided on a claim of P(supported); None where it read no single one."""
    places = texts.locate([sentence] if sentence else [])
    return Ground(tuple(places), Probabilities(supported, 1 - supported, 0.0), "compared") if places else None


def opposing_ground(
    texts: Texts, read: Sequence[ReadQuote], found: Findings, supported: float, by: SupportBySteps | None = None
) -> Ground | None:
    """Return what a claim of P(supported) fails by: two steps, what rules found, or a sentence that contradicts it."""
    if by and by.refutes and (steps := texts.locate(by.sentences)):
        return Ground(tuple(steps), Probabilities(supported, 1 - supported, 0.0), "in steps", by.name)
    places = texts.locate(found.opposed)
    aside = {_key(r.place) for r in read if not r.speaks}
    if any(_key(s) not in aside for s in places):
        return Ground(tuple(places), Probabilities(supported, 1 - supported, 0.0), "compared")
    worst = contradicting_quote(read)
    return _alone(worst) if worst is not None else None


def _alone(quote: ReadQuote) -> Ground:
    rest = max(0.0, 1 - quote.supported - quote.contradicted)
    return Ground((quote.place,), Probabilities(quote.supported, quote.contradicted, rest), "alone")


def rest_on(steps: Sequence[Step], read: Sequence[ReadQuote], ground: Ground | None) -> tuple[Step, ...]:
    """Give the sentences that a label rests on its probabilities and relevance 1.

    Others are about another thing where they lack a name, or contradict from afar: they get relevance 0.
    """
    aside = [r for r in read if r.named < 1 or (r.contradicted > r.supported and _is_far(r, read))]
    updates = {_key(r.place): {"relevance": 0.0} for r in aside}
    missing: dict[tuple[str, int], SourceSentence] = {}
    if ground is not None:
        scores = {"supported": ground.scores.supported, "contradicted": ground.scores.contradicted, "relevance": 1.0}
        updates |= {_key(place): scores for place in ground.places}
        quoted = {(q.passage, q.start) for step in steps for q in step.knowledge.quotes}
        missing = {_key(place): place for place in ground.places if _key(place) not in quoted}
    done: list[Step] = []
    for step in steps:
        quotes = [q.model_copy(update=updates.get((q.passage, q.start), {})) for q in step.knowledge.quotes]
        passages = {p.id: p for p in step.passages}
        for key, s in list(missing.items()):
            if s.passage.id in passages or step is steps[-1]:
                quotes.append(Quote(passage=s.passage.id, text=s.text, start=s.start, end=s.end, **updates[key]))
                passages.setdefault(s.passage.id, s.passage)
                del missing[key]
        known = step.knowledge.model_copy(update={"quotes": tuple(quotes)})
        done.append(step.model_copy(update={"passages": tuple(passages.values()), "knowledge": known}))
    return tuple(done)


def _key(place: SourceSentence) -> tuple[str, int]:
    return place.passage.id, place.start
