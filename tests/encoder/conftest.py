"""Fixtures of the encoder tests."""

import shutil

import pytest

from knowhalu.encoder.external import open_verifier
from tests.support.indexing import folder, minilm, words  # noqa: F401 - fixtures
from tests.support.tiny_verifiers import FAMILIES


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return a function that gives the folder of a family, written once."""
    place = tmp_path_factory.mktemp("verifiers")

    def written(name):
        if not (place / name).exists():
            FAMILIES[name](place / name)
        return place / name

    return written


@pytest.fixture(scope="module")
def backends(folders):
    """Return a function that gives the backend of a family, opened once."""
    opened = {}

    def backend(name):
        if name not in opened:
            opened[name] = open_verifier(folders(name), precision="fp32")
        return opened[name]

    return backend


@pytest.fixture
def copied(folders, tmp_path):
    """Return a function that copies the folder of a family, to be changed."""
    return lambda name: shutil.copytree(folders(name), tmp_path / name)
