"""Rewording without a language model: unsupported details are replaced by what the sources have in their place.

A date, number or name that a quote of the source does not have is replaced by one of the same type that it has. Each result is
a proposal: the small verifier ranks them, and the detector decides.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from knowhalu.methods.revise.edits import ProposedRewrite, RewriteInput
from knowhalu.requests import Conversation, Entail, EntailmentPair, ask
from knowhalu.text.entities import TypedSpan, typed_spans
from knowhalu.text.overlap import coverage, text_facts
from knowhalu.text.quantities import find_dates, missing_date_share, number_value
from knowhalu.text.sentences import STOPWORDS, sentences, stem, words
from knowhalu.types import Passage

MIN_CONTEXT_COVERAGE = 0.5
"""Share of the sentence's other words that a quote must have, with its title, to be about the same matter."""
MIN_SUPPORT = 0.5
"""Support by its quote from which a wording is proposed."""
MAX_CANDIDATES = 16
"""Wordings that the verifier reads at most."""
CONTEXT_WORDS = 3
"""Words on each side of a span that are compared."""


REPLACEABLE_TYPES = frozenset("date weekday month year number money percent ordinal score name".split())


class SubstitutionCandidate(NamedTuple):
    """A wording, the quote that it was made by, and how well the place fits."""

    text: str
    quote: str
    fit: float


class SubstitutionRewriter:
    """Propose wordings by substitution, ranked by the verifier."""

    name = "encoder"

    def propose(
        self, fault: RewriteInput, sources: Sequence[Passage], refused: Sequence[str]
    ) -> Conversation[tuple[ProposedRewrite, ...]]:
        """Propose wordings that their quote supports by itself, and better than it supports the sentence."""
        candidates = [c for c in substitution_candidates(fault.sentence, sources) if c.text not in refused][:MAX_CANDIDATES]
        if not candidates:
            return ()
        pairs = [EntailmentPair(c.quote, text) for c in candidates for text in (c.text, fault.sentence)]
        scores = yield from ask(Entail(tuple(pairs)))
        read = zip(candidates, scores[::2], scores[1::2], strict=True)
        better = [(new.supported, c.text) for c, new, old in read if new.supported > max(MIN_SUPPORT, old.supported)]
        return tuple(ProposedRewrite(text, "substituted") for _, text in sorted(better, key=lambda pair: -pair[0]))


def substitution_candidates(sentence: str, sources: Sequence[Passage]) -> list[SubstitutionCandidate]:
    """Return all wordings by substitution, each once, the best fitting first."""
    source_text = " ".join(str(p) for p in sources)
    replaceable = [s for s in typed_spans(sentence) if s.type in REPLACEABLE_TYPES]
    best: dict[str, SubstitutionCandidate] = {}
    for quote in dict.fromkeys(s.text for p in sources for s in sentences(p.text)):
        chosen: dict[TypedSpan, str] = {}
        for old in replaceable:
            fits = _score_replacements(sentence, old, quote, is_rare=not is_mentioned(old, source_text))
            for new, fit in fits.items():
                text = _substitute(sentence, {old: new})
                if text not in best or best[text].fit < fit:
                    best[text] = SubstitutionCandidate(text, quote, fit)
            if fits:
                chosen[old] = max(fits, key=fits.__getitem__)
        if len(chosen) > 1:
            text = _substitute(sentence, chosen)
            best.setdefault(text, SubstitutionCandidate(text, quote, 0.0))
    return sorted(best.values(), key=lambda c: -c.fit)


def _score_replacements(sentence: str, old: TypedSpan, quote: str, *, is_rare: bool) -> dict[str, float]:
    """Return the spans of a quote that can replace a span of the sentence, and how well they fit.

    The quote must share the rest of the sentence, and not the span. A span that no source has (`is_rare`) is replaced where one
    neighbouring word is equal; one that another part of the sources has, only by a span with the same unit, or with equal words
    on both sides.
    """
    rest = sentence[: old.start] + " " + sentence[old.end :]
    near = coverage(rest, quote)
    if near < MIN_CONTEXT_COVERAGE or is_mentioned(old, quote):
        return {}
    fits = {}
    for new in typed_spans(quote):
        fits_unit = not new.unit or not old.unit or new.unit == old.unit
        if new.type != old.type or not fits_unit or is_mentioned(new, sentence):
            continue
        beside = _matching_sides(sentence, old, quote, new)
        same_unit = bool(old.unit) and old.unit == new.unit
        if beside + same_unit >= (1 if is_rare else 2):
            fits[new.text] = near + beside + same_unit + is_rare
    return fits


def is_mentioned(span: TypedSpan, text: str) -> bool:
    """Tell whether a text has what a span names: the date, the number, or all words of the name."""
    if span.type == "date":
        return bool(find_dates(text)) and missing_date_share(span.text, text) == 0
    values = {n for w in words(span.text) if (n := number_value(w.text)) is not None}
    if values and span.type != "name":
        return values <= text_facts(text).numbers
    return set(_stems(span.text)) <= set(_stems(text))


def _matching_sides(sentence: str, old: TypedSpan, quote: str, new: TypedSpan) -> int:
    """Count the sides on which two spans have an equal word next to them, or a shared word close to them."""
    left = _stems(sentence[: old.start])[::-1], _stems(quote[: new.start])[::-1]
    right = _stems(sentence[old.end :]), _stems(quote[new.end :])
    return sum(_contexts_match(one, other) for one, other in (left, right))


def _stems(text: str) -> list[str]:
    return [stem(w.text.lower()) for w in words(text)]


def _contexts_match(one: list[str], other: list[str]) -> bool:
    """Tell whether the next words are equal, or words that carry meaning are near to both."""
    if one[:1] == other[:1]:
        return bool(one)
    near = {w for w in one[:CONTEXT_WORDS] if w not in STOPWORDS}
    return bool(near.intersection(other[:CONTEXT_WORDS]))


def _substitute(sentence: str, new: Mapping[TypedSpan, str]) -> str:
    """Replace spans of a sentence; a capital at its start is kept."""
    text = sentence
    for old in sorted(new, reverse=True):
        text = text[: old.start] + new[old] + text[old.end :]
    return text[:1].upper() + text[1:] if sentence[:1].isupper() else text
