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

from knowhalu.encoder.verifier import Verifier, load_for_training
from knowhalu.errors import ModelError

FORMAT = "knowhalu change 1"
HEADS = ("head.", "marker.")
"""Prefixes of the weights that no base has; they are stored whole."""
LEFT, RIGHT, DIFFERENCE, WHOLE = "left:", "right:", "difference:", "whole:"
"""Prefixes of tensors in the file: the two factors of a difference, the difference, or the weight itself."""


@dataclass(frozen=True)
class Base:
    """A base encoder, by the sha256 of its `model.safetensors` and `tokenizer.json`."""

    weights: str
    tokenizer: str

    @classmethod
    def of(cls, folder: Path) -> "Base":
        """Hash the files of a folder; raises ModelError where one cannot be read."""
        return cls(_sha256(folder / "model.safetensors"), _sha256(folder / "tokenizer.json"))


KNOWN = {
    "all-mpnet-base-v2": Base(
        weights="78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
        tokenizer="b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
    ),
}
"""Bases by name. Other bases are allowed; a change names its base by hash."""


def name_of(base: Base) -> str | None:
    """Return the name of a known base; None for other bases."""
    return next((name for name, known in KNOWN.items() if known == base), None)


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"{path}: cannot read the file ({error})") from error


@dataclass(frozen=True)
class Change:
    """A change: its base, its tensors, and its metadata."""

    base: Base
    tensors: Mapping[str, Tensor]
    about: Mapping[str, Any]


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
    _refuse_other_base(path, change, base)
    model = load_for_training(base, dropout)
    weights = model.state_dict()
    try:
        for key, value in change.tensors.items():
            kind, name = key[: key.index(":") + 1], key[key.index(":") + 1 :]
            if kind == LEFT:
                weights[name] += value.float() @ change.tensors[RIGHT + name].float()
            elif kind == DIFFERENCE:
                weights[name] += value.float()
            elif kind == WHOLE:
                weights[name].copy_(value)
    except (KeyError, RuntimeError, ValueError) as error:
        raise ModelError(f"{path}: its weights do not fit those of {base} ({error!r})") from error
    return model


def _refuse_other_base(path: Path, change: Change, base: Path) -> None:
    present = Base.of(base)
    for what, wanted, actual in (
        ("weights", change.base.weights, present.weights), ("tokenizer", change.base.tokenizer, present.tokenizer)
    ):  # fmt: skip
        if wanted != actual:
            name = f" ({known})" if (known := name_of(change.base)) else ""
            raise ModelError(
                f"{path}: made for another base than {base}: it needs {what} with the sha256 {wanted}{name}, these have {actual}"
            )


def _seal(tensors: Mapping[str, Tensor]) -> str:
    """Return a hash over the names, shapes and bytes of tensors."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        value = tensors[name].contiguous()
        digest.update(repr((name, tuple(value.shape), str(value.dtype))).encode() + value.numpy().tobytes())
    return digest.hexdigest()
