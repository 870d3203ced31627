"""The Python API: how a checker is configured, what text it accepts, and when models are loaded."""

import threading

import pytest

import knowhalu
from knowhalu import api
from knowhalu.api import Checker
from knowhalu.engine.engine import Backends, Engine
from knowhalu.errors import InputError, SettingsError
from knowhalu.llm.options import LLMOptions
from knowhalu.retrieval.options import RetrievalOptions
from knowhalu.settings import Settings
from knowhalu.types import Document, Sample
from tests.support.scripted_checks import Scripted, ScriptedChecker
from tests.test_api_rows import DECIDED, ROWS


def test_settings_are_given_by_name():
    settings = Checker(method="conli", index="an/index", retrieval={"mode": "hybrid"}, llm=LLMOptions(model="m")).settings
    assert settings == Settings(
        method="conli", retrieval=RetrievalOptions(index="an/index", mode="hybrid"), llm=LLMOptions(model="m")
    )


def test_settings_by_name_take_precedence_over_an_object_and_over_a_file(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('method = "factored"\n[llm]\nmodel = "m"\nseed = 3\n')
    base = Settings(method="factored", llm=LLMOptions(model="m", seed=3))
    wanted = Settings(method="factored", llm=LLMOptions(model="m", seed=4))
    assert Checker(base).settings == Checker(file).settings == Checker(settings=str(file)).settings == base
    assert Checker(base, llm={"seed": 4}).settings == Checker(file, llm={"seed": 4}).settings == wanted


@pytest.mark.parametrize(
    ("options", "nearest"), [({"metod": "conli"}, "'method'"), ({"retrieval": {"indx": "x"}}, "'retrieval.index'")]
)
def test_an_unknown_setting_is_refused_with_the_nearest_name(options, nearest):
    with pytest.raises(SettingsError, match=f"no such setting .* Did you mean {nearest}"):
        Checker(**options)


@pytest.mark.parametrize("text", [
    {"claim": "wrong", "documents": ["d"]}, {"response": "wrong", "document": "d"}, {"summary": "wrong", "documents": "d"},
    {"answer": "wrong", "documents": Document(text="d")}, {"answer": "wrong", "documents": ({"text": t} for t in "d")},
])  # fmt: skip
def test_a_text_is_given_by_fields_as_a_mapping_or_as_a_sample(text):
    seen = []

    class Recorded(Scripted):
        def check(self, sample):
            seen.append(sample)
            return super().check(sample)

    checker = ScriptedChecker()
    checker.method = Recorded()
    assert checker.check(**text).hallucinated is True
    assert checker.check(seen[0]).hallucinated is checker.check(seen[0].model_dump(exclude_defaults=True)).hallucinated is True
    assert [d.text for d in seen[0].documents] == ["d"] and len({(s.response, s.documents) for s in seen}) == 1


def test_a_positional_text_is_the_response():
    assert ScriptedChecker().check("wrong").hallucinated is True


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "response, answer, summary or claim"),
        ({"answer": "a", "claim": "c"}, "means the same as"),
        ({"anwser": "a"}, "Did you mean 'answer'"),
        ({"claim": "c", "knowledge": {"text": "t"}}, "'knowledge'"),
    ],
)
def test_arguments_that_are_no_text_are_refused(fields, message):
    with pytest.raises(InputError, match=message):
        ScriptedChecker().check(**fields)
    with pytest.raises(InputError, match="together with question"):
        ScriptedChecker().check(Sample(response="r"), question="q")


@pytest.mark.parametrize("text", [5, b"claim", ["claim"], 0])
def test_a_positional_argument_of_another_type_is_refused(text):
    with pytest.raises(InputError, match=f"the text to check is a {type(text).__name__}"):
        ScriptedChecker().check(text)


def test_a_text_is_not_silently_replaced_by_a_field():
    with pytest.raises(InputError, match="together with response"):
        ScriptedChecker().check("wrong", response="right")


@pytest.mark.parametrize("settings", [{"method": "conli"}, {}, 5])
def test_settings_of_another_type_are_refused(settings):
    for use in (Checker, lambda given: knowhalu.check(claim="c", settings=given)):
        with pytest.raises(SettingsError, match="is neither Settings nor the path of a TOML file"):
            use(settings)


@pytest.fixture
def loads(monkeypatch):
    """Count the engines that are built."""
    built = []

    def build(settings, kept=None):
        built.append(settings.method)
        return Engine(Scripted(), Backends())

    monkeypatch.setattr("knowhalu.build.build_engine", build)
    api._checker.cache_clear()
    yield built
    api._checker.cache_clear()


def test_the_module_functions_load_models_once_for_the_same_settings(loads):
    assert knowhalu.check("right").hallucinated is knowhalu.check(claim="right").hallucinated is False
    assert [o.hallucinated for o in knowhalu.check_all(ROWS)] == DECIDED
    assert loads == ["knowhalu"]
    knowhalu.check("right", settings=Settings(method="conli"))
    assert loads == ["knowhalu", "conli"]


def test_a_closed_checker_loads_again_and_threads_share_one_engine(loads):
    with Checker() as checker:
        threads = [threading.Thread(target=checker.check, args=("right",)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert loads == ["knowhalu"]
    checker.check("right")
    assert loads == ["knowhalu", "knowhalu"]
