"""Losses of the two heads (classes, unsupported tokens) with their targets, and learning rates by layer."""

import re
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from knowhalu.encoder.verifier import EncodedPair, PairTokenizer
from knowhalu.errors import KnowHaluError
from knowhalu.training.examples import UNSUPPORTED, TrainingExample

_LAYER = re.compile(r"encoder\.(?:.+\.)?layers?\.(\d+)\.")


def class_loss(
    logits: Tensor, targets: Tensor, soft: Tensor | None = None, *, smoothing: float = 0.0, focus: float = 0.0
) -> Tensor:
    """Cross-entropy; for UNSUPPORTED targets the probability of contradicted and neutral together.

    `smoothing` gives that share of the target to all three classes alike; `focus` weighs an example by (1 - p)^focus, p being
    the probability of its target (Lin et al. 2017, focal loss). Where `soft` has probabilities `(rows, 3)`, not NaN, half of the
    loss is the cross-entropy with them (Hinton et al. 2015, distillation).
    """
    logp = F.log_softmax(logits.float(), dim=-1)
    known = logp.gather(1, targets.clamp(max=2)[:, None]).squeeze(1)
    either = torch.logsumexp(logp[:, 1:], dim=-1)
    met = torch.where(targets == UNSUPPORTED, either, known)
    loss = -(1 - smoothing) * met - smoothing * logp.mean(-1)
    if focus:
        loss = loss * (1 - met.exp()).clamp(min=1e-6) ** focus  # at 0 a power below 1 has no slope
    if soft is not None:
        known_view = ~soft[:, 0].isnan()
        view = -(soft.nan_to_num() * logp).sum(-1)
        loss = torch.where(known_view, 0.5 * (loss + view), loss)
    return loss.mean()


def optimizer_step(loss: Tensor, model: nn.Module, optimizer: torch.optim.Optimizer) -> float:
    """Move the weights down the gradient, clipped to norm 1, and return the loss.

    Raises KnowHaluError, before a weight has moved, where the loss or its gradient is not finite.
    """
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    norm = torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
    if not torch.isfinite(loss) or not torch.isfinite(norm):
        raise KnowHaluError("the training has diverged: its loss or gradient is no number; start anew with a lower --rate")
    optimizer.step()
    return float(loss.detach())


def parameter_groups(model: nn.Module, *, rate: float, weight_decay: float, layer_decay: float) -> list[dict[str, object]]:
    """Group the weights that are trained for an optimizer: vectors are not decayed, lower layers move by smaller rates.

    Each layer's rate is `layer_decay` times that of the layer above it; the heads have the whole rate.
    """
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    top = max((int(m.group(1)) for n, _ in named if (m := _LAYER.match(n))), default=-1)
    kinds: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, weight in named:
        factor = layer_decay ** _depth(name, top)
        kinds.setdefault((factor, weight_decay if weight.ndim > 1 else 0.0), []).append(weight)
    return [{"params": p, "weight_decay": d, "factor": f, "lr": rate * f} for (f, d), p in kinds.items()]


def _depth(name: str, top: int) -> int:
    """Return how many layers lie above a weight: 0 for the heads, 1 for the top layer, one more than all for the embeddings."""
    if match := _LAYER.match(name):
        return top - int(match.group(1)) + 1
    return top + 2 if name.startswith("encoder.") else 0


UNKNOWN_TARGET = -1.0
"""The target of tokens of which nothing is known: those of sources and questions, and of claims without marks."""
TokenTargets = tuple[int, list[float]]
"""Where the claim's tokens begin in an input, and the target of each: 1 where it is wrong, 0 where not."""


def token_targets(
    examples: Sequence[TrainingExample], rows: Sequence[EncodedPair], vocabulary: PairTokenizer
) -> list[TokenTargets]:
    """Return the targets of every example's claim; a token is wrong where it shares a character with a wrong stretch."""
    found: list[TokenTargets] = []
    for example, row, places in zip(examples, rows, vocabulary.places([e.claim for e in examples]), strict=True):
        wrong = example.marks
        if wrong is None:
            found.append((0, []))
            continue
        read = places[: len(row.ids) - 1 - row.said]
        found.append((row.said, [float(any(a < end and start < b for a, b in wrong)) for start, end in read]))
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
