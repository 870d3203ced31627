"""What a trained verifier does on the sources that were held out of its training, part by part."""

import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from knowhalu.encoder.verifier import Verifier, Vocabulary
from knowhalu.training.batches import BUCKETS, tokenize
from knowhalu.training.examples import SUPPORTED, UNSUPPORTED, Example
from knowhalu.training.recipes import RECIPES, Recipe, rows_of


class Part(NamedTuple):
    """Held-out examples of one recipe: how many, ROC-AUC of supported against the rest, accuracy over the three classes."""

    name: str
    examples: int
    auc: float
    accuracy: float


def evaluate(model: Verifier, vocabulary: Vocabulary, data: Path, *, limit: int = 400, seed: int = 0) -> Iterator[Part]:
    """Score up to `limit` held-out examples of every recipe; UNSUPPORTED is met by either of the two classes.

    Recipes without held-out rows are left out.
    """
    for recipe in RECIPES:
        examples = list(islice(held_examples(recipe, data, seed), limit))
        if not examples:
            continue
        predicted = _probabilities(model, vocabulary, examples)
        targets = np.array([e.target for e in examples])
        best = predicted.argmax(1)
        met = (best == targets) | ((targets == UNSUPPORTED) & (best != SUPPORTED))
        both = 0 < (targets == SUPPORTED).sum() < len(targets)
        auc = float(roc_auc_score(targets == SUPPORTED, predicted[:, 0])) if both else float("nan")
        yield Part(recipe.name, len(examples), auc, float(met.mean()))


def held_examples(recipe: Recipe, data: Path, seed: int = 0) -> Iterator[Example]:
    """Make the examples of a recipe's held-out sources, shuffled; the same seed makes the same."""
    rows = list(rows_of(recipe, data, held=True))
    random.Random(seed).shuffle(rows)
    for i, row in enumerate(rows):
        yield recipe.make(row, rows[i - 1], random.Random(f"{seed}:{i}"))


@torch.inference_mode()
def _probabilities(
    model: Verifier, vocabulary: Vocabulary, examples: list[Example]
) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
    rows = tokenize(examples, vocabulary)
    device = next(model.parameters()).device
    found = np.zeros((len(rows), 3), dtype=np.float32)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i].ids))
    for start in range(0, len(rows), 16):
        part = order[start : start + 16]
        length = next(size for size, _ in BUCKETS if size >= len(rows[part[-1]].ids))
        tensors = (t.to(device) for t in vocabulary.batch([rows[i] for i in part], length))
        with torch.autocast(device.type, torch.bfloat16):
            logits = model(*tensors)
        found[part] = logits.float().softmax(-1).cpu().numpy()
    return found


def as_table(parts: list[Part]) -> str:
    """Lay out the parts as a Markdown table."""
    head = "| held-out part | examples | ROC-AUC, supported or not | accuracy |\n|---|---|---|---|\n"
    return head + "\n".join(f"| {p.name} | {p.examples} | {p.auc:.3f} | {p.accuracy:.3f} |" for p in parts) + "\n"
