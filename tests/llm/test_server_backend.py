"""The server backend against a faithful fake on loopback, in every dialect and both styles."""

import asyncio

import pytest

from knowhalu.errors import BackendError, ReplyError, SettingsError
from knowhalu.llm import client as wire
from knowhalu.llm.client import read_api_key
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.server_backend import ServerBackend
from knowhalu.requests import Generate
from tests.support.fake_server import FakeServer, running
from tests.support.hanging import HANG
from tests.support.llm_contract import *  # noqa: F403 - the shared tests run here
from tests.support.llm_contract import CHOICE, FREE, LABELS, asker, changed
from tests.support.tiny_model import TinyModel

KINDS = ["vllm", "llamacpp", "sglang", "ollama", "plain"]


def server_for(fake, **options):
    async def at_once(seconds):
        fake.waits = [*getattr(fake, "waits", []), seconds]

    return ServerBackend(LLMOptions(url=fake.url, **options), sleep=at_once)


@pytest.fixture(params=[(kind, template) for kind in KINDS for template in (True, False)], ids=lambda p: f"{p[0]}-{p[1]}")
def llm(request):
    kind, template = request.param
    with running(FakeServer(kind=kind, template=template)) as fake:
        yield asker(server_for(fake))


@pytest.fixture
def fake():
    with running(FakeServer()) as server:
        yield server


def ask(fake, *requests, **options):
    return asker(server_for(fake, **options))(list(requests))


