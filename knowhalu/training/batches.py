"""Fixed-shape batches: draws are gathered in pools, sorted into length buckets, cut into batches and shuffled.

The order depends only on the seed, so the place in it is two numbers (pool, batch) and a run resumes exactly.
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

from knowhalu.encoder.verifier import Tokens, Vocabulary
from knowhalu.training.augment import varied
from knowhalu.training.examples import Example
from knowhalu.training.leakage import Leakage
from knowhalu.training.recipes import MADE, RECIPES, Recipe, draws
from knowhalu.training.rows import Row, text_of
from knowhalu.training.spans import marks_of, padded

BUCKETS = tuple((length, round(3072 / length)) for length in (32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256))
"""(tokens, rows) of each batch shape: about 3,072 tokens a step, an eighth of them padding (of half as many shapes a fifth)."""
LONG = tuple((length, round(3072 / length)) for length in (320, 384, 448, 512))
"""The shapes of batches with long premises."""
QUESTION, CLAIM = 60, 150
"""Tokens of a question and of a claim that are read; what is longer is cut."""
POOL = 8192
NO_VIEW = (math.nan,) * 3
"""The soft target of an example that has none."""


class Batch(NamedTuple):
    """Model inputs and marks `(rows, length)`, targets `(rows,)`, soft ones `(rows, 3)`, the place after which a run goes on."""

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


def tokenize(examples: list[Example], vocabulary: Vocabulary, long: float = 0.0, seed: str = "") -> list[Tokens]:
    """Turn examples into inputs of at most the largest bucket; only premises are shortened, over-long claims are cut.

    A share `long` of those that have a premise is filled up to 320 to 512 tokens: the premise then stands among those of others.
    """
    premises, questions, claims = (vocabulary.pieces([getattr(e, f) for e in examples]) for f in ("premise", "question", "claim"))
    rows: list[Tokens] = []
    for i, (premise, claim, question) in enumerate(zip(premises, claims, questions, strict=True)):
        said, asked, limit = claim[:CLAIM], question[:QUESTION] or None, BUCKETS[-1][0]
        rng = random.Random(f"{seed}:{i}:long") if long and premise else None
        if rng is not None and rng.random() < long:
            limit = rng.randint(LONG[0][0], LONG[-1][0])
            premise = _among(premise, premises, limit - len(said) - len(asked or ()) - 4, rng)
        rows.append(vocabulary.join(premise, said, asked, limit))
    return rows


def _among(premise: list[int], others: list[list[int]], room: int, rng: random.Random) -> list[int]:
    """Put a premise at any place among others, drawn by chance, so that all have `room` tokens."""
    more: list[int] = []
    while len(more) < room - len(premise):
        more += rng.choice(others)
    more = more[: max(0, room - len(premise))]
    at = rng.randint(0, len(more))
    return [*more[:at], *premise, *more[at:]]


def _pool_batches(rows: list[Tokens], targets: list[int], rng: random.Random) -> list[tuple[int, list[int]]]:
    """Sort row numbers into buckets and cut them into full batches; a short last batch is filled from its own bucket."""
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


def batches(
    folder: Path,
    vocabulary: Vocabulary,
    seed: int,
    *,
    start: tuple[int, int] = (0, 0),
    recipes: tuple[Recipe, ...] = RECIPES,
    leakage: Leakage | None = None,
    vary: float = 0.0,
    long: float = 0.0,
) -> Iterator[Batch]:
    """Yield training batches for ever, from the place `start` (pool, batch) on; rows of labelled sets are varied.

    `long` is the share of draws whose premise is long.
    """
    stream = draws(folder, seed, recipes, leakage)
    pool = 0
    while True:
        drawn = [next(stream) for _ in range(POOL)]
        if pool >= start[0]:
            examples = [made(*draw, vary, random.Random(f"{seed}:{pool}:{i}")) for i, draw in enumerate(drawn)]
            rows, targets = tokenize(examples, vocabulary, long, f"{seed}:{pool}"), [e.target for e in examples]
            marks = marks_of(examples, rows, vocabulary)
            for number, (length, part) in enumerate(_pool_batches(rows, targets, random.Random(f"{seed}:{pool}"))):
                if (pool, number) >= start:
                    tensors = vocabulary.batch([rows[i] for i in part], length)
                    wrong = padded([marks[i] for i in part], length)
                    soft = torch.tensor([examples[i].soft or NO_VIEW for i in part])
                    yield Batch(*tensors, torch.tensor([targets[i] for i in part]), wrong, soft, pool, number)
        pool += 1


def made(recipe: Recipe, row: Row, other: Row, vary: float, rng: random.Random) -> Example:
    """Make the example of a draw; rows that are read as they are, again and again, are varied."""
    example = recipe.make(row, other, rng)
    return varied(example, text_of(other), vary, rng) if vary and recipe.name not in MADE else example


def prefetched(stream: Iterator[Batch], size: int = 128) -> Generator[Batch, None, None]:
    """Make batches in a thread of their own, so that the model does not wait for them; order and errors are the same.

    The thread ends when the generator is closed: one that still computes while Python ends would abort the process.
    """
    ready: queue.Queue[Batch | BaseException] = queue.Queue(size)
    done = threading.Event()

    def put(item: Batch | BaseException) -> bool:
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
