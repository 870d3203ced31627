"""The frame of a training: steps until the budget is used, a running loss, and a checkpoint now and then."""

import math
import time
from collections.abc import Callable
from typing import Protocol, TypeVar


class Clocked(Protocol):
    """Where a run stands: steps, seconds and the running mean of the loss."""

    step: int
    seconds: float
    loss: float


_Progress = TypeVar("_Progress", bound=Clocked)


def paced(
    p: _Progress,
    step: Callable[[], float],
    *,
    done: Callable[[], bool],
    save: Callable[[], None],
    report: Callable[[_Progress], None],
    every: float,
) -> None:
    """Take steps, each giving its loss, until `done`; `save` every `every` seconds and at the end."""
    saved = began = time.monotonic()
    before = p.seconds
    while not done():
        loss = step()
        p.step += 1
        p.loss = loss if math.isnan(p.loss) else 0.98 * p.loss + 0.02 * loss
        now = time.monotonic()
        p.seconds = before + now - began
        report(p)
        if now - saved >= every:
            save()
            saved = now
    save()
