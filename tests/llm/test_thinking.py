"""Models that think: their thinking is switched off or cut off, and no label is read from it."""

import asyncio
import json
from pathlib import Path

import pytest

from knowhalu.errors import ReplyError
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.server_backend import ServerBackend
from knowhalu.llm.server_reply import parse_reply
from knowhalu.llm.thinking import close_thinking, split_thinking, template_opens_thinking
from tests.support.fake_server import FakeServer, running
from tests.support.llm_contract import CHOICE, FREE, LABELS, asker, changed
from tests.support.tiny_model import TinyModel

THINKER = TinyModel(lambda prompt: "<think>Hm, CORRECT</think>\n\nThe sea is wet.", 0.99999)


def ask(fake, *requests, **options):
    async def at_once(seconds):
        pass

    return asker(ServerBackend(LLMOptions(url=fake.url, **options), sleep=at_once))(list(requests))


def sent(fake):
    return [r.body for r in fake.requests if r.path.startswith("/v1/") and r.method == "POST"]


def thinking_apart(field, thought, text, *, logprobs=True):
    """Return a fault that tells the thinking apart, as a server with a parser for it does, with all tokens of both."""

    async def answer(exchange):
        tokens = [*thought, "</think>", "\n\n", *text]
        content = [{"token": t, "logprob": -0.1, "top_logprobs": [{"token": t, "logprob": -0.1}]} for t in tokens]
        message = {"role": "assistant", "content": "".join(text) or None, field: "".join(thought)}
        choice = {"message": message, "finish_reason": "stop", "logprobs": {"content": content} if logprobs else None}
        await exchange.send(200, {"choices": [choice]})

    return answer


@pytest.mark.parametrize(("written", "thought", "answer"), [
    ("<think>\nSo CORRECT.\n</think>\n\nINCORRECT", "So CORRECT.", "INCORRECT"),
    ("<think>\n\n</think>\n\nCORRECT", "", "CORRECT"),
    ("Okay, so CORRECT.\n</think>\n\nINCORRECT", "Okay, so CORRECT.", "INCORRECT"),
    ("<seed:think>a</seed:think>b", "a", "b"),
    ("[THINK]a[/THINK]b", "a", "b"),
    ("\u25c1think\u25b7a\u25c1/think\u25b7b", "a", "b"),
    ("<|channel>thought\na<channel|>b", "a", "b"),
    ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b", "a", "b"),
    ("<|channel|>final<|message|>b", "", "b"),
    ("analysisWe see CORRECT.assistantfinalINCORRECT", "We see CORRECT.", "INCORRECT"),
])  # fmt: skip
def test_a_reply_is_split_into_thinking_and_answer(written, thought, answer):
    assert split_thinking(written) == (thought, answer, False)


@pytest.mark.parametrize("written", ["analysis of it", "As <think> says: x", " It is </think> so", "", "\n A."])
def test_a_reply_without_thinking_is_left_as_it_is(written):
    assert split_thinking(written) == ("", written, False)


@pytest.mark.parametrize("written", ["<think>CORRECT", "[THINK] So", "<|channel|>analysis<|message|>CORRECT"])
def test_a_reply_that_ends_within_the_thinking_has_no_answer(written):
    split = split_thinking(written)
    assert split.open and not split.answer


@pytest.mark.parametrize(("prompt", "closed"), [
    ("<|User|>Q<|Assistant|><think>\n", "<|User|>Q<|Assistant|><think>\n</think>\n\n"),
    ("[/INST][THINK]", "[/INST][THINK]\n[/THINK]\n\n"),
    ("<|start|>assistant", "<|start|>assistant<|channel|>final<|message|>"),
    ("<think>\n\n</think>\n\n", "<think>\n\n</think>\n\n"),
    ("<|im_start|>assistant\n", "<|im_start|>assistant\n"),
])  # fmt: skip
def test_a_thinking_that_the_template_opens_is_closed(prompt, closed):
    assert close_thinking(prompt) == closed


