"""Backends that engines share which run one after another."""

from collections.abc import Callable
from typing import Any


class BackendPool:
    """Backends for engines that run one after another: the last backend of each kind stays open for the next engine."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Any, Any]] = {}

    def get(self, kind: str, options: Any, make: Callable[[], Any]) -> Any:
        """Return the backend with these options; one with other options is released before the new one is made."""
        if kind not in self._open or self._open[kind][0] != options:
            self._open.pop(kind, None)
            self._open[kind] = (options, make())
        return self._open[kind][1]
