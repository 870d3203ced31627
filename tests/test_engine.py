"""The engine: order, bounds, shared batches, errors that stay their own, and nothing left hanging."""

import asyncio
import threading
import time
from contextlib import aclosing

import pytest

from knowhalu.batching import Batcher
from knowhalu.engine import Backends, Engine, collect
from knowhalu.errors import BackendError, ModelError, ReplyError, StageError
from knowhalu.steps import Completion, Entail, Generate, Hypothesis, Probabilities, Search
from knowhalu.types import Failure, Label, Passage, Sample, Task, Verdict


def sample(i, text="Snow is white."):
    return Sample(id=str(i), response=text)


def samples(n):
    return [sample(i) for i in range(n)]


def verdict(s, probability=0.0):
    fixed = {"task": Task.CLAIM, "method": "asking", "label": Label.CORRECT, "hallucinated": False, "kind": None, "reason": ""}
    return Verdict(id=s.id, probability=probability, **fixed)


def ids(outcomes):
    return [o.id for o in outcomes]


class Asking:
    """A method that asks the encoder `rounds` times, then makes a verdict of the last reply."""

    name = "asking"

    def __init__(self, rounds=2):
        self.rounds, self.open, self.closed = rounds, 0, 0

    def check(self, s):
        self.open += 1
        try:
            for i in range(self.rounds):
                reply = yield Entail((Hypothesis(s.id, f"round {i}"),))
            return verdict(s, reply[0].contradicted)
        finally:
            self.open -= 1
            self.closed += 1


class Blocking:
    """A blocking encoder that notes its batches; pairs of `bad` samples break the whole call."""

    def __init__(self, seconds=0.0, bad=()):
        self.seconds, self.bad, self.batches = seconds, set(bad), []

    def answer_many(self, requests):
        self.batches.append([r.pairs[0].premise for r in requests])
        if self.seconds:
            time.sleep(self.seconds)
        if self.bad.intersection(self.batches[-1]):
            raise ValueError("a bad pair")
        return [[Probabilities(0.5, 0.25, 0.25)] for _ in requests]


class Client:
    """An async encoder: a sample's number says how many milliseconds it takes."""

    def __init__(self):
        self.running = self.most = 0

    async def answer(self, request):
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(int(request.pairs[0].premise) / 1000)
        finally:
            self.running -= 1
        return [Probabilities(1.0, 0.0, 0.0)]


def engine(method=None, backend=None, **options):
    return Engine(method or Asking(), Backends(entail=backend or Blocking()), **options)


def test_outcomes_keep_the_order_of_the_input():
    slow_first = [sample(i) for i in (30, 0, 20, 5, 10)]
    assert ids(engine(backend=Client()).run(slow_first)) == ["30", "0", "20", "5", "10"]


def test_outcomes_come_as_they_finish():
    slow_first = [sample(i) for i in (120, 0, 80, 20, 50)]
    assert ids(engine(Asking(1), Client()).run(slow_first, ordered=False)) == ["0", "20", "50", "80", "120"]


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("count", [0, 1, 7, 500])
def test_every_sample_has_one_outcome(ordered, count):
    found = ids(engine(in_flight=16).run(samples(count), ordered=ordered))
    assert sorted(found, key=int) == ids(samples(count))
    assert not ordered or found == ids(samples(count))


def test_waiting_requests_share_a_call():
    backend = Blocking(0.005)
    list(Engine(Asking(3), Backends(entail=backend, batch=50)).run(samples(100)))
    assert sum(map(len, backend.batches)) == 300
    assert len(backend.batches) <= 12
    assert max(map(len, backend.batches)) == 50


@pytest.mark.parametrize("ordered", [True, False])
def test_an_endless_input_is_read_only_as_far_as_needed(ordered):
    drawn = 0

    def endless():
        nonlocal drawn
        while True:
            drawn += 1
            yield sample(drawn)

    outcomes = engine(in_flight=8).run(endless(), ordered=ordered)
    for seen in range(1, 200):
        next(outcomes)
        assert drawn <= seen + 4 * 8 + 1
    outcomes.close()


def test_a_stuck_first_sample_bounds_what_is_held():
    class Stuck:
        async def answer(self, request):
            if request.pairs[0].premise == "0":
                await asyncio.sleep(0.2)
            return [Probabilities(1.0, 0.0, 0.0)]

    method = Asking(1)
    started = []

    def many():
        for i in range(100):
            started.append(i)
            yield sample(i)

    outcomes = engine(method, Stuck(), in_flight=5).run(many())
    assert next(outcomes).id == "0"
    assert len(started) <= 21
    assert len(list(outcomes)) == 99


