"""The reply cache: equal requests are sent once, by any number of processes, and never get another reply."""

import asyncio
from dataclasses import replace

import pytest

from knowhalu.build import build_engine
from knowhalu.engine.engine import Backends, Engine
from knowhalu.errors import BackendError
from knowhalu.llm.reply_cache import with_reply_cache
from knowhalu.methods.common.labels import LabelScheme, generate_label
from knowhalu.requests import Completion, Generate
from knowhalu.results import Failure, Verdict
from knowhalu.settings import Settings
from knowhalu.types import Label, Sample, Task
from tests.support.memory_models import REPLY, REQUEST, Model, answer, ask


class Client:
    """The same as an async client."""

    def __init__(self, name="m"):
        self.name, self.asked, self.closed = name, [], 0

    async def identity(self):
        return self.name

    async def answer(self, request):
        self.asked.append(request)
        reply = answer(request)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def close(self):
        self.closed += 1


@pytest.mark.parametrize("kind", [Model, Client])
def test_a_stored_reply_is_returned_with_the_sum_of_its_log_probabilities_and_marked_as_reused(options, kind):
    model = kind()
    assert ask(model, options, REQUEST) == [REPLY]
    assert ask(model, options, REQUEST, REQUEST) == [replace(REPLY, logprobs=(sum(REPLY.logprobs),), reused=True)] * 2
    assert len(model.asked) == 1


def test_what_a_model_thought_is_stored_with_its_reply(options):
    class Thinker(Client):
        async def answer(self, request):
            return replace(await super().answer(request), thinking="Hm, CORRECT")

    model = Thinker()
    assert [ask(model, options, REQUEST)[0].thinking for _ in range(2)] == ["Hm, CORRECT"] * 2
    assert len(model.asked) == 1


@pytest.mark.parametrize("kind", [Model, Client])
def test_every_field_that_determines_a_reply_is_part_of_the_key(options, kind):
    model = kind()
    ask(model, options, REQUEST)
    changes = {"prompt": "x", "system": "x", "prefill": "x", "fixed": 0, "stop": ("x",), "max_tokens": 8, "choices": ("b", "a"),
               "temperature": 0.0, "seed": 5, "turns": (1,)}  # fmt: skip
    assert set(changes) | {"bypass_cache", "role"} == set(REQUEST.__dict__)
    assert ask(model, options, replace(REQUEST, role="critic"))[0].reused  # the identity of its model is part of the key
    for name, value in changes.items():
        (reply,) = ask(model, options, replace(REQUEST, **{name: value}))
        assert not reply.reused, name
    assert len(model.asked) == 1 + len(changes)
    for change in ({"model": "x"}, {"style": "chat"}, {"constrain": "grammar"}, {"precision": "bf16"}, {"backend": "x"}):
        assert not ask(model, options.model_copy(update=change), REQUEST)[0].reused, change
    assert not ask(kind("other weights"), options, REQUEST)[0].reused


@pytest.mark.parametrize("kind", [Model, Client])
def test_options_that_do_not_determine_a_reply_are_not_part_of_the_key(options, kind):
    model = kind()
    ask(model, options, REQUEST)
    for change in ({"url": "http://x/v1"}, {"concurrency": 3}, {"votes": 5}, {"timeout": 1.0}, {"cache_mb": 5}):
        assert ask(model, options.model_copy(update=change), REQUEST)[0].reused, change


@pytest.mark.parametrize("kind", [Model, Client])
def test_a_failure_is_not_stored(options, kind):
    model = kind()
    for _ in range(2):
        (error,) = ask(model, options, Generate("bad"))
        assert isinstance(error, BackendError)
    assert len(model.asked) == 2


@pytest.mark.parametrize("kind", [Model, Client])
def test_the_reply_to_a_request_that_bypasses_the_cache_replaces_the_stored_one(options, kind):
    backend, request = with_reply_cache(kind(), options), Generate("ab")
    backend.cache.put(backend.cache.key("m", request), Completion("unreadable"))
    texts = [ask(kind(), options, asked)[0].text for asked in (request, replace(request, bypass_cache=True), request)]
    assert texts == ["unreadable", "ba", "ba"]


@pytest.mark.parametrize("kind", [Model, Client])
def test_a_blank_reply_is_not_stored(options, kind):
    model = kind()
    for _ in range(2):
        assert not ask(model, options, Generate(" \n"))[0].reused
    assert len(model.asked) == 2


