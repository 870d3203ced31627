"""What a real llama.cpp server cannot answer is a Failure with its reason, never a label."""

import asyncio
import json
import re
import shutil
from pathlib import Path

import pytest

from knowhalu.api import Checker
from knowhalu.errors import BackendError, ReplyError
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.server_backend import ServerBackend
from knowhalu.requests import Completion, Generate
from knowhalu.results import Failure
from tests.support.llm_contract import asker
from tests.support.real_llm import PROMPTS, serving

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[3]
ROW = {"id": "1", "question": "Who wrote Ivanhoe?", "response": "Charles Dickens"}


@pytest.mark.parametrize("style", ["chat", "completion"])
def test_a_prompt_that_exceeds_the_context_is_a_failure(server, settings, style):
    check = Checker(settings(server.url, "halueval-knowledge", llm={"style": style})).check
    failure = check(**ROW, knowledge=["Ivanhoe is a novel by Walter Scott. " * 150])
    assert isinstance(failure, Failure), failure
    assert "the prompt is longer than the model's context" in failure.reason and "llama.cpp: -c" in failure.reason


def test_a_reply_that_is_cut_is_a_failure_that_says_so(server, settings, tmp_path):
    prompts = shutil.copytree(PROMPTS, tmp_path / "prompts")
    packaged = (ROOT / "prompts" / "factored" / "claims.txt").read_text(encoding="utf-8")
    (prompts / "factored" / "claims.txt").write_text(re.sub(r"max_tokens = \d+", "max_tokens = 2", packaged), encoding="utf-8")
    failure = Checker(settings(server.url, "factored", llm={"prompts": prompts})).check(
        id="1", response="Charles Dickens wrote Ivanhoe.", knowledge=["Ivanhoe is a novel by Walter Scott."]
    )
    assert isinstance(failure, Failure), failure
    assert failure.stage == "claims" and re.search(r"cut off after \d tokens", failure.reason) and failure.reply is not None


def test_a_reply_that_the_end_of_the_context_cuts_is_an_error():
    """llama.cpp accepts a prompt that leaves no room for the whole reply, and ends the reply where the context ends."""
    with serving(context=256) as small:
        prompt = Generate("One, two, three, four, " * 26, max_tokens=200)
        (error,) = asker(ServerBackend(LLMOptions(url=small.url, style="completion")))([prompt])
    assert isinstance(error, ReplyError), error
    assert "the model's context ended within the reply" in error.reason and "llama.cpp: -c" in error.reason


def test_a_server_that_stops_within_a_reply_is_an_error(settings):
    async def stop_while_it_writes(running):
        backend = ServerBackend(LLMOptions(url=running.url, retries=0, style="completion"))
        await backend.about()
        writing = asyncio.create_task(backend.answer(Generate("Tell a long story.", max_tokens=900)))
        while not any(slot["is_processing"] for slot in await asyncio.to_thread(running.ask, "/slots")):
            await asyncio.sleep(0)
        running.stop()
        with pytest.raises(BackendError) as lost:
            await writing
        with pytest.raises(BackendError) as gone:
            await backend.answer(Generate("Go on."))
        await backend.close()
        return lost.value, gone.value

    with serving() as running:
        lost, gone = asyncio.run(stop_while_it_writes(running))
        failure = Checker(settings(running.url, "halueval-knowledge")).check(**ROW, knowledge=["Walter Scott wrote it."])
    assert lost.retryable and "/v1/completions" in lost.reason
    assert "knowhalu serve-model" in gone.reason
    assert isinstance(failure, Failure) and failure.stage == "generate" and "knowhalu serve-model" in failure.reason


def test_another_server_with_the_same_model_answers_where_one_has_stopped():
    """They hold contexts of other lengths, which is no difference of the model."""

    async def answer_twice(servers):
        backend = ServerBackend(LLMOptions(url=tuple(s.url for s in servers), style="completion"))
        replies = [await backend.answer(Generate("One, two,", max_tokens=2))]
        servers[0].stop()
        replies += [await backend.answer(Generate(f"One, two, {word},", max_tokens=2)) for word in ("three", "four")]
        await backend.close()
        return replies

    with serving(context=256) as one, serving(slots=2, context=512) as other:
        replies = asyncio.run(answer_twice([one, other]))
    assert all(isinstance(reply, Completion) and reply.text for reply in replies)


def test_a_model_is_the_same_with_another_context_and_other_slots(server):
    async def identity(url):
        backend = ServerBackend(LLMOptions(url=url))
        try:
            return json.loads(await backend.identity())
        finally:
            await backend.close()

    with serving(context=256) as small:
        described = [asyncio.run(identity(url)) for url in (server.url, small.url)]
    assert described[0] == described[1] and described[0]["meta"]["n_params"] == 134515008