@pytest.mark.parametrize("kind", ["vllm", "llamacpp", "ollama", "plain"])
def test_a_model_that_thinks_in_its_text_gets_room_for_it_and_is_cut(kind):
    with running(FakeServer(THINKER, kind=kind)) as fake:
        first, second = ask(fake, changed(FREE, stop=("CORRECT",)), changed(FREE, stop=("sea",)), concurrency=1)
        cut, *others = sent(fake)
    assert (first.text, first.thinking, first.finish_reason) == ("The sea is wet.", "Hm, CORRECT", "stop")
    assert (second.text, second.thinking) == ("The ", "Hm, CORRECT")
    assert (cut["max_tokens"], cut["stop"]) in [(24, ["CORRECT"]), (24, ["sea"])]
    assert all(body["max_tokens"] == 24 + 2048 and "stop" not in body for body in others[-1:])


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_a_label_and_its_probability_are_those_of_the_answer(field):
    with running(FakeServer(named=False)) as fake:
        fake.strike("messages", thinking_apart(field, ["So ", "CORRECT"], ["IN", "CORRECT"]))
        (reply,) = ask(fake, CHOICE)
    assert (reply.text, reply.thinking) == ("INCORRECT", "So CORRECT")
    assert reply.choices["INCORRECT"] > 0.99 and len(reply.logprobs) == 2
    assert len(sent(fake)) == 1


def test_a_real_reply_of_a_thinking_model_is_read():
    """Replies of llama.cpp to the template of DeepSeek-R1; the first was written by a grammar."""
    recorded = json.loads((Path(__file__).parent / "llama_cpp_thinking.json").read_text(encoding="utf-8"))
    reply = parse_reply(recorded["answered"], "", "")
    assert (reply.text, reply.thinking, reply.unanswered) == ("INCORRECT", "So CORRECT.", False)
    assert "".join(p.token for p in reply.positions) == "INCORRECT" and len(reply.logprobs) == len(reply.positions)
    cut = parse_reply(recorded["cut"], "", "")
    assert (cut.text, cut.thinking, cut.unanswered, cut.finish_reason) == ("", "The sea is", True, "length")
    assert cut.tokens == ()


def test_the_log_probabilities_of_the_thinking_do_not_count():
    with running(FakeServer(named=False)) as fake:
        fake.strike("messages", thinking_apart("reasoning", ["a", "b", "c"], [" It", " is"]))
        (reply,) = ask(fake, FREE)
    assert (reply.text, reply.logprobs) == ("It is", (-0.1, -0.1))


def test_a_label_that_is_only_thought_is_no_label():
    with running(FakeServer(named=False)) as fake:
        fake.strike("messages", thinking_apart("reasoning", ["CORRECT"], []), forever=True)
        (error,) = ask(fake, CHOICE)
    assert isinstance(error, ReplyError) and error.reply == "CORRECT"
    assert "the model thinks before it answers" in error.reason and "llm.thinking_tokens" in error.reason
    assert [body["max_tokens"] > 2000 for body in sent(fake)] == [False, True]


def test_without_room_for_thinking_a_thought_reply_ends_at_once():
    with running(FakeServer(named=False)) as fake:
        fake.strike("messages", thinking_apart("reasoning", ["CORRECT"], []), forever=True)
        (error,) = ask(fake, CHOICE, thinking_tokens=0)
    assert isinstance(error, ReplyError) and len(sent(fake)) == 1


@pytest.mark.parametrize("kind", ["llamacpp", "ollama", "plain"])
def test_no_label_is_read_from_the_rest_of_a_mass_that_goes_to_thinking(kind):
    """llama.cpp's grammar would force a label here, whose probability says nothing."""
    thinking = TinyModel(lambda prompt: "Judgment:<think>", 0.96)
    with running(FakeServer(thinking, kind=kind)) as fake:
        (error,) = ask(fake, CHOICE)
    assert isinstance(error, ReplyError) and "the model thinks before it answers" in error.reason


@pytest.mark.parametrize("sure", [0.5, 0.96])
def test_no_label_is_read_where_the_model_would_write_something_else(sure):
    with running(
        FakeServer(TinyModel(lambda prompt: "Judgment: the reply" if sure > 0.9 else "", sure), kind="llamacpp")
    ) as fake:
        (reply,) = ask(fake, CHOICE)
    assert (reply.text in LABELS) if sure < 0.9 else "the model would write something else" in reply.reason


SWITCH = {"enable_thinking": False, "thinking": False}


@pytest.mark.parametrize(("kind", "dialect", "switch", "effort"), [
    ("vllm", "auto", SWITCH, None), ("sglang", "auto", SWITCH, None), ("llamacpp", "auto", SWITCH, None),
    ("ollama", "auto", None, "none"), ("plain", "auto", SWITCH, "none"), ("plain", "llama.cpp", SWITCH, None),
])  # fmt: skip
def test_thinking_is_switched_off_as_the_dialect_has_it(kind, dialect, switch, effort):
    with running(FakeServer(kind=kind)) as fake:
        ask(fake, FREE, dialect=dialect)
    (body,) = sent(fake)
    assert (body.get("chat_template_kwargs"), body.get("reasoning_effort")) == (switch, effort)


