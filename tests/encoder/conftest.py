"""Fixtures of the tests of encoder."""

from tests.support.indexing import folder, minilm, words  # noqa: F401 - fixtures
