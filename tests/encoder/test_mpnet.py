"""The MPNet of our own gives the states of the library's, for texts of any length."""

import json
import subprocess
import sys

import pytest
import torch

from knowhalu.encoder.adapters import PretrainedEncoder
from knowhalu.encoder.backend import EncoderBackend
from knowhalu.encoder.mpnet import MPNet
from knowhalu.encoder.verifier import PairTokenizer, Verifier, load_for_training
from knowhalu.errors import ModelError
from knowhalu.requests import EntailmentPair
from tests.support.tiny import write_library_base


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mpnet")
    base = write_library_base(folder / "base", initializer_range=0.5)
    load_for_training(base).save(folder, PairTokenizer.load(base).tokenizer)
    return folder


def states(encoder, length):
    torch.manual_seed(length)
    ids = torch.randint(5, 60, (3, length))
    mask = torch.ones_like(ids)
    mask[1, -length // 3 :] = 0
    ids[mask == 0] = 1
    with torch.inference_mode():
        return encoder(ids, mask, torch.zeros_like(ids))[mask == 1]


@pytest.mark.parametrize("length", [3, 32, 200, 512])
def test_states_are_those_of_the_library(folder, length):
    ours, library = Verifier.load(folder).encoder, load_for_training(folder).encoder
    assert isinstance(ours, MPNet) and isinstance(library, PretrainedEncoder)
    assert torch.allclose(states(ours, length), states(library, length), atol=2e-5)


def test_weights_have_the_names_of_the_library(folder):
    ours, library = Verifier.load(folder), load_for_training(folder)
    assert ours.state_dict().keys() == library.state_dict().keys()
    assert ours.encoder.config == library.encoder.config


def test_saved_again_it_is_the_same_file(folder, tmp_path):
    Verifier.load(folder).save(tmp_path, PairTokenizer.load(folder).tokenizer)
    assert (tmp_path / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()


def test_another_activation_is_left_to_the_library(tmp_path):
    base = write_library_base(tmp_path / "base", hidden_act="relu")
    load_for_training(base).save(tmp_path, PairTokenizer.load(base).tokenizer)
    assert isinstance(Verifier.load(tmp_path).encoder, PretrainedEncoder)


def test_unusable_sizes_are_refused(folder, tmp_path):
    config = json.loads((folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"hidden_size": "many"}))
    with pytest.raises(ModelError, match=r"config\.json: cannot build this encoder"):
        Verifier.load(tmp_path)


def test_scores_do_not_depend_on_batching(folder):
    pairs = [EntailmentPair("snow is white. " * n, "snow is white") for n in (1, 2, 9, 30)]
    together = EncoderBackend(folder, precision="fp32").score(pairs)
    alone = [EncoderBackend(folder, precision="fp32").score([pair])[0] for pair in pairs]
    assert all(a == pytest.approx(b, abs=1e-6) for a, b in zip(together, alone, strict=True))


def test_loading_imports_neither_transformers_nor_the_compiler_of_torch(folder):
    code = (
        "import sys; from pathlib import Path; from knowhalu.encoder.backend import EncoderBackend; "
        "EncoderBackend(Path(sys.argv[1])); print({'transformers', 'torch._dynamo'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr
