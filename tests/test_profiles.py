"""Profiles: round trips, applied to settings, refused where they do not fit."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.api import Checker
from knowhalu.batch import detect
from knowhalu.build import build_method, fingerprint
from knowhalu.errors import InputError, SettingsError
from knowhalu.io.outcomes import parse_outcome
from knowhalu.io.samples import hash_sample
from knowhalu.methods.common.calibrated import DecisionRule, ProbabilityScaling
from knowhalu.profiles import (
    CalibrationData,
    FittedSettings,
    Profile,
    apply_profile,
    load_settings,
    pack_row_hashes,
    read_profile,
    write_profile,
)
from knowhalu.settings import Settings
from knowhalu.types import Sample

LENGTH = {"method": "trivial-length", "reasoner": "encoder", "trivial": {"threshold": 3.0}}


def basis(contents=()):
    return CalibrationData(file="rows.jsonl", sha256="0" * 64, rows=2, hallucinated=1, hashes=pack_row_hashes(contents))


def made(path, settings=LENGTH, contents=(), **more):
    write_profile(
        Profile(version="1", made="2026-01-01", goal="a goal", data=basis(contents), settings=settings, **more), path
    )  # fmt: skip
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "p.toml"


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.floats(0, 1)


@given(texts, st.dictionaries(texts, st.tuples(numbers, numbers), max_size=3), st.lists(numbers, max_size=4))
def test_profile_round_trips(tmp_path_factory, goal, sets, x):
    path = tmp_path_factory.mktemp("profile") / "p.toml"
    curve = (
        ProbabilityScaling(kind="isotonic", x=sorted(x), y=sorted(x))
        if x
        else ProbabilityScaling(kind="platt", slope=0.3, shift=-1e-9)
    )
    fits = {
        name: FittedSettings(settings={"knowhalu": {"delta1": a}}, decision=DecisionRule(low=min(a, b), high=max(a, b)))
        for name, (a, b) in sets.items()
    }
    profile = Profile(
        version="1", made="now", goal=goal, data=basis(), settings=LENGTH, sets=fits, decision=DecisionRule(scaling=curve)
    )
    write_profile(profile, path)
    assert read_profile(path) == profile


def test_applying_a_profile_is_idempotent(path):
    made(path, {"method": "factored", "reasoner": "encoder", "factored": {"rule": "minimum", "theta": 0.25}})
    settings = load_settings(pairs=[f"profile={path}", "engine.batch=3"])
    assert (settings.method, settings.factored.rule, settings.factored.theta, settings.engine.batch) == (
        "factored", "minimum", 0.25, 3,
    )  # fmt: skip
    assert apply_profile(settings) == settings
    assert Checker(Settings(profile=path)).settings.method == "factored"


@pytest.mark.parametrize("pair", ["method=conli", "reasoner=llm", "trivial.threshold=4"])
def test_setting_that_contradicts_the_profile_is_refused(path, pair):
    made(path)
    name = pair.partition("=")[0]
    with pytest.raises(SettingsError, match=f"p.toml: is for {name} = .* but {name} is set to .* Leave one of the two out"):
        load_settings(pairs=[f"profile={path}", pair])


@pytest.mark.parametrize("text", ["", "x = ", 'version = "1"', "version = 1\nmade = 2"])
def test_invalid_profile_is_refused_with_the_remedy(path, text):
    path.write_text(text)
    with pytest.raises(SettingsError, match="p.toml: .*knowhalu calibrate"):
        load_settings(pairs=[f"profile={path}"])


def test_unknown_setting_in_a_profile_is_named(path):
    made(path, {"method": "knowhalu", "knowhalu": {"delta9": 1.0}})
    with pytest.raises(SettingsError, match=r"p.toml: knowhalu.delta9: "):
        load_settings(pairs=[f"profile={path}"])


def test_profile_of_another_verifier_is_refused(path):
    ours = fingerprint(Settings())["verifier"]
    made(path, {"method": "knowhalu", "reasoner": "encoder"}, parts={"verifier": ours})
    assert build_method(load_settings(pairs=[f"profile={path}"])).name == "knowhalu"
    made(path, {"method": "knowhalu", "reasoner": "encoder"}, parts={"verifier": "0123"})
    with pytest.raises(SettingsError, match=r"fitted with another verifier \(0123, here \w+\). Set that verifier again"):
        build_method(load_settings(pairs=[f"profile={path}"]))


def test_profile_of_other_prompts_is_refused(path):
    made(path, {"method": "few-shot", "reasoner": "llm"}, parts={"prompts": "0123"})
    with pytest.raises(SettingsError, match="fitted with other prompts than this run has"):
        build_method(load_settings(pairs=[f"profile={path}"]))


def test_fingerprint_depends_on_the_decisions_of_a_profile_only(path, tmp_path):
    made(path)
    first = fingerprint(load_settings(pairs=[f"profile={path}"]))
    assert first != fingerprint(load_settings(pairs=["method=trivial-length", "trivial.threshold=3.0"]))
    other = made(tmp_path / "other.toml", figures={"fitted": {"average": [0.5]}})
    assert fingerprint(load_settings(pairs=[f"profile={other}", "allow_fitted=true"])) == first
    made(path, decision=DecisionRule(low=0.4, high=0.4))
    assert fingerprint(load_settings(pairs=[f"profile={path}"])) != first


ROWS = [Sample(id=str(i), response="word " * i) for i in range(1, 9)]


def write_rows(path, rows):
    path.write_text("".join(r.model_dump_json(exclude_none=True) + "\n" for r in rows))
    return path


def test_fitted_rows_are_refused_unless_allowed(path, tmp_path):
    made(path, contents=[hash_sample(r) for r in ROWS[:3]])
    rows = write_rows(tmp_path / "in.jsonl", [r.model_copy(update={"id": f"new{r.id}"}) for r in ROWS])
    with pytest.raises(InputError, match="fitted on 3 rows of it.*--allow-fitted"):
        detect(Checker(Settings(profile=path)), rows, tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()
    assert detect(Checker(Settings(profile=path, allow_fitted=True)), rows, tmp_path / "out.jsonl").samples == 8
    assert detect(Checker(Settings(profile=path)), write_rows(rows, ROWS[3:]), tmp_path / "rest.jsonl").samples == 5


def test_scaling_and_band_of_a_set_are_applied_and_reported(path, tmp_path):
    made(path, decision=DecisionRule(low=0.5, high=0.9), sets={"short": FittedSettings(settings={"trivial": {"threshold": 1.0}})})
    named = [ROWS[4], ROWS[1].model_copy(update={"meta": {"set": "short"}}), ROWS[1]]
    rows = write_rows(tmp_path / "in.jsonl", [r.model_copy(update={"id": str(i)}) for i, r in enumerate(named)])
    detect(Checker(Settings(profile=path)), rows, tmp_path / "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    found = [parse_outcome(line) for line in lines[1:]]
    assert [o.hallucinated for o in found] == [None, True, False]
    assert "between 0.500 and 0.900: left open" in found[0].reason
    assert json.loads(lines[0])["run"]["profile"] == read_profile(path).seal


def test_profile_with_the_old_name_of_the_verifier_is_applied(path):
    made(path, {"method": "knowhalu", "encoder": {"folder": "mine"}})
    assert load_settings(pairs=[f"profile={path}"]).encoder.verifier == "mine"
    with pytest.raises(SettingsError, match='encoder.verifier = "mine", but encoder.verifier is set to "other"'):
        load_settings(pairs=[f"profile={path}", "verifier=other"])
