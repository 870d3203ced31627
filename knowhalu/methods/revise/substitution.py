"""Rewording without a language model: what the sources do not say is replaced by what they say in its place.

A date, number or name of the sentence that a quote of the source does not have gives way to one of the same type that it has.
Each result is a proposal only; the small verifier ranks them, and the detector decides.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from knowhalu.requests import Entail, Hypothesis, Probabilities, Steps
from knowhalu.results import Fault, Proposal
from knowhalu.text.entities import Stretch, stretches
from knowhalu.text.overlap import coverage, facts
from knowhalu.text.quantities import dates, dates_missing, number_of
from knowhalu.text.sentences import STOPWORDS, sentences, stem, words
from knowhalu.types import Passage

NEAR = 0.5
"""Share of the sentence's other words that a quote must have, with its title, to speak of the same."""
BORNE_OUT = 0.5
"""Support by its quote from which a wording is proposed."""
READS = 16
"""Wordings that the verifier reads at most."""
AROUND = 3
"""Words on each side of a stretch that are compared."""


REPLACED = frozenset("date weekday month year number money percent ordinal score name".split())


class Candidate(NamedTuple):
    """A wording, the quote that it was made by, and how well the place fits."""

    text: str
    quote: str
    fit: float


class Substitution:
    """Propose wordings by substitution, ranked by the verifier."""

    name = "encoder"

    def propose(self, fault: Fault, sources: Sequence[Passage], refused: Sequence[str]) -> Steps[tuple[Proposal, ...]]:
        """Propose wordings that the quote they come from bears out by itself, and better than the sentence as it is."""
        found = [c for c in candidates(fault.sentence, sources) if c.text not in refused][:READS]
        if not found:
            return ()
        pairs = [Hypothesis(c.quote, text) for c in found for text in (c.text, fault.sentence)]
        scores: list[Probabilities] = yield Entail(tuple(pairs))
        read = zip(found, scores[::2], scores[1::2], strict=True)
        better = [(new.supported, c.text) for c, new, old in read if new.supported > max(BORNE_OUT, old.supported)]
        return tuple(Proposal(text, "substituted") for _, text in sorted(better, key=lambda pair: -pair[0]))


def candidates(sentence: str, sources: Sequence[Passage]) -> list[Candidate]:
    """Return all wordings by substitution, each once, the best fitting first."""
    told = " ".join(str(p) for p in sources)
    here = [s for s in stretches(sentence) if s.type in REPLACED]
    best: dict[str, Candidate] = {}
    for quote in dict.fromkeys(s.text for p in sources for s in sentences(p.text)):
        chosen: dict[Stretch, str] = {}
        for old in here:
            fits = _fitting(sentence, old, quote, is_rare=not is_told(old, told))
            for new, fit in fits.items():
                text = _put(sentence, {old: new})
                if text not in best or best[text].fit < fit:
                    best[text] = Candidate(text, quote, fit)
            if fits:
                chosen[old] = max(fits, key=fits.__getitem__)
        if len(chosen) > 1:
            text = _put(sentence, chosen)
            best.setdefault(text, Candidate(text, quote, 0.0))
    return sorted(best.values(), key=lambda c: -c.fit)


def _fitting(sentence: str, old: Stretch, quote: str, *, is_rare: bool) -> dict[str, float]:
    """Return what a quote has in the place of a stretch, and how well it fits.

    The quote must speak of the rest of the sentence, and not of the stretch. What no source tells (`is_rare`) gives way to what
    stands beside one equal word; what another part of the sources tells, only to what counts the same or has equal words on
    both sides.
    """
    rest = sentence[: old.start] + " " + sentence[old.end :]
    near = coverage(rest, quote)
    if near < NEAR or is_told(old, quote):
        return {}
    found = {}
    for new in stretches(quote):
        if not _may_stand_for(new, old) or is_told(new, sentence):
            continue
        beside = _beside(sentence, old, quote, new)
        same_unit = bool(old.unit) and old.unit == new.unit
        if beside + same_unit >= (1 if is_rare else 2):
            found[new.text] = near + beside + same_unit + is_rare
    return found


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


def _beside(sentence: str, old: Stretch, quote: str, new: Stretch) -> int:
    """Count the sides on which two stretches stand by the same: by an equal word next to them, or by one close to them."""
    left = _words(sentence[: old.start])[::-1], _words(quote[: new.start])[::-1]
    right = _words(sentence[old.end :]), _words(quote[new.end :])
    return sum(_meet(mine, theirs) for mine, theirs in (left, right))


def _words(text: str) -> list[str]:
    return [stem(w.text.lower()) for w in words(text)]


def _meet(mine: list[str], theirs: list[str]) -> bool:
    """Tell whether the next words are equal, or words that carry meaning are near to both."""
    if mine[:1] == theirs[:1]:
        return bool(mine)
    near = {w for w in mine[:AROUND] if w not in STOPWORDS}
    return bool(near.intersection(theirs[:AROUND]))


def _put(sentence: str, new: Mapping[Stretch, str]) -> str:
    """Replace stretches of a sentence; it begins with a capital where it did."""
    text = sentence
    for old in sorted(new, reverse=True):
        text = text[: old.start] + new[old] + text[old.end :]
    return text[:1].upper() + text[1:] if sentence[:1].isupper() else text
