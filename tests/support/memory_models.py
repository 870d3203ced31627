"""A model for the tests of the reply cache, and a process that fills one; this module imports little, so it starts fast."""

import asyncio

from knowhalu.errors import BackendError
from knowhalu.llm import reply_cache
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.reply_cache import with_reply_cache
from knowhalu.requests import Completion, Generate
from tests.support.hanging import HANG

REPLY = Completion("Yes. \ud800", "length", {"a": 0.25, "b": 0.75}, (-0.5, float("-inf")), 7, 5, 2)
REQUEST = Generate("Is snow white? ü\ud800", "Be short.", "Well,", 3, ("\n",), 9, ("a", "b"), 0.5, 4)


class Model:
    """A blocking model that notes what it is asked; "bad" is an error."""

    def __init__(self, name="m"):
        self.name, self.asked = name, []

    def identity(self):
        return self.name

    def answer_many(self, requests):
        self.asked += requests
        return [answer(r) for r in requests]


def answer(request):
    if request.prompt == "bad":
        return BackendError("generate", "no")
    return REPLY if request == REQUEST else Completion(request.prompt[::-1], prompt_tokens=3, completion_tokens=2)


def write_many(folder, start, barrier):
    reply_cache.WAIT_SECONDS = HANG
    barrier.wait(HANG)
    backend = with_reply_cache(Model(), LLMOptions(cache_folder=folder))
    backend.answer_many([Generate(f"prompt {n % 60}") for n in range(start, start + 60)])


def ask(model, options, *requests):
    """Ask through the cache, as a new process would."""
    backend = with_reply_cache(model, options)
    if hasattr(backend, "answer_many"):
        return backend.answer_many(list(requests))

    async def each():
        return [(await asyncio.gather(backend.answer(r), return_exceptions=True))[0] for r in requests]

    return asyncio.run(each())
