"""The end of an engine: closed, cancelled or abandoned, it leaves no task, thread or conversation."""

import asyncio
import threading
from contextlib import aclosing

import pytest

from knowhalu.engine.batcher import Batcher
from knowhalu.engine.engine import collect
from knowhalu.requests import Entail, EntailmentPair
from tests.support.asking import Asking, Client, Held, engine, ids, sample, samples, turns
from tests.support.hanging import HANG


def pending():
    return [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]


def test_closing_cancels_checks_and_closes_conversations():
    method, client = Asking(), Client()

    async def go():
        async with aclosing(engine(method, client).stream([sample(0), *(sample(10_000) for _ in range(20))])) as outcomes:
            assert (await anext(outcomes)).id == "0"
            assert method.open == 20
        assert pending() == []

    asyncio.run(go())
    assert (method.open, method.closed, client.running) == (0, 21, 0)


def test_cancelled_caller_leaves_no_task_and_no_thread():
    method, encoder = Asking(), Held()

    async def go():
        caller = asyncio.create_task(collect(engine(method, encoder), samples(50)))
        assert await asyncio.to_thread(encoder.begun.wait, HANG)
        caller.cancel()
        await turns(100)
        assert not caller.done()  # the call under way is waited for
        encoder.go.set()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert pending() == []
        assert not encoder.thread.is_alive()

    asyncio.run(go())
    assert method.open == 0


def test_abandoned_run_leaves_no_thread():
    encoder = Held(at=3)  # the first outcome comes with the second batch

    class BrokenOff(Asking):
        def check(self, s):
            self.thread = threading.current_thread()
            try:
                return (yield from super().check(s))
            except GeneratorExit:
                encoder.go.set()
                raise

    method = BrokenOff()
    for outcome in engine(method, encoder).run(samples(100)):
        assert outcome.id == "0"
        assert encoder.begun.wait(HANG)
        assert not encoder.go.is_set()
        break
    assert method.open == 0
    assert not method.thread.is_alive()
    assert not encoder.thread.is_alive()


def test_async_input_is_cancelled_with_the_stream():
    closed = []

    async def source():
        try:
            yield sample(0)
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    async def go():
        async with asyncio.timeout(HANG), aclosing(engine().stream(source())) as outcomes:
            assert (await anext(outcomes)).id == "0"  # though the next sample has not come
        assert pending() == []

    asyncio.run(go())
    assert closed == [True]


def test_run_works_inside_a_running_loop():
    async def go():
        return list(engine().run(samples(3)))

    assert ids(asyncio.run(go())) == ["0", "1", "2"]


def test_engine_can_run_twice():
    one = engine()
    assert ids(one.run(samples(3))) == ids(one.run(samples(3))) == ["0", "1", "2"]


def test_closing_a_batcher_cancels_waiting_requests():
    async def go():
        encoder = Held()
        desk = Batcher(encoder, limit=1)
        waiting = [asyncio.create_task(desk.answer(Entail((EntailmentPair("a", "b"),)))) for _ in range(3)]
        assert await asyncio.to_thread(encoder.begun.wait, HANG)
        closing = asyncio.create_task(desk.close())
        found = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), HANG)
        encoder.go.set()
        await closing
        return found

    assert all(isinstance(r, asyncio.CancelledError) for r in asyncio.run(go()))
