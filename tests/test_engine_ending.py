"""The engine's end: closed, cancelled or broken off, it leaves no task, thread or conversation behind."""

import asyncio
import threading
import time
from contextlib import aclosing

import pytest

from knowhalu.batching import Batcher
from knowhalu.engine import collect
from knowhalu.steps import Entail, Hypothesis
from tests.asking import Asking, Blocking, Client, engine, ids, sample, samples


def pending():
    return [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]


def test_closing_cancels_what_runs_and_closes_every_conversation():
    method, client = Asking(), Client()

    async def go():
        async with aclosing(engine(method, client).stream([sample(0), *(sample(10_000) for _ in range(20))])) as outcomes:
            assert (await anext(outcomes)).id == "0"
            assert method.open == 20
        assert pending() == []

    asyncio.run(go())
    assert (method.open, method.closed, client.running) == (0, 21, 0)


def test_cancelling_the_caller_leaves_no_task_and_no_thread():
    method = Asking()
    before = threading.active_count()

    async def go():
        caller = asyncio.create_task(collect(engine(method, Blocking(0.05)), samples(50)))
        await asyncio.sleep(0.02)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert pending() == []
        assert threading.active_count() <= before + 1  # the loop's own helper thread

    asyncio.run(go())
    assert method.open == 0
    assert threading.active_count() == before


def test_breaking_off_run_leaves_no_thread():
    method = Asking()
    before = threading.active_count()
    for outcome in engine(method, Blocking(0.01)).run(samples(100)):
        assert outcome.id == "0"
        break
    del outcome
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (threading.active_count(), method.open) == (before, 0)


def test_a_cancelled_async_input_is_cancelled_too():
    closed = []

    async def source():
        try:
            yield sample(0)
            await asyncio.sleep(60)
        finally:
            closed.append(True)

    async def go():
        async with asyncio.timeout(5), aclosing(engine().stream(source())) as outcomes:
            assert (await anext(outcomes)).id == "0"  # though the next sample has not come
        assert pending() == []

    asyncio.run(go())
    assert closed == [True]


def test_run_works_inside_a_running_loop():
    async def go():
        return list(engine().run(samples(3)))

    assert ids(asyncio.run(go())) == ["0", "1", "2"]


def test_an_engine_can_run_again():
    one = engine()
    assert ids(one.run(samples(3))) == ids(one.run(samples(3))) == ["0", "1", "2"]


def test_closing_a_batcher_lets_go_of_all_who_wait():
    async def go():
        desk = Batcher(Blocking(0.05), limit=1)
        waiting = [asyncio.create_task(desk.answer(Entail((Hypothesis("a", "b"),)))) for _ in range(3)]
        await asyncio.sleep(0.02)
        await desk.close()
        return await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 2)

    assert all(isinstance(r, asyncio.CancelledError) for r in asyncio.run(go()))
