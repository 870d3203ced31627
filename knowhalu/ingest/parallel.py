"""Doing the jobs of reading here or in other processes: the rows come in the same order either way, in bounded memory."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from knowhalu.errors import InputError
from knowhalu.ingest.records import Job, Row

AHEAD = 3
"""Jobs that are under way for each process."""


def done(found: Iterable[Row | Job], workers: int) -> Iterator[Row]:
    """Yield rows in order, those of jobs from `workers` processes where there is more than one."""
    if workers < 2:
        for item in found:
            yield from item.work(*item.arguments) if isinstance(item, Job) else (item,)
        return
    # spawned, since a fork of a process with the threads of a model in it may hang
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    waiting: deque[Row | Future[list[Row]]] = deque()
    try:
        for item in found:
            waiting.append(pool.submit(item.work, *item.arguments) if isinstance(item, Job) else item)
            if len(waiting) > AHEAD * workers:
                yield from _rows(waiting.popleft())
        while waiting:
            yield from _rows(waiting.popleft())
    except BrokenProcessPool as error:
        raise InputError("a process that reads documents was killed, perhaps for want of memory. Use fewer workers") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _rows(item: "Row | Future[list[Row]]") -> Iterable[Row]:
    return (item,) if isinstance(item, Row) else item.result()
