"""Encoders that verifiers are trained from and that are not packaged: what their files must hash to."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from knowhalu.errors import ModelError


@dataclass(frozen=True)
class Base:
    """The sha256 of an encoder's `model.safetensors` and `tokenizer.json`."""

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
"""Bases by name. Another folder is refused only where a change of weights names one of these."""


def name_of(base: Base) -> str | None:
    """Return the name of a known base, None for another one."""
    return next((name for name, known in KNOWN.items() if known == base), None)


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"{path}: cannot read the file ({error})") from error
