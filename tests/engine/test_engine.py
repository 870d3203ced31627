"""The engine: order, bounds, shared batches, and errors that fail one sample only."""

import pytest

from knowhalu.engine.engine import Backends, Engine
from knowhalu.errors import BackendError, ModelError, ReplyError, StageError
from knowhalu.requests import Completion, Entail, EntailmentPair, Generate, Probabilities, Search
from knowhalu.results import Failure
from knowhalu.types import Passage
from tests.support.asking import Asking, Blocking, Client, engine, ids, sample, samples, turns, verdict


def test_outcomes_keep_the_order_of_the_input():
    slow_first = [sample(i) for i in (30, 0, 20, 5, 10)]
    assert ids(engine(backend=Client()).run(slow_first)) == ["30", "0", "20", "5", "10"]


def test_unordered_outcomes_come_as_they_finish():
    slow_first = [sample(i) for i in (120, 0, 80, 20, 50)]
    assert ids(engine(Asking(1), Client()).run(slow_first, ordered=False)) == ["0", "20", "50", "80", "120"]


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("count", [0, 1, 7, 500])
def test_every_sample_has_one_outcome(ordered, count):
    found = ids(engine(in_flight=16).run(samples(count), ordered=ordered))
    assert sorted(found, key=int) == ids(samples(count))
    assert not ordered or found == ids(samples(count))


def test_concurrent_requests_share_a_call():
    backend = Blocking()
    list(Engine(Asking(3), Backends(entail=backend, batch=50)).run(samples(100)))
    assert [len(batch) for batch in backend.batches] == [50] * 6


@pytest.mark.parametrize("ordered", [True, False])
def test_endless_input_is_read_as_needed(ordered):
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


def test_held_outcomes_are_bounded_behind_a_slow_sample():
    class Stuck:
        async def answer(self, request):
            if request.pairs[0].premise == "0":
                await turns(1000)  # far more than the others take to start
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


def test_failed_batch_is_retried_one_by_one():
    outcomes = {o.id: o for o in engine(backend=Blocking(bad={"3"})).run(samples(20))}
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
def test_error_fails_only_its_own_sample(error, stage, reply):
    class Faulty(Asking):
        def check(self, s):
            if s.id == "2":
                raise error
            return (yield from super().check(s))

    outcomes = list(engine(Faulty()).run(samples(5)))
    assert [isinstance(o, Failure) for o in outcomes] == [False, False, True, False, False]
    assert (outcomes[2].stage, outcomes[2].reply) == (stage, reply)


def test_error_reply_is_raised_in_the_method():
    class Retrying:
        name = "retrying"

        def check(self, s):
            try:
                yield Entail((EntailmentPair("x", "y"),))
            except StageError:
                return verdict(s, 0.5)

    class Refusing:
        def answer_many(self, requests):
            return [BackendError("entail", "no") for _ in requests]

    assert [o.probability for o in engine(Retrying(), Refusing()).run(samples(3))] == [0.5] * 3


class NoVerdict:
    name = "none"

    def check(self, s):
        yield Entail((EntailmentPair("x", "y"),))


class NoGenerator:
    name = "broken"

    def check(self, s):
        raise ValueError("at once")


class BadClose:
    name = "stubborn"

    def check(self, s):
        try:
            yield Entail((EntailmentPair("x", "y"),))
        finally:
            yield Entail((EntailmentPair("x", "y"),))


@pytest.mark.parametrize("method", [NoVerdict(), NoGenerator(), BadClose()])
def test_broken_method_is_a_failure_of_each_sample(method):
    outcomes = list(engine(method, Blocking(bad={"x"})).run(samples(3)))
    assert [type(o) for o in outcomes] == [Failure] * 3


class WithoutYield:
    name = "plain"

    def check(self, s):
        return verdict(s)


class OtherSample:
    name = "confused"

    def check(self, s):
        return verdict(s.model_copy(update={"id": "another"}))
        yield


@pytest.mark.parametrize(
    ("method", "reason"), [(WithoutYield(), "`check` is not a generator"), (OtherSample(), "is no result of this sample")]
)
def test_mistake_of_a_method_is_explained(method, reason):
    (outcome,) = engine(method, Blocking()).run(samples(1))
    assert isinstance(outcome, Failure) and reason in outcome.reason
    assert outcome.id == next(iter(samples(1))).id


@pytest.mark.parametrize("replies", [lambda n: [], lambda n: None, lambda n: [1] * (n + 1), lambda n: [StopIteration()] * n])
def test_wrong_number_of_replies_fails_every_request(replies):
    class Wrong:
        def answer_many(self, requests):
            return replies(len(requests))

    outcomes = list(engine(backend=Wrong()).run(samples(4)))
    assert [type(o) for o in outcomes] == [Failure] * 4


def test_backend_may_reply_by_a_generator():
    class Lazy:
        def answer_many(self, requests):
            yield from ([Probabilities(0.5, 0.5, 0.0)] for _ in requests)

    assert [o.probability for o in engine(backend=Lazy()).run(samples(4))] == [0.5] * 4


def test_request_without_a_backend_is_a_failure():
    (outcome,) = Engine(Asking(), Backends()).run(samples(1))
    assert (outcome.stage, "no backend answers Entail" in outcome.reason) == ("entail", True)


def test_usage_and_seconds_are_counted():
    class All:
        name = "all"

        def check(self, s):
            yield Entail((EntailmentPair("a", "b"), EntailmentPair("c", "d")))
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
def test_input_error_is_raised_after_the_outcomes_before_it(ordered):
    def faulty():
        yield from samples(3)
        raise OSError("line 4 is gone")

    seen = []
    with pytest.raises(OSError, match="line 4 is gone"):
        for outcome in engine().run(faulty(), ordered=ordered):
            seen.append(outcome.id)
    assert sorted(seen) == ["0", "1", "2"]
