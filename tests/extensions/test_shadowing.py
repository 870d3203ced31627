"""Extensions that have the name of a built-in: the built-in is used, and the commands that list names report them."""

import json

import pytest

from knowhalu.build import build_method
from knowhalu.cli.doctor import examine_installation
from knowhalu.datasets.catalog import dataset_card
from knowhalu.errors import SettingsError
from knowhalu.llm.server_backend import ServerBackend
from knowhalu.methods.conli.method import CoNLI
from knowhalu.profiles import load_settings
from knowhalu.registry import known_names, llm_backend
from tests.extensions.conftest import forget_extensions

LINE = "the {} {!r} of the installed package 'my-checks' is not used, as a built-in one has its name"
POINTS = """
[knowhalu.methods]
conli = my_checks:Mine
[knowhalu.llms]
server = my_checks:Mine
[knowhalu.retrievers]
dense = my_checks:Mine
[knowhalu.datasets]
ragtruth = my_checks:CARD
"""


@pytest.fixture(autouse=True)
def shadowing(tmp_path, monkeypatch):
    """Install a package that gives its extensions the names of built-ins, by writing its metadata."""
    metadata = tmp_path / "my_checks-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my-checks\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(POINTS)
    (tmp_path / "my_checks.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    forget_extensions()
    yield
    forget_extensions()


def test_the_name_gives_the_built_in():
    assert isinstance(build_method(load_settings(pairs=["method=conli"])), CoNLI)
    assert llm_backend("server") is ServerBackend
    assert dataset_card("ragtruth").name == "ragtruth"
    assert known_names("llms").count("server") == 1


def test_a_branch_of_the_ignored_extension_is_no_setting():
    with pytest.raises(SettingsError, match="server: no such setting"):
        load_settings(pairs=["server.url=x"])


def test_doctor_reports_every_kind():
    lines = [f.text for f in examine_installation(load_settings()) if f.name == "extensions"]
    kinds = {"method": "conli", "LLM backend": "server", "retriever": "dense", "data set": "ragtruth"}
    assert lines == [LINE.format(kind, name) for kind, name in kinds.items()]


def test_the_list_of_methods_reports_it(knowhalu):
    result = knowhalu("methods")
    assert result.exit_code == 0 and LINE.format("method", "conli") in result.stdout.splitlines()
    assert json.loads(knowhalu("methods", "--json").stdout)["conli"]["options"]


def test_the_list_of_data_sets_reports_it(knowhalu):
    assert LINE.format("data set", "ragtruth") in " ".join(knowhalu("eval", "--help").stdout.split())
