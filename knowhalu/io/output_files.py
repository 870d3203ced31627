"""Output files that are written anew: never over an input, and never over a file that something else made."""

from collections.abc import Iterable
from pathlib import Path

from knowhalu.errors import InputError


def check_output_path(path: Path, start: str, what: str, inputs: Iterable[Path]) -> None:
    """Refuse an output that is an input, or that is there and does not begin as `what` does; raises InputError."""
    if path.resolve() in {p.resolve() for p in inputs}:
        raise InputError(f"{path}: is an input. Nothing was changed. Give another file for {what}.")
    if path.exists() and not (path.is_file() and _begins_with(path, start)):
        raise InputError(f"{path}: exists and is not {what}. Nothing was changed. Give another file.")


def _begins_with(path: Path, start: str) -> bool:
    wanted = start.encode("utf-8")
    with path.open("rb") as file:
        there = file.read(len(wanted))
    return there in (wanted, b"")
