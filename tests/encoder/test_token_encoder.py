"""Token encoders: folders round-trip, and vectors equal those of the library."""

import json
import shutil
import string

import numpy as np
import pytest
import torch

from knowhalu.encoder.bert import Bert, BertShape
from knowhalu.encoder.embedder import (
    CONFIG_FILE,
    LATE_WEIGHTS_FILE,
    LateInteractionBert,
    MiniLMTokenEncoder,
    load_embedder,
    load_late_bert,
    load_token_encoder,
    packaged_minilm_folder,
)
from knowhalu.errors import ModelError

TEXTS = ["The tower, finished in 1889, stands in Paris.", "Bees", "", "größe 東京 \ud800", "word " * 400]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model with a random projection and a changed last layer."""
    from knowhalu.encoder.bert import load_bert

    torch.manual_seed(0)
    folder, base = tmp_path_factory.mktemp("late"), packaged_minilm_folder()
    model = LateInteractionBert(load_bert(base), 128)
    with torch.no_grad():
        model.bert.layers[5].down.weight.mul_(1.5)
    model.save(folder, base, ["bert.layers.5.down.weight"])
    return folder, model


def test_saved_model_has_only_changed_weights_and_round_trips(made):
    folder, model = made
    loaded = load_late_bert(folder, packaged_minilm_folder())
    assert (folder / LATE_WEIGHTS_FILE).stat().st_size < 1.5e6
    for name, weight in model.state_dict().items():
        assert torch.allclose(loaded.state_dict()[name], weight, atol=1e-3), name


def test_each_counted_token_has_one_unit_vector(made):
    encoder = MiniLMTokenEncoder(made[0], precision="fp32")
    found = encoder.encode(TEXTS)
    assert [v.shape[1] for v in found] == [128] * len(TEXTS)
    # [CLS] the tower finished in 1889 stands in paris [SEP]: passages leave the comma and the full stop out
    assert [len(found[0]), len(encoder.encode(TEXTS[:1], query=True)[0])] == [10, 13]
    assert [len(found[1]), len(found[2]), len(found[4])] == [3 + len(encoder._words.pieces(["bees"])[0]) - 1, 2, 256]
    assert np.linalg.norm(np.concatenate(found), axis=1) == pytest.approx(1.0, abs=1e-5)


def test_token_vectors_do_not_depend_on_batching(made):
    encoder = MiniLMTokenEncoder(made[0], precision="fp32")
    for together, text in zip(encoder.encode(TEXTS), TEXTS, strict=True):
        assert np.allclose(together, encoder.encode([text])[0], atol=1e-5)
    assert encoder.encode([]) == []


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda f: (f / CONFIG_FILE).write_text("{"), "cannot read"),
        (lambda f: (f / CONFIG_FILE).write_text(json.dumps({"base": "0" * 64, "dimension": 128})), "another base"),
        (lambda f: (f / LATE_WEIGHTS_FILE).write_bytes(b"\x80\x04K\x01."), "cannot read"),
        (lambda f: (f / CONFIG_FILE).write_text((f / CONFIG_FILE).read_text().replace("128", "64")), "do not fit"),
        (lambda f: (f / CONFIG_FILE).unlink(), "train one with scripts/train_colbert.py"),
    ],
)
def test_damaged_late_folder_is_refused(made, tmp_path, spoil, said):
    for name in (CONFIG_FILE, LATE_WEIGHTS_FILE):
        (tmp_path / name).write_bytes((made[0] / name).read_bytes())
    spoil(tmp_path)
    with pytest.raises(ModelError, match=said):
        MiniLMTokenEncoder(tmp_path)


def test_fingerprint_depends_on_the_weights(made, tmp_path):
    for name in (CONFIG_FILE, LATE_WEIGHTS_FILE):
        (tmp_path / name).write_bytes((made[0] / name).read_bytes())
    assert MiniLMTokenEncoder(tmp_path).fingerprint == MiniLMTokenEncoder(made[0]).fingerprint
    load_late_bert(tmp_path, packaged_minilm_folder()).save(tmp_path, packaged_minilm_folder(), ["bert.layers.5.up.weight"])
    assert MiniLMTokenEncoder(tmp_path).fingerprint != MiniLMTokenEncoder(made[0]).fingerprint


def test_missing_late_folder_is_refused():
    with pytest.raises(ModelError, match="Nothing is ever downloaded"):
        load_token_encoder("nowhere/colbert")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_token_vectors_equal_those_of_the_library(made, tmp_path):
    """Save the same parts as a folder of the library, and read that folder by our door to it."""
    library = pytest.importorskip("sentence_transformers")
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    folder, _ = made
    ours = MiniLMTokenEncoder(folder, precision="fp32")
    body = Transformer(str(packaged_minilm_folder()), max_seq_length=256)
    state = body.model.state_dict()
    state["encoder.layer.5.output.dense.weight"] = ours._model.bert.layers[5].down.weight.detach().clone()
    body.model.load_state_dict(state)
    head = Dense(384, 128, bias=False, activation_function=torch.nn.Identity(), module_input_name="token_embeddings")
    head.linear.weight.data = ours._model.projection.weight.detach().clone()
    mask = MultiVectorMask(skiplist_words=list(string.punctuation))
    model = library.MultiVectorEncoder(modules=[body, head, mask, Normalize(module_input_name="token_embeddings")], device="cpu")
    model.save(str(tmp_path / "colbert"))
    theirs = load_token_encoder(tmp_path / "colbert", precision="fp32")
    assert theirs.dimension == 128
    for query in (False, True):
        for a, b in zip(ours.encode(TEXTS[:2], query=query), theirs.encode(TEXTS[:2], query=query), strict=True):
            assert a.shape == b.shape and np.allclose(a, b, atol=1e-4)


@pytest.fixture
def pylate(tmp_path):
    """A folder as PyLate 1.x saves one: a transformer, and a projection by a class of PyLate."""
    from safetensors.torch import save_file

    folder = tmp_path / "pylate"
    shutil.copytree(packaged_minilm_folder(), folder, ignore=shutil.ignore_patterns("1_Pooling", "2_Normalize"))
    types = [("", "sentence_transformers.models.Transformer"), ("1_Dense", "pylate.models.Dense.Dense")]
    parts = [{"idx": n, "name": str(n), "path": path, "type": kind} for n, (path, kind) in enumerate(types)]
    (folder / "modules.json").write_text(json.dumps(parts))
    (folder / "1_Dense").mkdir()
    dense = {"in_features": 384, "out_features": 16, "bias": False, "activation_function": "torch.nn.modules.linear.Identity"}
    (folder / "1_Dense" / "config.json").write_text(json.dumps(dense))
    torch.manual_seed(0)
    save_file({"linear.weight": torch.randn(16, 384)}, folder / "1_Dense" / "model.safetensors")
    config = {
        "model_type": "ColBERT", "prompts": {}, "default_prompt_name": None, "similarity_fn_name": "MaxSim",
        "query_prefix": "[Q] ", "document_prefix": "[D] ", "query_length": 32, "document_length": 180,
        "attend_to_expansion_tokens": False, "skiplist_words": list(string.punctuation),
    }  # fmt: skip
    (folder / "config_sentence_transformers.json").write_text(json.dumps(config))
    return folder


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_pylate_checkpoint_is_read_without_pylate(pylate):
    encoder = load_token_encoder(pylate, precision="fp32", device="cpu")
    (passage,), (query,) = encoder.encode(TEXTS[:1]), encoder.encode(TEXTS[:1], query=True)
    assert encoder.dimension == passage.shape[1] == 16
    assert len(query) == 32  # queries are padded with [MASK]
    assert len(passage) < len(query) and np.linalg.norm(passage, axis=1) == pytest.approx(1.0, abs=1e-5)


def test_pylate_modules_are_read_only_by_the_class_that_replaces_them(pylate):
    with pytest.raises(ModelError, match=r"pylate\.models\.Dense\.Dense.*never run"):
        load_embedder(pylate)


def test_token_vectors_have_the_projected_dimension():
    model = LateInteractionBert(Bert(BertShape(hidden_size=12, intermediate_size=24, num_hidden_layers=1)), 8)
    ids = torch.tensor([[1, 2, 3]])
    assert model(ids, torch.ones_like(ids), torch.zeros_like(ids)).shape == (1, 3, 8)
