"""Fixed-shape batches: draws are gathered in pools, sorted into length buckets, cut into batches and shuffled.

The order depends on the seed alone, so two numbers (pool, batch) give the position, and a run resumes exactly.
"""

import math
import random
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from knowhalu.encoder.verifier import EncodedPair, PairTokenizer
from knowhalu.text.sentences import content_words, sentences
from knowhalu.text.triplets import extract_triplets, triplets_to_text
from knowhalu.training.data_files import Leakage, TrainingRow, text_of
from knowhalu.training.edits import detokenize, rewrite_date, rewrite_number, swap_synonym
from knowhalu.training.examples import TrainingExample
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
UNKNOWN_TARGET = -1.0
"""The target of tokens without a label: those of sources and questions, and of claims whose wrong words are not known."""
TokenTargets = tuple[int, list[float]]
"""The index of the claim's first token in an input, and the target of each of its tokens: 1 if wrong, else 0."""
MAX_WORD_OVERLAP = 0.5
"""Sentences of another source with this share of the claim's words may support it, and are not used as distractors."""
REWORDINGS = (swap_synonym, swap_synonym, rewrite_number, rewrite_date)
"""Paraphrases that omit nothing, because an omitted detail may have been the wrong one."""
TRIPLET_SHARE = 0.3
"""Share of the reworded texts that become triplets."""


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
            rows = tokenize(examples, vocabulary, long, f"{seed}:{pool}")
            marks = token_targets(examples, rows, vocabulary)
            for number, (length, part) in enumerate(_pool_batches(rows, random.Random(f"{seed}:{pool}"))):
                if (pool, number) >= start:
                    inputs = vocabulary.batch([rows[i] for i in part], length)
                    targets = torch.tensor([examples[i].target for i in part])
                    wrong = pad_targets([marks[i] for i in part], length)
                    soft = torch.tensor([examples[i].soft or NO_SOFT_TARGET for i in part])
                    yield TrainingBatch(*inputs, targets, wrong, soft, pool, number)
        pool += 1


def make_example(recipe: Recipe, row: TrainingRow, other: TrainingRow, vary: float, rng: random.Random) -> TrainingExample:
    """Make the example of a draw; rows of labelled sets, which are read repeatedly, are varied."""
    example = recipe.make(row, other, rng)
    return vary_example(example, text_of(other), vary, rng) if vary and recipe.name not in SYNTHETIC_RECIPES else example


def vary_example(example: TrainingExample, other: str, share: float, rng: random.Random) -> TrainingExample:
    """Reword the premise, reword the claim, and add sentences of another source, each with probability `share`.

    Claims with known wrong spans, claims with a question, and examples without a premise stay unchanged.
    """
    if not example.premise:
        return example
    if rng.random() < share:
        example = example._replace(premise=_reword(example.premise, rng))
    if rng.random() < share and not example.wrong and not example.question:
        example = example._replace(claim=_reword(example.claim, rng))
    return _add_distractors(example, other, rng) if rng.random() < share else example


def as_triplets(text: str) -> str | None:
    """Return a text as triplets, the form of structured knowledge; None where a word would be lost or nothing changes."""
    facts = [fact for s in sentences(text) for fact in extract_triplets(s.text)]
    rewritten = triplets_to_text(facts)
    whole = set(content_words(text)) <= set(content_words(rewritten)) and all(f.predicate != "states" for f in facts)
    return rewritten if whole and rewritten.rstrip(".") != text.rstrip(".") else None


def _reword(text: str, rng: random.Random) -> str:
    if rng.random() < TRIPLET_SHARE and (triplets := as_triplets(text)) is not None:
        return triplets
    for way in rng.sample(REWORDINGS, 2):
        text = way(text, rng)
    return text


