"""From marked tokens to marked words: which characters of a claim its source does not bear out."""

from collections.abc import Sequence

from knowhalu.steps import Doubtful
from knowhalu.text import Span, words

DOUBTED = 0.5
"""Probability from which a word is marked."""


def word_doubts(claim: str, tokens: Sequence[tuple[int, int]], probabilities: Sequence[float]) -> list[float]:
    """Return for every word of a claim the probability that it is not borne out: that of its most doubtful token.

    `tokens` are the characters of the claim's tokens, `probabilities` theirs.
    """
    pairs = list(zip(tokens, probabilities, strict=True))
    return [max((p for (a, b), p in pairs if a < w.end and w.start < b), default=0.0) for w in words(claim)]


def doubtful(claim: str, doubts: Sequence[float]) -> tuple[Doubtful, ...]:
    """Return the stretches of a claim whose words are marked: neighbouring ones together, with the highest of their values.

    `doubts` are the probabilities of its words.
    """
    found: list[Doubtful] = []
    before = -2
    for number, (word, p) in enumerate(zip(words(claim), doubts, strict=True)):
        if p < DOUBTED:
            continue
        found.append(_grown(found.pop(), word, p) if number == before + 1 else Doubtful(word.start, word.end, p))
        before = number
    return tuple(found)


def _grown(place: Doubtful, word: Span, probability: float) -> Doubtful:
    return Doubtful(place.start, word.end, max(place.probability, probability))
