"""Merging in one pass writes the bytes of the merged and saved model, and refuses what does not belong together."""

import json
import shutil

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from knowhalu.encoder.bases import find_base
from knowhalu.encoder.change import merge
from knowhalu.encoder.merging import merge_files
from knowhalu.encoder.verifier import PairTokenizer, Verifier
from knowhalu.errors import ModelError
from tests.support.merged_models import PARTS, write_base, write_parts, write_shipped


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return write_base(tmp_path_factory.mktemp("base") / "tiny")


@pytest.fixture(scope="module")
def change(base, tmp_path_factory):
    return write_shipped(tmp_path_factory.mktemp("shipped"), base) / "change.safetensors"


@pytest.fixture
def out(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


@pytest.mark.parametrize("write", [lambda _, base: base, write_parts])
def test_merged_file_is_that_of_the_merged_and_saved_model(base, change, tmp_path, out, write):
    merge_files(find_base(write(tmp_path / "here", base), PARTS), change, out)
    merge(base, change).save(tmp_path / "saved", PairTokenizer.load(base).tokenizer)
    assert (out / "model.safetensors").read_bytes() == (tmp_path / "saved" / "model.safetensors").read_bytes()
    assert (out / "tokenizer.json").read_bytes() == (base / "tokenizer.json").read_bytes()


def test_merged_folder_loads_as_a_verifier(base, change, out):
    merge_files(find_base(base, PARTS), change, out)
    shutil.copy(base / "config.json", out)
    found, expected = Verifier.load(out).state_dict(), merge(base, change).state_dict()
    assert all(torch.equal(found[name], weight.half().float()) for name, weight in expected.items())


def test_progress_ends_at_the_size_of_the_weights(base, change, out):
    seen = []
    merge_files(find_base(base, PARTS), change, out, lambda done, total: seen.append((done, total)))
    size = (base / "model.safetensors").stat().st_size
    assert seen == sorted(seen) and seen[-1] == (size, size)


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def flipped(path):
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(bytes(data))


def no_weights(path):
    path.write_bytes(b"\xff" * 50)


@pytest.mark.parametrize("damage", [cut, flipped, no_weights])
@pytest.mark.parametrize(("name", "what"), [("model.safetensors", "weights"), ("tokenizer.json", "tokenizer")])
def test_other_or_damaged_base_is_refused_by_its_hash(base, change, tmp_path, out, damage, name, what):
    other = shutil.copytree(base, tmp_path / "other")
    damage(other / name)
    with pytest.raises(ModelError, match=rf"another base than .*other: it needs {what} with the sha256 .*copy it again"):
        merge_files(find_base(other, PARTS), change, out)


def test_base_without_a_tokenizer_is_refused(base, change, tmp_path, out):
    other = shutil.copytree(base, tmp_path / "other")
    (other / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"other: cannot read the base .*tokenizer\.json"):
        merge_files(find_base(other, PARTS), change, out)


def rewritten(path, tensors):
    """Write other tensors into a change, with the hash that they need."""
    from knowhalu.encoder.change import _seal

    with safe_open(path, "pt") as file:
        about = file.metadata()
    save_file(tensors, path, {**about, "seal": json.dumps(_seal(tensors))})


@pytest.mark.parametrize(
    "name", ["difference:encoder.model.no.such.weight", "difference:encoder.model.embeddings.LayerNorm.bias"]
)
def test_change_that_does_not_fit_its_base_is_refused(base, change, tmp_path, out, name):
    path = shutil.copy(change, tmp_path / "change.safetensors")
    rewritten(path, {**load_file(path), name: torch.ones(3).half()})
    with pytest.raises(ModelError, match=r"change\.safetensors: its weights do not fit"):
        merge_files(find_base(base, PARTS), path, out)