def _add_distractors(example: TrainingExample, other: str, rng: random.Random) -> TrainingExample:
    """Add one or two sentences of another source before or after the premise."""
    pieces = [s.text for s in sentences(detokenize(other)) if len(s.text.split()) <= 40]
    start = rng.randrange(max(1, len(pieces)))
    beside = " ".join(pieces[start : start + rng.randint(1, 2)])
    wanted = set(content_words(f"{example.question} {example.claim}"))
    if not beside or len(wanted.intersection(content_words(beside))) >= MAX_WORD_OVERLAP * len(wanted):
        return example
    before = rng.random() < 0.5
    return example._replace(premise=f"{beside} {example.premise}" if before else f"{example.premise} {beside}")


def tokenize(examples: list[TrainingExample], vocabulary: PairTokenizer, long: float = 0.0, seed: str = "") -> list[EncodedPair]:
    """Turn examples into inputs of at most the largest bucket; premises are shortened, and long claims are cut.

    A share `long` of the inputs with a premise is filled up to between 320 and 512 tokens with premises of other examples.
    """
    premises, questions, claims = (vocabulary.pieces([getattr(e, f) for e in examples]) for f in ("premise", "question", "claim"))
    rows: list[EncodedPair] = []
    for i, (premise, claim, question) in enumerate(zip(premises, claims, questions, strict=True)):
        claim, question, limit = claim[:MAX_CLAIM_TOKENS], question[:MAX_QUESTION_TOKENS], BUCKETS[-1][0]
        rng = random.Random(f"{seed}:{i}:long") if long and premise else None
        if rng is not None and rng.random() < long:
            limit = rng.randint(LONG[0][0], LONG[-1][0])
            premise = _among(premise, premises, limit - len(claim) - len(question) - 4, rng)
        rows.append(vocabulary.join(premise, claim, question, limit))
    return rows


def _among(premise: list[int], others: list[list[int]], room: int, rng: random.Random) -> list[int]:
    """Insert a premise at a random place among randomly drawn others, `room` tokens in all."""
    more: list[int] = []
    while len(more) < room - len(premise):
        more += rng.choice(others)
    more = more[: max(0, room - len(premise))]
    at = rng.randint(0, len(more))
    return [*more[:at], *premise, *more[at:]]


def token_targets(
    examples: Sequence[TrainingExample], rows: Sequence[EncodedPair], vocabulary: PairTokenizer
) -> list[TokenTargets]:
    """Return the token targets of every claim; a token is wrong if it shares a character with a wrong span."""
    token_rows: list[TokenTargets] = []
    for example, row, places in zip(examples, rows, vocabulary.offsets([e.claim for e in examples]), strict=True):
        wrong = example.marks
        if wrong is None:
            token_rows.append((0, []))
            continue
        read = places[: len(row.ids) - 1 - row.claim_start]
        token_rows.append((row.claim_start, [float(any(a < end and start < b for a, b in wrong)) for start, end in read]))
    return token_rows


def pad_targets(marks: Sequence[TokenTargets], length: int) -> Tensor:
    """Return the targets as a tensor `(rows, length)`, UNKNOWN_TARGET where there is none."""
    padded = torch.full((len(marks), length), UNKNOWN_TARGET)
    for i, (start, targets) in enumerate(marks):
        padded[i, start : start + len(targets)] = torch.tensor(targets)
    return padded


def _pool_batches(rows: list[EncodedPair], rng: random.Random) -> list[tuple[int, list[int]]]:
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


def prefetch(stream: Iterator[TrainingBatch], size: int = 128) -> Generator[TrainingBatch, None, None]:
    """Make batches in another thread, so that the model does not wait for them; order and errors stay the same.

    The thread ends when the generator is closed: one that still computes at the exit of Python would abort the process.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="batches") as pool:
        ahead = deque(pool.submit(next, stream) for _ in range(size))
        try:
            while True:
                yield ahead.popleft().result()
                ahead.append(pool.submit(next, stream))
        finally:
            pool.shutdown(cancel_futures=True)
