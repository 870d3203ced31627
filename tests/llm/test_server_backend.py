"""The server backend against a fake server with real sockets, in every dialect and both styles."""

import asyncio

import pytest

from knowhalu.errors import BackendError, ReplyError, SettingsError
from knowhalu.io import http
from knowhalu.llm.client import error_text, read_api_key
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.server_backend import ServerBackend
from knowhalu.requests import Generate
from tests.support.fake_server import FakeServer, running
from tests.support.hanging import HANG
from tests.support.llm_contract import *  # noqa: F403 - the shared tests run here
from tests.support.llm_contract import CHOICE, FREE, LABELS, asker, changed
from tests.support.server_faults import status
from tests.support.tiny_model import TinyModel

KINDS = ["vllm", "llamacpp", "sglang", "ollama", "plain"]


def server_for(fake, **options):
    async def at_once(seconds):
        fake.waits = [*getattr(fake, "waits", []), seconds]

    return ServerBackend(LLMOptions(**{"url": fake.url, **options}), sleep=at_once)


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
        with running(FakeServer(kind=kind, all_tokens=True, named=False)) as fake:
            request = changed(CHOICE, prompt=f"{number}: {CHOICE.prompt}")
            (reply,) = ask(fake, request)
            prompt = f"<user>{request.prompt}</><assistant>"
            wanted = exact(fake.model, prompt, request.prefill, LABELS)
            assert reply.choices == pytest.approx(wanted, abs=0.01)  # a second blank is not followed


@pytest.mark.parametrize(("sure", "most"), [(0.6, 13), (0.99, 8), (0.9999, 1)])
def test_a_confident_model_needs_fewer_requests_for_a_label(sure, most):
    with running(FakeServer(TinyModel(lambda prompt: "Judgment: INCORRECT", sure), named=False)) as fake:
        assert ask(fake, CHOICE)[0].text == "INCORRECT"
        first, *further = [r.body for r in fake.requests if r.path == "/v1/chat/completions"]
    assert 1 + len(further) <= most
    assert first["structured_outputs"]["choice"] == [*LABELS, *(f" {label}" for label in LABELS)]
    assert all(body["max_tokens"] == 1 and "structured_outputs" not in body for body in further)


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_break_before_the_label_survives_a_template_that_trims(kind):
    model = TinyModel(lambda prompt: "Judgment:\nINCORRECT", 0.9999)
    with running(FakeServer(model, kind=kind)) as fake:
        (reply,) = ask(fake, changed(CHOICE, prefill="Judgment:\n"))
        assert reply.choices["INCORRECT"] > 0.999
        assert [r.path for r in fake.requests].count("/v1/chat/completions") == 1
        (rest,) = ask(fake, changed(FREE, prefill="Judgment:\n"))
        assert rest.text == "INCORRECT"


def test_the_list_of_models_is_requested_once(fake):
    ask(fake, *[FREE] * 20)
    assert [r.method for r in fake.requests].count("GET") == 1
    assert fake.requests[1].body["model"] == "tiny"


def test_cached_prompt_tokens_are_counted(fake):
    first = ask(fake, changed(FREE, prompt="word " * 60))[0]
    second = ask(fake, changed(FREE, prompt="word " * 60 + "end"))[0]
    assert first.cached_tokens == 0
    assert second.cached_tokens > 200


def test_sampling_defaults_of_the_server_are_switched_off(fake):
    ask(fake, FREE)
    body = fake.requests[-1].body
    assert (body["top_p"], body["top_k"], body["repetition_penalty"], body["temperature"]) == (1.0, -1, 1.0, 0.0)


def test_a_model_without_a_chat_template_gets_plain_completions():
    with running(FakeServer(template=False)) as fake:
        reply = ask(fake, changed(FREE, system="Be kind.", prefill="It "), FREE)[0]
        assert reply.text
        prompts = {r.body["prompt"] for r in fake.requests if r.path == "/v1/completions"}
        assert "Be kind.\n\nTell me something of the sea.\nIt " in prompts
    with running(FakeServer(template=False)) as fake:
        (error,) = ask(fake, FREE, style="chat")
        assert "chat template" in error.reason


@pytest.mark.parametrize(("top", "asked"), [(5, 5), (0, None)])
def test_fewer_log_probabilities_are_requested_where_the_server_limits_them(top, asked):
    with running(FakeServer(top=top, named=False)) as fake:
        (reply,) = ask(fake, CHOICE)
        assert reply.text in LABELS
        assert fake.requests[-1].body.get("top_logprobs") == asked
        assert bool(reply.choices) == bool(asked)


def test_log_probabilities_are_left_out_where_the_server_fails_on_them(fake):
    async def without_logits(exchange):
        if "logprobs" not in exchange.body:
            return await exchange.answer()
        said = "logprobs is not supported for models created with logits_all=False"
        await exchange.send(500, {"error": {"message": said}})

    fake.strike("model", without_logits, forever=True)
    (reply,) = ask(fake, CHOICE)
    assert (reply.text in LABELS, reply.choices) == (True, {})
    assert [r.path for r in fake.requests].count("/v1/chat/completions") == 3


@pytest.mark.parametrize("kind", ["vllm", "plain"])
def test_without_log_probabilities_a_label_has_no_probability(kind):
    with running(FakeServer(TinyModel(lambda prompt: "Judgment: INCORRECT."), kind=kind, logprobs=False)) as fake:
        (reply,) = ask(fake, CHOICE)
        assert (reply.text, reply.choices, reply.logprobs) == ("INCORRECT", {}, ())


