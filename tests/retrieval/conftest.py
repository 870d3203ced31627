"""Fixtures of the tests of retrieval."""

from tests.support.indexing import folder, minilm, words  # noqa: F401 - fixtures
