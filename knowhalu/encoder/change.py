"""Factored changes: a trained verifier as its difference from its base encoder, about 11 MB instead of 220.

For each matrix, the file has the best low-rank approximation of the difference (an SVD after the training; LoRA, Hu et al.
2021, trains the factors); for each vector, the difference; the heads, which the base does not have, are stored whole; all in
fp16. The metadata contain the sha256 of the base's weights and tokenizer, and a hash of the tensors.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from knowhalu.encoder.bases import Base, name_of
from knowhalu.encoder.verifier import Verifier, load_for_training
from knowhalu.errors import ModelError

FORMAT = "knowhalu change 1"
HEADS = ("head.", "marker.")
"""Prefixes of the weights that no base has; they are stored whole."""
LEFT, RIGHT, DIFFERENCE, WHOLE = "left:", "right:", "difference:", "whole:"
"""Prefixes of tensors in the file: the two factors of a difference, the difference, or the weight itself."""
MERGED_ROWS = 4096
"""Rows of a matrix that are changed at a time, so that one in fp64 takes little memory."""


@dataclass(frozen=True)
class Change:
    """A change: its base, its tensors, and its metadata."""

    base: Base
    tensors: Mapping[str, Tensor]
    about: Mapping[str, Any]

    def applied(self, name: str, weight: Tensor) -> Tensor:
        """Return a weight of the base with its change, in fp32.

        The sums are exact in fp64, since numbers in fp16 are multiples of 2**-24: the result is the same on every machine.
        Raises KeyError or RuntimeError where the change does not fit the weight.
        """
        if (left := self.tensors.get(LEFT + name)) is not None:
            right = self.tensors[RIGHT + name].double()
            parts = zip(torch.split(weight, MERGED_ROWS), torch.split(left, MERGED_ROWS), strict=True)
            return torch.cat([(rows.double() + factor.double() @ right).float() for rows, factor in parts])
        if (difference := self.tensors.get(DIFFERENCE + name)) is not None:
            if difference.shape != weight.shape:
                raise RuntimeError(f"{name} has the shape {tuple(weight.shape)}, its difference {tuple(difference.shape)}")
            return (weight.double() + difference.double()).float()
        return weight.float()

    @property
    def names(self) -> set[str]:
        """Return the names of the changed weights and of the heads."""
        return {key.partition(":")[2] for key in self.tensors}

    @property
    def heads(self) -> dict[str, Tensor]:
        """Return the weights that the base does not have."""
        return {key.removeprefix(WHOLE): value for key, value in self.tensors.items() if key.startswith(WHOLE)}


def factored(trained: Mapping[str, Tensor], before: Mapping[str, Tensor], rank: int) -> dict[str, Tensor]:
    """Return the tensors of a change, without unchanged weights; the rank of a matrix is at most its smaller side."""
    tensors: dict[str, Tensor] = {}
    for name, weight in trained.items():
        if name.startswith(HEADS):
            tensors[WHOLE + name] = weight
        elif not torch.equal(moved := weight.float() - before[name].float(), torch.zeros_like(moved)):
            if moved.ndim == 2:
                tensors[LEFT + name], tensors[RIGHT + name] = _factors(moved, rank)
            else:
                tensors[DIFFERENCE + name] = moved
    return {name: value.detach().half().contiguous() for name, value in tensors.items()}


def _factors(matrix: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Return `(rows, rank)` and `(rank, columns)`, with the same scale, whose product is the best approximation of that rank."""
    rank = min(rank, *matrix.shape)
    left, size, right = torch.linalg.svd(matrix, full_matrices=False)
    root = size[:rank].sqrt()
    return left[:, :rank] * root, root[:, None] * right[:rank]


def write_change(path: Path, model: Verifier, base: Path, *, rank: int = 32, about: Mapping[str, Any] | None = None) -> None:
    """Write atomically the difference of a model from the base in the folder `base`; `about` is added to the metadata as JSON.

    Raises ModelError where the model has other weights than the base, such as fewer layers.
    """
    before = load_for_training(base).state_dict()
    trained = {k: v.cpu() for k, v in model.state_dict().items()}
    if {k: v.shape for k, v in trained.items()} != {k: v.shape for k, v in before.items()}:
        raise ModelError(f"{path}: the verifier has other weights than {base}, so it has no change. Save it whole")
    tensors = factored(trained, before, rank)
    known = Base.of(base)
    metadata = {
        "format": FORMAT,
        "rank": rank,
        "base": {"name": name_of(known), **asdict(known)},
        **(about or {}),
        "seal": _seal(tensors),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    save_file(tensors, temporary, {name: json.dumps(value) for name, value in metadata.items()})
    temporary.replace(path)


def read_change(path: Path) -> Change:
    """Read a change; raises ModelError where the file is missing, truncated, damaged, or of another format."""
    try:
        with safe_open(path, "pt") as file:
            about = {name: json.loads(value) for name, value in (file.metadata() or {}).items()}
        tensors = load_file(path)
        if about["format"] != FORMAT:
            raise ModelError(f"{path}: this version reads the format {FORMAT!r}, not {about['format']!r}")
        base = Base(about["base"]["weights"], about["base"]["tokenizer"])
        if _seal(tensors) != about["seal"]:
            raise ModelError(f"{path}: the file is damaged: its tensors do not match their hash. Copy it again")
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path}: cannot read the change of weights ({error!r}). Copy the file again") from error
    return Change(base, tensors, about)


def merge(base: Path, path: Path, dropout: float = 0.0) -> Verifier:
    """Return the verifier of a change applied to the base in the folder `base`.

    Raises ModelError where the change belongs to another base, or either cannot be read.
    """
    change = read_change(path)
    refuse_other_base(path, change, Base.of(base), base)
    model = load_for_training(base, dropout)
    weights, heads = model.state_dict(), change.heads
    try:
        for name in change.names:
            weights[name].copy_(heads[name] if name in heads else change.applied(name, weights[name]))
    except (KeyError, RuntimeError, ValueError) as error:
        raise ModelError(f"{path}: its weights do not fit those of {base} ({error!r})") from error
    return model


def refuse_other_base(path: Path, change: Change, present: Base, base: Path | str) -> None:
    """Raise ModelError where a change belongs to another base than the one that is present."""
    for what, wanted, actual in (
        ("weights", change.base.weights, present.weights), ("tokenizer", change.base.tokenizer, present.tokenizer)
    ):  # fmt: skip
        if wanted != actual:
            name = f" ({known})" if (known := name_of(change.base)) else ""
            raise ModelError(
                f"{path}: made for another base than {base}: it needs {what} with the sha256 {wanted}{name}, "
                f"these have {actual}. Give that base, or copy it again"
            )


def _seal(tensors: Mapping[str, Tensor]) -> str:
    """Return a hash over the names, shapes and bytes of tensors."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        value = tensors[name].contiguous()
        digest.update(repr((name, tuple(value.shape), str(value.dtype))).encode() + value.numpy().tobytes())
    return digest.hexdigest()
