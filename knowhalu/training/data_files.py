"""Training files: labelled rows in JSON lines, the held-out eighth of all sources, and helpers of the scripts."""

import argparse
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from knowhalu.errors import KnowHaluError
from knowhalu.io.fitted_files import file_hash
from knowhalu.io.rows import read_rows

TrainingRow = dict[str, Any]


def is_held_out(key: str, share: int = 8) -> bool:
    """Return whether a source belongs to the held-out eighth, on which judgments are fitted and verifiers measured."""
    return hashlib.sha256(key.encode()).digest()[0] % share == 0


def is_in_portion(key: str, portion: float) -> bool:
    """Return whether a source belongs to a portion of all sources, 0 to 1; a larger portion contains a smaller one."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[1:5]) < portion * 2**32


def hash_training_files(paths: Iterable[Path]) -> str:
    """Return a hash over the names and contents of files; a missing file changes it, too."""
    known = sorted((p.name, file_hash(p)) for p in paths)
    return hashlib.sha256(repr(known).encode()).hexdigest()[:16]


def read_training_rows(path: Path) -> Iterator[TrainingRow]:
    """Yield the rows of a file in any format of `read_rows`; raises InputError with file and line."""
    return (row.fields for row in read_rows(path))


def text_of(row: TrainingRow) -> str:
    """Return the source text of a row, from whichever field holds it."""
    return str(row.get("source") or row.get("document") or row.get("knowledge") or row["text"])


def run_script(main: Callable[[], int | None]) -> None:
    """Run a script and exit; an error of this library is printed as one line without a traceback."""
    try:
        sys.exit(main())
    except KnowHaluError as error:
        sys.exit(f"error: {error}")


def parse_budget(kind: Callable[[str], float], text: str) -> float:
    """Parse a budget of the command line."""
    try:
        value = kind(text)
    except ValueError:
        value = 0
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text!r}: give a number above 0")
    return value
