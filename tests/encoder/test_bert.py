"""The BERT in plain torch: equal to the library's class, with clear errors for damaged folders."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertModel

from knowhalu.encoder.bert import apply_dropout, load_bert
from knowhalu.encoder.verifier import PairTokenizer, Verifier, padded_length_for
from knowhalu.errors import ModelError
from knowhalu.requests import EntailmentPair

SMALL = {
    "vocab_size": 90, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40,
    "max_position_embeddings": 64, "type_vocab_size": 2, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    torch.manual_seed(0)
    model = BertModel(BertConfig(**SMALL)).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # the library starts biases at 0 and norms at 1, which hides mix-ups
            parameter.add_(0.1 * torch.randn_like(parameter))
    folder = tmp_path_factory.mktemp("bert")
    model.save_pretrained(folder)
    return model, folder


@pytest.fixture
def folder(reference, tmp_path):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((reference[1] / name).read_bytes())
    return tmp_path


def inputs(lengths, width=48):
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, SMALL["vocab_size"], (len(lengths), width), generator=generator)
    mask, types = torch.zeros_like(ids), torch.zeros_like(ids)
    for i, length in enumerate(lengths):
        ids[i, length:], mask[i, :length], types[i, length // 2 : length] = 0, 1, 1
    return ids, mask, types


@torch.inference_mode()
def test_states_equal_those_of_the_library(reference):
    model, folder = reference
    ids, mask, types = inputs([48, 1, 17, 30])
    expected = model(ids, attention_mask=mask, token_type_ids=types).last_hidden_state
    found = load_bert(folder)(ids, mask, types)
    assert torch.allclose(found[mask.bool()], expected[mask.bool()], atol=1e-5, rtol=0)


def test_states_and_gradients_equal_those_of_the_library(reference):
    model, folder = reference
    ids, mask, types = inputs([48, 1, 17, 30])
    own = load_bert(folder)
    for outputs in (model(ids, attention_mask=mask, token_type_ids=types).last_hidden_state, own(ids, mask, types)):
        (outputs * mask[:, :, None]).square().sum().backward()
    with torch.no_grad():
        assert torch.allclose(own(ids, mask, types)[mask.bool()], outputs[mask.bool()], atol=1e-5, rtol=0)
    theirs, ours = model.encoder.layer[0].attention.self, own.layers[0]
    for name in ("query", "key", "value"):
        expected, found = getattr(theirs, name).weight.grad, getattr(ours, name).weight.grad
        assert expected.abs().max() > 0.01
        assert torch.allclose(found, expected, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_zeroes_a_share_and_keeps_the_mean(dtype):
    torch.manual_seed(0)
    x = torch.ones(301, 217, dtype=dtype, requires_grad=True)
    found = apply_dropout(x, 0.25)
    found.sum().backward()
    found = found.detach()
    assert torch.equal(x.grad, found)
    assert found.dtype == dtype and set(found.unique().tolist()) == {0.0, found.max().item()}
    assert (found == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert found.float().mean().item() == pytest.approx(1.0, abs=0.01)
    torch.manual_seed(0)
    assert torch.equal(apply_dropout(x, 0.25), found) and not torch.equal(apply_dropout(x, 0.25), found)


@torch.inference_mode()
def test_keep_layers_keeps_the_lowest(reference):
    model, folder = reference
    ids, mask, types = inputs([48, 20])
    short = load_bert(folder)
    short.keep_layers(2)
    expected = model(ids, attention_mask=mask, token_type_ids=types, output_hidden_states=True).hidden_states[2]
    assert short.shape.num_hidden_layers == 2
    assert torch.allclose(short(ids, mask, types)[mask.bool()], expected[mask.bool()], atol=1e-5, rtol=0)
    with pytest.raises(ModelError, match="the encoder has 2 layers, so 3 cannot be kept"):
        short.keep_layers(3)


@torch.inference_mode()
def test_states_do_not_depend_on_padding(reference):
    model = load_bert(reference[1])
    ids, mask, types = inputs([20])
    alone = model(ids[:, :20], mask[:, :20], types[:, :20])
    assert torch.allclose(model(ids, mask, types)[:, :20], alone, atol=1e-5, rtol=0)


def test_weights_with_a_prefix_and_unused_weights_load(folder):
    path = folder / "model.safetensors"
    weights = load_file(path)
    save_file({f"bert.{k}": v for k, v in weights.items()} | {"cls.predictions.bias": torch.zeros(3)}, path)
    ids, mask, types = inputs([9])
    assert load_bert(folder)(ids, mask, types).shape == (1, 48, 24)


def test_half_precision_checkpoint_loads_as_fp32(folder):
    path = folder / "model.safetensors"
    save_file({k: v.half() for k, v in load_file(path).items()}, path)
    assert {p.dtype for p in load_bert(folder).parameters()} == {torch.float32}


def no_config(folder):
    (folder / "config.json").unlink()


def no_json(folder):
    (folder / "config.json").write_text("{")


def json_list(folder):
    (folder / "config.json").write_text("[]")


def no_bert(folder):
    (folder / "config.json").write_text(json.dumps({**SMALL, "model_type": "llama"}))


def other_size(folder):
    (folder / "config.json").write_text(json.dumps({**SMALL, "hidden_size": 48}))


def odd_heads(folder):
    (folder / "config.json").write_text(json.dumps({**SMALL, "num_attention_heads": 5}))


def a_word_for_a_size(folder):
    (folder / "config.json").write_text(json.dumps({**SMALL, "num_hidden_layers": "three"}))


def no_layers(folder):
    (folder / "config.json").write_text(json.dumps({**SMALL, "num_hidden_layers": 0}))


def other_activation(folder):
    (folder / "config.json").write_text(json.dumps({**SMALL, "hidden_act": "relu"}))


def no_weights(folder):
    (folder / "model.safetensors").unlink()


def cut_weights(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def noise(folder):
    (folder / "model.safetensors").write_bytes(b"\0" * 200)


def missing_weight(folder):
    path = folder / "model.safetensors"
    weights = load_file(path)
    del weights["encoder.layer.1.output.dense.bias"]
    save_file(weights, path)


DAMAGES = [
    no_config, no_json, json_list, no_bert, other_size, odd_heads, a_word_for_a_size, no_layers, other_activation, no_weights,
    cut_weights, noise, missing_weight,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda d: d.__name__)
def test_damaged_bert_folder_is_named_in_the_error(folder, damage):
    damage(folder)
    with pytest.raises(ModelError) as caught:
        load_bert(folder)
    assert str(folder) in str(caught.value)


def test_verifier_round_trips_through_its_folder(reference, vocabulary_folder, tmp_path):
    torch.manual_seed(3)
    model = Verifier(load_bert(reference[1])).eval()
    vocabulary = PairTokenizer.load(vocabulary_folder)
    model.save(tmp_path, vocabulary.tokenizer)
    loaded = Verifier.load(tmp_path)
    batch = inputs([30, 12])
    assert torch.allclose(loaded(*batch), model(*batch), atol=0.02)
    assert PairTokenizer.load(tmp_path).pieces(["snow is white"]) == vocabulary.pieces(["snow is white"])


@pytest.mark.parametrize(
    "damage", [no_config, no_json, no_bert, no_weights, cut_weights, missing_weight], ids=lambda d: d.__name__
)
def test_damaged_verifier_is_named_in_the_error(reference, vocabulary_folder, tmp_path, damage):
    Verifier(load_bert(reference[1])).save(tmp_path, PairTokenizer.load(vocabulary_folder).tokenizer)
    if damage is missing_weight:
        path = tmp_path / "model.safetensors"
        save_file({k: v for k, v in load_file(path).items() if k != "head.bias"}, path)
    else:
        damage(tmp_path)
    with pytest.raises(ModelError, match=str(tmp_path)):
        Verifier.load(tmp_path)


def test_missing_or_unsupported_tokenizer_is_named_in_the_error(tmp_path, vocabulary_folder):
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        PairTokenizer.load(tmp_path)
    known = json.loads((vocabulary_folder / "tokenizer.json").read_text())
    del known["model"]["vocab"]["[SEP]"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(known))
    with pytest.raises(ModelError, match=r"no \[CLS\], \[SEP\] or \[PAD\]"):
        PairTokenizer.load(tmp_path)


def test_join_truncates_only_the_premise(vocabulary_folder):
    vocabulary = PairTokenizer.load(vocabulary_folder)
    joined = vocabulary.join([10] * 100, [20] * 5, [30] * 4, 32)
    assert len(joined.ids) == 32
    assert joined.ids[joined.second_start :] == [*[30] * 4, vocabulary.sep, *[20] * 5, vocabulary.sep]
    assert joined.ids[: joined.second_start] == [vocabulary.cls, *[10] * (32 - 13), vocabulary.sep]
    with pytest.raises(ValueError, match="the claim has 41 tokens"):
        vocabulary.join([1], [2] * 40, None, 32)


def test_batch_is_padded_to_its_shape(vocabulary_folder):
    vocabulary = PairTokenizer.load(vocabulary_folder)
    pair = EntailmentPair("snow is white", "snow is white")
    (premise,), (claim,) = vocabulary.pieces([pair.premise]), vocabulary.pieces([pair.claim])
    row = vocabulary.join(premise, claim, None, 64)
    ids, mask, types = vocabulary.batch([row], padded_length_for(len(row.ids)))
    assert ids.shape == (1, 32)
    assert mask.sum() == len(row.ids)
    assert types.sum() == len(row.ids) - row.second_start
    assert set(ids[0, len(row.ids) :].tolist()) == {vocabulary.pad}
