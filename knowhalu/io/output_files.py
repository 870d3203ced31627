"""Output files: written whole or not at all, never over an input, and never over a file that something else made."""

import os
from collections.abc import Iterable
from pathlib import Path

from knowhalu.errors import InputError


def check_output_path(path: Path, start: str, what: str, inputs: Iterable[Path]) -> None:
    """Raise InputError for an output that is an input, or that exists and does not begin like `what`, an earlier output."""
    if path.resolve() in {p.resolve() for p in inputs}:
        raise InputError(f"{path}: is an input. Nothing was changed. Give another file for {what}.")
    if path.exists() and not (path.is_file() and _begins_with(path, start)):
        raise InputError(f"{path}: exists and is not {what}. Nothing was changed. Give another file.")


def write_text(path: Path, text: str | Iterable[str]) -> None:
    """Write a text, or its parts, to a file whole or not at all; another process sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines([text] if isinstance(text, str) else text)
    os.replace(temporary, path)


def _begins_with(path: Path, start: str) -> bool:
    wanted = start.encode("utf-8")
    with path.open("rb") as file:
        beginning = file.read(len(wanted))
    return beginning in (wanted, b"")
