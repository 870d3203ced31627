"""`knowhalu models`."""

import json
from dataclasses import replace

import pytest

from knowhalu.encoder.bases import KNOWN
from knowhalu.encoder.models import MODELS
from tests.support.merged_models import known, write_base, write_installed, write_shipped


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return write_base(tmp_path_factory.mktemp("base") / "tiny")


@pytest.fixture
def model(base, monkeypatch, tmp_path):
    """The tiny verifier, in place of the real one until the test ends."""
    monkeypatch.setitem(MODELS, "base", None)
    monkeypatch.setitem(KNOWN, "tiny", None)
    monkeypatch.setenv("KNOWHALU_MODELS", str(tmp_path / "cache"))
    (tmp_path / "shipped").mkdir()
    return known(write_shipped(tmp_path / "shipped", base), base)


def succeeded(result):
    assert result.exit_code == 0, result.output
    return result.stdout


def listed(knowhalu):
    return {row["name"]: row for row in json.loads(succeeded(knowhalu("models", "list", "--json")))["models"]}


def test_list_has_licence_size_and_place(knowhalu, model, tmp_path):
    small, missing = (listed(knowhalu)[name] for name in ("small", "base"))
    assert small["ready"] and small["licence"] == "Apache-2.0" and small["bytes"] > 40_000_000
    assert not missing["ready"] and missing["state"] == "not here: knowhalu models add base"
    lines = succeeded(knowhalu("models", "list")).splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["verifier", "small", "base"]
    assert lines[-1] == f"Merged models are kept in {tmp_path / 'cache'} (set KNOWHALU_MODELS to change this)."


def test_list_tells_that_a_version_has_no_base(knowhalu, model, monkeypatch, tmp_path):
    monkeypatch.setitem(MODELS, "base", replace(model, shipped=tmp_path / "none"))
    assert listed(knowhalu)["base"]["state"] == "not part of this version"
    result = knowhalu("models", "add", "base")
    assert result.exit_code == 2 and "not part of this version" in result.stderr


def test_added_model_is_listed_verified_located_and_removed(knowhalu, model, base):
    assert f"base is in {model.folder}" in succeeded(knowhalu("models", "add", "base", "--from", base))
    assert succeeded(knowhalu("models", "add", "base")) == f"base is already in {model.folder}\n"
    assert listed(knowhalu)["base"]["place"] == str(model.folder) and listed(knowhalu)["base"]["ready"]
    lines = succeeded(knowhalu("models", "verify", "base")).splitlines()
    assert f"base: {model.folder / 'model.safetensors'}: ok" in lines and len(lines) == 4
    assert succeeded(knowhalu("models", "path", "base")) == f"{model.folder}\n"
    assert succeeded(knowhalu("models", "remove", "base")) == f"removed {model.folder}\n"
    assert succeeded(knowhalu("models", "remove", "base")) == "there is nothing to remove\n"


def test_packaged_model_is_verified_and_located(knowhalu):
    assert succeeded(knowhalu("models", "path", "small")) == f"{MODELS['small'].shipped}\n"
    assert succeeded(knowhalu("models", "verify", "small")).count(": ok") == 3


def test_damage_fails_the_verification_with_the_remedy(knowhalu, model, base):
    knowhalu("models", "add", "base", "--from", base)
    (model.folder / "tokenizer.json").write_bytes((model.folder / "tokenizer.json").read_bytes().replace(b"snow", b"rain"))
    result = knowhalu("models", "verify")
    assert result.exit_code == 1
    assert f"{model.folder / 'tokenizer.json'}: sha256 is " in result.stdout
    assert "Run: knowhalu models remove base, then knowhalu models add base" in result.stdout


def test_stale_model_is_listed_and_removed(knowhalu, model, base):
    knowhalu("models", "add", "base", "--from", base)
    old = model.folder
    (model.shipped / "marks.json").write_text('{"border": 0.5}')
    assert f"not used any more: {old}" in succeeded(knowhalu("models", "list"))
    assert succeeded(knowhalu("models", "remove", "--stale")) == f"removed {old}\n"


@pytest.mark.parametrize(("arguments", "said"), [
    (["add", "bse"], "no packaged verifier 'bse'"),
    (["add", "base"], "knowhalu models add base --from FOLDER"),
    (["add", "base", "--from", "none"], "'none' does not exist"),
    (["verify", "base"], "base is not here"),
    (["path", "base"], "lacks its base weights"),
    (["path", "bse"], "no such verifier"),
    (["remove", "small"], "small is in the package"),
    (["remove"], "Give the name of a verifier, or --stale"),
])  # fmt: skip
def test_wrong_use_is_one_error(knowhalu, model, arguments, said):
    result = knowhalu("models", *arguments)
    assert result.exit_code == 2 and said in result.stderr


def test_add_of_a_packaged_model_has_nothing_to_do(knowhalu):
    assert "already in" in succeeded(knowhalu("models", "add", "small"))


def test_doctor_shows_that_base_is_missing_mergeable_or_here(knowhalu, model, base, tmp_path, monkeypatch):
    def line():
        output = knowhalu("doctor", "--set", "verifier=base").stdout
        return next(line for line in output.splitlines() if " verifier " in line)

    assert line().startswith("MISS verifier") and "knowhalu models add base" in line()
    monkeypatch.syspath_prepend(write_installed(tmp_path / "site", base))
    assert line().startswith("ok   verifier") and "is merged at its first use" in line() and not model.is_ready
    (model.shipped / "judgment.json").write_text("{}")
    knowhalu("models", "add", "base")
    assert line().startswith(f"ok   verifier       base: {model.folder} (")
