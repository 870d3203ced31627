"""Which server and slot a request gets, and how many requests a server gets at once."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from knowhalu.io.http import NoConnection, NoReply, ServerBusy, TransientFault
from knowhalu.llm.dispatch import CHUNK, MAX_CHUNKS, MAX_FAULTS, MAX_TURNS, PATIENCE, Dispatcher, PromptPrefix
from knowhalu.requests import Generate
from tests.support.hanging import HANG


class Clock:
    """A clock that tests set."""

    now = 0.0

    def __call__(self):
        return self.now


def prefix(stage, sample=""):
    """Return a prompt of a stage: a fixed part, and then the sample."""
    fixed = (stage * CHUNK)[: 3 * CHUNK]
    return PromptPrefix.of(Generate(fixed + (sample * CHUNK)[: 2 * CHUNK], fixed=len(fixed)))


def dispatcher(urls=("a", "b"), slots=(), clock=None, concurrency=64, timeout=100.0):
    return Dispatcher(urls, concurrency, timeout, dict(slots), clock or Clock())


async def visit(places, prompt, tried=()):
    """Send a request that is answered at once; return the server and the number of its slot."""
    async with places.place(prompt, tried) as place:
        return place.server.url, place.slot and place.slot.number


async def strike(places, fault, tried=()):
    with pytest.raises(type(fault)):
        async with places.place(prefix("x"), tried) as place:
            raise fault
    return place.server


def run(test):
    """Run a test without a fixture as a coroutine."""

    def plain():
        asyncio.run(asyncio.wait_for(test(), HANG))

    plain.__name__ = test.__name__
    return plain


@run
async def test_requests_go_to_the_server_with_the_least_to_do():
    places = dispatcher(("a", "b", "c"))
    async with AsyncExitStack() as held:
        for number in range(6):
            await held.enter_async_context(places.place(prefix(str(number))))
        assert [s.in_flight for s in places.servers.values()] == [2, 2, 2]


@run
async def test_a_prompt_goes_where_its_beginning_was_read():
    places = dispatcher()
    async with places.place(prefix("x")) as first:
        assert await visit(places, prefix("y")) == ("b", None)
    assert first.server.url == "a"
    for _ in range(3):
        assert await visit(places, prefix("y", "s")) == ("b", None)
        assert await visit(places, prefix("x", "s")) == ("a", None)


@run
async def test_a_loaded_server_passes_on_prompts_that_it_has_read():
    places = dispatcher()
    async with AsyncExitStack() as held:
        urls = [(await held.enter_async_context(places.place(prefix("x", "s")))).server.url for _ in range(8)]
    assert urls.count("a") > 0 < urls.count("b")


@run
async def test_what_a_server_has_read_is_forgotten_beyond_its_cache():
    places = dispatcher()
    await visit(places, prefix("x"))
    for number in range(MAX_CHUNKS // 5 + 1):
        await visit(places, PromptPrefix.of(Generate("".join(f"{number}.{n}".ljust(CHUNK) for n in range(5)))), tried=("b",))
    assert places.servers["a"].shared(prefix("x")) == 0
    assert len(places.servers["a"].cached) == MAX_CHUNKS


@run
async def test_a_busy_server_keeps_as_many_requests_as_it_has_not_refused():
    places = dispatcher(("a",))
    stacks = [AsyncExitStack() for _ in range(places.servers["a"].places)]
    for stack in stacks:
        await stack.enter_async_context(places.place(prefix("x")))
    for stack in stacks[2:]:
        await stack.__aexit__(ServerBusy, ServerBusy(429, "busy"), None)
    assert places.servers["a"].places == 2


@run
async def test_requests_that_time_out_together_halve_the_limit_once():
    places = dispatcher(("a",))
    before = places.servers["a"].places
    stacks = [AsyncExitStack() for _ in range(before)]
    for stack in stacks:
        await stack.enter_async_context(places.place(prefix("x")))
    for stack in stacks:
        await stack.__aexit__(NoReply, NoReply("late"), None)
    assert places.servers["a"].places == before // 2


@run
async def test_the_limit_grows_while_replies_are_fast_and_falls_before_they_time_out():
    clock = Clock()
    places = dispatcher(("a",), clock=clock, concurrency=20)

    async def rounds(count, seconds):
        for _ in range(count):
            async with AsyncExitStack() as held:
                for _ in range(places.servers["a"].places):
                    await held.enter_async_context(places.place(prefix("x")))
                clock.now += seconds

    await rounds(20, 1.0)
    assert places.servers["a"].places == 20
    await rounds(1, 30.0)
    assert places.servers["a"].places == 20
    await rounds(1, 51.0)
    assert places.servers["a"].places == 10


@run
async def test_an_unreachable_server_gets_nothing_until_its_time_and_then_one_request():
    clock = Clock()
    places = dispatcher(clock=clock)
    assert (await strike(places, NoConnection("gone"))).url == "a"
    assert [await visit(places, prefix("x")) for _ in range(3)] == [("b", None)] * 3
    clock.now = places.servers["a"].back_at
    async with places.place(prefix("x")) as place:
        assert (place.server.url, place.probe) == ("a", True)
        assert await visit(places, prefix("x")) == ("b", None)
    assert not places.servers["a"].dropped


@run
async def test_what_an_unreachable_server_had_read_is_forgotten():
    clock, slots = Clock(), {"a": 2, "b": 2}
    for places in (dispatcher(clock=clock), dispatcher(clock=clock, slots=slots)):
        await visit(places, prefix("x"), tried=("b",))
        server = await strike(places, NoConnection("gone"), tried=("b",))
        assert server.shared(prefix("x")) == 0
        assert all(slot.shared(prefix("x")) == 0 and slot.stage is None for slot in server.slots)


@run
async def test_the_pauses_of_a_server_that_stays_away_double():
    clock = Clock()
    places = dispatcher(clock=clock)
    pauses = []
    for _ in range(7):
        server = await strike(places, NoConnection("gone"), tried=("b",))
        pauses.append(server.back_at - clock.now)
        clock.now = server.back_at
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


@run
async def test_repeated_faults_drop_a_server_and_a_reply_in_between_does_not():
    places = dispatcher()
    for _ in range(MAX_FAULTS - 1):
        await strike(places, TransientFault("500"), tried=("b",))
    await visit(places, prefix("x"), tried=("b",))
    for _ in range(MAX_FAULTS - 1):
        await strike(places, TransientFault("500"), tried=("b",))
    assert not places.servers["a"].dropped
    await strike(places, TransientFault("500"), tried=("b",))
    assert places.servers["a"].dropped


@run
async def test_a_server_that_asks_to_wait_is_left_alone_as_long():
    places = dispatcher()
    server = await strike(places, ServerBusy(429, "busy", wait=7.0))
    assert (server.dropped, server.back_at) == (True, 7.0)


@run
async def test_the_only_server_and_the_last_one_are_always_tried():
    single, several = dispatcher(("a",)), dispatcher()
    for _ in range(5):
        await strike(single, NoConnection("gone"))
        await strike(several, NoConnection("gone"))
    assert await visit(single, prefix("x")) == ("a", None)
    assert (await visit(several, prefix("x")))[0] in ("a", "b")


@run
async def test_each_stage_keeps_a_slot():
    places = dispatcher(("a",), {"a": 3})
    found = [[await visit(places, prefix(stage, str(sample))) for stage in "xyz"] for sample in range(5)]
    assert found == [[("a", 0), ("a", 1), ("a", 2)]] * 5


@run
async def test_slots_of_all_servers_are_used():
    places = dispatcher(slots={"a": 2, "b": 2})
    async with AsyncExitStack() as held:
        taken = [await held.enter_async_context(places.place(prefix("x", str(n)))) for n in range(4)]
    assert {(place.server.url, place.slot.number) for place in taken} == {("a", 0), ("a", 1), ("b", 0), ("b", 1)}


@run
async def test_among_the_slots_of_a_stage_the_one_with_the_sample_is_used():
    places = dispatcher(("a",), {"a": 2})
    async with places.place(prefix("x", "s")):
        assert await visit(places, prefix("x", "t")) == ("a", 1)
    for _ in range(3):
        assert await visit(places, prefix("x", "t")) == ("a", 1)
        assert await visit(places, prefix("x", "s")) == ("a", 0)


@run
async def test_a_stage_without_a_slot_takes_one_of_two_copies_and_else_the_one_used_longest_ago():
    places = dispatcher(("a",), {"a": 3})
    async with places.place(prefix("x")), places.place(prefix("x")):
        await visit(places, prefix("y"))
    assert await visit(places, prefix("z")) == ("a", 0)
    await visit(places, prefix("x"))
    assert await visit(places, prefix("w")) == ("a", 2)


@run
async def test_a_request_waits_for_the_slot_of_its_stage_until_too_many_wait():
    places = dispatcher(("a",), {"a": 2})
    await visit(places, prefix("x"))
    await visit(places, prefix("y"))
    async with places.place(prefix("x")):
        waiting = [asyncio.create_task(visit(places, prefix("x", str(n)))) for n in range(PATIENCE)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        assert await visit(places, prefix("x", "s")) == ("a", 1)
    assert {url for url, _ in await asyncio.gather(*waiting)} == {"a"}


@run
async def test_a_single_slot_answers_the_requests_of_a_stage_before_those_of_the_next():
    places, order = dispatcher(("a",), {"a": 1}), []

    async def note(stage):
        async with places.place(prefix(stage)):
            order.append(stage)
            await asyncio.sleep(0)

    await asyncio.gather(*map(note, "xyxyzxyzx"))
    assert "".join(order) == "xxxxyyyzz"


@run
async def test_a_stage_without_end_leaves_a_slot_to_others_at_last():
    places, order = dispatcher(("a",), {"a": 1}), []

    async def note(stage):
        async with places.place(prefix(stage)):
            order.append(stage)
            await asyncio.sleep(0)

    await asyncio.gather(*map(note, "x" * MAX_TURNS + "y" + "x" * MAX_TURNS))
    assert order.index("y") == MAX_TURNS
    assert len(order) == 2 * MAX_TURNS + 1


@run
async def test_a_cancelled_request_leaves_its_place_and_the_queue():
    places = dispatcher(("a",), {"a": 1})
    async with places.place(prefix("x")):
        task = asyncio.create_task(visit(places, prefix("x")))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    with pytest.raises(asyncio.CancelledError):
        async with places.place(prefix("x")):
            raise asyncio.CancelledError
    assert await visit(places, prefix("x")) == ("a", 0)
    assert places.servers["a"].in_flight == 0
