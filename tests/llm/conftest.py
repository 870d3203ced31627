"""Tiny language models, shared by all tests of a run."""

from functools import cache

import pytest


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    """Return a function that writes a tiny model once: `model_folder("qwen2", template=CHAT, sliding_window=64)`."""
    from tests.support.tiny_llm import write_model

    @cache
    def folder(kind="llama", template=None, **changes):
        return write_model(tmp_path_factory.mktemp(kind), kind, template, **changes)

    return folder


@pytest.fixture
def options(tmp_path):
    """Return the options of a model with a separate reply cache."""
    from knowhalu.settings import LLMOptions

    return LLMOptions(cache_folder=tmp_path / "cache")
