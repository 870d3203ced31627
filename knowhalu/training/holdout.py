"""Measure a trained verifier on held-out rows that overlap with nothing it was trained on."""

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
    """Return the class probabilities `(examples, 3)` of examples, batched in the fixed shapes of the training."""
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
    """Return the probability of a target; UNSUPPORTED sums contradicted and neutral."""
    return float(probability[1:].sum() if target == UNSUPPORTED else probability[target])


RecipeRows = Callable[[Recipe], Iterable[TrainingRow]]
"""A source of the rows of a recipe, such as `HeldOutRows(...).of` for rows that no training reads."""


class RecipeScore(NamedTuple):
    """Number of held-out examples of one recipe, ROC-AUC of supported against the rest, and three-class accuracy."""

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
    """Score up to `limit` examples of every recipe; contradicted and neutral both meet an UNSUPPORTED target.

    Recipes with fewer than `fewest` examples are left out.
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
    """Yield the examples of a recipe's rows, shuffled by the seed."""
    drawn = list(rows(recipe))
    random.Random(seed).shuffle(drawn)
    for i, row in enumerate(drawn):
        yield recipe.make(row, drawn[i - 1], random.Random(f"{seed}:{i}"))


def scores_as_markdown(parts: list[RecipeScore]) -> str:
    """Return the scores as a Markdown table."""
    head = "| held-out part | examples | ROC-AUC, supported or not | accuracy |\n|---|---|---|---|\n"
    return head + "\n".join(f"| {p.name} | {p.examples} | {p.auc:.3f} | {p.accuracy:.3f} |" for p in parts) + "\n"


class HeldOutRows:
    """The held-out rows of the training files in `data` that overlap neither with training sources nor with `leave_out`.

    `leave_out` is a folder of evaluation files. Training sources are those of all recipes that are not held out.
    """

    def __init__(self, data: Path, leave_out: Path | None = None) -> None:
        self.data, self.leave_out = data, leave_out

    @cached_property
    def known(self) -> Leakage:
        """Return the texts that a row must not overlap with; they are read at first use."""
        files: dict[str, Recipe] = {}
        for recipe in RECIPES:  # each file is read once, for all recipes that it has
            before = files.setdefault(recipe.file, recipe)
            sets = before.sets + recipe.sets if before.sets and recipe.sets else ()
            files[recipe.file] = replace(before, sets=sets, texts=before.texts or recipe.texts)
        trained = chain.from_iterable(read_recipe_rows(recipe, self.data, held=False) for recipe in files.values())
        return Leakage(chain(trained, read_folder_rows(self.leave_out) if self.leave_out else ()))

    def of(self, recipe: Recipe) -> Iterator[TrainingRow]:
        """Yield the held-out, unseen rows of a recipe."""
        return self.among(read_recipe_rows(recipe, self.data, held=True))

    def among(self, rows: Iterable[TrainingRow]) -> Iterator[TrainingRow]:
        """Yield those of the given rows that are held out and unseen."""
        return (row for row in rows if is_held_out(text_of(row)) and row not in self.known)
