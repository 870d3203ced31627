"""The options of the verifier; this module imports no torch."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from knowhalu.errors import SettingsError
from knowhalu.io.verifier_file import VerifierCard, read_external
from knowhalu.registry import is_known, load_extension
from knowhalu.types import Record

PACKAGED_VERIFIER = Path(__file__).parent.parent / "weights" / "verifier"


class EncoderOptions(Record):
    """Folder and execution of the verifier."""

    folder: Path | None = Field(None, description="folder of the verifier; unset: the packaged one")
    precision: Literal["auto", "fp32", "bf16"] = Field(
        "auto", description="number format; auto: bf16 if the hardware supports it"
    )
    threads: int | None = Field(None, ge=1, description="CPU threads; unset: all cores")
    tokens: int = Field(4096, ge=512, description="maximal number of tokens, with padding, in one forward pass")
    remember: int = Field(100_000, ge=0, description="number of judged pairs cached in memory; 0: none")


def verifier_folder(options: EncoderOptions) -> Path:
    """Return the folder of the verifier: of the packaged one, of a path, or of an installed extension by its name.

    Raises SettingsError where an extension cannot be imported, or is no path.
    """
    folder = options.folder
    if folder is None:
        return PACKAGED_VERIFIER
    if folder.is_dir() or not is_known("verifiers", str(folder)):
        return folder
    extension = load_extension("verifiers", str(folder))
    if not isinstance(extension, str | Path):
        raise SettingsError(f"the verifier {str(folder)!r} is no path of a folder, but {extension!r}. See docs/extending.md")
    return Path(extension)


def judge_card(options: EncoderOptions) -> VerifierCard | None:
    """Return the card of a verifier that is a language model; None for a model that runs as encoder."""
    external = read_external(verifier_folder(options))
    return external.card if external is not None and external.card.kind == "llm-judge" else None
