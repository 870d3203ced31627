"""Rewording without a language model: what the sources do not say is replaced by what they say in its place.

A date, number or name of the sentence that a quote of the source does not have gives way to one of the same type that it has.
Each result is a proposal only; the small verifier ranks them, and the detector decides.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from knowhalu.reasoners.features import coverage, facts
from knowhalu.reasoners.quantities import dates, dates_missing, number_of
from knowhalu.reasoners.stretches import Stretch, stretches
from knowhalu.revisions import Fault, Proposal
from knowhalu.steps import Entail, Hypothesis, Probabilities, Steps
from knowhalu.text import content_words, sentences, stem, words
from knowhalu.types import Passage

QUOTES = 6
"""Sentences of the sources, the nearest in words, from which stretches are taken."""
NEAR = 0.2
"""Share of the sentence's words that a quote must have to speak of the same."""
READS = 16
"""Proposals that the verifier reads at most."""
AROUND = 4
"""Words on each side of a stretch that are compared."""


class Candidate(NamedTuple):
    """A wording, the quote that it was made by, and how well the place fits."""

    text: str
    quote: str
    fit: float


class Substitution:
    """Propose wordings by substitution, ranked by the verifier."""

    name = "encoder"

    def propose(self, fault: Fault, sources: Sequence[Passage], refused: Sequence[str]) -> Steps[tuple[Proposal, ...]]:
        """Propose wordings that the quote they come from supports better than the sentence as it is, best first."""
        found = [c for c in candidates(fault.sentence, sources) if c.text not in refused][:READS]
        if not found:
            return ()
        quotes = list(dict.fromkeys(c.quote for c in found))
        pairs = [*(Hypothesis(q, fault.sentence) for q in quotes), *(Hypothesis(c.quote, c.text) for c in found)]
        scores: list[Probabilities] = yield Entail(tuple(pairs))
        was = {q: s.supported for q, s in zip(quotes, scores[: len(quotes)], strict=True)}
        ranked = sorted(zip(found, scores[len(quotes) :], strict=True), key=lambda pair: -pair[1].supported)
        return tuple(Proposal(c.text, "substituted") for c, s in ranked if s.supported > was[c.quote])


def candidates(sentence: str, sources: Sequence[Passage]) -> list[Candidate]:
    """Return all wordings by substitution, each once, the best fitting first."""
    quotes = {s.text: coverage(sentence, s.text) for p in sources for s in sentences(p.text)}
    nearest = sorted((q for q, c in quotes.items() if c >= NEAR and q != sentence), key=lambda q: -quotes[q])[:QUOTES]
    told_anywhere = " ".join(str(p) for p in sources)
    best: dict[str, Candidate] = {}
    for quote in nearest:
        for made in _by_quote(sentence, quote, told_anywhere):
            whole = made._replace(fit=made.fit + quotes[quote])
            if made.text != sentence and (made.text not in best or best[made.text].fit < whole.fit):
                best[made.text] = whole
    return sorted(best.values(), key=lambda c: -c.fit)


def _by_quote(sentence: str, quote: str, sources: str) -> Iterator[Candidate]:
    """Put what a quote has in the place of what it has not: one stretch alone, all together, or two names exchanged."""
    here, there = stretches(sentence), stretches(quote)
    chosen: dict[Stretch, Stretch] = {}
    for old in here:
        if is_told(old, quote):
            continue
        fits = {new: _fit(sentence, old, quote, new) for new in there if _may_stand_for(new, old) and not is_told(new, sentence)}
        rare = 0.0 if is_told(old, sources) else 1.0
        for new, fit in fits.items():
            yield Candidate(_put(sentence, {old: new.text}), quote, rare + fit)
        if fits:
            chosen[old] = max(fits, key=fits.__getitem__)
    if len(chosen) > 1:
        yield Candidate(_put(sentence, {old: new.text for old, new in chosen.items()}), quote, 1.0)
    for one, other in combinations([s for s in here if s.type == "name" and is_told(s, quote)], 2):
        yield Candidate(_put(sentence, {one: other.text, other: one.text}), quote, 0.0)


def _may_stand_for(new: Stretch, old: Stretch) -> bool:
    return new.type == old.type and (not new.unit or not old.unit or new.unit == old.unit)


def is_told(stretch: Stretch, text: str) -> bool:
    """Tell whether a text has what a stretch names: the date, the number, or all words of the name."""
    if stretch.type == "date":
        return bool(dates(text)) and dates_missing(stretch.text, text) == 0
    values = {n for w in words(stretch.text) if (n := number_of(w.text)) is not None}
    if values and stretch.type != "name":
        return values <= facts(text).numbers
    return {stem(w.text.lower()) for w in words(stretch.text)} <= {stem(w.text.lower()) for w in words(text)}


def _fit(sentence: str, old: Stretch, quote: str, new: Stretch) -> float:
    """Return how alike the words around two stretches are, and whether they count the same."""
    mine, theirs = _around(sentence, old), _around(quote, new)
    return len(mine & theirs) / max(1, len(mine)) + (0.5 if old.unit and old.unit == new.unit else 0.0)


def _around(text: str, stretch: Stretch) -> set[str]:
    before = content_words(text[: stretch.start])[-AROUND:]
    return {*before, *content_words(text[stretch.end :])[:AROUND]}


def _put(sentence: str, new: dict[Stretch, str]) -> str:
    """Replace stretches of a sentence; it begins with a capital where it did."""
    text = sentence
    for old in sorted(new, reverse=True):
        text = text[: old.start] + new[old] + text[old.end :]
    return text[:1].upper() + text[1:] if sentence[:1].isupper() else text
