"""A BERT encoder in plain torch, which loads in a third of the time of `transformers.BertModel`, with the same results.

Reads the weight names of that class, so any BERT checkpoint in safetensors loads; a test compares the two.
"""

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from knowhalu.errors import ModelError

_PLAIN = (("model_type", "bert"), ("hidden_act", "gelu"), ("position_embedding_type", "absolute"))
"""Fields of `config.json` and the values that `Bert` supports; a missing field has the supported value."""


@dataclass(frozen=True)
class BertShape:
    """The sizes of a BERT encoder, named as in its `config.json`."""

    vocab_size: int = 30522
    hidden_size: int = 384
    num_hidden_layers: int = 6
    num_attention_heads: int = 12
    intermediate_size: int = 1536
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12

    @classmethod
    def read(cls, config: Path) -> "BertShape":
        """Read the sizes from a `config.json`; raises ModelError where the file is missing or not a BERT."""
        try:
            values = json.loads(config.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ModelError(f"{config}: cannot read the model's configuration ({error})") from error
        if not isinstance(values, dict):
            raise ModelError(f"{config}: not a model's configuration (a JSON object)")
        for name, wanted in _PLAIN:
            if values.get(name, wanted) != wanted:
                raise ModelError(f"{config}: {name} is {values[name]!r}; this encoder reads BERT checkpoints with {wanted!r}")
        shape = cls(**{f.name: values[f.name] for f in fields(cls) if f.name in values})
        if bad := [n for n, v in asdict(shape).items() if not isinstance(v, int | float) or v <= 0]:
            raise ModelError(f"{config}: {bad[0]} is {values[bad[0]]!r}; a number above 0 is needed")
        if shape.hidden_size % shape.num_attention_heads:
            raise ModelError(f"{config}: hidden_size {shape.hidden_size} is no multiple of {shape.num_attention_heads} heads")
        return shape


def is_plain_bert(config: Path) -> bool:
    """Tell whether `config.json` describes an encoder that `Bert` supports; an unreadable file counts as supported."""
    try:
        values = json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return True
    return not isinstance(values, dict) or all(values.get(name, wanted) == wanted for name, wanted in _PLAIN)


def scaled_dot_product(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    """Compute scaled dot-product attention, `(batch, heads, length, size)`; `bias` is added to the scores.

    On a CPU the library's fused kernel takes three to nine times as long backwards in bfloat16 as plain products (torch 2.13).
    """
    if q.device.type != "cpu" or not q.requires_grad or q.dtype != torch.bfloat16:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    scores = torch.matmul(q * q.shape[-1] ** -0.5, k.transpose(-1, -2)) + bias
    return torch.matmul(scores.softmax(-1), v)


def apply_dropout(x: Tensor, share: float) -> Tensor:
    """Set a share of `x` to 0 and scale the rest; on a CPU the share is rounded to a 256th.

    The library draws one random number for each element, which takes fifteen times as long as one byte for each (bf16, CPU).
    """
    if x.device.type != "cpu":
        return F.dropout(x, share)
    dropped = round(256 * share)
    drawn = torch.randint(-(2**63), 2**63 - 1, ((x.numel() + 7) // 8,)).view(torch.uint8)[: x.numel()]
    return x * (drawn.view(x.shape) >= dropped) * (256 / (256 - dropped))


class _BertLayer(nn.Module):
    def __init__(self, shape: BertShape, dropout: float) -> None:
        super().__init__()
        size, self.heads, self.dropout = shape.hidden_size, shape.num_attention_heads, dropout
        self.query, self.key, self.value, self.out = (nn.Linear(size, size) for _ in range(4))
        self.attention_norm = nn.LayerNorm(size, eps=shape.layer_norm_eps)
        self.up = nn.Linear(size, shape.intermediate_size)
        self.down = nn.Linear(shape.intermediate_size, size)
        self.norm = nn.LayerNorm(size, eps=shape.layer_norm_eps)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        batch, length, size = x.shape
        q, k, v = (
            f(x).view(batch, length, self.heads, size // self.heads).transpose(1, 2) for f in (self.query, self.key, self.value)
        )
        mixed = scaled_dot_product(q, k, v, bias.to(q.dtype))
        mixed = self.out(mixed.transpose(1, 2).reshape(batch, length, size))
        x = self.attention_norm(x + self.dropped(mixed))
        grown = self.down(F.gelu(self.up(x)))
        out: Tensor = self.norm(x + self.dropped(grown))
        return out

    def dropped(self, x: Tensor) -> Tensor:
        return apply_dropout(x, self.dropout) if self.training and self.dropout else x


class Bert(nn.Module):
    """Encode token ids: `(batch, length)` -> `(batch, length, hidden)`."""

    def __init__(self, shape: BertShape, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape = shape
        self.hidden_size = shape.hidden_size
        self.words = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.positions = nn.Embedding(shape.max_position_embeddings, shape.hidden_size)
        self.types = nn.Embedding(shape.type_vocab_size, shape.hidden_size)
        self.norm = nn.LayerNorm(shape.hidden_size, eps=shape.layer_norm_eps)
        self.layers = nn.ModuleList(_BertLayer(shape, dropout) for _ in range(shape.num_hidden_layers))

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """Encode `ids`; `mask` is 1 for tokens and 0 for padding, `types` is 0 for the first text and 1 for the second."""
        x: Tensor = self.words(ids) + self.positions.weight[: ids.shape[1]] + self.types(types)
        x = self.norm(x)
        bias = torch.zeros_like(mask, dtype=torch.float32).masked_fill(mask == 0, torch.finfo(torch.float32).min / 2)
        for layer in self.layers:
            x = layer(x, bias[:, None, None, :])
        return x

    @property
    def config(self) -> dict[str, object]:
        """Return the fields of this encoder's `config.json`."""
        return {"model_type": "bert", **asdict(self.shape)}

    def keep_layers(self, count: int) -> None:
        """Keep the lowest `count` layers; raises ModelError where there are fewer."""
        if not 0 < count <= len(self.layers):
            raise ModelError(f"the encoder has {len(self.layers)} layers, so {count} cannot be kept")
        self.layers = self.layers[:count]
        self.shape = replace(self.shape, num_hidden_layers=count)


_WEIGHT_NAMES = {
    "embeddings.word_embeddings": "words",
    "embeddings.position_embeddings": "positions",
    "embeddings.token_type_embeddings": "types",
    "embeddings.LayerNorm": "norm",
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "out",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "up",
    "output.dense": "down",
    "output.LayerNorm": "norm",
}


def translate_weight_name(name: str) -> str | None:
    """Translate a weight name of the library; None for unused weights (pooler, position ids)."""
    name = name.removeprefix("bert.").replace("encoder.layer.", "layers.")
    head, _, leaf = name.rpartition(".")
    prefix, rest = ("", head)
    if head.startswith("layers."):
        number, _, rest = head.removeprefix("layers.").partition(".")
        prefix = f"layers.{number}."
    return f"{prefix}{_WEIGHT_NAMES[rest]}.{leaf}" if rest in _WEIGHT_NAMES else None


def load_bert(folder: Path, dropout: float = 0.0) -> Bert:
    """Load a BERT checkpoint (`config.json`, `model.safetensors`) from a local folder.

    Raises ModelError where a file is missing, damaged or of another architecture. Nothing is downloaded.
    """
    model = Bert(BertShape.read(folder / "config.json"), dropout)
    try:
        weights = load_file(folder / "model.safetensors")
    except Exception as error:  # safetensors raises its own classes, which share no public root
        raise ModelError(f"{folder / 'model.safetensors'}: cannot read the weights ({error})") from error
    translated = {new: value.float() for old, value in weights.items() if (new := translate_weight_name(old)) is not None}
    try:
        model.load_state_dict(translated)
    except RuntimeError as error:
        raise ModelError(f"{folder}: the weights do not fit the configuration ({error})") from error
    return model.eval()
