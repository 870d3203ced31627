"""The batcher before a blocking backend: waiting requests are answered together, in one worker thread."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from knowhalu.errors import BackendError


class BlockingBackend(Protocol):
    """A backend that blocks and answers many requests at once; an exception as a reply fails its own request only."""

    def answer_many(self, requests: list[Any]) -> Sequence[Any]:
        """Answer every request, in order."""


class AsyncBackend(Protocol):
    """A backend that awaits and answers one request at a time."""

    async def answer(self, request: Any) -> Any:
        """Answer one request."""


class Batcher:
    """Make a blocking backend awaitable: requests that wait at the same time share a call of at most `limit` requests."""

    def __init__(self, backend: BlockingBackend, limit: int = 64) -> None:
        self.backend, self.limit = backend, limit
        self._waiting: deque[tuple[Any, asyncio.Future[Any]]] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=type(backend).__name__)

    async def answer(self, request: Any) -> Any:
        """Answer one request, in a batch with the others that wait."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await future

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            await asyncio.sleep(0)  # tasks that are ready in this turn of the loop join the batch
            batch = [self._waiting.popleft() for _ in range(min(self.limit, len(self._waiting)))]
            batch = [(r, f) for r, f in batch if not f.done()]
            if not batch:
                continue
            try:
                replies = await loop.run_in_executor(self._thread, _answer_batch, self.backend.answer_many, [r for r, _ in batch])
                for (_, future), reply in zip(batch, replies, strict=True):
                    _set_result(future, reply)
            finally:  # a cancelled worker leaves no request waiting
                for _, future in batch:
                    future.cancel()

    async def close(self) -> None:
        """Stop the worker and its thread: waiting requests are cancelled, a call in progress is awaited."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        while self._waiting:
            self._waiting.popleft()[1].cancel()
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)


def _set_result(future: asyncio.Future[Any], reply: Any) -> None:
    """Set a reply, or the exception in its place, unless the request was cancelled."""
    if future.done():
        return
    if isinstance(reply, StopIteration):  # a future refuses StopIteration
        reply = BackendError("backend", "the backend raised StopIteration")
    if isinstance(reply, BaseException):
        future.set_exception(reply)
    else:
        future.set_result(reply)


def _answer_batch(answer_many: Callable[[list[Any]], Sequence[Any]], requests: list[Any]) -> Sequence[Any]:
    """Call the backend; where the call fails, call it again for each request, so that an error fails only its own."""
    try:
        replies = list(answer_many(requests))
    except Exception as error:  # noqa: BLE001 - any exception of a library becomes the failure of its request
        if len(requests) == 1:
            return [error]
        return [_answer_batch(answer_many, [r])[0] for r in requests]
    if len(replies) != len(requests):
        return [BackendError("backend", f"{len(replies)} replies to {len(requests)} requests")] * len(requests)
    return replies