def exact(model, prompt, begun, choices):
    """Return the share of the model's mass that flows into each choice, by following every token."""
    found = dict.fromkeys(choices, 0.0)

    def follow(text, mass):
        for token, p in model.after(prompt, begun + text).items():
            said = (text + token).lstrip()
            able = [c for c in choices if c.startswith(said) or said.startswith(c)]
            if token and len(able) == 1:
                found[able[0]] += mass * p
            elif token and able and mass * p > 1e-7:
                follow(text + token, mass * p)

    follow("", 1.0)
    return {c: p / sum(found.values()) for c, p in found.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_label_probabilities_are_those_of_the_model(kind):
    for number in range(3):
        with running(FakeServer(kind=kind, all_tokens=True)) as fake:
            request = changed(CHOICE, prompt=f"{number}: {CHOICE.prompt}")
            (reply,) = ask(fake, request)
            prompt = f"<user>{request.prompt}</><assistant>"
            wanted = exact(fake.model, prompt, request.begun, LABELS)
            assert reply.choices == pytest.approx(wanted, abs=0.01)  # a second blank is not followed


@pytest.mark.parametrize(("sure", "most"), [(0.6, 13), (0.99, 8), (0.9999, 1)])
def test_the_surer_the_model_the_fewer_requests_a_label_needs(sure, most):
    with running(FakeServer(TinyModel(lambda prompt: "Judgment: INCORRECT", sure))) as fake:
        assert ask(fake, CHOICE)[0].text == "INCORRECT"
        first, *further = [r.body for r in fake.requests if r.method == "POST"]
    assert 1 + len(further) <= most
    assert first["structured_outputs"]["choice"] == [*LABELS, *(f" {label}" for label in LABELS)]
    assert all(body["max_tokens"] == 1 and "structured_outputs" not in body for body in further)


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_break_before_the_label_survives_a_template_that_trims(kind):
    model = TinyModel(lambda prompt: "Judgment:\nINCORRECT", 0.9999)
    with running(FakeServer(model, kind=kind)) as fake:
        (reply,) = ask(fake, changed(CHOICE, begun="Judgment:\n"))
        assert reply.choices["INCORRECT"] > 0.999
        assert len(fake.requests) == 2
        (rest,) = ask(fake, changed(FREE, begun="Judgment:\n"))
        assert rest.text == "INCORRECT"


def test_what_the_server_is_is_asked_once(fake):
    ask(fake, *[FREE] * 20)
    assert [r.method for r in fake.requests].count("GET") == 1
    assert fake.requests[1].body["model"] == "tiny"


def test_a_prefix_that_was_computed_before_is_counted(fake):
    first = ask(fake, changed(FREE, prompt="word " * 60))[0]
    second = ask(fake, changed(FREE, prompt="word " * 60 + "end"))[0]
    assert first.cached_tokens == 0
    assert second.cached_tokens > 200


def test_sampling_habits_of_the_server_are_switched_off(fake):
    ask(fake, FREE)
    body = fake.requests[-1].body
    assert (body["top_p"], body["top_k"], body["repetition_penalty"], body["temperature"]) == (1.0, -1, 1.0, 0.0)


def test_a_model_without_a_chat_template_is_asked_for_plain_completions():
    with running(FakeServer(template=False)) as fake:
        reply = ask(fake, changed(FREE, system="Be kind.", begun="It "), FREE)[0]
        assert reply.text
        last = [r for r in fake.requests if r.path == "/v1/completions"][0]
        assert last.body["prompt"] == "Be kind.\n\nTell me something of the sea.\nIt "
    with running(FakeServer(template=False)) as fake:
        (error,) = ask(fake, FREE, style="chat")
        assert "chat template" in error.reason


@pytest.mark.parametrize(("top", "asked"), [(5, 5), (0, None)])
def test_fewer_log_probabilities_are_asked_for_where_a_server_gives_fewer(top, asked):
    with running(FakeServer(top=top)) as fake:
        (reply,) = ask(fake, CHOICE)
        assert reply.text in LABELS
        assert fake.requests[-1].body.get("top_logprobs") == asked
        assert bool(reply.choices) == bool(asked)


def test_a_server_that_fails_over_log_probabilities_is_asked_without(fake):
    async def without_logits(exchange):
        if "logprobs" not in exchange.body:
            return await exchange.answer()
        said = "logprobs is not supported for models created with logits_all=False"
        await exchange.send(500, {"error": {"message": said}})

    fake.strike("model", without_logits, forever=True)
    (reply,) = ask(fake, CHOICE)
    assert (reply.text in LABELS, reply.choices) == (True, {})
    assert [r.method for r in fake.requests] == ["GET", "POST", "POST", "POST"]


@pytest.mark.parametrize("kind", ["vllm", "plain"])
def test_without_log_probabilities_a_label_has_no_probability(kind):
    with running(FakeServer(TinyModel(lambda prompt: "Judgment: INCORRECT."), kind=kind, logprobs=False)) as fake:
        (reply,) = ask(fake, CHOICE)
        assert (reply.text, reply.choices, reply.logprobs) == ("INCORRECT", {}, ())


def test_a_field_that_the_server_does_not_know_is_left_out(fake):
    async def strict(exchange):
        unknown = next((n for n in ("top_k", "min_p", "structured_outputs") if n in exchange.body), None)
        if unknown is None:
            return await exchange.answer()
        await exchange.send(422, {"detail": [{"type": "extra_forbidden", "loc": ["body", unknown]}]})

    fake.strike("model", strict, forever=True)
    replies = ask(fake, *[CHOICE] * 5)
    assert all(r.text in LABELS and r.choices for r in replies)


def test_which_model_answers_is_told(fake):
    async def told():
        server = server_for(fake)
        try:
            return await server.identity()
        finally:
            await server.close()

    assert asyncio.run(told()) == '{"model": "tiny", "owned_by": "vllm", "root": "/models/tiny"}'


def test_several_models_need_a_choice():
    with running(FakeServer(names=["one", "two"])) as fake:
        (error,) = ask(fake, FREE)
        assert isinstance(error, BackendError)
        assert "the server has one, two. Set llm.model" in error.reason
        assert ask(fake, FREE, model="two")[0].text
        (error,) = ask(fake, FREE, model="three")
        assert "no model 'three' here; the server has one, two" in error.reason


def test_a_prompt_that_is_too_long_says_so_and_is_not_asked_again(fake):
    (error,) = ask(fake, changed(FREE, prompt="word " * 2000))
    assert "maximum context length is 4000 tokens" in error.reason
    assert "--max-model-len" in error.reason
    assert [r.method for r in fake.requests].count("POST") == 1


def test_a_reply_that_names_two_labels_is_none():
    with running(FakeServer(TinyModel(lambda prompt: "Judgment: CORRECT or INCORRECT"), kind="plain", logprobs=False)) as fake:
        (error,) = ask(fake, CHOICE)
        assert isinstance(error, ReplyError)
        assert "CORRECT" in error.reply


def test_an_echo_of_the_begun_reply_is_dropped(fake):
    async def echo(exchange):
        status, payload = fake.reply(exchange)
        payload["choices"][0]["message"]["content"] = "It is " + payload["choices"][0]["message"]["content"]
        await exchange.send(status, payload)

    (plain,) = ask(fake, changed(FREE, begun="It is "))
    fake.strike("model", echo)
    (echoed,) = ask(fake, changed(FREE, begun="It is "))
    assert echoed.text == plain.text


def test_the_key_comes_from_the_environment(fake, monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret")
    ask(fake, FREE, api_key_env="MY_KEY")
    assert fake.requests[-1].headers["authorization"] == "Bearer secret"
    monkeypatch.setenv("MY_KEY", " secret\r")
    ask(fake, FREE, api_key_env="MY_KEY")
    assert fake.requests[-1].headers["authorization"] == "Bearer secret"


def test_a_key_that_cannot_be_sent_is_named(monkeypatch):
    monkeypatch.setenv("MY_KEY", "one\ntwo")
    with pytest.raises(SettingsError, match=r"llm\.api_key_env: the variable MY_KEY holds a key with characters that cannot"):
        read_api_key(LLMOptions(api_key_env="MY_KEY"))


def test_no_more_requests_are_under_way_than_allowed(fake, monkeypatch):
    monkeypatch.setattr(wire, "KEEPALIVE_SECONDS", HANG)  # no connection is let go and made anew
    under_way, most = 0, 0

    async def count(exchange):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        await exchange.answer()

    fake.strike("model", count, forever=True)
    ask(fake, *[FREE] * 30, concurrency=3)
    assert most <= 3
    assert fake.connections <= 3


def test_one_backend_serves_one_loop_after_another(fake):
    server = server_for(fake)
    for _ in range(3):
        assert asker(server)([FREE])[0].text


def test_what_is_drawn_has_the_seed_of_the_request(fake):
    ask(fake, Generate("x", temperature=0.7, seed=11))
    assert (fake.requests[-1].body["seed"], fake.requests[-1].body["temperature"]) == (11, 0.7)
