"""The entry point: fast help, one-line errors, exit codes."""

import subprocess
import sys

import pytest

from knowhalu.api import Checker
from knowhalu.cli.main import COMMANDS, main

CHECK = ("check", "--claim", "x", "--knowledge", "k")
HELP = """
import sys
from click.testing import CliRunner
from knowhalu.cli.main import main
result = CliRunner().invoke(main, ["--help"])
assert result.exit_code == 0, result.output
print(sorted({"rich", "pydantic", "torch", "numpy", "anyio", "faiss"} & set(sys.modules)))
"""


def test_help_imports_no_heavy_library():
    found = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_help_lists_every_command_with_its_line(knowhalu):
    output = knowhalu("--help").output
    for name, (_, line) in COMMANDS.items():
        assert f"{name} " in output
        assert line[:40] in output


def test_the_version_is_printed(knowhalu):
    assert knowhalu("--version").output.startswith("knowhalu 0.")


def test_an_unknown_command_gets_the_nearest_name(knowhalu):
    result = knowhalu("chekc")
    assert result.exit_code == 2
    assert "Did you mean 'check'?" in result.stderr


def test_an_error_is_one_line_and_exit_code_2(knowhalu):
    result = knowhalu("settings", "--set", "engine.batsch=3")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: --set engine.batsch=3: engine.batsch: no such setting")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_the_traceback_is_shown_when_asked_for(knowhalu, capsys):
    result = knowhalu("--traceback", "settings", "--set", "engine.batsch=3")
    assert "Traceback" in result.stderr
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ZeroDivisionError("division"), 2, "an error in KnowHalu itself (ZeroDivisionError: division)"),
        (OSError(28, "No space left on device", "out.jsonl"), 2, "error: out.jsonl: No space left on device"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_no_error_exits_with_the_code_of_a_verdict(knowhalu, monkeypatch, error, code, said):
    def fail(self, sample):
        raise error

    monkeypatch.setattr(Checker, "check", fail)
    result = knowhalu(*CHECK)
    assert result.exit_code == code
    assert said in result.stderr


def test_the_entry_point_returns_the_exit_code(monkeypatch, knowhalu):
    monkeypatch.setattr(sys, "argv", ["knowhalu", "check", "--claim", "wrong", "--knowledge", "k"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 1
