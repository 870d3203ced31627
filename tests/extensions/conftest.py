"""The example package, installed into a folder of its own as a user would install it."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from knowhalu import registry
from knowhalu.cli.main import main

PACKAGE = Path(__file__).parent / "package"
OFFLINE = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Install the example package by pip; return its folder."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "-q", *OFFLINE, "--target", folder, PACKAGE]
    subprocess.run(command, check=True)
    return folder


def forget_extensions():
    for cached in (registry._entry_points, registry._all_entry_points, registry.load_extension, registry._extension_card):
        cached.cache_clear()
    importlib.invalidate_caches()


@pytest.fixture
def installed(site, monkeypatch):
    """Make the example package importable for one test."""
    monkeypatch.syspath_prepend(site)
    forget_extensions()
    yield site
    for name in [n for n in sys.modules if n.partition(".")[0] == "knowhalu_example"]:
        del sys.modules[name]
    forget_extensions()


@pytest.fixture
def knowhalu(monkeypatch, tmp_path):
    """Return a function that runs the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(main, [str(a) for a in args])
