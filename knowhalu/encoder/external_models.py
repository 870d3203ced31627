"""Loading the model of an external verifier from a local folder of safetensors.

Nothing is downloaded or unpickled, and no code in a folder is run: HHEM and AlignScore are standard architectures of
transformers under other names of weights.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from knowhalu.encoder.adapters import import_transformers
from knowhalu.errors import ModelError
from knowhalu.io.verifier_file import DOCS, VerifierCard

AUTO_CLASSES = {
    "sequence-classification": "AutoModelForSequenceClassification",
    "first-token": "AutoModelForTokenClassification",
    "token-classification": "AutoModelForTokenClassification",
    "answer-token": "AutoModelForSeq2SeqLM",
}
"""The class of transformers for each kind of verifier."""
DEFAULT_LENGTH = 512


class LoadedModel(NamedTuple):
    """A model, the number of tokens that it can read at most (None: any number), and the names of its outputs."""

    model: Any
    positions: int | None
    names: tuple[str, ...]


def load_external_model(folder: Path, card: VerifierCard, dtype: torch.dtype) -> LoadedModel:
    """Load the model that a card describes; raises ModelError where the folder is missing, damaged or of another kind."""
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        pickled = [p.name for p in (*folder.glob("*.bin"), *folder.glob("*.ckpt"), *folder.glob("*.pt"))]
        why = f"{', '.join(pickled)} would have to be unpickled, which can run code" if pickled else "there are no weights"
        raise ModelError(f"{folder}: {why}. Give a folder with model.safetensors; {DOCS.lower()} for the conversion")
    transformers = import_transformers()
    try:
        if card.layout == "hhem":
            model = _load_hhem(transformers, weights[0])
        elif card.layout == "alignscore":
            model = _load_alignscore(transformers, folder, weights[0])
        else:
            model = _load_by_library(transformers, folder, card)
    except ModelError:
        raise
    except KeyError as error:
        raise ModelError(f"{weights[0]}: the weights have another layout (there is no {error}). {DOCS}") from error
    except Exception as error:  # the library raises any exception of its parts
        why = shorten(str(error), 200, placeholder=" ...")
        raise ModelError(f"{folder}: cannot load a verifier of the kind {card.kind!r} ({why}). {DOCS}") from error
    labels = model.config.id2label or {}
    names = tuple(str(labels[i]) for i in sorted(labels))
    return LoadedModel(model.to(dtype).eval(), _positions(model), names)


def _load_by_library(library: Any, folder: Path, card: VerifierCard) -> Any:
    kind = getattr(library, AUTO_CLASSES[card.kind])
    model, report = kind.from_pretrained(
        str(folder), dtype="float32", local_files_only=True, trust_remote_code=False, use_safetensors=True,
        output_loading_info=True,
    )  # fmt: skip
    if missing := sorted(report["missing_keys"]):
        raise ModelError(
            f"{folder}: the weights lack {', '.join(missing[:3])}, so this is no trained verifier of the kind {card.kind!r}. "
            f"Choose another kind in verifier.toml, or another folder. {DOCS}"
        )
    return model


def _load_hhem(library: Any, path: Path) -> Any:
    """Load HHEM-2.1-Open: the weights of a T5 token classifier under `t5.`, whose shape its config.json does not state."""
    weights = {name.removeprefix("t5."): tensor for name, tensor in load_file(path).items()}
    embeddings, first = weights["transformer.shared.weight"], "transformer.encoder.block.0.layer"
    buckets, heads = weights[f"{first}.0.SelfAttention.relative_attention_bias.weight"].shape
    gated = f"{first}.1.DenseReluDense.wi_0.weight" in weights
    inner = weights[f"{first}.1.DenseReluDense.{'wi_0' if gated else 'wi'}.weight"].shape[0]
    config = library.T5Config(
        vocab_size=embeddings.shape[0], d_model=embeddings.shape[1], d_ff=inner, num_heads=heads,
        d_kv=weights[f"{first}.0.SelfAttention.q.weight"].shape[0] // heads,
        num_layers=len({name.split(".")[3] for name in weights if name.startswith("transformer.encoder.block.")}),
        relative_attention_num_buckets=buckets, feed_forward_proj="gated-gelu" if gated else "relu",
        num_labels=weights["classifier.weight"].shape[0],
    )  # fmt: skip
    return _filled(library.T5ForTokenClassification(config), weights, path, tied="transformer.encoder.embed_tokens.weight")


def _load_alignscore(library: Any, folder: Path, path: Path) -> Any:
    """Load AlignScore: RoBERTa with its pooler and the three-way head, which together are RoBERTa's sequence classifier."""
    names = {"base_model.pooler.dense.": "classifier.dense.", "tri_layer.": "classifier.out_proj.", "base_model.": "roberta."}
    weights: dict[str, Tensor] = {}
    for name, tensor in load_file(path).items():
        old = next((prefix for prefix in names if name.startswith(prefix)), None)
        if old is not None and not name.endswith("position_ids"):
            weights[names[old] + name.removeprefix(old)] = tensor
    values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    values = {k: v for k, v in values.items() if k not in ("architectures", "id2label", "label2id", "num_labels")}
    config = library.RobertaConfig(**values, num_labels=weights["classifier.out_proj.weight"].shape[0])
    return _filled(library.RobertaForSequenceClassification(config), weights, path)


def _filled(model: Any, weights: Mapping[str, Tensor], path: Path, tied: str = "") -> Any:
    """Put weights into a model; raises ModelError where names or shapes differ."""
    report = model.load_state_dict(weights, strict=False)
    wrong = sorted({*report.missing_keys, *report.unexpected_keys} - {tied})
    if wrong:
        raise ModelError(f"{path}: the weights have another layout ({', '.join(wrong[:3])} do not fit). {DOCS}")
    model.tie_weights()
    return model


def _positions(model: Any) -> int | None:
    """Return the number of tokens for which a model has learned positions; None where positions are relative."""
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            reserved = 0 if module.padding_idx is None else module.padding_idx + 1  # RoBERTa counts from its padding
            return module.num_embeddings - reserved
    return None
