"""How a script of the training reads its budget, and how it ends."""

import argparse
import sys
from collections.abc import Callable

from knowhalu.errors import KnowHaluError


def command(main: Callable[[], int | None]) -> None:
    """Run a script and exit; an error that this library raises on purpose is one line and no traceback."""
    try:
        sys.exit(main())
    except KnowHaluError as error:
        sys.exit(f"error: {error}")


def budget_of(kind: Callable[[str], float], text: str) -> float:
    """Read a budget."""
    try:
        value = kind(text)
    except ValueError:
        value = 0
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text!r}: a budget is a number above 0")
    return value
