"""Factored changes of weights: they restore the trained model on their own base, and refuse other bases and damaged files."""

import hashlib
import json
import shutil

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from knowhalu.encoder.bases import KNOWN, Base, name_of
from knowhalu.encoder.bert import Bert, BertShape
from knowhalu.encoder.change import HEADS, factored, merge, read_change, write_change
from knowhalu.encoder.verifier import Verifier, load_for_training
from knowhalu.errors import ModelError
from tests.support.tiny import VOCABULARY, write_library_base, write_tokenizer
from tests.training.conftest import library_name

SHAPE = BertShape(vocab_size=len(VOCABULARY), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)


def bert_base(folder):
    folder.mkdir()
    torch.manual_seed(0)
    save_file({library_name(k): v for k, v in Bert(SHAPE).state_dict().items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", **vars(SHAPE)}))
    write_tokenizer(folder)
    return folder


@pytest.fixture(scope="module", params=["mpnet", "bert"])
def base(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("base") / request.param
    return write_library_base(folder) if request.param == "mpnet" else bert_base(folder)


@pytest.fixture
def trained(base):
    """A verifier whose weights have moved, those of the words apart."""
    model = load_for_training(base)
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            if weight is not model.encoder.words.weight:
                weight += 0.05 * torch.randn_like(weight)
    return model


def test_change_of_full_rank_restores_the_trained_model(base, trained, tmp_path):
    write_change(tmp_path / "change.safetensors", trained, base, rank=10_000)
    found = merge(base, tmp_path / "change.safetensors").state_dict()
    expected = trained.state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.allclose(found[k], expected[k], atol=2e-3) for k in expected)
    assert (
        max((found[k] - v).abs().max() for k, v in load_for_training(base).state_dict().items() if not k.startswith(HEADS)) > 0.1
    )


def test_change_of_low_rank_is_the_best_approximation(base, trained):
    before, after = load_for_training(base).state_dict(), trained.state_dict()
    name = next(n for n, w in after.items() if n.endswith(("down.weight", "output.dense.weight")) and w.shape == (16, 32))
    tensors = factored(after, before, 3)
    left, right = tensors[f"left:{name}"].float(), tensors[f"right:{name}"].float()
    assert left.shape == (16, 3) and right.shape == (3, 32)
    missed = torch.linalg.svdvals(after[name] - before[name])[3:].norm()
    assert (after[name] - before[name] - left @ right).norm() == pytest.approx(float(missed), rel=1e-3)


def test_change_omits_unchanged_weights_and_limits_the_rank(base, trained):
    tensors = factored(trained.state_dict(), load_for_training(base).state_dict(), 10_000)
    assert max(min(t.shape) for n, t in tensors.items() if n.startswith("left:")) == 16
    assert all(t.dtype == torch.float16 for t in tensors.values())
    assert not any("word" in name for name in tensors)
    assert {n for n in tensors if n.startswith("whole:")} == {f"whole:{n}" for n in trained.state_dict() if n.startswith(HEADS)}


def test_change_file_names_its_base_and_extra_metadata(base, trained, tmp_path):
    path = tmp_path / "new" / "change.safetensors"
    write_change(path, trained, base, about={"progress": {"step": 3}})
    change = read_change(path)
    assert change.base.weights == hashlib.sha256((base / "model.safetensors").read_bytes()).hexdigest()
    assert change.base.tokenizer == hashlib.sha256((base / "tokenizer.json").read_bytes()).hexdigest()
    assert change.about["progress"] == {"step": 3} and change.about["rank"] == 32
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_change_refuses_another_base(base, trained, tmp_path):
    path = tmp_path / "change.safetensors"
    write_change(path, trained, base)
    wanted = Base.of(base)
    for file, old in (("model.safetensors", wanted.weights), ("tokenizer.json", wanted.tokenizer)):
        other = shutil.copytree(base, tmp_path / file.split(".")[0])
        (other / file).write_bytes((other / file).read_bytes() + b" ")
        new = hashlib.sha256((other / file).read_bytes()).hexdigest()
        with pytest.raises(ModelError, match=f"needs .* with the sha256 {old}, .* have {new}"):
            merge(other, path)


def cut(path):
    path.write_bytes(path.read_bytes()[:-20])


def flipped(path):
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(bytes(data))


def other_format(path):
    with safe_open(path, "pt") as file:
        about = file.metadata()
    save_file(load_file(path), path, {**about, "format": '"something else"'})


def no_metadata(path):
    save_file(load_file(path), path)


@pytest.mark.parametrize("damage", [cut, flipped, other_format, no_metadata, lambda p: p.unlink()])
def test_damaged_change_file_is_refused(base, trained, tmp_path, damage):
    path = tmp_path / "change.safetensors"
    write_change(path, trained, base)
    damage(path)
    with pytest.raises(ModelError, match=r"change\.safetensors"):
        merge(base, path)


def test_encoder_with_fewer_layers_has_no_change(tmp_path):
    base = bert_base(tmp_path / "base")
    model = Verifier(load_for_training(base).encoder)
    model.encoder.keep_layers(1)
    with pytest.raises(ModelError, match="Save it whole"):
        write_change(tmp_path / "change.safetensors", model, base)


def test_known_base_is_named_by_its_hashes():
    assert [name_of(base) for base in KNOWN.values()] == list(KNOWN)
    assert name_of(Base("0" * 64, "0" * 64)) is None
