"""Doing the jobs of reading here or in other processes: the rows come in the same order either way, in bounded memory."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from knowhalu.errors import InputError
from knowhalu.ingest.records import ReadJob, SourceRow

QUEUED_JOBS_PER_WORKER = 3
"""Jobs that are under way for each process."""


def run_jobs(found: Iterable[SourceRow | ReadJob], workers: int) -> Iterator[SourceRow]:
    """Yield rows in order, those of jobs from `workers` processes where there is more than one."""
    if workers < 2:
        for item in found:
            yield from item.work(*item.arguments) if isinstance(item, ReadJob) else (item,)
        return
    # spawned, since a fork of a process with the threads of a model in it may hang
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    waiting: deque[SourceRow | Future[list[SourceRow]]] = deque()
    try:
        for item in found:
            waiting.append(pool.submit(item.work, *item.arguments) if isinstance(item, ReadJob) else item)
            if len(waiting) > QUEUED_JOBS_PER_WORKER * workers:
                yield from _rows_of_item(waiting.popleft())
        while waiting:
            yield from _rows_of_item(waiting.popleft())
    except BrokenProcessPool as error:
        raise InputError("a process that reads documents was killed, perhaps for want of memory. Use fewer workers") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _rows_of_item(item: "SourceRow | Future[list[SourceRow]]") -> Iterable[SourceRow]:
    return (item,) if isinstance(item, SourceRow) else item.result()
