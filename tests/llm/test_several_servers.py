"""Several servers behind one backend, and what a server can hold: fault injection with real sockets."""

import asyncio
from contextlib import ExitStack

import pytest

from knowhalu.errors import BackendError, SettingsError
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.server_backend import ServerBackend
from knowhalu.requests import Generate
from tests.support import server_faults as f
from tests.support.fake_server import FakeServer, running
from tests.support.hanging import HANG
from tests.support.llm_contract import CHOICE, FREE, changed
from tests.support.tiny_model import TinyModel

PROMPTS = [changed(FREE, prompt=f"{number}: {FREE.prompt}") for number in range(12)]


class Standing:
    """A clock that goes on only where the backend waits."""

    def __init__(self):
        self.now, self.waits = 0.0, []

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds
        self.waits.append(seconds)


class Client:
    """A backend in an event loop of its own, so that tests can stop and start servers between requests."""

    def __init__(self, *fakes, **options):
        self.clock = Standing()
        settings = LLMOptions(**{"url": [fake.url for fake in fakes], "timeout": HANG, "retries": 3, **options})
        self.backend = ServerBackend(settings, sleep=self.clock.sleep, clock=self.clock)
        self.runner = asyncio.Runner()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.runner.run(self.backend.close())
        self.runner.close()

    def ask(self, *requests):
        async def together():
            return await asyncio.gather(*map(self.backend.answer, requests), return_exceptions=True)

        return self.runner.run(together())


async def no_list(exchange):
    await exchange.send(404, {"detail": "Not Found"})


def posts(fake):
    return sum(r.method == "POST" for r in fake.requests)


@pytest.fixture
def fakes():
    with running(FakeServer()) as one, running(FakeServer()) as two:
        yield one, two


@pytest.fixture
def right(fakes):
    """Return the texts of one server's replies."""
    with Client(fakes[0]) as client:
        texts = [reply.text for reply in client.ask(*PROMPTS)]
    fakes[0].requests.clear()
    return texts


def test_several_servers_share_the_requests_and_give_the_replies_of_one(fakes, right):
    with Client(*fakes) as client:
        assert [reply.text for reply in client.ask(*PROMPTS)] == right
    assert all(posts(fake) >= 4 for fake in fakes)


def test_the_requests_for_a_label_go_where_its_prompt_was_read(fakes):
    long = changed(CHOICE, prompt=f"{'A long passage. ' * 40}{CHOICE.prompt}")
    with Client(*fakes) as client:
        client.ask(changed(FREE, prompt="x" * 600))
        client.ask(long)
    assert sorted(posts(fake) > 1 for fake in fakes) == [False, True]


def test_a_server_that_does_not_run_is_left_out_at_the_start(fakes, right):
    gone = FakeServer()
    with running(gone):
        pass
    with Client(gone, *fakes) as client:
        assert [reply.text for reply in client.ask(*PROMPTS)] == right
        assert client.clock.waits == []


def test_a_server_that_dies_is_followed_by_the_other_and_used_again_once_it_is_back(right, fakes):
    other = FakeServer()
    with ExitStack() as stack:
        first = stack.enter_context(running(other))
        with Client(fakes[0], first) as client:
            assert [reply.text for reply in client.ask(*PROMPTS)] == right
            stack.close()
            other.requests.clear()
            for _ in range(3):
                assert [reply.text for reply in client.ask(*PROMPTS)] == right
            assert client.clock.waits == []
            with running(other):
                client.clock.now += 60.0
                assert [reply.text for reply in client.ask(*PROMPTS)] == right
                assert [r.path for r in other.requests][0] == "/v1/models"
                assert [reply.text for reply in client.ask(*PROMPTS)] == right
                assert posts(other) > 1
                client.runner.run(client.backend.close())


def test_a_server_that_comes_back_with_another_model_is_not_used(right, fakes):
    other = FakeServer()
    with running(other):
        client = Client(fakes[0], other)
        client.ask(*PROMPTS)
        client.runner.run(client.backend.close())
    with client:
        client.ask(*PROMPTS)
        other.root, other.requests = "/other", []
        with running(other):
            client.clock.now += 60.0
            assert [reply.text for reply in client.ask(*PROMPTS, *PROMPTS)] == right * 2
            assert {r.method for r in other.requests} == {"GET"}


def test_servers_behind_a_proxy_without_a_list_of_models_are_used_again(fakes, right):
    for fake in fakes:
        fake.models = no_list
        fake.strike("sea", f.status(500), forever=True)
    with Client(*fakes, model="tiny", dialect="vllm", retries=0) as client:
        assert all(isinstance(reply, BackendError) for reply in client.ask(*PROMPTS[:5]))
        for fake in fakes:
            fake.strike("sea")
        client.clock.now += 60.0
        assert [reply.text for reply in client.ask(*PROMPTS)] == right


@pytest.mark.parametrize(("kind", "slots"), [("vllm", 0), ("llamacpp", 2)])
def test_a_model_that_thinks_at_one_server_has_room_for_it_at_all(kind, slots):
    thinker = TinyModel(lambda prompt: "<think>Hm, CORRECT</think>The sea is wet.", 0.99999)
    with running(FakeServer(thinker, kind=kind, slots=slots)) as one, running(FakeServer(thinker, kind=kind, slots=slots)) as two:
        with Client(one, two) as client:
            client.ask(PROMPTS[0])
            one.requests, two.requests = [], []
            replies = client.ask(*PROMPTS)
        assert {(reply.text, reply.thinking) for reply in replies} == {("The sea is wet.", "Hm, CORRECT")}
        assert all(map(posts, (one, two))) and posts(one) + posts(two) == len(PROMPTS)
        bodies = [r.body for fake in (one, two) for r in fake.requests]
        assert {body["max_tokens"] for body in bodies} == {FREE.max_tokens + 2048}
        assert {body.get("id_slot") for body in bodies} == (set(range(slots)) or {None})


