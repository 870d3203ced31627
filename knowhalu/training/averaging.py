"""Weight averaging: one verifier of several that were trained on from the same start (Wortsman et al. 2022, model soups)."""

from collections.abc import Sequence
from pathlib import Path

import torch

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
    models = [Verifier.load(folder) for folder in folders]
    shapes = [{k: v.shape for k, v in m.state_dict().items()} for m in models]
    for folder, shape in zip(folders, shapes, strict=True):
        if shape != shapes[0]:
            raise InputError(f"{folder}: a verifier of another shape than {folders[0]}")
    states = [m.state_dict() for m in models]
    parts = [w / sum(weights) for w in weights]
    mean = {k: sum((p * s[k] for p, s in zip(parts, states, strict=True)), torch.zeros_like(v)) for k, v in states[0].items()}
    models[0].load_state_dict(mean)
    return models[0]
