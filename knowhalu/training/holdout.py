"""What a trained verifier scores on held-out rows that it has not seen in any form."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from knowhalu.encoder.device import mixed_precision
from knowhalu.encoder.verifier import EncodedPair, PairTokenizer, Verifier
from knowhalu.training.batches import BUCKETS, tokenize
from knowhalu.training.data_files import TrainingRow, is_held_out, text_of
from knowhalu.training.examples import SUPPORTED, UNSUPPORTED, TrainingExample
from knowhalu.training.leakage import Leakage, read_folder_rows
from knowhalu.training.recipes import RECIPES, Recipe, read_recipe_rows


@torch.inference_mode()
def predict_probabilities(model: Verifier, vocabulary: PairTokenizer, examples: Sequence[TrainingExample]) -> Tensor:
    """Score examples as a training reads them, in its fixed shapes: `(examples, 3)`, the three classes."""
    rows: list[EncodedPair] = tokenize(list(examples), vocabulary)
    device = next(model.parameters()).device
    found = torch.zeros(len(rows), 3)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i].ids))
    for start in range(0, len(rows), 16):
        part = order[start : start + 16]
        length = next(size for size, _ in BUCKETS if size >= len(rows[part[-1]].ids))
        tensors = (t.to(device) for t in vocabulary.batch([rows[i] for i in part], length))
        with mixed_precision(device):
            logits = model(*tensors)
        found[part] = logits.float().softmax(-1).cpu()
    return found


def target_probability(probability: Tensor, target: int) -> float:
    """Return the probability of a target; that of UNSUPPORTED is of either class."""
    return float(probability[1:].sum() if target == UNSUPPORTED else probability[target])


RecipeRows = Callable[[Recipe], Iterable[TrainingRow]]
"""Where the rows of a recipe come from: `HeldOutRows(...).of` for those that no training reads."""


class RecipeScore(NamedTuple):
    """Held-out examples of one recipe: how many, ROC-AUC of supported against the rest, accuracy over the three classes."""

    name: str
    examples: int
    auc: float
    accuracy: float


def score_recipes(
    model: Verifier,
    vocabulary: PairTokenizer,
    rows: RecipeRows,
    *,
    recipes: Sequence[Recipe] = RECIPES,
    limit: int = 400,
    seed: int = 0,
    fewest: int = 1,
) -> Iterator[RecipeScore]:
    """Score up to `limit` examples of every recipe; UNSUPPORTED is met by either of the two classes.

    Recipes with fewer than `fewest` rows are left out.
    """
    for recipe in recipes:
        examples = list(islice(draw_examples(recipe, rows, seed), limit))
        if len(examples) < fewest:
            continue
        predicted = predict_probabilities(model, vocabulary, examples).numpy()
        targets = np.array([e.target for e in examples])
        best = predicted.argmax(1)
        met = (best == targets) | ((targets == UNSUPPORTED) & (best != SUPPORTED))
        both = 0 < (targets == SUPPORTED).sum() < len(targets)
        auc = float(roc_auc_score(targets == SUPPORTED, predicted[:, 0])) if both else float("nan")
        yield RecipeScore(recipe.name, len(examples), auc, float(met.mean()))


def draw_examples(recipe: Recipe, rows: RecipeRows, seed: int = 0) -> Iterator[TrainingExample]:
    """Make the examples of a recipe's rows, shuffled; the same seed makes the same."""
    drawn = list(rows(recipe))
    random.Random(seed).shuffle(drawn)
    for i, row in enumerate(drawn):
        yield recipe.make(row, drawn[i - 1], random.Random(f"{seed}:{i}"))


def scores_as_markdown(parts: list[RecipeScore]) -> str:
    """Lay out the parts as a Markdown table."""
    head = "| held-out part | examples | ROC-AUC, supported or not | accuracy |\n|---|---|---|---|\n"
    return head + "\n".join(f"| {p.name} | {p.examples} | {p.auc:.3f} | {p.accuracy:.3f} |" for p in parts) + "\n"


class HeldOutRows:
    """The held-out rows of the training files in `data` that overlap with nothing that is trained on, nor with `leave_out`.

    `leave_out` is a folder of evaluation files. What is trained on are the sources of all recipes that are not held out.
    """

    def __init__(self, data: Path, leave_out: Path | None = None) -> None:
        self.data, self.leave_out = data, leave_out

    @cached_property
    def known(self) -> Leakage:
        """Return what a row must not overlap with; its texts are read at the first use."""
        files: dict[str, Recipe] = {}
        for recipe in RECIPES:  # each file is read once, for all recipes that it has
            before = files.setdefault(recipe.file, recipe)
            sets = before.sets + recipe.sets if before.sets and recipe.sets else ()
            files[recipe.file] = replace(before, sets=sets, texts=before.texts or recipe.texts)
        trained = chain.from_iterable(read_recipe_rows(recipe, self.data, held=False) for recipe in files.values())
        return Leakage(chain(trained, read_folder_rows(self.leave_out) if self.leave_out else ()))

    def of(self, recipe: Recipe) -> Iterator[TrainingRow]:
        """Yield the unseen rows of a recipe."""
        return self.among(read_recipe_rows(recipe, self.data, held=True))

    def among(self, rows: Iterable[TrainingRow]) -> Iterator[TrainingRow]:
        """Yield those of some rows that are held out and unseen."""
        return (row for row in rows if is_held_out(text_of(row)) and row not in self.known)
