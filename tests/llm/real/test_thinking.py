"""Chat templates of thinking models, applied by a real llama.cpp server: the switch, and a model that thinks all the same."""

import asyncio
from pathlib import Path

import pytest

from knowhalu.errors import ReplyError
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.server_backend import ServerBackend
from knowhalu.requests import Generate
from tests.support.real_llm import serving

pytestmark = pytest.mark.real
TEMPLATES = Path(__file__).parent.parent / "local" / "chat_templates"


def template(name):
    return (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")


def test_thinking_is_switched_off_in_the_template():
    with serving(chat_template=template("qwen3")) as running:
        backend = ServerBackend(LLMOptions(url=running.url))

        async def answer():
            try:
                return await backend.answer(Generate("Say yes.", max_tokens=2))
            finally:
                await backend.close()

        reply = asyncio.run(answer())
        messages = [{"role": "user", "content": "Say yes."}]
        closed, opened = (
            running.ask("/apply-template", messages=messages, chat_template_kwargs={"enable_thinking": on})["prompt"]
            for on in (False, True)
        )
        assert "</think>" in closed and "</think>" not in opened
        assert reply.prompt_tokens == running.count_tokens(closed, parse_special=True, add_special=True)
    assert reply.text and not reply.thinking


def test_a_model_that_never_ends_its_thinking_has_no_reply_and_no_label():
    """The template opens the thinking; the model has never learnt to end it."""

    async def answers(backend, *requests):
        replies = await asyncio.gather(*map(backend.answer, requests), return_exceptions=True)
        await backend.close()
        return replies

    with serving(chat_template=template("deepseek-r1-distill")) as running:
        backend = ServerBackend(LLMOptions(url=running.url, thinking_tokens=8))
        text, label = (Generate("Is snow white?", max_tokens=8), Generate("Is snow white?", choices=("yes", "no")))
        errors = asyncio.run(answers(backend, text, label))
    for error in errors:
        assert isinstance(error, ReplyError), error
        assert "the model thinks before it answers, and has not answered within the 8 tokens" in error.reason
