"""What was fitted to a verifier's weights holds for these only, so a fit names them by their hash."""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from knowhalu.errors import ModelError

WEIGHTS_HASH_FIELD = "fitted_to"
"""The field of a fit that holds the hash of the weights."""
WEIGHTS_FILE = "model.safetensors"
FITTED_FILES = ("judgment.json", "factored.json", "marks.json")
HASHED_FILES = (WEIGHTS_FILE, "config.json", "tokenizer.json", *FITTED_FILES)
"""The files that make a verifier: its weights, its shape, its tokens, and what was fitted to the weights."""


def file_hash(path: Path) -> str:
    """Return the first 16 hexadecimal digits of a file's sha256; "missing" where there is none."""
    if not path.is_file():
        return "missing"
    at = path.stat()
    return _hash_contents(path.resolve(), at.st_size, at.st_mtime_ns)


@lru_cache(maxsize=64)
def _hash_contents(path: Path, _size: int, _changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def weights_hash(folder: Path) -> str:
    """Return the hash of a verifier's weights."""
    return file_hash(folder / WEIGHTS_FILE)


def check_fitted_weights(path: Path, fit: Mapping[str, Any], script: str) -> None:
    """Raise ModelError where a fit belongs to other weights than those in its folder; one that names none is taken as it is."""
    known = fit.get(WEIGHTS_HASH_FIELD)
    if known is not None and known != (found := weights_hash(path.parent)):
        raise ModelError(f"{path}: fitted to other weights ({known}) than those beside it ({found}); fit anew with {script}")
