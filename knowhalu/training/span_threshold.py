"""From which probability on a word is marked: fitted on wrong claims of held-out sources whose wrong words are known."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from knowhalu.encoder.spans import DEFAULT_THRESHOLD
from knowhalu.text.sentences import words
from knowhalu.training.examples import SUPPORTED, CharSpan, TrainingExample
from knowhalu.training.holdout import RecipeRows, draw_examples
from knowhalu.training.recipes import RECIPES

THRESHOLD_GRID = tuple(float(b) for b in np.round(np.arange(0.05, 0.96, 0.05), 2))
MIN_CLAIMS = 30
"""Claims from which a part is used."""
EXCLUDED_RECIPES = ("WiCE, unsupported tokens",)
"""Parts on whose held-out rows marks are measured, and therefore not fitted."""


class ClaimWords(NamedTuple):
    """The words of a wrong claim: which are wrong, and how probably each is not borne out."""

    wrong: Sequence[bool]
    doubts: Sequence[float]


def wrong_word_flags(claim: str, stretches: Sequence[CharSpan]) -> list[bool]:
    """Tell for every word of a claim whether a wrong stretch touches it."""
    return [any(a < w.end and w.start < b for a, b in stretches) for w in words(claim)]


def draw_wrong_claims(rows: RecipeRows, limit: int) -> Iterator[tuple[str, list[TrainingExample]]]:
    """Yield the name of every part that has enough wrong claims with known words, and up to `limit` of them."""
    for recipe in (r for r in RECIPES if r.name not in EXCLUDED_RECIPES):
        drawn = (e for e in draw_examples(recipe, rows) if e.target != SUPPORTED and e.wrong and not e.question)
        found = list(islice(drawn, limit))
        if len(found) >= MIN_CLAIMS:
            yield recipe.name, found


def word_f1(claims: Sequence[ClaimWords], border: float) -> float:
    """Return F1 over the words of wrong claims, where those from `border` on are marked."""
    hits = said = there = 0
    for wrong, doubts in claims:
        marked = [p >= border for p in doubts]
        hits += sum(a and b for a, b in zip(wrong, marked, strict=True))
        said, there = said + sum(marked), there + sum(wrong)
    return 2 * hits / max(1, said + there)


def fit_span_threshold(parts: Mapping[str, Sequence[ClaimWords]]) -> dict[str, Any]:
    """Choose the border with the best mean F1 over the parts, and tell what every part has there and at `DEFAULT_THRESHOLD`."""
    best = max(
        THRESHOLD_GRID, key=lambda b: (np.mean([word_f1(claims, b) for claims in parts.values()]), -abs(b - DEFAULT_THRESHOLD))
    )
    measured = {
        name: {"claims": len(claims)} | {f"f1_at_{b}": round(word_f1(claims, b), 4) for b in (DEFAULT_THRESHOLD, best)}
        for name, claims in parts.items()
    }
    return {"border": best, "fitted_on": measured}
