"""vLLM's engine in a thread of its own: each request joins the running batch at the next step, and leaves it when it is done."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

from knowhalu.errors import BackendError


class _Job(NamedTuple):
    """One prompt with its sampling parameters, and the future that waits for its output."""

    number: str
    prompt: Sequence[int]
    params: Any
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class EngineLoop:
    """Generate with an engine of vLLM for any number of event loops; `lora` is an adapter for every request.

    The thread ends when nothing is left to do, so that the engine can be released.
    """

    def __init__(self, engine: Any, lora: Any = None) -> None:
        self.engine, self.lora = engine, lora
        self._lock = threading.Lock()
        self._numbers = count()
        self._arriving: list[_Job] = []
        self._cancelled: list[str] = []
        self._running: dict[str, _Job] = {}
        self._thread: threading.Thread | None = None
        self._broken: BackendError | None = None

    async def generate(self, prompt: Sequence[int], params: Any) -> Any:
        """Return vLLM's output for one prompt; raises BackendError where vLLM refuses it or fails."""
        loop = asyncio.get_running_loop()
        job = _Job(f"knowhalu-{next(self._numbers)}", prompt, params, loop, loop.create_future())
        with self._lock:
            if self._broken is not None:
                raise self._broken
            self._arriving.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="vllm-engine", daemon=True)
                self._thread.start()
        try:
            return await job.future
        except asyncio.CancelledError:
            with self._lock:
                self._cancelled.append(job.number)
            raise

    def _work(self) -> None:
        """Step until no request is left."""
        while True:
            with self._lock:
                arriving, self._arriving = self._arriving, []
                cancelled, self._cancelled = self._cancelled, []
                if not arriving and not self._running:
                    self._thread = None
                    return
            try:
                self._add([job for job in arriving if job.number not in cancelled])
                self._abort(cancelled)
                self._step()
            except Exception as error:  # noqa: BLE001 - an engine that failed cannot be used again
                self._fail(error, arriving)

    def _add(self, jobs: list[_Job]) -> None:
        for job in jobs:
            try:
                self.engine.add_request(job.number, {"prompt_token_ids": list(job.prompt)}, job.params, lora_request=self.lora)
            except (ValueError, TypeError) as error:  # this request alone is refused
                _deliver(job, BackendError("generate", f"vLLM refused the request ({error})"))
            else:
                self._running[job.number] = job

    def _abort(self, cancelled: list[str]) -> None:
        """Abort the requests that nobody waits for any more."""
        if gone := [number for number in cancelled if self._running.pop(number, None)]:
            self.engine.abort_request(gone)

    def _step(self) -> None:
        if not self._running:
            return
        if not self.engine.has_unfinished_requests():
            raise RuntimeError("requests were lost")
        for output in self.engine.step():
            if output.finished and (job := self._running.pop(output.request_id, None)):
                _deliver(job, output)

    def _fail(self, error: Exception, arriving: list[_Job]) -> None:
        with self._lock:
            self._broken = BackendError("generate", f"vLLM stopped ({type(error).__name__}: {error}). See its log above")
            left, self._arriving = [*arriving, *self._running.values(), *self._arriving], []
            self._running.clear()
        for job in left:
            _deliver(job, self._broken)


def _deliver(job: _Job, result: Any) -> None:
    """Hand a result or an error to the event loop that waits for it."""

    def settle() -> None:
        if not job.future.done():
            place: Callable[[Any], None] = job.future.set_exception if isinstance(result, Exception) else job.future.set_result
            place(result)

    try:
        job.loop.call_soon_threadsafe(settle)
    except RuntimeError:  # the loop is closed: nobody waits
        pass
