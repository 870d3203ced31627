"""Encoders of the transformers library: equal states, pairs joined by their tokenizers, imported only where used."""

import subprocess
import sys

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoModel

from knowhalu.encoder.adapters import PretrainedEncoder, load_pretrained
from knowhalu.encoder.backend import EncoderBackend
from knowhalu.encoder.mpnet import MPNet
from knowhalu.encoder.verifier import PairTokenizer, Verifier, load_for_training
from knowhalu.errors import ModelError
from knowhalu.requests import EntailmentPair
from tests.support.tiny import write_library_base

KINDS = {
    "mpnet": {},
    "roberta": {"type_vocab_size": 1},
    "bert": {"hidden_act": "relu", "type_vocab_size": 2},  # no plain BERT, so it is read through the library
    "deberta-v2": {"relative_attention": True, "position_buckets": 8, "pos_att_type": ["c2p", "p2c"], "type_vocab_size": 0},
    "modernbert": {"global_attn_every_n_layers": 2, "local_attention": 8},
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("bases")
    return {kind: write_library_base(place / kind, kind, **more) for kind, more in KINDS.items()}


@pytest.fixture(scope="module")
def mpnet(folders):
    return folders["mpnet"]


def batch(folder, length=40):
    vocabulary = PairTokenizer.load(folder)
    texts = vocabulary.pieces(["snow is white. the snow of 1999", "is the snow white", "white snow"])
    rows = [vocabulary.join(texts[0], texts[2], texts[1], 512), vocabulary.join(texts[1], texts[2], None, 512)]
    return vocabulary.batch(rows, length)


@pytest.mark.parametrize("kind", KINDS)
def test_states_equal_those_of_transformers(folders, kind):
    folder = folders[kind]
    ids, mask, types = batch(folder)
    more = {"token_type_ids": types} if kind == "bert" else {}
    expected = AutoModel.from_pretrained(folder).eval()(input_ids=ids, attention_mask=mask, **more).last_hidden_state
    found = load_pretrained(folder)(ids, mask, types)
    assert torch.allclose(found[mask.bool()], expected[mask.bool()], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_logits_do_not_depend_on_padding(folders, tmp_path, kind):
    folder = folders[kind]
    model = load_for_training(folder).eval()
    model.save(tmp_path, PairTokenizer.load(folder).tokenizer)
    loaded = Verifier.load(tmp_path)
    assert isinstance(loaded.encoder, MPNet if kind == "mpnet" else PretrainedEncoder)
    expected = model(*batch(folder))
    assert torch.allclose(loaded(*batch(tmp_path)), expected, atol=5e-3)
    assert torch.allclose(loaded(*batch(tmp_path, 96)), loaded(*batch(tmp_path)), atol=1e-5)


def test_pair_is_joined_by_its_tokenizers_special_tokens(mpnet):
    vocabulary = PairTokenizer.load(mpnet)
    assert [vocabulary.tokenizer.id_to_token(i) for i in (vocabulary.cls, vocabulary.sep, vocabulary.pad)] == [
        "<s>",
        "</s>",
        "<pad>",
    ]
    row = vocabulary.join([10], [30], [20, 21], 64)
    assert row.ids == [0, 10, 2, 20, 21, 2, 30, 2] and (row.second_start, row.claim_start) == (3, 6)


def test_positions_begin_after_the_padding_index(mpnet):
    model = load_pretrained(mpnet)
    ids = torch.tensor([[0, 10, 2]])
    seen = []
    model.model.embeddings.position_embeddings.register_forward_hook(lambda _, given, __: seen.append(given[0].tolist()))
    model(ids, torch.ones_like(ids), torch.zeros_like(ids))
    assert seen == [[[2, 3, 4]]]


def test_names_of_special_tokens_stay_text(mpnet):
    vocabulary = PairTokenizer.load(mpnet)
    (ids,) = vocabulary.pieces(["snow </s> <s> <pad> white"])
    assert not {vocabulary.cls, vocabulary.sep, vocabulary.pad} & set(ids)


def test_special_tokens_of_a_unigram_model_become_unknown(tmp_path):
    names = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    tokenizer = Tokenizer(models.Unigram([*((n, 0.0) for n in names), ("▁snow", -1.0), ("▁", -2.0)], unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    tokenizer.add_special_tokens(names)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    vocabulary = PairTokenizer.load(tmp_path)
    assert 2 in vocabulary.tokenizer.encode("snow [SEP]", add_special_tokens=False).ids
    assert vocabulary.pieces(["snow [SEP] snow"]) == [[4, 5, 3, 4]]


def test_backend_loads_a_trained_folder(mpnet, tmp_path):
    load_for_training(mpnet).save(tmp_path, PairTokenizer.load(mpnet).tokenizer)
    pairs = [EntailmentPair("snow is white. " * n, "the snow", "is the snow white" if n == 2 else None) for n in (1, 2, 90)]
    backend = EncoderBackend(tmp_path, precision="fp32")
    together = backend.score(pairs)
    assert all(sum(p) == pytest.approx(1, abs=1e-5) for p in together)
    assert EncoderBackend(tmp_path, precision="fp32").score(pairs[2:])[0] == pytest.approx(together[2], abs=1e-5)


def test_dropout_is_set_everywhere(mpnet):
    shares = {m.p for m in load_for_training(mpnet, 0.25).modules() if isinstance(m, torch.nn.Dropout)}
    assert shares == {0.25}
    assert {m.p for m in load_for_training(mpnet).modules() if isinstance(m, torch.nn.Dropout)} == {0.0}


def test_unknown_architecture_and_pickled_weights_are_refused(mpnet, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "no such model"}')
    (tmp_path / "model.safetensors").write_bytes((mpnet / "model.safetensors").read_bytes())
    with pytest.raises(ModelError, match=r"config\.json: cannot read the model's configuration"):
        load_for_training(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelError, match="Pickled weights are never read"):
        load_pretrained(tmp_path)


def test_plain_bert_imports_no_transformers():
    code = "import sys, knowhalu.encoder.backend as s; s.EncoderBackend(); print('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"