def test_a_field_that_the_server_rejects_is_left_out(fake):
    async def strict(exchange):
        unknown = next((n for n in ("top_k", "min_p", "structured_outputs") if n in exchange.body), None)
        if unknown is None:
            return await exchange.answer()
        await exchange.send(422, {"detail": [{"type": "extra_forbidden", "loc": ["body", unknown]}]})

    fake.strike("model", strict, forever=True)
    replies = ask(fake, *[CHOICE] * 5)
    assert all(r.text in LABELS and r.choices for r in replies)


def identity(fake):
    async def told():
        server = server_for(fake)
        try:
            return await server.identity()
        finally:
            await server.close()

    return asyncio.run(told())


def test_the_identity_has_the_details_of_the_model(fake):
    assert identity(fake) == '{"model": "tiny", "owned_by": "vllm", "root": "/models/tiny"}'


def test_the_context_that_llama_cpp_gives_a_slot_is_no_part_of_the_identity(fake):
    def told(**meta):
        async def models(exchange):
            await exchange.send(200, {"data": [{"id": "tiny", "owned_by": "llamacpp", "meta": {"size": 7, **meta}}]})

        fake.models = models
        return identity(fake)

    assert told() == told(n_ctx=512) == told(n_ctx=4096) != told(n_params=9)


def test_several_models_require_a_setting():
    with running(FakeServer(names=["one", "two"])) as fake:
        (error,) = ask(fake, FREE)
        assert isinstance(error, BackendError)
        assert "the server has one, two. Set llm.model" in error.reason
        assert ask(fake, FREE, model="two")[0].text
        (error,) = ask(fake, FREE, model="three")
        assert "no model 'three' here; the server has one, two" in error.reason


def test_a_prompt_that_exceeds_the_context_is_not_retried(fake):
    (error,) = ask(fake, changed(FREE, prompt="word " * 2000))
    assert "maximum context length is 4000 tokens" in error.reason
    assert "--max-model-len" in error.reason
    assert [r.method for r in fake.requests].count("POST") == 1


def test_a_reply_with_two_labels_is_an_error():
    with running(FakeServer(TinyModel(lambda prompt: "Judgment: CORRECT or INCORRECT"), kind="plain", logprobs=False)) as fake:
        (error,) = ask(fake, CHOICE)
        assert isinstance(error, ReplyError)
        assert "CORRECT" in error.reply


def test_an_echo_of_the_prefill_is_removed(fake):
    async def echo(exchange):
        status, payload = fake.reply(exchange)
        payload["choices"][0]["message"]["content"] = "It is " + payload["choices"][0]["message"]["content"]
        await exchange.send(status, payload)

    (plain,) = ask(fake, changed(FREE, prefill="It is "))
    fake.strike("model", echo)
    (echoed,) = ask(fake, changed(FREE, prefill="It is "))
    assert echoed.text == plain.text


def test_the_key_comes_from_the_environment(fake, monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret")
    ask(fake, FREE, api_key_env="MY_KEY")
    assert fake.requests[-1].headers["authorization"] == "Bearer secret"
    monkeypatch.setenv("MY_KEY", " secret\r")
    ask(fake, FREE, api_key_env="MY_KEY")
    assert fake.requests[-1].headers["authorization"] == "Bearer secret"


def test_neither_key_nor_password_is_shown_or_stored(fake, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret")
    fake.strike("model", status(401, {"error": {"message": "Incorrect API key provided: sk-secret"}}), forever=True)
    url = fake.url.replace("://", "://me:pass-word@")
    (error,) = ask(fake, FREE, api_key_env="MY_KEY", url=url)
    assert isinstance(error, BackendError)
    shown = f"{error} {error.reply}"
    assert "Incorrect API key provided: ***" in shown and fake.url in shown
    assert "secret" not in shown and "pass-word" not in shown


def test_a_deeply_nested_error_is_quoted():
    assert error_text("[" * 200_000).startswith("[[[")


def test_a_key_that_cannot_be_sent_is_named(monkeypatch):
    monkeypatch.setenv("MY_KEY", "one\ntwo")
    with pytest.raises(SettingsError, match=r"llm\.api_key_env: the variable MY_KEY holds a key with characters that cannot"):
        read_api_key(LLMOptions(api_key_env="MY_KEY"))


def test_neither_proxies_nor_cookies_are_used(fake, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    fake.strike("model", status(429, headers=["Set-Cookie: session=1; Path=/"]))
    assert ask(fake, FREE)[0].text
    assert [r.method for r in fake.requests] == ["GET", "POST", "POST"]
    assert not any("cookie" in r.headers for r in fake.requests)


def test_requests_in_flight_stay_within_the_limit(fake, monkeypatch):
    monkeypatch.setattr(http, "KEEPALIVE_SECONDS", HANG)  # no connection is closed and opened again
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


def test_one_backend_serves_several_event_loops(fake):
    server = server_for(fake)
    for _ in range(3):
        assert asker(server)([FREE])[0].text


def test_a_sampled_reply_has_the_seed_of_the_request(fake):
    ask(fake, Generate("x", temperature=0.7, seed=11))
    assert (fake.requests[-1].body["seed"], fake.requests[-1].body["temperature"]) == (11, 0.7)
