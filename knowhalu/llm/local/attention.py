"""Attention over a prefix that many prompts share, stored once, and over what each of them has of its own.

Scores against both are put side by side before one softmax, so the result is that of ordinary attention, and neither is
the prefix copied for every prompt nor read again for each of them.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import torch

ATTENTION_NAME = "knowhalu_shared_prefix"
"""The name under which transformers knows this attention."""

_IGNORED_ARGUMENTS = {
    "is_causal", "position_ids", "position_embeddings", "use_cache", "output_attentions", "sliding_window", "cache_position",
    "output_hidden_states", "return_dict", "output_router_logits", "past_key_values", "num_items_in_batch",
}  # fmt: skip
_active_kv_cache: ContextVar["BatchedKVCache | None"] = ContextVar("reading", default=None)


class BatchedKVCache:
    """The states of some prompts after the prefix they share: one row for each, one column for a token or a gap.

    `shared` is `[layers, 2, heads, prefix tokens, head size]` or None, `own` is `[layers, 2, rows, heads, columns, head
    size]`. Rows stand at the right; the gaps at their left, and those of shorter additions, are never looked at.
    """

    def __init__(self, shared: torch.Tensor | None, own: torch.Tensor, filled: torch.Tensor, width: int) -> None:
        self.shared, self.own, self.filled, self.width = shared, own, filled, width
        self.new = 0
        self.mask = filled

    @classmethod
    def of(cls, shared: torch.Tensor | None, rows: Sequence[torch.Tensor], room: int) -> "BatchedKVCache":
        """Put rows side by side, with room for so many more columns."""
        counts = [r.shape[-2] for r in rows]
        width = max(counts)
        layers, two, heads, _, size = rows[0].shape
        own = rows[0].new_zeros(layers, two, len(rows), heads, width + room, size)
        filled = torch.zeros(len(rows), width + room, dtype=torch.bool, device=own.device)
        for i, (row, count) in enumerate(zip(rows, counts, strict=True)):
            own[:, :, i, :, width - count : width] = row
            filled[i, width - count : width] = True
        return cls(shared, own, filled, width)

    def take(self, rows: Sequence[int]) -> "BatchedKVCache":
        """Return some of the rows, in new memory."""
        at = torch.tensor(list(rows), device=self.own.device)
        return BatchedKVCache(self.shared, self.own.index_select(2, at), self.filled.index_select(0, at), self.width)

    def states(self, row: int) -> torch.Tensor:
        """Return the states of one row without gaps: `[layers, 2, heads, tokens, head size]`."""
        at = self.filled[row, : self.width].nonzero().flatten()
        return self.own[:, :, row].index_select(-2, at)

    @property
    def offset(self) -> int:
        """Count the tokens of the shared prefix."""
        return 0 if self.shared is None else int(self.shared.shape[-2])

    def positions(self, real: torch.Tensor) -> torch.Tensor:
        """Open columns for new tokens (`[rows, new]`, False where a row has a gap) and return their positions."""
        self.new = real.shape[1]
        before = self.filled[:, : self.width].sum(1, keepdim=True)
        self.filled[:, self.width : self.width + self.new] = real
        column = torch.arange(self.width + self.new, device=real.device)
        at = column[self.width :, None]
        seen = self.filled[:, None, : self.width + self.new] & (column <= at)
        self.mask = (seen | (column == at))[:, None, None]  # a gap sees itself: a softmax over nothing is not a number
        return (self.offset + before + real.cumsum(1) - 1).clamp(min=0)

    def close(self) -> None:
        """Count the new columns in, after all layers have read them."""
        self.width, self.new = self.width + self.new, 0

    def write(self, layer: int, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Put the new tokens' keys and values (`[rows, heads, new, head size]`) into their columns; returns all columns."""
        end = self.width + self.new
        self.own[layer, 0, :, :, self.width : end] = keys
        self.own[layer, 1, :, :, self.width : end] = values
        return self.own[layer, 0, :, :, :end], self.own[layer, 1, :, :, :end]

    def attend(self, layer: int, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scaling: float) -> torch.Tensor:
        """Attend from `[rows, query heads, new, head size]`; returns `[rows, new, query heads, head size]`."""
        shared = None if self.shared is None else self.shared[layer]
        if query.shape[0] == 1 and query.shape[2] > 1:
            found = _attend_single_row(shared, query, keys, values, scaling)
        else:
            found = _attend_rows(shared, query, keys, values, scaling, self.mask)
        return found.transpose(1, 2).contiguous()


