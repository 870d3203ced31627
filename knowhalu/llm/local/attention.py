"""Attention over a prefix that many prompts share, stored once, and over the other tokens of each prompt.

The scores against both are concatenated before one softmax, so the result is that of ordinary attention, although the prefix
is neither copied for each prompt nor computed again.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

ATTENTION_NAME = "knowhalu_shared_prefix"
"""The name under which transformers knows this attention."""

_IGNORED_ARGUMENTS = {
    "is_causal", "position_ids", "position_embeddings", "use_cache", "output_attentions", "sliding_window", "cache_position",
    "output_hidden_states", "return_dict", "output_router_logits", "past_key_values", "num_items_in_batch",
}  # fmt: skip
_active_kv_cache: ContextVar["BatchedKVCache | None"] = ContextVar("active_kv_cache", default=None)


class BatchedKVCache:
    """Key-value states of several prompts after their shared prefix: one row for each prompt, one column for a token or padding.

    `shared` is `[layers, 2, heads, prefix tokens, head size]` or None, `rows` is `[layers, 2, rows, heads, columns, head
    size]`. Rows are padded on the left; the padding is masked.
    """

    def __init__(self, shared: torch.Tensor | None, rows: torch.Tensor, filled: torch.Tensor, width: int) -> None:
        self.shared, self.rows, self.filled, self.width = shared, rows, filled, width
        self.new = 0
        self.mask = filled

    @classmethod
    def of(cls, shared: torch.Tensor | None, rows: Sequence[torch.Tensor], room: int) -> "BatchedKVCache":
        """Pad rows to one width, with `room` more columns for new tokens."""
        counts = [r.shape[-2] for r in rows]
        width = max(counts)
        layers, two, heads, _, size = rows[0].shape
        padded = rows[0].new_zeros(layers, two, len(rows), heads, width + room, size)
        filled = torch.zeros(len(rows), width + room, dtype=torch.bool, device=padded.device)
        for i, (row, count) in enumerate(zip(rows, counts, strict=True)):
            padded[:, :, i, :, width - count : width] = row
            filled[i, width - count : width] = True
        return cls(shared, padded, filled, width)

    def take(self, rows: Sequence[int]) -> "BatchedKVCache":
        """Return a copy of some of the rows."""
        at = torch.tensor(list(rows), device=self.rows.device)
        return BatchedKVCache(self.shared, self.rows.index_select(2, at), self.filled.index_select(0, at), self.width)

    def states(self, row: int) -> torch.Tensor:
        """Return the states of one row without padding: `[layers, 2, heads, tokens, head size]`."""
        at = self.filled[row, : self.width].nonzero().flatten()
        return self.rows[:, :, row].index_select(-2, at)

    @property
    def offset(self) -> int:
        """The number of tokens of the shared prefix."""
        return 0 if self.shared is None else int(self.shared.shape[-2])

    def positions(self, real: torch.Tensor) -> torch.Tensor:
        """Open columns for new tokens (`[rows, new]`, False where a row has padding) and return their positions."""
        self.new = real.shape[1]
        before = self.filled[:, : self.width].sum(1, keepdim=True)
        self.filled[:, self.width : self.width + self.new] = real
        column = torch.arange(self.width + self.new, device=real.device)
        at = column[self.width :, None]
        seen = self.filled[:, None, : self.width + self.new] & (column <= at)
        self.mask = (seen | (column == at))[:, None, None]  # padding attends to itself: a softmax over nothing is NaN
        return (self.offset + before + real.cumsum(1) - 1).clamp(min=0)

    def close(self) -> None:
        """Add the new columns to the width, after all layers have read them."""
        self.width, self.new = self.width + self.new, 0

    def write(self, layer: int, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Store the new tokens' keys and values (`[rows, heads, new, head size]`) and return those of all columns."""
        end = self.width + self.new
        self.rows[layer, 0, :, :, self.width : end] = keys
        self.rows[layer, 1, :, :, self.width : end] = values
        return self.rows[layer, 0, :, :, :end], self.rows[layer, 1, :, :, :end]

    def attend(self, layer: int, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scaling: float) -> torch.Tensor:
        """Attend from `[rows, query heads, new, head size]`; returns `[rows, new, query heads, head size]`."""
        shared = None if self.shared is None else self.shared[layer]
        if query.shape[0] == 1 and query.shape[2] > 1:
            output = _attend_single_row(shared, query, keys, values, scaling)
        else:
            output = _attend_rows(shared, query, keys, values, scaling, self.mask)
        return output.transpose(1, 2).contiguous()


