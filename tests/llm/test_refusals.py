"""What servers and chat templates refuse: a prefill, a system role, many stop strings, and the tokens of turns in a text."""

import json

import pytest

from knowhalu.errors import StageError
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.server_backend import ServerBackend
from knowhalu.prompts.template import find_turns
from knowhalu.requests import Generate
from tests.support.fake_server import OWNERS, FakeServer, running
from tests.support.llm_contract import CHOICE, FREE, LABELS, asker, changed
from tests.support.tiny_model import TinyModel

REFUSED_PREFILLS = [
    "This model does not support assistant message prefill. The conversation must end with a user message.",
    "Assistant response prefill is incompatible with enable_thinking.",
    "Expected last role User or Tool (or Assistant with prefix or continue_final_message set to True) but got assistant",
    "continue_final_message is set but the final message does not appear in the chat after applying the chat template!",
    "Unrecognized request argument supplied: continue_final_message",
]


def ask(fake, *requests, **options):
    return asker(ServerBackend(LLMOptions(url=fake.url, **options)))(list(requests))


def sent(fake):
    return [r.body for r in fake.requests if r.method == "POST"]


def refuse(message, when, status=400):
    async def answer(exchange):
        if when(exchange.body):
            return await exchange.send(status, {"error": {"message": message}})
        await exchange.answer()

    return answer


def roles(body):
    return [turn["role"] for turn in body["messages"]]


@pytest.mark.parametrize("message", REFUSED_PREFILLS)
def test_a_prefill_that_is_refused_ends_the_users_message(message):
    begun = changed(FREE, prefill="It is wet.\n### Label:\n")
    with running(FakeServer(kind="plain")) as fake:
        fake.strike("model", refuse(message, lambda body: "assistant" in roles(body)), forever=True)
        first, again = ask(fake, begun, begun, concurrency=1)
    assert first.text == again.text
    assert [roles(body) for body in sent(fake)][-1:] == [["user"]] and len(sent(fake)) <= 4
    assert sent(fake)[-1]["messages"][0]["content"] == FREE.prompt + "It is wet.\n### Label:\n"
    assert not {"continue_final_message", "add_generation_prompt"} & set(sent(fake)[-1])


def test_a_label_after_a_refused_prefill_has_a_probability_only_where_one_reply_tells_all():
    def labels(model):
        with running(FakeServer(model, kind="llamacpp")) as fake:
            fake.strike("model", refuse(REFUSED_PREFILLS[0], lambda body: "assistant" in roles(body)), forever=True)
            (reply,) = ask(fake, CHOICE)
            return reply, sent(fake)

    sure, _ = labels(TinyModel(lambda prompt: "INCORRECT", 0.999999))
    assert sure.text == "INCORRECT" and sure.choices["INCORRECT"] > 0.99
    torn, bodies = labels(TinyModel())  # IN may become either label, and nothing can be asked after it
    assert torn.text in LABELS and torn.choices == {} and len(bodies) == 2


PROMPT = "Say if it is wet.\n\n### Thing: The sea\n### Label:\nWET\n\n### Thing: Sand\n### Label:"
TURNS = Generate(PROMPT, turns=find_turns(PROMPT, ("Label",)), max_tokens=16)
EXAMPLE = [{"role": "user", "content": "### Thing: The sea"}, {"role": "assistant", "content": "### Label:\nWET"}]
ASKED = {"role": "user", "content": "### Thing: Sand"}


def test_examples_are_turns_of_a_chat_and_one_text_of_a_completion():
    with running(FakeServer()) as fake:
        ask(fake, TURNS)
        ask(fake, TURNS, style="completion")
    assert sent(fake)[0]["messages"] == [{"role": "system", "content": "Say if it is wet."}, *EXAMPLE, ASKED]
    assert sent(fake)[1]["prompt"] == TURNS.prompt


@pytest.mark.parametrize("kind", ["vllm", "llamacpp", "sglang", "ollama", "plain"])
def test_a_begun_reply_is_a_last_turn_of_the_model(kind):
    with running(FakeServer(kind=kind)) as fake:
        ask(fake, changed(TURNS, prefill=" It is dry.\n### Label:\n"))
    assert sent(fake)[-1]["messages"][-2:] == [ASKED, {"role": "assistant", "content": "### Label: It is dry.\n### Label:"}]


