"""Mine examples with a trained verifier: hard ones, and long premises with its probabilities for the shortened premise.

Mined rows are JSON lines that a training reads in addition to its recipes; none comes from a held-out source.
"""

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from torch import Tensor

from knowhalu.encoder.verifier import PairTokenizer, Verifier
from knowhalu.text.sentences import content_words, sentences
from knowhalu.training.data_files import TrainingRow
from knowhalu.training.examples import SUPPORTED, TrainingExample
from knowhalu.training.holdout import predict_probabilities, target_probability
from knowhalu.training.recipes import Recipe

MIN_HARD_PROBABILITY, MAX_HARD_PROBABILITY = 0.02, 0.5
"""The probability of a hard example's target lies between these; below them the label is wrong more often than the model."""
MIN_LONG_WORDS, SHORT_VIEW_SENTENCES = 80, 3
"""The fewest words of a long premise, and the number of sentences of its shortened form."""
Draw = tuple[Recipe, TrainingRow, TrainingRow]
Scorer = Callable[[Sequence[TrainingExample]], Tensor]
_Item = TypeVar("_Item")


def make_scorer(model: Verifier, vocabulary: PairTokenizer) -> Scorer:
    """Return a function from examples to the probabilities of the three classes `(examples, 3)`."""
    return lambda examples: predict_probabilities(model, vocabulary, examples)


def mine_hard_examples(
    draws: Iterable[Draw], score: Scorer, *, tries: int = 6, seed: int = 0, block: int = 256
) -> Iterator[TrainingRow]:
    """Make `tries` examples of every drawn row and yield the one whose target is least probable, if the model errs on it.

    As many supported as other examples are yielded, so that difficulty does not reveal the label.
    """
    waiting: dict[bool, deque[TrainingRow]] = {True: deque(), False: deque()}
    for number, part in enumerate(_blocks(draws, block)):
        rngs = [[random.Random(f"{seed}:{number}:{i}:{k}") for k in range(tries)] for i in range(len(part))]
        made = [[r.make(row, other, rng) for rng in several] for (r, row, other), several in zip(part, rngs, strict=True)]
        each = score([e for several in made for e in several])
        for i, several in enumerate(made):
            found = each[i * tries : (i + 1) * tries]
            chance, k = min((target_probability(p, e.target), k) for k, (e, p) in enumerate(zip(several, found, strict=True)))
            if MIN_HARD_PROBABILITY <= chance <= MAX_HARD_PROBABILITY and several[k].premise:
                waiting[several[k].target == SUPPORTED].append(example_row(several[k]))
        while all(waiting.values()):
            yield from (side.popleft() for side in waiting.values())


def mine_soft_targets(draws: Iterable[Draw], score: Scorer, *, seed: int = 0, block: int = 256) -> Iterator[TrainingRow]:
    """Yield examples with long premises and the model's probabilities for the shortened premise, where those are right."""
    for number, part in enumerate(_blocks(draws, block)):
        made = [r.make(row, other, random.Random(f"{seed}:{number}:{i}")) for i, (r, row, other) in enumerate(part)]
        long = [e for e in made if len(e.premise.split()) >= MIN_LONG_WORDS]
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
