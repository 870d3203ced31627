"""Weights of verifiers: their average (model soups), and fitted files that are replaced as a whole."""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from knowhalu.encoder.verifier import Verifier
from knowhalu.errors import InputError
from knowhalu.io.fitted_files import HASHED_FILES, WEIGHTS_FILE, WEIGHTS_HASH_FIELD, weights_hash


def average_weights(folders: Sequence[Path], shares: Sequence[float] = ()) -> Verifier:
    """Return the verifier whose weights are the mean of those of `folders`, weighted by `shares` or equally.

    Raises InputError where fewer than two are given, their shapes differ, or the shares do not fit.
    """
    if len(folders) < 2:
        raise InputError("a mean needs the folders of at least two verifiers")
    weights = list(shares) or [1.0] * len(folders)
    if len(weights) != len(folders) or min(weights) < 0 or sum(weights) <= 0:
        raise InputError(f"{len(folders)} verifiers need {len(folders)} shares of 0 or more, not {list(shares)}")
    models = [Verifier.load(folder) for folder in folders]
    shapes = [{k: v.shape for k, v in m.state_dict().items()} for m in models]
    for folder, shape in zip(folders, shapes, strict=True):
        if shape != shapes[0]:
            raise InputError(f"{folder}: its shape differs from that of {folders[0]}; average verifiers of one shape")
    states = [m.state_dict() for m in models]
    parts = [w / sum(weights) for w in weights]
    mean = {k: sum((p * s[k] for p, s in zip(parts, states, strict=True)), torch.zeros_like(v)) for k, v in states[0].items()}
    models[0].load_state_dict(mean)
    return models[0]


@contextmanager
def replace_fitted_file(folder: Path, name: str, start: Mapping[str, Any]) -> Iterator[Path]:
    """Yield a copy of a verifier's folder whose file `name` holds `start`; on success, that file replaces the one in the folder.

    It then records the weights that it was fitted to. Raises InputError where the folder has no weights.
    """
    if not (folder / WEIGHTS_FILE).is_file():
        raise InputError(f"{folder}: there is no {WEIGHTS_FILE}; give the folder of a verifier")
    with tempfile.TemporaryDirectory(prefix=".fit-", dir=folder) as made:
        draft = Path(made)
        for part in HASHED_FILES:
            if part != name and (folder / part).exists():
                (draft / part).symlink_to((folder / part).resolve())
        (draft / name).write_text(json.dumps(start), encoding="utf-8")
        yield draft
        fit = json.loads((draft / name).read_text(encoding="utf-8"))
        (draft / name).write_text(json.dumps(fit | {WEIGHTS_HASH_FIELD: weights_hash(folder)}, indent=1) + "\n", encoding="utf-8")
        (draft / name).replace(folder / name)
