"""From token probabilities to unsupported spans: the characters of a claim that its source does not support."""

import json
from collections.abc import Sequence
from pathlib import Path

from knowhalu.errors import ModelError
from knowhalu.io.fitted_files import check_fitted_weights
from knowhalu.requests import UnsupportedSpan
from knowhalu.text.sentences import Span, words

DEFAULT_THRESHOLD = 0.5
"""Probability from which a word is unsupported where no threshold was fitted."""


def read_span_threshold(folder: Path) -> float:
    """Return the threshold for unsupported words from `marks.json` of a verifier's folder; `DEFAULT_THRESHOLD` without one.

    Raises ModelError where the file cannot be read or was fitted to other weights.
    """
    path = folder / "marks.json"
    if not path.is_file():
        return DEFAULT_THRESHOLD
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        threshold = float(data["border"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{path}: cannot read the threshold of unsupported words ({error!r}). Fit it with scripts/fit_marks.py"
        ) from error
    if not 0 < threshold < 1:
        raise ModelError(f"{path}: the threshold {threshold} is not between 0 and 1. Fit it with scripts/fit_marks.py")
    check_fitted_weights(path, data, "scripts/fit_marks.py")
    return threshold


def unsupported_word_probabilities(claim: str, tokens: Sequence[tuple[int, int]], probabilities: Sequence[float]) -> list[float]:
    """Return for each word of a claim the probability that it is unsupported: the highest of its tokens.

    `tokens` are the offsets `(start, end)` of the claim's tokens in characters, `probabilities` those of the tokens.
    """
    pairs = list(zip(tokens, probabilities, strict=True))
    return [max((p for (a, b), p in pairs if a < w.end and w.start < b), default=0.0) for w in words(claim)]


def unsupported_spans(
    claim: str, probabilities: Sequence[float], threshold: float = DEFAULT_THRESHOLD
) -> tuple[UnsupportedSpan, ...]:
    """Return the unsupported spans of a claim: neighbouring words at or over the threshold, with the highest probability.

    `probabilities` are those of its words. Log-odds are shifted so that the threshold becomes 0.5.
    """
    spans: list[UnsupportedSpan] = []
    before = -2
    for number, (word, p) in enumerate(zip(words(claim), probabilities, strict=True)):
        if p < threshold:
            continue
        p = p * (1 - threshold) / (p * (1 - threshold) + (1 - p) * threshold)
        spans.append(_extend_span(spans.pop(), word, p) if number == before + 1 else UnsupportedSpan(word.start, word.end, p))
        before = number
    return tuple(spans)


def _extend_span(span: UnsupportedSpan, word: Span, probability: float) -> UnsupportedSpan:
    return UnsupportedSpan(span.start, word.end, max(span.probability, probability))
