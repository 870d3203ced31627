"""The engine: runs many checks at once and passes each request to its backend as soon as it is yielded."""

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable, Mapping
from contextlib import aclosing, closing
from typing import Any, Generic, TypeVar, cast

from knowhalu.engine.batcher import AsyncBackend, Batcher, BlockingBackend
from knowhalu.errors import BackendError, KnowHaluError, StageError
from knowhalu.methods.common.protocol import Method
from knowhalu.requests import Completion, Entail, Generate, Request, Search, TagSpans
from knowhalu.results import Failure, Usage
from knowhalu.types import Record, Sample

SampleStream = Iterable[Sample] | AsyncIterable[Sample]
R = TypeVar("R", bound=Record)
"""The result of a conversation: a Verdict, or another record with `usage`, `seconds` and `index`."""


class Backends:
    """The backends of a run by request: `entail` answers `Entail` and `TagSpans`, `search` and `generate` the others.

    Those in `roles` answer the `Generate` requests of their role. Each blocks (`answer_many`) or awaits (`answer`). Blocking
    ones get at most `batch` requests at once.
    """

    def __init__(
        self,
        *,
        entail: BlockingBackend | AsyncBackend | None = None,
        search: BlockingBackend | AsyncBackend | None = None,
        generate: BlockingBackend | AsyncBackend | None = None,
        roles: Mapping[str, BlockingBackend | AsyncBackend] | None = None,
        batch: int = 64,
    ) -> None:
        self._given: dict[type | str, BlockingBackend | AsyncBackend | None] = {
            Entail: entail, Search: search, Generate: generate, **{role: backend for role, backend in (roles or {}).items()},
        }  # fmt: skip
        self._batch = batch
        self._open: Counter[asyncio.AbstractEventLoop] = Counter()

    def open(self) -> dict[type | str, AsyncBackend]:
        """Return awaitable backends for the running event loop, by type of request."""
        self._open[asyncio.get_running_loop()] += 1
        opened = {
            kind: Batcher(cast(BlockingBackend, backend), self._batch) if hasattr(backend, "answer_many") else backend
            for kind, backend in self._given.items()
            if backend is not None
        }
        return opened | ({TagSpans: opened[Entail]} if Entail in opened else {})

    async def close(self, opened: dict[type | str, AsyncBackend]) -> None:
        """Stop the batchers of one `open`; the last one of an event loop also closes the connections of clients there."""
        loop = asyncio.get_running_loop()
        self._open[loop] -= 1
        last = not self._open[loop]
        if last:
            del self._open[loop]
        unique = {id(b): b for b in opened.values()}.values()  # one backend may answer two kinds of requests
        await asyncio.gather(*(b.close() for b in unique if isinstance(b, Batcher) or (last and hasattr(b, "close"))))


class Engine(Generic[R]):
    """Check many samples at once by one method.

    At most `in_flight` checks run at a time, and at most four times as many are held, for an input of any length. `index` is the
    seal of the index, which outcomes name where it was searched.
    """

    def __init__(self, method: Method[R], backends: Backends, *, in_flight: int = 128, index: str | None = None) -> None:
        self.method, self.backends, self.in_flight, self.index = method, backends, in_flight, index

    async def stream(self, samples: SampleStream, *, ordered: bool = True) -> AsyncGenerator[R | Failure]:
        """Yield an outcome for every sample, in the order of the input or as they finish.

        An error of the input is raised after the outcomes of the samples before it. Closing the iterator cancels running checks.
        """
        backends = self.backends.open()
        checks = _InFlight(self.in_flight, ordered)
        feeder = asyncio.create_task(self._feed(samples, backends, checks))
        feeder.add_done_callback(lambda _: checks.changed.set())
        try:
            while not feeder.done() or checks.held:
                await checks.changed.wait()
                checks.changed.clear()
                while task := checks.next_done():
                    yield task.result()
            feeder.result()
        finally:
            left: list[asyncio.Task[Any]] = [feeder, *checks.held]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            await self.backends.close(backends)

    async def _feed(self, samples: SampleStream, backends: dict[type | str, AsyncBackend], checks: "_InFlight") -> None:
        """Start a check for every sample, as fast as the bounds allow."""
        async with aclosing(_iterate_samples(samples)) as drawn:
            async for sample in drawn:
                checks.admit(asyncio.create_task(self._check(sample, backends)))
                while checks.is_full:
                    checks.room.clear()
                    await checks.room.wait()

    def run(self, samples: Iterable[Sample], *, ordered: bool = True) -> Generator[R | Failure, None, None]:
        """Yield the outcomes of `stream` to a synchronous caller, also inside the running loop of a notebook."""
        from anyio.from_thread import start_blocking_portal

        with start_blocking_portal() as portal:
            pull = _SyncStream(self.stream(samples, ordered=ordered))
            try:
                while True:
                    try:
                        yield portal.call(pull.next)
                    except StopAsyncIteration:
                        return
            finally:
                portal.call(pull.close)

    async def _check(self, sample: Sample, backends: dict[type | str, AsyncBackend]) -> R | Failure:
        """Check one sample; any error becomes its Failure."""
        try:
            meter = _UsageMeter()
            verdict = await self._converse(sample, backends, meter)
            if getattr(verdict, "id", None) != sample.id:
                raise StageError("internal", f"the method returned {verdict!r:.200}, which is no result of this sample")
            index = self.index if meter.searched_index else None
            thinking = {"thinking": tuple(meter.thinking)} if meter.thinking else {}
            told = {"usage": meter.usage(), "seconds": meter.seconds(), "index": index, **thinking}
            return verdict.model_copy(update=told)
        except StageError as error:
            return Failure(id=sample.id, stage=error.stage, reason=error.reason, reply=error.reply)
        except KnowHaluError as error:
            return Failure(id=sample.id, stage="set-up", reason=str(error))
        except Exception as error:  # noqa: BLE001 - the one place where any error of a check becomes its Failure
            return Failure(id=sample.id, stage="internal", reason=f"{type(error).__name__}: {error}")

    async def _converse(self, sample: Sample, backends: dict[type | str, AsyncBackend], meter: "_UsageMeter") -> R:
        """Run one conversation to its end: pass each request to its backend, and the reply or the error back."""
        checking = self.method.check(sample)
        if not isinstance(checking, Generator):
            reason = "`check` is not a generator: it yields no request. Write `yield from ask(...)`, or `yield` in a branch"
            raise StageError("internal", f"{reason} that is never reached")
        with closing(checking) as conversation:
            try:
                request = next(conversation)
                while True:
                    try:
                        reply = await meter.timed(request, backends)
                    except StageError as error:
                        request = conversation.throw(error)
                    else:
                        request = conversation.send(reply)
            except StopIteration as end:
                result: R = end.value
                return result


