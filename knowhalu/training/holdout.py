"""Score examples with a trained verifier: held-out rows that overlap with nothing it was trained on, and examples to mine.

Mined rows are JSON lines that a training reads in addition to its recipes; none comes from a held-out source.
"""

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from knowhalu.encoder.device import mixed_precision
from knowhalu.encoder.verifier import PairTokenizer, Verifier
from knowhalu.text.overlap import coverage, text_facts
from knowhalu.text.sentences import content_words, sentences
from knowhalu.training.batches import BUCKETS, tokenize
from knowhalu.training.data_files import Leakage, TrainingRow, is_held_out, read_folder_rows, text_of
from knowhalu.training.examples import SUPPORTED, UNSUPPORTED, TrainingExample
from knowhalu.training.recipes import RECIPES, Recipe, read_recipe_rows

RecipeRows = Callable[[Recipe], Iterable[TrainingRow]]
"""A source of the rows of a recipe, such as `HeldOutRows(...).of` for rows that no training reads."""
MIN_HARD_PROBABILITY, MAX_HARD_PROBABILITY = 0.02, 0.5
"""The probability of a hard example's target lies between these; below them the label is wrong more often than the model."""
MIN_LONG_WORDS, SHORT_VIEW_SENTENCES = 80, 3
"""The fewest words of a long premise, and the number of sentences of its shortened form."""
Draw = tuple[Recipe, TrainingRow, TrainingRow]
Scorer = Callable[[Sequence[TrainingExample]], Tensor]
"""A function from examples to the probabilities of the three classes `(examples, 3)`."""
_Item = TypeVar("_Item")
CUES: dict[str, Callable[[TrainingExample], float]] = {
    "length": lambda e: len(e.claim.split()),
    "overlap": lambda e: coverage(e.claim, e.premise),
    "negation": lambda e: text_facts(e.claim).negations,
    "length of the source": lambda e: len(e.premise.split()),
}


@torch.inference_mode()
def predict_probabilities(model: Verifier, vocabulary: PairTokenizer, examples: Sequence[TrainingExample]) -> Tensor:
    """Return the class probabilities `(examples, 3)` of examples, batched in the fixed shapes of the training."""
    rows = tokenize(list(examples), vocabulary)
    device = next(model.parameters()).device
    probabilities = torch.zeros(len(rows), 3)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i].ids))
    for start in range(0, len(rows), 16):
        part = order[start : start + 16]
        length = next(size for size, _ in BUCKETS if size >= len(rows[part[-1]].ids))
        tensors = (t.to(device) for t in vocabulary.batch([rows[i] for i in part], length))
        with mixed_precision(device):
            logits = model(*tensors)
        probabilities[part] = logits.float().softmax(-1).cpu()
    return probabilities


def target_probability(probability: Tensor, target: int) -> float:
    """Return the probability of a target; UNSUPPORTED sums contradicted and neutral."""
    return float(probability[1:].sum() if target == UNSUPPORTED else probability[target])


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


def cue_aucs(examples: Sequence[TrainingExample], weights: Sequence[float] | None = None) -> dict[str, float]:
    """Return the ROC-AUC of each cue for supported against the rest; 0.5 carries no information.

    NaN where there is only one label.
    """
    supported = np.array([e.target == SUPPORTED for e in examples])
    if not 0 < supported.sum() < len(supported):
        return dict.fromkeys(CUES, float("nan"))
    return {
        name: float(roc_auc_score(supported, [cue(e) for e in examples], sample_weight=weights)) for name, cue in CUES.items()
    }


def mine_hard_examples(
    draws: Iterable[Draw], score: Scorer, *, tries: int = 6, seed: int = 0, block: int = 256
) -> Iterator[TrainingRow]:
    """Make `tries` examples of every drawn row and yield the one whose target is least probable, if the model errs on it.

    As many supported as other examples are yielded, so that difficulty does not reveal the label.
    """
    waiting: dict[bool, deque[TrainingRow]] = {True: deque(), False: deque()}
    for number, part in enumerate(_blocks(draws, block)):
        groups = [
            [recipe.make(row, other, random.Random(f"{seed}:{number}:{i}:{k}")) for k in range(tries)]
            for i, (recipe, row, other) in enumerate(part)
        ]
        probabilities = iter(score([e for group in groups for e in group]))
        for group in groups:
            chances = [target_probability(next(probabilities), e.target) for e in group]
            hardest = group[chances.index(min(chances))]
            if MIN_HARD_PROBABILITY <= min(chances) <= MAX_HARD_PROBABILITY and hardest.premise:
                waiting[hardest.target == SUPPORTED].append(example_row(hardest))
        while all(waiting.values()):
            yield from (side.popleft() for side in waiting.values())


def mine_soft_targets(draws: Iterable[Draw], score: Scorer, *, seed: int = 0, block: int = 256) -> Iterator[TrainingRow]:
    """Yield examples with long premises and the model's probabilities for the shortened premise, where those are right."""
    for number, part in enumerate(_blocks(draws, block)):
        examples = [r.make(row, other, random.Random(f"{seed}:{number}:{i}")) for i, (r, row, other) in enumerate(part)]
        long = [e for e in examples if len(e.premise.split()) >= MIN_LONG_WORDS]
        for example, p in zip(long, score([e._replace(premise=shorten_premise(e)) for e in long]), strict=True):
            if target_probability(p, example.target) > MAX_HARD_PROBABILITY:
                yield example_row(example, p.tolist())


def shorten_premise(example: TrainingExample) -> str:
    """Return the sentences of the premise that share most words with the claim and its question, in document order."""
    wanted = set(content_words(f"{example.question} {example.claim}"))
    pieces = sentences(example.premise)
    ranked = sorted(range(len(pieces)), key=lambda i: -len(wanted.intersection(content_words(pieces[i].text))))
    return " ".join(pieces[i].text for i in sorted(ranked[:SHORT_VIEW_SENTENCES])) or example.premise


def example_row(example: TrainingExample, soft: list[float] | None = None) -> TrainingRow:
    """Return an example as a row of a training file."""
    return {
        "source": example.premise, "question": example.question, "claim": example.claim, "target": example.target,
        "wrong": example.wrong, "soft": soft,
    }  # fmt: skip


def _blocks(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    stream = iter(items)
    while part := list(islice(stream, size)):
        yield part
