"""Files fitted to the weights of a verifier: each names these weights by their hash, and is valid for them only."""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from knowhalu.errors import ModelError

WEIGHTS_HASH_FIELD = "fitted_to"
"""The field of a fitted file that holds the hash of the weights."""
WEIGHTS_FILE = "model.safetensors"
FITTED_FILES = ("judgment.json", "factored.json", "marks.json")
HASHED_FILES = (WEIGHTS_FILE, "config.json", "tokenizer.json", *FITTED_FILES)
"""The files of a verifier: its weights, its configuration, its tokenizer, and the files fitted to the weights."""


def file_hash(path: Path) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a file; "missing" where there is none."""
    if not path.is_file():
        return "missing"
    status = path.stat()
    return _hash_contents(path.resolve(), status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=64)
def _hash_contents(path: Path, _size: int, _changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def weights_hash(folder: Path) -> str:
    """Return the hash of a verifier's weights; with an external verifier, also of how they are read."""
    from knowhalu.io.verifier_file import read_external

    external = read_external(folder)
    if external is None:
        return file_hash(folder / WEIGHTS_FILE)
    weights = sorted(external.model.glob("*.safetensors")) if external.card.kind != "llm-judge" else []
    files = [*weights, *(external.model / name for name in ("config.json", "tokenizer.json"))]
    parts = [external.card.reading, *(f"{path.name} {file_hash(path)}" for path in files)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def fitted_folder(folder: Path) -> Path:
    """Return the folder of the files that are fitted to a verifier: its own, or the one that its `verifier.toml` names."""
    from knowhalu.io.verifier_file import read_external

    external = read_external(folder)
    return folder if external is None else external.fitted


def check_fitted_weights(path: Path, fit: Mapping[str, Any], script: str, folder: Path | None = None) -> None:
    """Raise ModelError where a fitted file names other weights than the verifier has; one that names none is accepted.

    `folder` is that of the verifier; None: the one of the file.
    """
    named = fit.get(WEIGHTS_HASH_FIELD)
    if named is not None and named != (actual := weights_hash(folder or path.parent)):
        raise ModelError(
            f"{path}: was fitted to other weights ({named}) than those in its folder ({actual}). Run {script} again."
        )