def test_turns_stay_where_the_system_role_and_a_prefill_are_refused():
    def unwanted(body):
        return "system" in roles(body) or roles(body)[-1] == "assistant"

    message = "System role not supported; the last message must be from the user"
    with running(FakeServer(kind="plain")) as fake:
        fake.strike("model", refuse(message, unwanted), forever=True)
        ask(fake, changed(TURNS, prefill=" It is dry.\n### Label:\n"), retries=0)
    first, model, last = sent(fake)[-1]["messages"]
    assert first == {"role": "user", "content": f"Say if it is wet.\n\n{EXAMPLE[0]['content']}"} and model == EXAMPLE[1]
    assert last == {"role": "user", "content": "### Thing: Sand\n### Label: It is dry.\n### Label:\n"}


@pytest.mark.parametrize(("said", "read"), [("### Label:\nDRY", "\nDRY"), ("DRY", " DRY")])
def test_a_reply_is_read_without_the_heading_that_the_model_writes_in_its_turn(said, read):
    with running(FakeServer(TinyModel(lambda prompt: said, 0.9999))) as fake:
        (reply,) = ask(fake, TURNS)
    assert reply.text == read and sent(fake)[-1]["messages"][-1] == ASKED


@pytest.mark.parametrize("kind", ["vllm", "llamacpp", "sglang", "ollama"])
def test_a_label_alone_goes_on_from_its_heading(kind):
    request = changed(TURNS, prefill="\n", choices=LABELS)
    with running(FakeServer(TinyModel(lambda prompt: "### Label:\nINCORRECT", 0.9999), kind=kind)) as fake:
        (reply,) = ask(fake, request)
    assert reply.text == "INCORRECT" and reply.choices["INCORRECT"] > 0.99
    begun = [body["messages"][-1]["content"] for body in sent(fake) if "messages" in body]
    assert all(text.startswith("### Label:") for text in begun) and begun[0] == "### Label:"


@pytest.mark.parametrize("message", [
    "System role not supported", "Conversation roles must alternate user/assistant/user/assistant/...",
])  # fmt: skip
@pytest.mark.parametrize("status", [400, 500])
def test_a_system_prompt_opens_the_users_message_where_the_template_has_no_system_role(message, status):
    with running(FakeServer()) as fake:
        fake.strike("model", refuse(message, lambda body: "system" in roles(body), status), forever=True)
        (reply,) = ask(fake, changed(FREE, system="Be brief."), retries=0)
    assert reply.text
    assert sent(fake)[-1]["messages"] == [{"role": "user", "content": f"Be brief.\n\n{FREE.prompt}"}]


def test_a_reply_is_cut_at_stop_strings_that_the_server_does_not_take():
    stops = ("never a", "never b", "never c", "never d", "number")
    with running(FakeServer()) as fake:
        fake.strike("model", refuse("'stop' must have at most 4 strings", lambda b: len(b.get("stop", ())) > 4), forever=True)
        (reply,) = ask(fake, changed(FREE, stop=stops))
    assert sent(fake)[-1]["stop"] == list(stops[:4])
    assert (reply.text, reply.finish_reason) == ("The reply is ", "stop")


def test_a_special_token_of_the_served_model_is_refused_in_a_text(tmp_path):
    tokens = {"1": {"content": "%%turn%%", "special": True}, "2": {"content": "user", "special": True}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": tokens}))

    async def models(exchange):
        card = {"id": "tiny", "owned_by": OWNERS["vllm"], "root": str(tmp_path)}
        await exchange.send(200, {"data": [card]})

    with running(FakeServer()) as fake:
        fake.models = models
        fine, turns = ask(fake, changed(FREE, prompt="The user is here."), changed(FREE, prompt="So. %%turn%% CORRECT"))
        assert fine.text
        assert isinstance(turns, StageError) and "contains '%%turn%%', which separates the turns of this model" in turns.reason
        (plain,) = ask(fake, changed(FREE, prompt="So. %%turn%%"), style="completion")
        assert plain.text
