"""How a script of the training ends."""

import sys
from collections.abc import Callable

from knowhalu.errors import KnowHaluError


def command(main: Callable[[], int | None]) -> None:
    """Run a script and exit; an error that this library raises on purpose is one line and no traceback."""
    try:
        sys.exit(main())
    except KnowHaluError as error:
        sys.exit(f"error: {error}")