@pytest.mark.parametrize("kind", [Model, Client])
def test_other_weights_in_the_same_folder_are_another_model(options, kind, tmp_path):
    class Silent(kind):
        identity = property(lambda self: getattr(self, "nothing"))  # noqa: B009 - hasattr must say no

    weights = tmp_path / "model" / "model.safetensors"
    weights.parent.mkdir()
    weights.write_bytes(b"one")
    options = options.model_copy(update={"model": str(weights.parent)})
    assert not ask(Silent(), options, REQUEST)[0].reused
    assert ask(Silent(), options, REQUEST)[0].reused
    weights.write_bytes(b"other")
    assert not ask(Silent(), options, REQUEST)[0].reused


def test_other_weights_in_a_folder_under_the_home_folder_are_another_model(options, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "model").mkdir()
    replies = with_reply_cache(Model(), options.model_copy(update={"model": "~/model"}))
    assert replies.cache.folder == tmp_path / "model"


def test_equal_requests_in_a_batch_are_sent_once(options):
    model = Model()
    replies = ask(model, options, Generate("ab"), Generate("bad"), Generate("ab"), Generate("cd"))
    assert [getattr(r, "text", None) for r in replies] == ["ba", None, "ba", "dc"]
    assert [getattr(r, "reused", None) for r in replies] == [False, None, True, False]
    assert len(model.asked) == 3


def test_without_a_cache_the_backend_is_not_wrapped(options):
    model = Model()
    assert with_reply_cache(model, options.model_copy(update={"cache": False})) is model
    assert not (options.cache_folder).exists()


class Twice:
    """A method that asks two things."""

    name = "twice"

    def check(self, sample):
        yield Generate(sample.response)
        yield Generate(sample.response + "!")
        return Verdict(id=sample.id, task=Task.CLAIM, method="twice", label="CORRECT", hallucinated=False, kind=None,
                       probability=0.0, reason="")  # fmt: skip


class Improving:
    """A backend whose replies cannot be read the first two times."""

    def __init__(self):
        self.asked = 0

    def answer_many(self, requests):
        self.asked += len(requests)
        return [Completion("Yes" if self.asked > 2 else "who knows") for _ in requests]


class Choosing(Twice):
    """A method that has the model choose."""

    def check(self, sample):
        scheme = LabelScheme({"Yes": Label.CORRECT, "No": Label.INCORRECT})
        label, _ = yield from generate_label(Generate(sample.response), "\n", scheme)
        verdict = {
            "label": "CORRECT",
            "hallucinated": False,
            "kind": None,
            "probability": 0.0,
            "reason": "Yes" if label is Label.CORRECT else "No",
        }
        return Verdict(id=sample.id, task=Task.CLAIM, method="twice", **verdict)


def test_a_retried_row_bypasses_stored_replies_that_cannot_be_parsed(options):
    model = Improving()
    engine = Engine(Choosing(), Backends(generate=with_reply_cache(model, options)))
    outcomes = [one for _ in range(3) for one in engine.run([Sample(id="1", response="x")])]
    assert isinstance(outcomes[0], Failure)
    assert [o.reason for o in outcomes[1:]] == ["Yes", "Yes"]
    assert model.asked == 3


@pytest.mark.parametrize("kind", [Model, Client])
def test_usage_counts_reused_replies(options, kind):
    def usage():
        engine = Engine(Twice(), Backends(generate=with_reply_cache(kind(), options)))
        (outcome,) = engine.run([Sample(id="1", response="x")])
        return outcome.usage

    first, second = usage(), usage()
    assert (first.calls, first.reused, first.prompt_tokens, first.completion_tokens) == (2, 0, 6, 4)
    assert (second.calls, second.reused, second.prompt_tokens, second.completion_tokens) == (0, 2, 0, 0)


def test_closing_the_cache_closes_its_backend_after_the_last_stream(options):
    client = Client()
    engine = Engine(Twice(), Backends(generate=with_reply_cache(client, options)))
    assert len(list(engine.run([Sample(id="1", response="x")]))) == 1
    assert client.closed == 1

    async def two_at_once():
        first, second = (engine.stream([Sample(id=str(n), response="x") for n in range(3)]) for _ in range(2))
        await anext(first)
        async for _ in second:
            pass
        assert client.closed == 1
        await first.aclose()

    asyncio.run(two_at_once())
    assert client.closed == 2


def test_an_engine_built_from_settings_has_a_cache(monkeypatch, options):
    monkeypatch.setattr("knowhalu.build.llm_backend", lambda name: lambda *given: Model())
    engine = build_engine(Settings(reasoner="llm", llm=options))
    (batcher,) = (d for d in [engine.backends._given[Generate]])
    assert batcher.cache.store.path == options.cache_folder / "replies.sqlite"