def test_a_shared_error_is_asked_again_one_by_one():
    outcomes = {o.id: o for o in engine(backend=Blocking(0.002, bad={"3"})).run(samples(20))}
    assert [k for k, o in outcomes.items() if isinstance(o, Failure)] == ["3"]
    assert outcomes["3"].stage == "internal"
    assert "ValueError: a bad pair" in outcomes["3"].reason


@pytest.mark.parametrize(
    ("error", "stage", "reply"),
    [
        (ReplyError("judge", "no label", reply="hm"), "judge", "hm"),
        (BackendError("entail", "down"), "entail", None),
        (ModelError("no folder"), "set-up", None),
        (ZeroDivisionError("x"), "internal", None),
    ],
)
def test_an_error_of_one_sample_stays_its_own(error, stage, reply):
    class Faulty(Asking):
        def check(self, s):
            if s.id == "2":
                raise error
            return (yield from super().check(s))

    outcomes = list(engine(Faulty()).run(samples(5)))
    assert [isinstance(o, Failure) for o in outcomes] == [False, False, True, False, False]
    assert (outcomes[2].stage, outcomes[2].reply) == (stage, reply)


def test_an_error_that_is_a_reply_reaches_the_method():
    class Retrying:
        name = "retrying"

        def check(self, s):
            try:
                yield Entail((Hypothesis("x", "y"),))
            except StageError:
                return verdict(s, 0.5)

    class Refusing:
        def answer_many(self, requests):
            return [BackendError("entail", "no") for _ in requests]

    assert [o.probability for o in engine(Retrying(), Refusing()).run(samples(3))] == [0.5] * 3


class NoVerdict:
    name = "none"

    def check(self, s):
        yield Entail((Hypothesis("x", "y"),))


class NoGenerator:
    name = "broken"

    def check(self, s):
        raise ValueError("at once")


class BadClose:
    name = "stubborn"

    def check(self, s):
        try:
            yield Entail((Hypothesis("x", "y"),))
        finally:
            yield Entail((Hypothesis("x", "y"),))


@pytest.mark.parametrize("method", [NoVerdict(), NoGenerator(), BadClose()])
def test_a_broken_method_is_a_failure_of_each_sample(method):
    outcomes = list(engine(method, Blocking(bad={"x"})).run(samples(3)))
    assert [type(o) for o in outcomes] == [Failure] * 3


@pytest.mark.parametrize("replies", [lambda n: [], lambda n: None, lambda n: [1] * (n + 1), lambda n: [StopIteration()] * n])
def test_a_backend_that_answers_wrongly_leaves_nobody_waiting(replies):
    class Wrong:
        def answer_many(self, requests):
            return replies(len(requests))

    outcomes = list(engine(backend=Wrong()).run(samples(4)))
    assert [type(o) for o in outcomes] == [Failure] * 4


def test_a_backend_may_answer_by_a_generator():
    class Lazy:
        def answer_many(self, requests):
            yield from ([Probabilities(0.5, 0.5, 0.0)] for _ in requests)

    assert [o.probability for o in engine(backend=Lazy()).run(samples(4))] == [0.5] * 4


def test_a_request_that_nobody_answers_is_a_failure():
    (outcome,) = Engine(Asking(), Backends()).run(samples(1))
    assert (outcome.stage, "no backend answers Entail" in outcome.reason) == ("entail", True)


def test_usage_and_seconds_are_counted():
    class All:
        name = "all"

        def check(self, s):
            yield Entail((Hypothesis("a", "b"), Hypothesis("c", "d")))
            yield Search(("q", "r", "s"), 2)
            yield Generate("prompt")
            return verdict(s)

    class Everything:
        def answer_many(self, requests):
            return [self.one(r) for r in requests]

        def one(self, request):
            match request:
                case Search(queries):
                    return [[Passage(id="1", text="t")] for _ in queries]
                case Generate():
                    return Completion("x", prompt_tokens=7, cached_tokens=5, completion_tokens=1)
            return [Probabilities(1.0, 0.0, 0.0)] * 2

    one = Everything()
    (outcome,) = Engine(All(), Backends(entail=one, search=one, generate=one)).run(samples(1))
    u = outcome.usage
    assert (u.pairs, u.searches, u.calls, u.prompt_tokens, u.cached_tokens, u.completion_tokens) == (2, 3, 1, 7, 5, 1)
    assert set(outcome.seconds) == {"entail", "search", "generate", "total"}


@pytest.mark.parametrize("ordered", [True, False])
def test_an_error_of_the_input_reaches_the_caller_after_what_was_read(ordered):
    def faulty():
        yield from samples(3)
        raise OSError("line 4 is gone")

    seen = []
    with pytest.raises(OSError, match="line 4 is gone"):
        for outcome in engine().run(faulty(), ordered=ordered):
            seen.append(outcome.id)
    assert sorted(seen) == ["0", "1", "2"]


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
