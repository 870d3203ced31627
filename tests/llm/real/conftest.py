"""A real language model for the tests of this folder, served once for each process of a run."""

import os

import pytest
from filelock import FileLock

from knowhalu.llm.options import LLMOptions
from knowhalu.settings import Settings
from tests.support.real_llm import PROMPTS, serving, weights, write_folder


@pytest.fixture(scope="session")
def server():
    """llama.cpp with a slot for every stage of a check."""
    with serving(slots=8) as running:
        yield running


@pytest.fixture(scope="session")
def smollm_folder(tmp_path_factory):
    """The folder of the same model for transformers, written once for all processes of a run."""
    weights()
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "smollm2"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            folder.mkdir()
            write_folder(folder)
    return folder


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
