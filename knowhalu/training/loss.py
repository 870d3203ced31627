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
    """Return the cross-entropy; an UNSUPPORTED target is met by contradicted and neutral together.

    `smoothing` spreads that share of the target over all three classes; `focus` weights an example by (1 - p)^focus, where p is
    the probability of its target (focal loss, Lin et al. 2017). Where `soft` `(rows, 3)` is not NaN, half of the loss is the
    cross-entropy with those probabilities (distillation, Hinton et al. 2015).
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
    """Take one optimizer step with the gradient clipped to norm 1, and return the loss.

    Raises KnowHaluError, before a weight has moved, where the loss or its gradient is not finite.
    """
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    norm = torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
    if not torch.isfinite(loss) or not torch.isfinite(norm):
        raise KnowHaluError("the training has diverged: its loss or gradient is not finite; start again with a lower --rate")
    optimizer.step()
    return float(loss.detach())


def parameter_groups(model: nn.Module, *, rate: float, weight_decay: float, layer_decay: float) -> list[dict[str, object]]:
    """Group the trained weights for an optimizer: vectors are not decayed, and lower layers have smaller rates.

    The rate of each layer is `layer_decay` times that of the layer above it; the heads have the full rate.
    """
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    top = max((int(m.group(1)) for n, _ in named if (m := _LAYER.match(n))), default=-1)
    kinds: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, weight in named:
        factor = layer_decay ** _depth(name, top)
        kinds.setdefault((factor, weight_decay if weight.ndim > 1 else 0.0), []).append(weight)
    return [{"params": p, "weight_decay": d, "factor": f, "lr": rate * f} for (f, d), p in kinds.items()]


def _depth(name: str, top: int) -> int:
    """Return the number of layers above a weight: 0 for the heads, 1 for the top layer, all and one for the embeddings."""
    if match := _LAYER.match(name):
        return top - int(match.group(1)) + 1
    return top + 2 if name.startswith("encoder.") else 0


UNKNOWN_TARGET = -1.0
"""The target of tokens without a label: those of sources and questions, and of claims whose wrong words are not known."""
TokenTargets = tuple[int, list[float]]
"""The index of the claim's first token in an input, and the target of each of its tokens: 1 if wrong, else 0."""


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


def span_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the binary cross-entropy over the labelled tokens; 0 where there is none."""
    known = targets != UNKNOWN_TARGET
    each = F.binary_cross_entropy_with_logits(logits.float(), targets.clamp(min=0), reduction="none")
    return (each * known).sum() / known.sum().clamp(min=1)