def test_servers_with_different_models_are_refused(fakes):
    fakes[1].root = "/other"
    with Client(*fakes) as client:
        (error,) = client.ask(FREE)
    assert isinstance(error, BackendError)
    assert fakes[1].url in error.reason and "must serve the same model" in error.reason
    assert not any(map(posts, fakes))


@pytest.mark.parametrize(
    "fault", [f.status(500), f.status(429), f.reset_in_the_middle, f.closed_without_a_word, f.sent(f.no_choices)]
)
def test_a_fault_of_one_server_costs_no_wait(fakes, right, fault):
    fakes[0].strike("sea", fault, forever=True)
    with Client(*fakes) as client:
        assert [reply.text for reply in client.ask(*PROMPTS)] == right
        assert client.clock.waits == []


def test_a_server_that_does_not_answer_in_time_is_followed_by_the_other(fakes, right):
    fakes[0].strike("sea", f.never, forever=True)
    with Client(*fakes, timeout=0.3) as client:
        assert [reply.text for reply in client.ask(*PROMPTS)] == right


def test_faults_of_all_servers_are_tried_again_after_a_wait_and_end_in_an_error(fakes):
    for fake in fakes:
        fake.strike("sea", f.status(500), forever=True)
    with Client(*fakes) as client:
        (error,) = client.ask(FREE)
        assert len(client.clock.waits) == 3
    assert "no server of llm.url answered" in error.reason and "HTTP 500" in error.reason
    assert "(tried 4 times)" in error.reason


def test_a_refusal_is_not_repeated_at_another_server(fakes):
    with Client(*fakes) as client:
        (error,) = client.ask(changed(FREE, prompt="word " * 2000))
    assert "maximum context length" in error.reason
    assert sum(map(posts, fakes)) == 1


def test_a_server_that_refuses_more_than_two_requests_at_once_gets_two(fakes):
    fake, held, refused = fakes[0], 0, 0

    async def two_at_once(exchange):
        nonlocal held, refused
        if held == 2:
            refused += 1
            return await f.status(429)(exchange)
        held += 1
        for _ in range(50):
            await asyncio.sleep(0)
        held -= 1
        await exchange.answer()

    fake.strike("sea", two_at_once, forever=True)
    with Client(fake) as client:
        replies = client.ask(*[changed(FREE, prompt=f"{n}: {FREE.prompt}") for n in range(80)])
    assert all(not isinstance(reply, Exception) for reply in replies)
    assert refused < 20


@pytest.mark.parametrize("stages", [2, 3])
def test_the_fixed_prefixes_of_the_stages_stay_in_the_slots_of_llama_cpp(stages):
    fixed = [f"Stage {number}. " + f"Example {number}. " * 60 for number in range(stages)]
    with running(FakeServer(kind="llamacpp", slots=3)) as fake, Client(fake) as client:
        for sample in range(4):
            requests = [Generate(f"{text}Sample {sample}?\n", fixed=len(text), max_tokens=4) for text in fixed]
            replies = client.ask(*requests)
            if sample:
                assert all(reply.cached_tokens > 0.9 * reply.prompt_tokens for reply in replies)
        slots = [r.body["id_slot"] for r in fake.requests if r.method == "POST"]
    assert set(slots) == set(range(stages))


def test_a_llama_cpp_server_gets_no_more_requests_than_it_has_slots():
    held = most = 0

    async def count(exchange):
        nonlocal held, most
        held += 1
        most = max(most, held)
        for _ in range(20):
            await asyncio.sleep(0)
        held -= 1
        await exchange.answer()

    with running(FakeServer(kind="llamacpp", slots=2)) as fake, Client(fake) as client:
        fake.strike("sea", count, forever=True)
        assert all(reply.text for reply in client.ask(*PROMPTS))
    assert most <= 2


def test_a_llama_cpp_server_that_hides_or_rejects_slots_chooses_them_itself():
    with running(FakeServer(kind="llamacpp")) as fake, Client(fake) as client:
        assert client.ask(FREE)[0].text
        assert fake.requests[-1].body["id_slot"] == -1

    async def strict(exchange):
        if "id_slot" in exchange.body:
            return await f.status(400, {"error": {"message": "unknown field id_slot"}})(exchange)
        await exchange.answer()

    with running(FakeServer(kind="llamacpp", slots=2)) as fake, Client(fake) as client:
        fake.strike("sea", strict, forever=True)
        assert all(reply.text for reply in client.ask(*PROMPTS))


def test_a_list_needs_an_address_and_every_address_is_checked(fakes):
    assert LLMOptions(url=["http://a/v1", "http://a/v1"]).url == "http://a/v1"
    for wrong in ([], 5, [5]):
        with pytest.raises(ValueError, match="should be an address or a list of addresses"):
            LLMOptions(url=wrong)
    with Client(fakes[0], url=[fakes[0].url, "nowhere"]) as client:
        (error,) = client.ask(FREE)
    assert isinstance(error, SettingsError) and "'nowhere' is not an address" in str(error)
