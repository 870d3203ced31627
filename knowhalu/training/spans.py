"""Marks: which tokens of a claim its source does not bear out, as targets of the verifier's second head."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from knowhalu.encoder.verifier import Tokens, Vocabulary
from knowhalu.training.examples import Example

UNKNOWN = -1.0
"""The target of tokens of which nothing is known: those of sources and questions, and of claims without marks."""
Marks = tuple[int, list[float]]
"""Where the claim's tokens begin in an input, and the target of each: 1 where it is wrong, 0 where not."""


def marks_of(examples: Sequence[Example], rows: Sequence[Tokens], vocabulary: Vocabulary) -> list[Marks]:
    """Return the targets of every example's claim; a token is wrong where it shares a character with a wrong stretch."""
    found: list[Marks] = []
    for example, row, places in zip(examples, rows, vocabulary.places([e.claim for e in examples]), strict=True):
        wrong = example.marks
        if wrong is None:
            found.append((0, []))
            continue
        read = places[: len(row.ids) - 1 - row.said]
        found.append((row.said, [float(any(a < end and start < b for a, b in wrong)) for start, end in read]))
    return found


def padded(marks: Sequence[Marks], length: int) -> Tensor:
    """Lay marks out as `(rows, length)`, UNKNOWN wherever there is none."""
    found = torch.full((len(marks), length), UNKNOWN)
    for i, (start, targets) in enumerate(marks):
        found[i, start : start + len(targets)] = torch.tensor(targets)
    return found


def mark_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the binary cross-entropy over the tokens that are known; 0 where none is."""
    known = targets != UNKNOWN
    each = F.binary_cross_entropy_with_logits(logits.float(), targets.clamp(min=0), reduction="none")
    return (each * known).sum() / known.sum().clamp(min=1)
