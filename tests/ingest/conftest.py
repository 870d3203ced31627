"""Fixtures of the tests of ingest."""

from tests.support.indexing import folder, minilm, words  # noqa: F401 - fixtures
