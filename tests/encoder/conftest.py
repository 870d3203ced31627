"""Fixtures of the encoder tests."""

from tests.support.indexing import folder, minilm, words  # noqa: F401 - fixtures