def _attend_single_row(
    shared: torch.Tensor | None, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scaling: float
) -> torch.Tensor:
    """Attend in a single row, which has no padding: torch's kernels are fastest over one contiguous run of keys."""
    if shared is not None:
        keys, values = torch.cat([shared[:1], keys], -2), torch.cat([shared[1:], values], -2)
    groups = query.shape[1] // keys.shape[1]
    keys, values = keys.repeat_interleave(groups, 1), values.repeat_interleave(groups, 1)
    new, end = query.shape[-2], keys.shape[-2]
    causal = torch.ones(new, end, dtype=torch.bool, device=query.device).tril(end - new)
    return torch.nn.functional.scaled_dot_product_attention(query, keys, values, causal, scale=scaling)


def _attend_rows(
    shared: torch.Tensor | None,
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scaling: float,
    mask: torch.Tensor,
) -> torch.Tensor:
    """Attend in many rows: all queries to the shared keys in one product, and to the keys of their row."""
    rows, heads, new, size = query.shape
    kv_heads, columns = keys.shape[1], keys.shape[2]
    query = (query * scaling).reshape(rows, kv_heads, -1, size)  # all queries of the same keys
    shape = (rows, kv_heads, heads // kv_heads, new, -1)
    scores = (query @ keys.transpose(-1, -2)).view(shape).masked_fill(~mask, float("-inf"))
    if shared is not None:
        flat = query.transpose(0, 1).reshape(kv_heads, -1, size)
        before = (flat @ shared[0].transpose(-1, -2)).view(kv_heads, rows, -1, shared.shape[-2])
        scores = torch.cat([before.transpose(0, 1).reshape(shape), scores], -1)
    weights = scores.softmax(-1, dtype=torch.float32).to(values.dtype).reshape(rows, kv_heads, heads // kv_heads * new, -1)
    output = weights[..., -columns:] @ values
    if shared is not None:
        flat = weights[..., :-columns].transpose(0, 1).reshape(kv_heads, -1, shared.shape[-2])
        output = output + (flat @ shared[1]).view(kv_heads, rows, -1, size).transpose(0, 1)
    return output.view(rows, heads, new, size)


class KVCacheLayer:
    """One layer of a batched cache, with the interface of transformers' cache layers."""

    is_sliding = is_compileable = False
    is_croppable = is_initialized = supports_early_init = True

    def __init__(self, cache: BatchedKVCache, index: int) -> None:
        self.cache, self.index = cache, index

    def update(self, keys: torch.Tensor, values: torch.Tensor, *_: Any, **__: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Store the keys and values of the new tokens; returns those of all columns."""
        return self.cache.write(self.index, keys, values)

    def get_seq_length(self) -> int:
        """Return the number of tokens before the new ones, padding included."""
        return self.cache.offset + self.cache.width

    def get_max_length(self) -> int:
        """Return -1: there is no limit."""
        return -1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the number of columns and their offset."""
        return self.cache.width + query_length, 0


class UnsupportedAttention(Exception):  # noqa: N818 - the name states the fact
    """The attention of a model is not one that this module computes."""


def shared_prefix_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **rest: Any,
) -> tuple[torch.Tensor, None]:
    """Attend over the active cache; without one, as transformers does by default."""
    cache = _active_kv_cache.get()
    if cache is None:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        return sdpa_attention_forward(module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **rest)
    if unknown := sorted(k for k, v in rest.items() if v is not None and k not in _IGNORED_ARGUMENTS):
        raise UnsupportedAttention(f"its attention takes {', '.join(unknown)}")
    layer = int(module.layer_idx)  # type: ignore[arg-type]
    return cache.attend(layer, query, key, value, query.shape[-1] ** -0.5 if scaling is None else scaling), None


def register_attention() -> None:
    """Register this attention with transformers."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.cache_utils import CacheLayerMixin
    from transformers.masking_utils import sdpa_mask

    CacheLayerMixin.register(KVCacheLayer)
    AttentionInterface.register(ATTENTION_NAME, shared_prefix_attention)
    AttentionMaskInterface.register(ATTENTION_NAME, sdpa_mask)


@contextmanager
def use_kv_cache(cache: BatchedKVCache) -> Iterator[None]:
    """Make attention use this cache and its shared prefix."""
    token = _active_kv_cache.set(cache)
    try:
        yield
    finally:
        _active_kv_cache.reset(token)
