"""Extensions that cannot be used: one clear error that names the package, and no code chosen by stored data."""

import json

import pytest

from knowhalu.build import build_engine, build_method, fingerprint, llm_identity
from knowhalu.calibration.tunable import stored_run_settings
from knowhalu.datasets.catalog import dataset_card
from knowhalu.encoder.models import verifier_folder
from knowhalu.encoder.options import EncoderOptions
from knowhalu.errors import InputError, SettingsError
from knowhalu.profiles import load_settings
from knowhalu.registry import method_card
from tests.extensions.conftest import forget_extensions


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """Install a package whose method imports what is not there, by writing its metadata."""
    metadata = tmp_path / "broken_checks-2.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-checks\nVersion: 2.0\n")
    points = "[knowhalu.methods]\nbroken = broken_checks:Broken\nalias = broken_alias:Renamed\nbare = broken_alias:Bare\n"
    points += "leaving = broken_exit:Leaving\nmade = broken_alias:made\n[knowhalu.verifiers]\nno-path = broken_alias:Bare\n"
    points += "[knowhalu.datasets]\nno-card = broken_alias:Bare\nbad-card = broken_alias:CARD\n"
    (metadata / "entry_points.txt").write_text(points)
    (tmp_path / "broken_checks.py").write_text("import a_library_that_is_not_installed\n")
    (tmp_path / "broken_alias.py").write_text("class Renamed:\n    name = 'renamed'\nclass Bare:\n    name = 'bare'\n")
    with (tmp_path / "broken_alias.py").open("a") as file:
        file.write("class Made(Renamed):\n    name = 'made'\n    class Options: pass\nmade = Made()\nCARD = {'task': 'chat'}\n")
    (tmp_path / "broken_exit.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    forget_extensions()
    yield tmp_path
    forget_extensions()


def test_import_error_names_the_package_and_the_remedy(broken):
    message = r"method 'broken' of the installed package 'broken-checks' .*ModuleNotFoundError.* pip uninstall broken-checks"
    with pytest.raises(SettingsError, match=message):
        method_card("broken")


def test_broken_extension_does_not_disturb_the_others(broken, knowhalu):
    assert build_method(load_settings(pairs=["method=lexical"])).name == "lexical"
    listed = knowhalu("methods")
    assert listed.exit_code == 0 and "pip uninstall broken-checks" in " ".join(listed.stdout.split())


def test_name_must_be_that_of_the_entry_point(broken):
    with pytest.raises(SettingsError, match="calls itself 'renamed'"):
        method_card("alias")


def test_class_must_be_a_method(broken):
    for name in ("bare", "made"):
        with pytest.raises(SettingsError, match="is no class with `Options`. Make it a subclass of knowhalu.extend.Method"):
            method_card(name)


def test_package_that_exits_at_import_does_not_end_the_command(broken, knowhalu):
    with pytest.raises(SettingsError, match="SystemExit: 3.* pip uninstall broken-checks"):
        method_card("leaving")
    assert "trivial-length" in knowhalu("methods").stdout


def test_name_that_two_packages_have_is_refused(broken):
    other = broken / "other_checks-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other-checks\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text("[knowhalu.methods]\nbare = other_checks:Bare\n")
    forget_extensions()
    with pytest.raises(SettingsError, match="the packages broken-checks and other-checks each have a method 'bare'"):
        method_card("bare")


FAILING = """
from knowhalu.extend import LLMBackend, Method, RetrieverBackend

class Failing:
    def __init__(self, *given, **options):
        raise ValueError("no server at http://me:secret@host")

class FailingMethod(Failing, Method): name = "failing-method"
class FailingLLM(Failing, LLMBackend):
    name = "failing-llm"
    async def answer(self, request): ...
class FailingRetriever(Failing, RetrieverBackend): name = "failing-retriever"
class Refusing(Method):
    name = "refusing"
    def __init__(self, *given, **options):
        from knowhalu.errors import SettingsError
        raise SettingsError("refusing.key is missing. Set it")
"""


@pytest.mark.parametrize(
    ("pair", "kind", "make"),
    [
        ("method=failing-method", "method 'failing-method'", build_engine),
        ("llm.backend=failing-llm", "LLM backend 'failing-llm'", build_engine),
        ("llm.backend=failing-llm", "LLM backend 'failing-llm'", llm_identity),
        ("retrieval.mode=failing-retriever", "retriever 'failing-retriever'", build_engine),
        ("retrieval.mode=failing-retriever", "retriever 'failing-retriever'", fingerprint),
    ],
)
def test_an_exception_in_init_names_the_extension_its_package_and_the_cause(broken, pair, kind, make):
    (broken / "failing_checks.py").write_text(FAILING)
    with (broken / "broken_checks-2.0.dist-info/entry_points.txt").open("a") as file:
        file.write("[knowhalu.llms]\nfailing-llm = failing_checks:FailingLLM\n")
        file.write("[knowhalu.retrievers]\nfailing-retriever = failing_checks:FailingRetriever\n")
        file.write("[knowhalu.methods]\nfailing-method = failing_checks:FailingMethod\n")
    forget_extensions()
    reasoner = "reasoner=llm" if "llm" in pair else "reasoner=encoder"
    with pytest.raises(SettingsError) as caught:
        make(load_settings(pairs=[pair, reasoner]))
    cause = "cannot be made (ValueError: no server at http://host)"
    assert str(caught.value).startswith(f"the {kind} of the installed package 'broken-checks' {cause}. Check its settings, ")


def test_an_error_that_an_extension_raises_on_purpose_is_shown_as_it_is(broken):
    (broken / "failing_checks.py").write_text(FAILING)
    with pytest.raises(SettingsError, match=r"^refusing.key is missing. Set it$"):
        build_method(load_settings(pairs=['method="failing_checks:Refusing"']))


def test_verifier_that_is_no_path_is_refused(broken):
    with pytest.raises(SettingsError, match="the verifier 'no-path' is no path of a folder"):
        verifier_folder(EncoderOptions(verifier="no-path"))


@pytest.mark.parametrize("name", ["no_such_module_anywhere:Class", "json:NoSuchClass"])
def test_import_path_that_does_not_exist_is_refused(name):
    with pytest.raises(SettingsError, match="cannot be imported"):
        method_card(name)


@pytest.mark.parametrize(
    ("name", "message"), [("no-card", "is neither the fields of a card nor"), ("bad-card", "'bad-card', field 'task'")]
)
def test_data_set_that_is_no_card_is_refused(broken, name, message):
    with pytest.raises(SettingsError, match=message):
        dataset_card(name)


def test_stored_outcomes_cannot_choose_the_code_to_import(tmp_path):
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')\n")
    head = {"settings": json.dumps({"method": "trap:Trap"})}
    with pytest.raises((SettingsError, InputError), match="names code to import"):
        stored_run_settings(head, load_settings(), tmp_path / "outcomes.jsonl")
    (tmp_path / "p.toml").write_text(
        'version = "0"\nmade = "0"\ngoal = "f1"\n[settings]\nmethod = "trap:Trap"\n'
        '[data]\nfile = "rows"\nsha256 = "0"\nrows = 1\nhallucinated = 1\nhashes = ""\n'
    )
    with pytest.raises(SettingsError, match="names code to import .method = trap:Trap."):
        load_settings(pairs=[f"profile={json.dumps(str(tmp_path / 'p.toml'))}"])
