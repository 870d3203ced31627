"""Tiny random folders of the external verifiers, one for each architecture, with tokenizers of the same kinds."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from tests.support.tiny import LETTERS, SIZES, VOCABULARY

PIECES = ["▁", *LETTERS, "\n", "▁the", "▁snow", "▁is", "▁white", "▁1", "▁0", "?", ":", '"']
T5_SPECIAL = ["<pad>", "</s>", "<unk>"]
SMALL_T5 = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2, "feed_forward_proj": "gated-gelu"}
SMALL = {k: SIZES[k] for k in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")}


def _framed(kind):
    """Return a tokenizer of words and letters with the special tokens of BERT or of RoBERTa around texts."""
    roberta = kind == "roberta"
    special = ["<s>", "<pad>", "</s>", "<unk>"] if roberta else ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words = [t for t in VOCABULARY if t not in special]
    first, last = ("<s>", "</s>") if roberta else ("[CLS]", "[SEP]")
    vocabulary = {t: i for i, t in enumerate([*special, *words])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="<unk>" if roberta else "[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    if roberta:
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    else:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{first} $A {last}", pair=f"{first} $A {last} $B:1 {last}:1",
            special_tokens=[(first, vocabulary[first]), (last, vocabulary[last])],
        )  # fmt: skip
    tokenizer.add_special_tokens(special)
    return tokenizer


def _t5():
    """Return a unigram tokenizer as T5 has it."""
    scores = [(t, 0.0) for t in T5_SPECIAL] + [(t, -2.0 - 0.01 * i) for i, t in enumerate(PIECES)]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    tokenizer.add_special_tokens(T5_SPECIAL)
    return tokenizer


def _save(model, folder, tokenizer, seed=0):
    """Write a model with weights large enough that probabilities differ."""
    torch.manual_seed(seed)
    for tensor in model.parameters():
        if tensor.dim() > 1:
            torch.nn.init.normal_(tensor, std=0.4)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def card(folder: Path, **fields: object) -> Path:
    """Write verifier.toml."""
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items()]
    (folder / "verifier.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def sequence_classifier(folder, kind="bert", labels=("entailment", "neutral", "contradiction"), **more):
    """Write a sequence classifier of BERT, RoBERTa, DeBERTa-v2/v3 or ModernBERT."""
    return _write_classifier(folder, "AutoModelForSequenceClassification", kind, labels, more)


def _write_classifier(folder, auto, kind, labels, more):
    import transformers

    tokenizer = _framed("roberta" if kind == "roberta" else "bert")
    ids = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2} if kind == "roberta" else {"pad_token_id": 0}
    if kind == "deberta-v2":
        more = {"relative_attention": True, "position_biased_input": False, "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 0,
                "position_buckets": 16, "norm_rel_ebd": "layer_norm", "share_att_key": True, **more}  # fmt: skip
    if kind == "modernbert":
        ids |= {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
    more = {"max_position_embeddings": 514 if kind == "roberta" else 512, **more}
    config = transformers.AutoConfig.for_model(
        kind, vocab_size=tokenizer.get_vocab_size(), **SMALL, **ids,
        id2label=dict(enumerate(labels)), label2id={n: i for i, n in enumerate(labels)}, **more,
    )  # fmt: skip
    return _save(getattr(transformers, auto).from_config(config), folder, tokenizer)


def lettucedetect(folder, kind="modernbert"):
    """Write a token classifier."""
    _write_classifier(folder, "AutoModelForTokenClassification", kind, ("LABEL_0", "LABEL_1"), {})
    return card(folder, preset="lettucedetect", max_length=512, window=120)


def minicheck_t5(folder):
    """Write a T5 encoder-decoder that answers with one of two tokens."""
    import transformers

    tokenizer = _t5()
    config = transformers.T5Config(
        vocab_size=tokenizer.get_vocab_size() + 4, **SMALL_T5, num_decoder_layers=2, pad_token_id=0, eos_token_id=1,
        decoder_start_token_id=0,
    )  # fmt: skip
    _save(transformers.T5ForConditionalGeneration(config), folder, tokenizer)
    return card(folder, preset="minicheck-flan-t5")


def hhem(folder):
    """Write HHEM's layout: the weights of a T5 token classifier under `t5.`, and a config.json without its shape."""
    import transformers

    tokenizer = _t5()
    config = transformers.T5Config(vocab_size=tokenizer.get_vocab_size() + 4, **SMALL_T5, num_labels=2, pad_token_id=0)
    _save(transformers.T5ForTokenClassification(config), folder, tokenizer)
    weights = {f"t5.{k}": v for k, v in load_file(folder / "model.safetensors").items() if not k.endswith("embed_tokens.weight")}
    save_file(weights, folder / "model.safetensors")
    values = {"model_type": "HHEMv2", "architectures": ["HHEMv2ForSequenceClassification"], "auto_map": {"AutoModel": "x.Y"}}
    (folder / "config.json").write_text(json.dumps(values))
    return folder


def alignscore(folder):
    """Write AlignScore's layout: RoBERTa with a pooler, and three heads."""
    sequence_classifier(folder, "roberta")
    weights = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        old = {"classifier.dense.": "base_model.pooler.dense.", "classifier.out_proj.": "tri_layer.", "roberta.": "base_model."}
        prefix = next(p for p in old if name.startswith(p))
        weights[old[prefix] + name.removeprefix(prefix)] = tensor
    weights["bin_layer.weight"], weights["mlm_head.bias"] = torch.zeros(2, 16), torch.zeros(3)
    save_file(weights, folder / "model.safetensors")
    return card(folder, preset="alignscore")


def two_labels(kind, **fields):
    """Return a function that writes a classifier with two labels, and a card."""
    return lambda folder: card(sequence_classifier(folder, kind, ("LABEL_0", "LABEL_1")), **fields)


FAMILIES = {
    "bert": sequence_classifier,
    "roberta": two_labels("roberta", preset="minicheck-roberta"),
    "deberta": two_labels("deberta-v2", preset="minicheck-deberta", window=120),
    "factcg": two_labels("deberta-v2", preset="factcg", window=120),
    "modernbert": lambda f: sequence_classifier(f, "modernbert"),
    "t5": minicheck_t5,
    "hhem": hhem,
    "alignscore": alignscore,
    "lettucedetect": lettucedetect,
}
"""Functions that write a folder, by family."""


def rename_outputs(folder, *labels):
    """Name the outputs of a model in its config.json; returns its folder."""
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = dict(enumerate(labels))
    config["label2id"] = {label: i for i, label in enumerate(labels)}
    (folder / "config.json").write_text(json.dumps(config))
    return folder
