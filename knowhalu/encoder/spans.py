"""From marked tokens to marked words: which characters of a claim its source does not bear out."""

import json
from collections.abc import Sequence
from pathlib import Path

from knowhalu.errors import ModelError
from knowhalu.io.fitted_files import refuse_other_weights
from knowhalu.requests import Doubtful
from knowhalu.text.sentences import Span, words

DOUBTED = 0.5
"""Probability from which a word is marked where no other border was fitted."""


def border(folder: Path) -> float:
    """Return the probability from which a verifier marks a word, as `marks.json` of its folder says; `DOUBTED` without one.

    Raises ModelError where the file cannot be read or was fitted to other weights.
    """
    path = folder / "marks.json"
    if not path.is_file():
        return DOUBTED
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        found = float(data["border"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path}: cannot read the border of marks ({error!r}); fit it with scripts/fit_marks.py") from error
    if not 0 < found < 1:
        raise ModelError(f"{path}: a border of {found} marks nothing or all; fit it with scripts/fit_marks.py")
    refuse_other_weights(path, data, "scripts/fit_marks.py")
    return found


def word_doubts(claim: str, tokens: Sequence[tuple[int, int]], probabilities: Sequence[float]) -> list[float]:
    """Return for every word of a claim the probability that it is not borne out: that of its most doubtful token.

    `tokens` are the characters of the claim's tokens, `probabilities` theirs.
    """
    pairs = list(zip(tokens, probabilities, strict=True))
    return [max((p for (a, b), p in pairs if a < w.end and w.start < b), default=0.0) for w in words(claim)]


def doubtful(claim: str, doubts: Sequence[float], border: float = DOUBTED) -> tuple[Doubtful, ...]:
    """Return the stretches of a claim whose words are marked: neighbouring ones together, with the highest of their values.

    `doubts` are the probabilities of its words, which are marked from `border` on; what is said of them is shifted in its odds,
    so that a word on the border is as likely as not.
    """
    found: list[Doubtful] = []
    before = -2
    for number, (word, p) in enumerate(zip(words(claim), doubts, strict=True)):
        if p < border:
            continue
        p = p * (1 - border) / (p * (1 - border) + (1 - p) * border)
        found.append(_grown(found.pop(), word, p) if number == before + 1 else Doubtful(word.start, word.end, p))
        before = number
    return tuple(found)


def _grown(place: Doubtful, word: Span, probability: float) -> Doubtful:
    return Doubtful(place.start, word.end, max(place.probability, probability))
