"""The options of the verifier; this module imports no torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from knowhalu.errors import SettingsError
from knowhalu.registry import VERIFIERS
from knowhalu.types import Record

PACKAGED_VERIFIER = Path(__file__).parent.parent / "weights" / "verifier"


DEFAULT_VERIFIER = "auto"
"""`base` where it has been added to the cache of models, else `small`."""
OLD_NAME = "folder"
"""The earlier name of `EncoderOptions.verifier`, which held a folder or the name of an extension."""


def rename_old_option(branch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the verifier by their present names; raises SettingsError where both names differ in value.

    A value of the old name that is now the name of a packaged model still means the folder.
    """
    options = dict(branch)
    old = options.pop(OLD_NAME, None)
    if old is None:
        return options
    value = f"./{old}" if str(old) in VERIFIERS else old
    if str(options.setdefault("verifier", value)) != str(value):
        raise SettingsError(f"encoder.{OLD_NAME} is the old name of encoder.verifier, and both are set. Keep encoder.verifier")
    return options


class EncoderOptions(Record):
    """Choice and execution of the verifier."""

    verifier: str = Field(
        DEFAULT_VERIFIER,
        min_length=1,
        description='verifier: "small", "base", or "auto" (base if `knowhalu models add base` was run, else small), a folder, '
        "or the name of an extension",
    )
    sentences: Literal["auto", "small", "same"] = Field(
        "auto", description="verifier of single sentences; auto: small beside base, and else the same as of longer texts"
    )
    precision: Literal["auto", "fp32", "bf16"] = Field(
        "auto", description="number format; auto: bf16 if the hardware supports it"
    )
    threads: int | None = Field(None, ge=1, description="CPU threads; unset: all cores")
    tokens: int = Field(4096, ge=512, description="maximal number of tokens, with padding, in one forward pass")
    remember: int = Field(100_000, ge=0, description="number of judged pairs cached in memory; 0: none")

    @model_validator(mode="before")
    @classmethod
    def _rename(cls, given: Any) -> Any:
        return rename_old_option(given) if isinstance(given, Mapping) else given

    @field_validator("verifier", mode="before")
    @classmethod
    def _name_folder(cls, value: Any) -> Any:
        return str(value) if isinstance(value, Path) else value