def _attend_single_row(
    shared: torch.Tensor | None, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scaling: float
) -> torch.Tensor:
    """Attend in a single row, which has no gaps: the kernels of torch do this best over one run of keys."""
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
    """Attend in many rows: all their queries look at the shared keys together, and at their own row by row."""
    rows, heads, new, size = query.shape
    kv_heads, own = keys.shape[1], keys.shape[2]
    query = (query * scaling).reshape(rows, kv_heads, -1, size)  # all queries that look at the same keys
    shape = (rows, kv_heads, heads // kv_heads, new, -1)
    scores = (query @ keys.transpose(-1, -2)).view(shape).masked_fill(~mask, float("-inf"))
    if shared is not None:
        flat = query.transpose(0, 1).reshape(kv_heads, -1, size)
        before = (flat @ shared[0].transpose(-1, -2)).view(kv_heads, rows, -1, shared.shape[-2])
        scores = torch.cat([before.transpose(0, 1).reshape(shape), scores], -1)
    weights = scores.softmax(-1, dtype=torch.float32).to(values.dtype).reshape(rows, kv_heads, heads // kv_heads * new, -1)
    found = weights[..., -own:] @ values
    if shared is not None:
        flat = weights[..., :-own].transpose(0, 1).reshape(kv_heads, -1, shared.shape[-2])
        found = found + (flat @ shared[1]).view(kv_heads, rows, -1, size).transpose(0, 1)
    return found.view(rows, heads, new, size)


class KVCacheLayer:
    """One layer of the columns, as the caches of transformers see it."""

    is_sliding = is_compileable = False
    is_croppable = is_initialized = supports_early_init = True

    def __init__(self, columns: BatchedKVCache, index: int) -> None:
        self.columns, self.index = columns, index

    def update(self, keys: torch.Tensor, values: torch.Tensor, *_: Any, **__: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Store what the model computed for the new tokens; returns the row's own keys and values."""
        return self.columns.write(self.index, keys, values)

    def get_seq_length(self) -> int:
        """Count the tokens before the new ones, gaps included."""
        return self.columns.offset + self.columns.width

    def get_max_length(self) -> int:
        """Return that there is no limit."""
        return -1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the number of columns and their offset."""
        return self.columns.width + query_length, 0


class UnsupportedAttention(Exception):  # noqa: N818 - it says what happened
    """A model whose attention does what this one does not."""


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
    """Attend over a shared prefix where one is being read; else as transformers does by itself."""
    columns = _active_kv_cache.get()
    if columns is None:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        return sdpa_attention_forward(module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **rest)
    if odd := sorted(k for k, v in rest.items() if v is not None and k not in _IGNORED_ARGUMENTS):
        raise UnsupportedAttention(f"its attention takes {', '.join(odd)}")
    layer = int(module.layer_idx)  # type: ignore[arg-type]
    return columns.attend(layer, query, key, value, query.shape[-1] ** -0.5 if scaling is None else scaling), None


def register_attention() -> None:
    """Make this attention known to transformers."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.cache_utils import CacheLayerMixin
    from transformers.masking_utils import sdpa_mask

    CacheLayerMixin.register(KVCacheLayer)
    AttentionInterface.register(ATTENTION_NAME, shared_prefix_attention)
    AttentionMaskInterface.register(ATTENTION_NAME, sdpa_mask)


class UseKVCache:
    """While open, attention looks at these columns, and at the prefix that they share."""

    def __init__(self, columns: BatchedKVCache) -> None:
        self.columns = columns

    def __enter__(self) -> None:
        self.token = _active_kv_cache.set(self.columns)

    def __exit__(self, *_: object) -> None:
        _active_kv_cache.reset(self.token)
