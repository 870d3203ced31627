"""Fixed-shape batches: draws are gathered in pools, sorted into length buckets, cut into batches and shuffled.

The order depends on the seed alone, so two numbers (pool, batch) give the position, and a run resumes exactly.
"""

import math
import queue
import random
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from knowhalu.encoder.verifier import EncodedPair, PairTokenizer
from knowhalu.training.data_files import TrainingRow, text_of
from knowhalu.training.examples import TrainingExample, vary_example
from knowhalu.training.leakage import Leakage
from knowhalu.training.loss import pad_targets, token_targets
from knowhalu.training.recipes import RECIPES, SYNTHETIC_RECIPES, Recipe, draw_rows

BUCKETS = tuple((length, round(3072 / length)) for length in (32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256))
"""(tokens, rows) of each batch shape: about 3,072 tokens a step, an eighth of them padding (a fifth with half as many shapes)."""
LONG = tuple((length, round(3072 / length)) for length in (320, 384, 448, 512))
"""The shapes of batches with long premises."""
MAX_QUESTION_TOKENS, MAX_CLAIM_TOKENS = 60, 150
"""Tokens at which a question and a claim are cut."""
POOL_SIZE = 8192
NO_SOFT_TARGET = (math.nan,) * 3
"""The soft target of an example that has none."""


class TrainingBatch(NamedTuple):
    """Model inputs and token targets `(rows, length)`, targets `(rows,)`, soft targets `(rows, 3)`, and the position."""

    ids: Tensor
    mask: Tensor
    types: Tensor
    targets: Tensor
    marks: Tensor
    soft: Tensor
    pool: int
    number: int

    @property
    def tokens(self) -> int:
        """Count the padded tokens."""
        return self.ids.numel()


def tokenize(examples: list[TrainingExample], vocabulary: PairTokenizer, long: float = 0.0, seed: str = "") -> list[EncodedPair]:
    """Turn examples into inputs of at most the largest bucket; premises are shortened, and long claims are cut.

    A share `long` of the inputs with a premise is filled up to between 320 and 512 tokens with premises of other examples.
    """
    premises, questions, claims = (vocabulary.pieces([getattr(e, f) for e in examples]) for f in ("premise", "question", "claim"))
    rows: list[EncodedPair] = []
    for i, (premise, claim, question) in enumerate(zip(premises, claims, questions, strict=True)):
        said, asked, limit = claim[:MAX_CLAIM_TOKENS], question[:MAX_QUESTION_TOKENS] or None, BUCKETS[-1][0]
        rng = random.Random(f"{seed}:{i}:long") if long and premise else None
        if rng is not None and rng.random() < long:
            limit = rng.randint(LONG[0][0], LONG[-1][0])
            premise = _among(premise, premises, limit - len(said) - len(asked or ()) - 4, rng)
        rows.append(vocabulary.join(premise, said, asked, limit))
    return rows


def _among(premise: list[int], others: list[list[int]], room: int, rng: random.Random) -> list[int]:
    """Insert a premise at a random place among randomly drawn others, `room` tokens in all."""
    more: list[int] = []
    while len(more) < room - len(premise):
        more += rng.choice(others)
    more = more[: max(0, room - len(premise))]
    at = rng.randint(0, len(more))
    return [*more[:at], *premise, *more[at:]]


def _pool_batches(rows: list[EncodedPair], targets: list[int], rng: random.Random) -> list[tuple[int, list[int]]]:
    """Sort row numbers into buckets and cut them into full batches; the last of a bucket is filled from that bucket."""
    batches: list[tuple[int, list[int]]] = []
    smaller = 0
    for length, size in BUCKETS + LONG:
        members = [i for i, r in enumerate(rows) if smaller < len(r.ids) <= length]
        smaller = length
        rng.shuffle(members)
        for start in range(0, len(members), size):
            part = members[start : start + size]
            batches.append((length, part + rng.choices(members, k=size - len(part))))
    rng.shuffle(batches)
    return batches


def training_batches(
    folder: Path,
    vocabulary: PairTokenizer,
    seed: int,
    *,
    start: tuple[int, int] = (0, 0),
    recipes: tuple[Recipe, ...] = RECIPES,
    leakage: Leakage | None = None,
    vary: float = 0.0,
    long: float = 0.0,
) -> Iterator[TrainingBatch]:
    """Yield training batches without end, from the position `start` (pool, batch) on.

    `vary` is the probability of showing a row of a labelled set in another form, `long` the share of long premises.
    """
    stream = draw_rows(folder, seed, recipes, leakage)
    pool = 0
    while True:
        drawn = [next(stream) for _ in range(POOL_SIZE)]
        if pool >= start[0]:
            examples = [make_example(*draw, vary, random.Random(f"{seed}:{pool}:{i}")) for i, draw in enumerate(drawn)]
            rows, targets = tokenize(examples, vocabulary, long, f"{seed}:{pool}"), [e.target for e in examples]
            marks = token_targets(examples, rows, vocabulary)
            for number, (length, part) in enumerate(_pool_batches(rows, targets, random.Random(f"{seed}:{pool}"))):
                if (pool, number) >= start:
                    tensors = vocabulary.batch([rows[i] for i in part], length)
                    wrong = pad_targets([marks[i] for i in part], length)
                    soft = torch.tensor([examples[i].soft or NO_SOFT_TARGET for i in part])
                    yield TrainingBatch(*tensors, torch.tensor([targets[i] for i in part]), wrong, soft, pool, number)
        pool += 1


def make_example(recipe: Recipe, row: TrainingRow, other: TrainingRow, vary: float, rng: random.Random) -> TrainingExample:
    """Make the example of a draw; rows of labelled sets, which are read repeatedly, are varied."""
    example = recipe.make(row, other, rng)
    return vary_example(example, text_of(other), vary, rng) if vary and recipe.name not in SYNTHETIC_RECIPES else example


def prefetch(stream: Iterator[TrainingBatch], size: int = 128) -> Generator[TrainingBatch, None, None]:
    """Make batches in another thread, so that the model does not wait for them; order and errors stay the same.

    The thread ends when the generator is closed: one that still computes at the exit of Python would abort the process.
    """
    ready: queue.Queue[TrainingBatch | BaseException] = queue.Queue(size)
    done = threading.Event()

    def put(item: TrainingBatch | BaseException) -> bool:
        while not done.is_set():
            try:
                ready.put(item, timeout=0.2)
            except queue.Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            all(map(put, stream))
        except BaseException as error:  # noqa: BLE001 - raised again where the batches are used
            put(error)

    thread = threading.Thread(target=work, name="batches", daemon=True)
    thread.start()
    try:
        while True:
            item = ready.get()
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        done.set()
        thread.join()
