"""The waiting room before a blocking backend: what waits is handed over together, in one worker thread."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from knowhalu.errors import BackendError


class BlockingBackend(Protocol):
    """A backend that is a blocking library: it answers many requests at once.

    A reply that is an exception belongs to its own request alone.
    """

    def answer_many(self, requests: list[Any]) -> Sequence[Any]:
        """Answer every request, in order."""


class AsyncBackend(Protocol):
    """A backend that is an async client: it answers one request and awaits meanwhile."""

    async def answer(self, request: Any) -> Any:
        """Answer one request."""


class Batcher:
    """Make a blocking backend awaitable: requests that wait at the same time share a call."""

    def __init__(self, backend: BlockingBackend, limit: int = 64) -> None:
        self.backend, self.limit = backend, limit
        self._waiting: deque[tuple[Any, asyncio.Future[Any]]] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=type(backend).__name__)

    async def answer(self, request: Any) -> Any:
        """Answer one request, together with the others that wait."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await future

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            await asyncio.sleep(0)  # whoever is ready in this turn of the loop joins the batch
            batch = [self._waiting.popleft() for _ in range(min(self.limit, len(self._waiting)))]
            batch = [(r, f) for r, f in batch if not f.done()]
            if not batch:
                continue
            try:
                replies = await loop.run_in_executor(self._thread, _answer_batch, self.backend.answer_many, [r for r, _ in batch])
                for (_, future), reply in zip(batch, replies, strict=True):
                    _set_result(future, reply)
            finally:  # where this worker is stopped, nobody may wait for ever
                for _, future in batch:
                    future.cancel()

    async def close(self) -> None:
        """Stop the worker and its thread; whoever still waits is cancelled, a call under way is waited for."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        while self._waiting:
            self._waiting.popleft()[1].cancel()
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)


def _set_result(future: asyncio.Future[Any], reply: Any) -> None:
    """Hand a reply, or the error that stands for it, to the one who waits, if someone still does."""
    if future.done():
        return
    if isinstance(reply, StopIteration):  # no future carries this one
        reply = BackendError("backend", "the backend raised StopIteration")
    if isinstance(reply, BaseException):
        future.set_exception(reply)
    else:
        future.set_result(reply)


def _answer_batch(answer_many: Callable[[list[Any]], Sequence[Any]], requests: list[Any]) -> Sequence[Any]:
    """Call the backend; where a shared call breaks, ask one by one, so that an error stays with its own request."""
    try:
        replies = list(answer_many(requests))
    except Exception as error:  # noqa: BLE001 - whatever a library raises must end as its request's failure
        if len(requests) == 1:
            return [error]
        return [_answer_batch(answer_many, [r])[0] for r in requests]
    if len(replies) != len(requests):
        return [BackendError("backend", f"{len(replies)} replies to {len(requests)} requests")] * len(requests)
    return replies