def test_the_dialect_can_be_set():
    with running(FakeServer(kind="plain")) as fake:
        ask(fake, CHOICE, dialect="vllm")
        assert "structured_outputs" in sent(fake)[0]


def test_a_switch_that_the_server_refuses_is_left_out():
    async def strict(exchange):
        unknown = next((n for n in ("chat_template_kwargs", "reasoning_effort") if n in exchange.body), None)
        if unknown is None:
            return await exchange.answer()
        await exchange.send(400, {"error": {"message": f"Unrecognized request argument supplied: {unknown}"}})

    with running(FakeServer(kind="plain")) as fake:
        fake.strike("model", strict, forever=True)
        replies = ask(fake, FREE, FREE)
    assert all(r.text for r in replies)
    assert all(r.path == "/v1/chat/completions" for r in fake.requests if r.method == "POST")
    assert not {"chat_template_kwargs", "reasoning_effort"} & set(sent(fake)[-1])


def test_a_label_after_a_begun_answer_gets_no_room_for_thinking():
    def wants(prompt):
        return "Judgment: INCORRECT" if "Is the sea wet" in prompt else "<think>Hm</think>It is."

    with running(FakeServer(TinyModel(wants, 0.99999), kind="ollama")) as fake:
        llm = asker(ServerBackend(LLMOptions(url=fake.url)))
        (thought,), (label,) = llm([FREE]), llm([CHOICE])
    assert (thought.text, label.text) == ("It is.", "INCORRECT")
    assert all(body["max_tokens"] < 100 for body in sent(fake) if "Is the sea wet" in body["messages"][0]["content"])


@pytest.mark.parametrize(
    ("name", "opens"), [("deepseek-r1-distill", True), ("qwen3", False), ("glm-4.5", False), ("gpt-oss", False)]
)
def test_a_template_that_opens_the_thinking_is_known(tmp_path, name, opens):
    template = (Path(__file__).parent / "local/chat_templates" / f"{name}.jinja").read_text(encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    assert template_opens_thinking(tmp_path) == opens
    (tmp_path / "chat_template.jinja").write_text(template, encoding="utf-8")
    (tmp_path / "tokenizer_config.json").unlink()
    assert template_opens_thinking(tmp_path) == opens and not template_opens_thinking(tmp_path / "nowhere")


def test_what_a_template_that_opens_the_thinking_leaves_unmarked_is_no_answer(tmp_path):
    (tmp_path / "chat_template.jinja").write_text("{% if add_generation_prompt %}<assistant><think>{% endif %}")

    async def models(exchange):
        await exchange.send(200, {"data": [{"id": "tiny", "owned_by": "vllm", "root": str(tmp_path)}]})

    def wants(prompt):
        if "Is the sea wet" in prompt:
            return "Judgment: INCORRECT"
        return "Hm, is it?</think>\n\nIt is." if "sea" in prompt else "Hm, it is CORRECT."

    with running(FakeServer(TinyModel(wants, 0.99999))) as fake:
        fake.models = models
        answered, cut, label = ask(fake, FREE, changed(FREE, prompt="Tell me."), CHOICE)
    assert (answered.text, answered.thinking) == ("It is.", "Hm, is it?")
    assert isinstance(cut, ReplyError) and (cut.reply, label.text) == ("Hm, it is CORRECT.", "INCORRECT")


def test_the_thinking_is_kept_in_the_verdict(tmp_path):
    from knowhalu.engine.engine import Backends, Engine
    from knowhalu.requests import Generate
    from knowhalu.requests import ask as asked
    from knowhalu.results import Verdict
    from knowhalu.types import Sample

    class Method:
        name = "one-call"

        def check(self, sample):
            reply = yield from asked(Generate("Is it so?", max_tokens=24))
            return Verdict.of(sample, self.name, p_supported=0.9, reason=reply.text)

    with running(FakeServer(THINKER)) as fake:
        backend = ServerBackend(LLMOptions(url=fake.url))
        (verdict,) = Engine(Method(), Backends(generate=backend)).run([Sample(id="1", response="So.")])
        asyncio.run(backend.close())
    assert (verdict.reason, verdict.thinking) == ("The sea is wet.", ("Hm, CORRECT",))
