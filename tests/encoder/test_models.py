"""Verifiers by name: `base` is merged once into the cache folder, by one process at a time, whole or not at all."""

import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from knowhalu.encoder.bases import KNOWN
from knowhalu.encoder.models import (
    MODELS,
    add_model,
    base_files,
    check_hashes,
    models_folder,
    remove_merged,
    stale_folders,
    verifier_folder,
)
from knowhalu.encoder.options import EncoderOptions
from knowhalu.encoder.verifier import read_span_threshold
from knowhalu.errors import ModelError, SettingsError
from knowhalu.registry import VERIFIERS
from tests.support import merged_models
from tests.support.merged_models import known, write_base, write_installed, write_parts, write_shipped

BASE = EncoderOptions(verifier="base")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return write_base(tmp_path_factory.mktemp("base") / "tiny")


@pytest.fixture(scope="module")
def first_shipped(base, tmp_path_factory):
    return write_shipped(tmp_path_factory.mktemp("shipped"), base)


@pytest.fixture
def shipped(first_shipped, tmp_path):
    return shutil.copytree(first_shipped, tmp_path / "shipped")


@pytest.fixture
def model(shipped, base, monkeypatch, tmp_path):
    """The tiny verifier, in place of the real one until the test ends."""
    monkeypatch.setitem(MODELS, "base", None)
    monkeypatch.setitem(KNOWN, "tiny", None)
    monkeypatch.setenv("KNOWHALU_MODELS", str(tmp_path / "cache"))
    return known(shipped, base)


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def add(model, base, **more):
    return add_model(model, base_files(model, base), **more)


def test_every_packaged_name_is_a_verifier():
    assert tuple(MODELS) == VERIFIERS


def test_cache_folder_is_that_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert models_folder() == tmp_path / "knowhalu" / "models"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert models_folder() == Path.home() / ".cache" / "knowhalu" / "models"
    monkeypatch.setenv("KNOWHALU_MODELS", str(tmp_path / "own"))
    assert models_folder() == tmp_path / "own"


def test_added_model_is_complete_and_found_by_its_name(model, base):
    folder = add(model, base)
    assert names(folder) == ["config.json", "marks.json", "merged.json", "model.safetensors", "tokenizer.json"]
    assert names(folder.parent) == [folder.name]
    assert verifier_folder(BASE) == folder and read_span_threshold(folder) == 0.25
    assert all(not problem for _, problem in check_hashes(model))


def test_model_that_is_there_is_not_merged_again(model, base):
    before = (add(model, base) / "model.safetensors").stat().st_mtime_ns
    seen = []
    assert (add(model, base, progress=lambda *at: seen.append(at)) / "model.safetensors").stat().st_mtime_ns == before
    assert not seen


def test_incomplete_folder_is_merged_again(model, base):
    folder = add(model, base)
    (folder / "tokenizer.json").unlink()
    assert not model.is_ready
    add(model, base)
    assert model.is_ready


def test_another_change_or_fitted_file_makes_another_folder(model, base, shipped):
    first = add(model, base)
    (shipped / "marks.json").write_text('{"border": 0.5}')
    assert not model.is_ready and stale_folders(model) == [first]
    second = add(model, base)
    assert second != first and read_span_threshold(second) == 0.5
    assert remove_merged(model, stale=True) == [first] and names(second.parent) == [second.name]
    assert remove_merged(model, stale=False) == [second] and not model.is_ready


def test_damage_is_found_by_the_hashes(model, base):
    weights = add(model, base) / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    assert [name for name, problem in check_hashes(model) if problem] == ["model.safetensors"]


def test_first_use_merges_installed_base_weights(model, base, tmp_path, monkeypatch, caplog):
    monkeypatch.syspath_prepend(write_installed(tmp_path / "site", base))
    assert verifier_folder(BASE) == model.folder and model.is_ready
    assert [r.getMessage() for r in caplog.records] == [
        f"merging the verifier 'base' into {model.folder}, once; this takes some seconds"
    ]
    verifier_folder(BASE)
    assert len(caplog.records) == 1


def test_missing_base_weights_are_one_error_with_the_command(model):
    with pytest.raises(ModelError, match=r"'base' lacks its base weights, tiny\. Run: knowhalu models add base --from FOLDER"):
        verifier_folder(BASE)
    assert not models_folder().exists()


