"""Fixtures of the tests of index."""

from tests.support.indexing import folder, minilm, words  # noqa: F401 - fixtures
