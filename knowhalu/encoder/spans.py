"""From marked tokens to marked words: which characters of a claim its source does not bear out."""

import json
from collections.abc import Sequence
from pathlib import Path

from knowhalu.errors import ModelError
from knowhalu.io.fitted_files import check_fitted_weights
from knowhalu.requests import UnsupportedSpan
from knowhalu.text.sentences import Span, words

DEFAULT_THRESHOLD = 0.5
"""Probability from which a word is marked where no other border was fitted."""


def read_span_threshold(folder: Path) -> float:
    """Return the threshold for unsupported words from `marks.json` of a verifier's folder; `DEFAULT_THRESHOLD` without one.

    Raises ModelError where the file cannot be read or was fitted to other weights.
    """
    path = folder / "marks.json"
    if not path.is_file():
        return DEFAULT_THRESHOLD
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        found = float(data["border"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path}: cannot read the border of marks ({error!r}); fit it with scripts/fit_marks.py") from error
    if not 0 < found < 1:
        raise ModelError(f"{path}: a border of {found} marks nothing or all; fit it with scripts/fit_marks.py")
    check_fitted_weights(path, data, "scripts/fit_marks.py")
    return found


def unsupported_word_probabilities(claim: str, tokens: Sequence[tuple[int, int]], probabilities: Sequence[float]) -> list[float]:
    """Return for every word of a claim the probability that it is not borne out: that of its most doubtful token.

    `tokens` are the characters of the claim's tokens, `probabilities` theirs.
    """
    pairs = list(zip(tokens, probabilities, strict=True))
    return [max((p for (a, b), p in pairs if a < w.end and w.start < b), default=0.0) for w in words(claim)]


def unsupported_spans(claim: str, doubts: Sequence[float], border: float = DEFAULT_THRESHOLD) -> tuple[UnsupportedSpan, ...]:
    """Return the stretches of a claim whose words are marked: neighbouring ones together, with the highest of their values.

    `doubts` are the probabilities of its words, which are marked from the threshold on. Their log-odds are shifted so that the
    threshold is a half.
    """
    found: list[UnsupportedSpan] = []
    before = -2
    for number, (word, p) in enumerate(zip(words(claim), doubts, strict=True)):
        if p < border:
            continue
        p = p * (1 - border) / (p * (1 - border) + (1 - p) * border)
        found.append(_extend_span(found.pop(), word, p) if number == before + 1 else UnsupportedSpan(word.start, word.end, p))
        before = number
    return tuple(found)


def _extend_span(place: UnsupportedSpan, word: Span, probability: float) -> UnsupportedSpan:
    return UnsupportedSpan(place.start, word.end, max(place.probability, probability))
