"""How far a build is."""

import time
from collections.abc import Callable
from typing import Literal, NamedTuple

BuildStage = Literal["reading", "embedding", "indexing"]


class BuildProgress(NamedTuple):
    """Documents, passages and duplicates so far, and how much of the present stage is done.

    While reading, `done` and `total` count documents, the latter unknown (0); then they count passages. `rate` is what the
    stage did a second in this process, `left` the seconds that it will still take at that rate (none where unknown), `memory`
    the most bytes that the process had in memory.
    """

    documents: int
    passages: int
    duplicates: int
    stage: BuildStage = "reading"
    done: int = 0
    total: int = 0
    rate: float = 0.0
    left: float | None = None
    memory: int = 0


ProgressCallback = Callable[[BuildProgress], None]


class ProgressMeter:
    """Tell a watcher how a stage goes on; `before` was done by an earlier process."""

    def __init__(self, watch: ProgressCallback, stage: BuildStage, *, total: int = 0, before: int = 0) -> None:
        self._watch, self._stage, self._total, self._before = watch, stage, total, before
        self._started = time.perf_counter()

    def show(self, documents: int, passages: int, duplicates: int, done: int) -> None:
        """Report the counts and what is done of the stage."""
        rate = (done - self._before) / max(time.perf_counter() - self._started, 1e-9)
        left = (self._total - done) / rate if self._total and rate > 0 else None
        self._watch(BuildProgress(documents, passages, duplicates, self._stage, done, self._total, rate, left, peak_memory()))


def peak_memory() -> int:
    """Return the most bytes that this process had in memory; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0
    import sys

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
