"""An MPNet encoder in plain torch, which a check loads without the import of `transformers.modeling_utils`.

The weight names are those of the library's class, and so are the results; a test compares the two. Training uses the library's.
"""

import json
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from knowhalu.errors import ModelError

FIRST_POSITION = 2
"""The position of the first token; the library numbers positions from the id of its padding token on."""
MAX_DISTANCE = 128
"""The distance of two tokens from which all distances have the same bias."""
BUCKETS = 32
"""The distances of two tokens that have a bias of their own; the library supports no other number."""
_PLAIN = (("model_type", "mpnet"), ("hidden_act", "gelu"), ("relative_attention_num_buckets", BUCKETS))
"""Fields of `config.json` and the values that `MPNet` supports."""


@dataclass(frozen=True)
class MPNetShape:
    """The sizes of an MPNet encoder, named as in its `config.json`."""

    vocab_size: int = 30527
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    layer_norm_eps: float = 1e-12


def is_plain_mpnet(config: Path) -> bool:
    """Tell whether `config.json` describes an encoder that `MPNet` supports."""
    try:
        values = json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(values, dict) and all(values.get(name) == wanted for name, wanted in _PLAIN)


class _Attention(nn.Module):
    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(size, size) for _ in range(4))

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        batch, length, size = x.shape
        q, k, v = (f(x).view(batch, length, self.heads, size // self.heads).transpose(1, 2) for f in (self.q, self.k, self.v))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        out: Tensor = self.o(mixed.transpose(1, 2).reshape(batch, length, size))
        return out


class _Layer(nn.Module):
    def __init__(self, shape: MPNetShape) -> None:
        super().__init__()
        size, eps = shape.hidden_size, shape.layer_norm_eps
        self.attention = nn.ModuleDict(
            {"attn": _Attention(size, shape.num_attention_heads), "LayerNorm": nn.LayerNorm(size, eps=eps)}
        )
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(size, shape.intermediate_size)})
        self.output = nn.ModuleDict({"dense": nn.Linear(shape.intermediate_size, size), "LayerNorm": nn.LayerNorm(size, eps=eps)})

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        x = self.attention["LayerNorm"](x + self.attention["attn"](x, bias))
        grown = self.output["dense"](F.gelu(self.intermediate["dense"](x)))
        out: Tensor = self.output["LayerNorm"](x + grown)
        return out


def _embedding(count: int, size: int) -> nn.Embedding:
    """Make embeddings without drawing them at random, for which torch would import its compiler."""
    return nn.Embedding.from_pretrained(torch.empty(count, size), freeze=False)  # type: ignore[no-untyped-call, no-any-return]


class _Model(nn.Module):
    """The modules, named as in the library."""

    def __init__(self, shape: MPNetShape) -> None:
        super().__init__()
        size = shape.hidden_size
        self.embeddings = nn.ModuleDict({
            "word_embeddings": _embedding(shape.vocab_size, size),
            "position_embeddings": _embedding(shape.max_position_embeddings, size),
            "LayerNorm": nn.LayerNorm(size, eps=shape.layer_norm_eps),
        })  # fmt: skip
        self.encoder = nn.ModuleDict({
            "layer": nn.ModuleList(_Layer(shape) for _ in range(shape.num_hidden_layers)),
            "relative_attention_bias": _embedding(BUCKETS, shape.num_attention_heads),
        })  # fmt: skip


class MPNet(nn.Module):
    """Encode token ids: `(batch, length)` -> `(batch, length, hidden)`."""

    def __init__(self, config: Path) -> None:
        super().__init__()
        try:
            self.config: dict[str, Any] = json.loads(config.read_text(encoding="utf-8"))
            self.shape = MPNetShape(**{f.name: self.config[f.name] for f in fields(MPNetShape) if f.name in self.config})
            with torch.device("meta"):  # without weights, which the verifier assigns
                self.model = _Model(self.shape)
        except (OSError, ValueError, TypeError, RuntimeError, ZeroDivisionError) as error:
            raise ModelError(f"{config}: cannot build this encoder ({error})") from error
        self.hidden_size = self.shape.hidden_size

    @property
    def words(self) -> nn.Embedding:
        """Return the token embeddings."""
        embeddings = self.model.embeddings["word_embeddings"]
        assert isinstance(embeddings, nn.Embedding)
        return embeddings

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """Encode `ids`; `mask` is 1 for tokens and 0 for padding, which follows them; the model has no token types."""
        length, embeddings, encoder = ids.shape[1], self.model.embeddings, self.model.encoder
        positions = torch.arange(length, device=ids.device)
        x: Tensor = self.words(ids) + embeddings["position_embeddings"](positions + FIRST_POSITION)
        x = embeddings["LayerNorm"](x)
        near = encoder["relative_attention_bias"](self._buckets(positions)).permute(2, 0, 1)
        padding = torch.zeros_like(mask, dtype=x.dtype).masked_fill(mask == 0, torch.finfo(x.dtype).min / 2)
        bias = near[None] + padding[:, None, None, :]
        for layer in encoder["layer"].children():
            x = layer(x, bias)
        return x

    def _buckets(self, positions: Tensor) -> Tensor:
        """Return the bucket of the distance of each pair of tokens: half of them for each direction, half of these exact."""
        half = BUCKETS // 2
        exact = half // 2
        away = positions[None] - positions[:, None]
        size = away.abs()
        far = exact + (torch.log(size.clamp(min=1).float() / exact) / math.log(MAX_DISTANCE / exact) * (half - exact)).long()
        bucket = torch.where(size < exact, size, far.clamp(max=half - 1))
        return bucket + half * (away > 0)

    def keep_layers(self, count: int) -> None:
        """Raise ModelError: only a plain BERT can lose layers."""
        raise ModelError("an mpnet encoder keeps all its layers; --layers is for BERT only")
