"""Marks: which tokens of a claim its source does not bear out, as targets of the verifier's second head."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from knowhalu.encoder.verifier import EncodedPair, PairTokenizer
from knowhalu.training.examples import TrainingExample

UNKNOWN_TARGET = -1.0
"""The target of tokens of which nothing is known: those of sources and questions, and of claims without marks."""
TokenTargets = tuple[int, list[float]]
"""Where the claim's tokens begin in an input, and the target of each: 1 where it is wrong, 0 where not."""


def token_targets(
    examples: Sequence[TrainingExample], rows: Sequence[EncodedPair], vocabulary: PairTokenizer
) -> list[TokenTargets]:
    """Return the targets of every example's claim; a token is wrong where it shares a character with a wrong stretch."""
    found: list[TokenTargets] = []
    for example, row, places in zip(examples, rows, vocabulary.offsets([e.claim for e in examples]), strict=True):
        wrong = example.marks
        if wrong is None:
            found.append((0, []))
            continue
        read = places[: len(row.ids) - 1 - row.claim_start]
        found.append((row.claim_start, [float(any(a < end and start < b for a, b in wrong)) for start, end in read]))
    return found


def pad_targets(marks: Sequence[TokenTargets], length: int) -> Tensor:
    """Lay marks out as `(rows, length)`, UNKNOWN wherever there is none."""
    found = torch.full((len(marks), length), UNKNOWN_TARGET)
    for i, (start, targets) in enumerate(marks):
        found[i, start : start + len(targets)] = torch.tensor(targets)
    return found


def span_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the binary cross-entropy over the tokens that are known; 0 where none is."""
    known = targets != UNKNOWN_TARGET
    each = F.binary_cross_entropy_with_logits(logits.float(), targets.clamp(min=0), reduction="none")
    return (each * known).sum() / known.sum().clamp(min=1)
