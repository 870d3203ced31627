"""Progress of a build."""

import time
from collections.abc import Callable
from typing import Literal, NamedTuple

BuildStage = Literal["reading", "embedding", "indexing"]


class BuildProgress(NamedTuple):
    """Documents, passages and duplicates so far, and the progress of the current stage.

    While reading, `done` counts documents and `total` is unknown (0); after that, both count passages. `rate` is per second in
    this process, `left` the remaining seconds at that rate (None where unknown), `memory` the peak memory of the process in
    bytes.
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
    """Report the progress of a stage to a callback; `before` was done by an earlier process."""

    def __init__(self, watch: ProgressCallback, stage: BuildStage, *, total: int = 0, before: int = 0) -> None:
        self._watch, self._stage, self._total, self._before = watch, stage, total, before
        self._started = time.perf_counter()

    def show(self, documents: int, passages: int, duplicates: int, done: int) -> None:
        """Report the counts and the progress of the stage."""
        rate = (done - self._before) / max(time.perf_counter() - self._started, 1e-9)
        left = (self._total - done) / rate if self._total and rate > 0 else None
        self._watch(BuildProgress(documents, passages, duplicates, self._stage, done, self._total, rate, left, peak_memory()))


def peak_memory() -> int:
    """Return the peak memory of this process in bytes; 0 where the system does not report it."""
    try:
        import resource
    except ImportError:
        return 0
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
