"""A real language model for the tests of this folder, served once for each process of a run."""

import pytest

from knowhalu.llm.options import LLMOptions
from knowhalu.settings import Settings
from tests.support.real_llm import PROMPTS, serving, write_folder


@pytest.fixture(scope="session")
def server():
    """llama.cpp with a slot for every stage of a check."""
    with serving(slots=8) as running:
        yield running


@pytest.fixture(scope="session")
def smollm_folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("smollm2"))


@pytest.fixture(scope="session")
def settings():
    """Return a function that makes settings with short examples, which even this model imitates when it continues a text."""

    def make(url="", method="knowhalu", *, llm=None, **more):
        options = {
            "url": url,
            "style": "completion",
            "timeout": 600,
            "retries": 0,
            "cache": False,
            "prompts": PROMPTS,
            **(llm or {}),
        }
        return Settings(method=method, reasoner="llm", llm=LLMOptions(**options | (llm or {})), **more)

    return make