class _InFlight:
    """The checks that run, or are done and wait for their turn; both numbers are bounded."""

    def __init__(self, in_flight: int, ordered: bool) -> None:
        self.in_flight, self.ordered, self.running = in_flight, ordered, 0
        self.held: deque[asyncio.Task[Any]] = deque()
        self.changed, self.room = asyncio.Event(), asyncio.Event()
        self._done: deque[asyncio.Task[Any]] = deque()

    @property
    def is_full(self) -> bool:
        return self.running >= self.in_flight or len(self.held) >= 4 * self.in_flight

    def admit(self, task: asyncio.Task[Any]) -> None:
        self.held.append(task)
        self.running += 1
        task.add_done_callback(self._finish)

    def _finish(self, task: asyncio.Task[Any]) -> None:
        self.running -= 1
        if not self.ordered:
            self._done.append(task)
        self.changed.set()
        self.room.set()

    def next_done(self) -> asyncio.Task[Any] | None:
        """Remove and return the next finished check: the oldest of all, or the first that finished."""
        if self.ordered and self.held and self.held[0].done():
            task = self.held.popleft()
        elif self._done:
            task = self._done.popleft()
            self.held.remove(task)
        else:
            return None
        self.room.set()
        return task


class _SyncStream:
    """A stream that is read from another thread, where Ctrl-C may interrupt a read."""

    def __init__(self, stream: AsyncGenerator[Any]) -> None:
        self.stream = stream
        self._reading: asyncio.Task[Any] | None = None

    async def next(self) -> Any:
        self._reading = asyncio.create_task(self._read())
        return await self._reading

    async def _read(self) -> Any:
        return await anext(self.stream)

    async def close(self) -> None:
        # a generator cannot be closed while it runs, so an interrupted read ends first
        if self._reading is not None and not self._reading.done():
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self.stream.aclose()


class _UsageMeter:
    """Count the requests of one check and the time that it waits for each kind; keep what a model thought."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.waited: dict[str, float] = {}
        self.counts: dict[str, int] = {}
        self.thinking: list[str] = []
        self.searched_index = False

    async def timed(self, request: Request[Any], backends: dict[type | str, AsyncBackend]) -> Any:
        backend = backends.get(getattr(request, "role", "")) or backends.get(type(request))
        name = type(request).__name__.lower()
        if backend is None:
            raise BackendError(name, f"no backend answers {type(request).__name__} requests in this run")
        start = time.perf_counter()
        reply = await backend.answer(request)
        self.waited[name] = self.waited.get(name, 0.0) + time.perf_counter() - start
        self._count(request, reply)
        return reply

    def _count(self, request: Request[Any], reply: Any) -> None:
        if isinstance(reply, Completion) and reply.thinking:
            self.thinking.append(reply.thinking)
        match request:
            case Entail(pairs) | TagSpans(pairs):
                counts = {"pairs": len(pairs)}
            case Search(queries):
                self.searched_index |= not request.documents
                counts = {"searches": len(queries)}
            case Generate() if reply.reused:
                counts = {"reused": 1}
            case Generate():
                names = ("prompt_tokens", "cached_tokens", "completion_tokens")
                counts = {"calls": 1, **{n: getattr(reply, n) for n in names}}
        for key, value in counts.items():
            self.counts[key] = self.counts.get(key, 0) + value

    def usage(self) -> Usage:
        return Usage(**self.counts)

    def seconds(self) -> dict[str, float]:
        total = time.perf_counter() - self.began
        return {k: round(v, 6) for k, v in {**self.waited, "total": total}.items()}


async def _iterate_samples(samples: SampleStream) -> AsyncGenerator[Sample]:
    """Iterate over a plain or an async iterable."""
    if isinstance(samples, AsyncIterable):
        async for sample in samples:
            yield sample
    else:
        for sample in samples:
            yield sample


async def collect(engine: Engine[R], samples: SampleStream, *, ordered: bool = True) -> list[R | Failure]:
    """Return all outcomes of a finite input."""
    async with aclosing(engine.stream(samples, ordered=ordered)) as outcomes:
        return [o async for o in outcomes]
