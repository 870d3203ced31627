"""From marked tokens to marked words: which characters of a claim its source does not bear out."""

from collections.abc import Sequence

from knowhalu.steps import Doubtful
from knowhalu.text import Span, words

DOUBTED = 0.5
"""Probability from which a word is marked."""


def doubtful(claim: str, tokens: Sequence[tuple[int, int]], probabilities: Sequence[float]) -> tuple[Doubtful, ...]:
    """Return the stretches of a claim whose words are marked: neighbouring ones together, with the highest of their values.

    `tokens` are the characters of the claim's tokens, `probabilities` those of not being borne out; a word counts by its most
    doubtful token.
    """
    found: list[Doubtful] = []
    before = -2
    for number, word in enumerate(words(claim)):
        p = max((p for (a, b), p in zip(tokens, probabilities, strict=True) if a < word.end and word.start < b), default=0.0)
        if p < DOUBTED:
            continue
        found.append(_grown(found.pop(), word, p) if number == before + 1 else Doubtful(word.start, word.end, p))
        before = number
    return tuple(found)


def _grown(place: Doubtful, word: Span, probability: float) -> Doubtful:
    return Doubtful(place.start, word.end, max(place.probability, probability))
