"""Commands run in this process, with a scripted method behind them."""

import pytest
from click.testing import CliRunner

from knowhalu.api import Checker
from knowhalu.cli.main import main
from tests.support.indexing import folder, minilm, words  # noqa: F401 - fixtures
from tests.support.scripted_checks import ScriptedChecker


@pytest.fixture
def knowhalu(monkeypatch, tmp_path):
    """Return a function that runs the command line in an empty folder: `knowhalu("check", ..., input=...)`."""
    monkeypatch.chdir(tmp_path)
    scripted = ScriptedChecker()
    monkeypatch.setattr(Checker, "engine", property(lambda self: scripted.engine))
    monkeypatch.setattr(Checker, "fingerprint", property(lambda self: scripted.fingerprint))

    def run(*args, input=None):
        return CliRunner().invoke(main, [str(a) for a in args], input=input)

    return run
