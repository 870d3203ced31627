"""A method, backends and samples for the tests of the engine."""

import asyncio
import threading

from knowhalu.engine.engine import Backends, Engine
from knowhalu.requests import Entail, EntailmentPair, Probabilities
from knowhalu.results import Verdict
from knowhalu.types import Label, Sample, Task
from tests.support.hanging import HANG


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
                reply = yield Entail((EntailmentPair(s.id, f"round {i}"),))
            return verdict(s, reply[0].contradicted)
        finally:
            self.open -= 1
            self.closed += 1


class Blocking:
    """A blocking encoder that notes its batches; pairs of `bad` samples break the whole call."""

    def __init__(self, bad=()):
        self.bad, self.batches = set(bad), []

    def answer_many(self, requests):
        self.batches.append([r.pairs[0].premise for r in requests])
        if self.bad.intersection(self.batches[-1]):
            raise ValueError("a bad pair")
        return [[Probabilities(0.5, 0.25, 0.25)] for _ in requests]


class Held(Blocking):
    """A blocking encoder whose call number `at` is under way from `begun` until `go`, in `thread`."""

    def __init__(self, at=1):
        super().__init__()
        self.at, self.begun, self.go, self.thread = at, threading.Event(), threading.Event(), None

    def answer_many(self, requests):
        replies = super().answer_many(requests)
        if len(self.batches) == self.at:
            self.thread = threading.current_thread()
            self.begun.set()
            assert self.go.wait(HANG)
        return replies


async def turns(count):
    """Let so many turns of the event loop pass."""
    for _ in range(count):
        await asyncio.sleep(0)


class Client:
    """An async encoder: a sample's number says how many turns of the event loop it takes."""

    def __init__(self):
        self.running = self.most = 0

    async def answer(self, request):
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await turns(int(request.pairs[0].premise))
        finally:
            self.running -= 1
        return [Probabilities(1.0, 0.0, 0.0)]


def engine(method=None, backend=None, **options):
    return Engine(method or Asking(), Backends(entail=backend or Blocking()), **options)
