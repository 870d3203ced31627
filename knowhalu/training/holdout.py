"""What a trained verifier does on the sources that were held out of its training, part by part."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from knowhalu.encoder.verifier import Verifier, Vocabulary
from knowhalu.training.examples import SUPPORTED, UNSUPPORTED, Example
from knowhalu.training.recipes import RECIPES, Recipe
from knowhalu.training.rows import Row
from knowhalu.training.scoring import probabilities

Rows = Callable[[Recipe], Iterable[Row]]
"""Where the rows of a recipe come from: `Unseen(...).of` for those that no training reads."""


class Part(NamedTuple):
    """Held-out examples of one recipe: how many, ROC-AUC of supported against the rest, accuracy over the three classes."""

    name: str
    examples: int
    auc: float
    accuracy: float


def evaluate(
    model: Verifier, vocabulary: Vocabulary, rows: Rows, *, recipes: Sequence[Recipe] = RECIPES, limit: int = 400, seed: int = 0,
    fewest: int = 1,
) -> Iterator[Part]:  # fmt: skip
    """Score up to `limit` examples of every recipe; UNSUPPORTED is met by either of the two classes.

    Recipes with fewer than `fewest` rows are left out.
    """
    for recipe in recipes:
        examples = list(islice(drawn_examples(recipe, rows, seed), limit))
        if len(examples) < fewest:
            continue
        predicted = probabilities(model, vocabulary, examples).numpy()
        targets = np.array([e.target for e in examples])
        best = predicted.argmax(1)
        met = (best == targets) | ((targets == UNSUPPORTED) & (best != SUPPORTED))
        both = 0 < (targets == SUPPORTED).sum() < len(targets)
        auc = float(roc_auc_score(targets == SUPPORTED, predicted[:, 0])) if both else float("nan")
        yield Part(recipe.name, len(examples), auc, float(met.mean()))


def drawn_examples(recipe: Recipe, rows: Rows, seed: int = 0) -> Iterator[Example]:
    """Make the examples of a recipe's rows, shuffled; the same seed makes the same."""
    drawn = list(rows(recipe))
    random.Random(seed).shuffle(drawn)
    for i, row in enumerate(drawn):
        yield recipe.make(row, drawn[i - 1], random.Random(f"{seed}:{i}"))


def as_table(parts: list[Part]) -> str:
    """Lay out the parts as a Markdown table."""
    head = "| held-out part | examples | ROC-AUC, supported or not | accuracy |\n|---|---|---|---|\n"
    return head + "\n".join(f"| {p.name} | {p.examples} | {p.auc:.3f} | {p.accuracy:.3f} |" for p in parts) + "\n"