def test_missing_part_of_the_installed_base_is_one_error_with_the_command(model, base, tmp_path, monkeypatch):
    site = write_installed(tmp_path / "site", base)
    shutil.rmtree(site / "tiny_part_002-0.0.1.dist-info")
    monkeypatch.syspath_prepend(site)
    with pytest.raises(ModelError, match=r"part 002 of 3 is missing\. Run: knowhalu models add base"):
        verifier_folder(BASE)


def test_version_without_the_change_refuses_base(model, monkeypatch, tmp_path):
    monkeypatch.setitem(MODELS, "base", replace(model, shipped=tmp_path / "none"))
    with pytest.raises(ModelError, match=r"not part of this version of knowhalu .*Use --set verifier=small"):
        verifier_folder(BASE)
    assert verifier_folder(EncoderOptions()) == MODELS["small"].shipped


def test_the_default_is_base_once_it_has_been_added_and_never_merges_by_itself(model, base):
    assert verifier_folder(EncoderOptions()) == MODELS["small"].shipped
    folder = add_model(model, base_files(model, base))
    assert verifier_folder(EncoderOptions()) == folder
    assert verifier_folder(EncoderOptions(verifier="small")) == MODELS["small"].shipped


def test_unknown_verifier_is_refused_with_the_known_names():
    with pytest.raises(ModelError, match="bse: there is no such verifier.* known name: small, base"):
        verifier_folder(EncoderOptions(verifier="bse"))


def test_folder_with_the_name_of_a_model_is_meant_by_its_path(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small").mkdir()
    assert verifier_folder(EncoderOptions(verifier="small")) == MODELS["small"].shipped
    assert verifier_folder(EncoderOptions(verifier="./small")) == Path("small")


def test_unwritable_folder_is_one_error(model, base, tmp_path):
    (tmp_path / "cache").write_text("a file in its place")
    with pytest.raises(ModelError, match=r"cache: cannot write the merged model .*set KNOWHALU_MODELS"):
        add(model, base)


def test_full_disk_is_one_error_and_leaves_nothing(model, base, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("knowhalu.encoder.merging._write", full)
    with pytest.raises(ModelError, match=r"No space left on device.*Make room"):
        add(model, base)
    assert names(models_folder()) == []


def test_refused_base_leaves_nothing(model, base, tmp_path):
    other = write_base(tmp_path / "other")
    (other / "tokenizer.json").write_bytes(b"{}")
    with pytest.raises(ModelError, match="another base"):
        add(model, other)
    assert names(models_folder()) == []


def started(shipped, base, behaviour="plain"):
    command = [sys.executable, "-m", merged_models.__name__, str(shipped), str(base), behaviour]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(merged_models.__file__).parents[2])


def test_two_processes_merge_once(model, base, shipped):
    models_folder().mkdir()
    with (models_folder() / ".base.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        both = [started(shipped, base) for _ in range(2)]
        assert all("waiting for another process" in process.stdout.readline() for process in both)
    said = sorted(process.communicate()[0] for process in both)
    assert said == [f"found {model.folder.name}\n", f"merged {model.folder.name}\n"]
    assert model.is_ready and names(models_folder()) == [model.folder.name]


def test_killed_merge_leaves_no_model_and_is_done_again(model, base, shipped):
    died = started(shipped, base, "die")
    assert died.communicate()[0] == "" and died.returncode == -9
    assert not model.is_ready and names(models_folder()) == [f".{model.folder.name}.partial"]
    assert stale_folders(model) == [models_folder() / f".{model.folder.name}.partial"]
    folder = add(model, base)
    assert model.is_ready and names(models_folder()) == [folder.name]


def test_record_is_json_with_version_and_hashes(model, base):
    record = json.loads((add(model, base) / "merged.json").read_text())
    assert record["model"] == "base" and record["base"] == "tiny" and len(record["files"]) == 4


def test_extension_that_is_no_path_is_refused(monkeypatch):
    monkeypatch.setattr("knowhalu.encoder.models.is_known", lambda kind, name: True)
    monkeypatch.setattr("knowhalu.encoder.models.load_extension", lambda kind, name: 3)
    with pytest.raises(SettingsError, match="no path of a folder"):
        verifier_folder(EncoderOptions(verifier="mine"))


def test_parts_of_pip_target_are_merged(model, base, tmp_path):
    assert add(model, write_parts(tmp_path / "target", base)) == model.folder
