"""Weight averaging: one verifier of several that were trained on from the same start (Wortsman et al. 2022, model soups)."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from knowhalu.encoder.verifier import Verifier
from knowhalu.errors import InputError


def averaged(folders: Sequence[Path], shares: Sequence[float] = ()) -> Verifier:
    """Return the verifier whose weights are the mean of those of `folders`, by `shares` or alike.

    Raises InputError where fewer than two are given, their shapes differ, or the shares do not fit.
    """
    if len(folders) < 2:
        raise InputError("weights of at least two verifiers are needed for a mean")
    weights = list(shares) or [1.0] * len(folders)
    if len(weights) != len(folders) or min(weights) < 0 or sum(weights) <= 0:
        raise InputError(f"{len(folders)} verifiers need {len(folders)} shares that are not negative, not {list(shares)}")
    first = Verifier.load(folders[0])
    total: dict[str, Tensor] = {}
    for folder, share in zip(folders, weights, strict=True):
        state = Verifier.load(folder).state_dict()
        if {k: v.shape for k, v in state.items()} != {k: v.shape for k, v in first.state_dict().items()}:
            raise InputError(f"{folder}: a verifier of another shape than {folders[0]}")
        for name, tensor in state.items():
            total[name] = total.get(name, torch.zeros_like(tensor)) + share / sum(weights) * tensor
    first.load_state_dict(total)
    return first
