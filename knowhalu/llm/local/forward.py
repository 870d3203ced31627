"""How a transformers model reads: over a shared prefix with states that are kept, or from the first token on.

`SharedPrefixModel` needs plain attention in every layer; it is tried on a few tokens when the model is opened, and a model
that it does not read exactly as the model reads by itself is read by `SinglePromptModel`.
"""

import inspect
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from knowhalu.llm.local.attention import (
    ATTENTION_NAME,
    BatchedKVCache,
    KVCacheLayer,
    UnsupportedAttention,
    UseKVCache,
    register_attention,
)
from knowhalu.llm.local.prefix_tree import PrefixTree, TokenIds, count_shared_prefix

MAX_TOKENS_PER_FORWARD = 1024
"""Tokens in one forward pass at most."""
MAX_BATCH_TOKENS_ON_CPU = 128
"""Tokens of different texts that are read in one pass: on a CPU more only means more padding."""
PROBE_TOKENS = (2, 1, 3, 2, 3, 1, 2, 1)
PROBE_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}
"""Difference that is allowed at the probe, as a share of the largest logit."""


class SinglePromptModel:
    """Read every prompt from its first token, one at a time, with whatever cache the model makes itself, if it makes one."""

    def __init__(self, model: Any) -> None:
        self.model, self.device = model, model.device
        self.computed = 0
        taken = inspect.signature(model.forward).parameters
        self._few, self._caches = "logits_to_keep" in taken, "past_key_values" in taken

    def read(self, tokens: Sequence[int], cache: Any = None, keep: int = 1) -> tuple[torch.Tensor, Any]:
        """Read on in one prompt; returns the last logits (`[keep, vocabulary]`) and the cache to go on with."""
        if not self._caches:
            tokens = [*(cache or ()), *tokens]
        self.computed += len(tokens)
        few: dict[str, Any] = {"logits_to_keep": keep} if self._few else {}
        if self._caches:
            few |= {"past_key_values": cache, "use_cache": True}
        out = self.model(torch.tensor([list(tokens)], device=self.device), **few)
        return out.logits[0, -keep:].float(), out.past_key_values if self._caches else tokens


class SharedPrefixModel:
    """Read many prompts together that share a prefix. Raises Refused where the model's attention is not plain.

    `window` is the longest text that may be read: some models look back only so far.
    """

    def __init__(self, model: Any, alone: SinglePromptModel) -> None:
        from transformers import Cache

        self.model, self._cache = model, Cache
        self.computed = 0
        self.window = _attention_window(model)
        register_attention()
        before = model.config._attn_implementation
        model.set_attn_implementation(ATTENTION_NAME)
        try:
            if model.config._attn_implementation != ATTENTION_NAME:
                raise UnsupportedAttention("its attention cannot be exchanged")
            self.empty = self._probe(alone)
        except Exception as error:
            model.set_attn_implementation(before)
            raise UnsupportedAttention(str(error)) from error
        self.computed = alone.computed = 0

    def read(self, columns: BatchedKVCache, rows: Sequence[Sequence[int]], keep: int = 1) -> torch.Tensor:
        """Read on in every row; returns the logits after its last tokens: `[rows, keep, vocabulary]`, in single precision.

        `keep` is 1, or the length of the longest row.
        """
        new = max(map(len, rows))
        ids = torch.tensor([[0] * (new - len(r)) + list(r) for r in rows])
        real = torch.tensor([[False] * (new - len(r)) + [True] * len(r) for r in rows])
        self.computed += int(real.sum())
        width = max(MAX_TOKENS_PER_FORWARD // len(rows), keep)
        for start in range(0, new, width):
            logits = self._forward(columns, ids[:, start : start + width], real[:, start : start + width], keep)
        return logits

    def _forward(self, columns: BatchedKVCache, ids: torch.Tensor, real: torch.Tensor, keep: int) -> torch.Tensor:
        device = self.model.device
        positions = columns.positions(real.to(device))
        layers: list[Any] = [KVCacheLayer(columns, i) for i in range(self.empty.shape[0])]
        cache = self._cache(layers=layers)
        with UseKVCache(columns):
            out = self.model(
                ids.to(device),
                attention_mask=columns.mask[:, :, 0],
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=keep,
            )
        columns.close()
        found: torch.Tensor = out.logits[:, -keep:].float()
        return found

    def _probe(self, alone: SinglePromptModel) -> torch.Tensor:
        """Read a few tokens both ways and compare; returns empty states of the model's shape."""
        vocabulary = self.model.get_input_embeddings().num_embeddings
        tokens = [t % vocabulary for t in PROBE_TOKENS]
        wanted, cache = alone.read(tokens)
        layers = [torch.stack([layer.keys[0], layer.values[0]]) for layer in cache.layers]
        if any(layer.shape != layers[0].shape for layer in layers):
            raise UnsupportedAttention("its layers differ in shape")
        states = torch.stack(layers)
        self.empty = states[..., :0, :].clone()
        columns = BatchedKVCache.of(states[..., :3, :], [states[..., 3:4, :], self.empty], len(tokens))
        found = self.read(columns, [tokens[4:], tokens[3:]])[:, -1]
        difference = float((found - wanted).abs().max())
        if not difference <= PROBE_TOLERANCE[states.dtype] * float(wanted.abs().max()):
            raise UnsupportedAttention(f"its logits came out {difference:.2g} apart")
        return self.empty


def _attention_window(model: Any) -> int | None:
    """Return how far back the model looks, None for all the way; raises Refused where a layer keeps no plain states."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    windows = []
    for layer in DynamicCache(config=model.config).layers:
        if type(layer) is DynamicSlidingWindowLayer:
            windows.append(int(layer.sliding_window))
        elif type(layer) is not DynamicLayer:
            raise UnsupportedAttention(f"it keeps {type(layer).__name__}")
    return min(windows, default=None)


class PrefilledPrompt(NamedTuple):
    """A text that was read: its states after the shared prefix, the logits after its last token (`[vocabulary]`).

    Of its tokens, `cached` were not computed anew.
    """

    states: torch.Tensor
    logits: torch.Tensor
    cached: int


class PrefixPrefiller:
    """Read texts and keep what was computed of them."""

    def __init__(self, shared: SharedPrefixModel, prefixes: PrefixTree) -> None:
        self.shared, self.prefixes, self.empty = shared, prefixes, shared.empty

    def read(self, texts: Sequence[TokenIds]) -> tuple[torch.Tensor | None, list[PrefilledPrompt]]:
        """Read different texts that begin alike; returns the states of their shared prefix, and each text's own."""
        found = [self.prefixes.find(t[:-1]) for t in texts]  # the last token is always read: its logits are wanted
        known = [sum(p.shape[-2] for p in pieces) for pieces in found]
        common = known[0]
        if len(texts) > 1:
            common = min(count_common_prefix(texts), *(len(t) - 1 for t in texts))
        prefix = self._prefix(texts[0][:common], found[0])
        cached = [known[0], *(max(k, common) for k in known[1:])]
        own = [self._after(pieces, common) for pieces in found]
        done: dict[int, PrefilledPrompt] = {}
        for batch in batch_by_padded_size([len(t) - max(k, common) for t, k in zip(texts, known, strict=True)], self.at_once):
            new = [texts[i][max(known[i], common) :] for i in batch]
            columns = BatchedKVCache.of(prefix, [own[i] for i in batch], max(map(len, new)))
            logits = self.shared.read(columns, new)[:, -1]
            for row, i in enumerate(batch):
                done[i] = PrefilledPrompt(columns.states(row), logits[row], cached[i])
                self.prefixes.keep(texts[i], done[i].states, common)
        return prefix, [done[i] for i in range(len(texts))]

    @property
    def at_once(self) -> int:
        """Return how many tokens of different texts are read in one pass."""
        return MAX_BATCH_TOKENS_ON_CPU if self.empty.device.type == "cpu" else MAX_TOKENS_PER_FORWARD

    def _prefix(self, tokens: TokenIds, found: list[torch.Tensor]) -> torch.Tensor | None:
        """Return the states of a shared prefix, computed now as far as they are not known."""
        if not tokens:
            return None
        known = self._joined(found)[..., : len(tokens), :]
        count = known.shape[-2]
        if count == len(tokens):
            return known
        columns = BatchedKVCache.of(known if count else None, [self.empty], len(tokens) - count)
        self.shared.read(columns, [tokens[count:]])
        new = columns.states(0)
        self.prefixes.keep(tokens, new, count)
        return self._joined([known, new] if count else [new])

    def _after(self, pieces: list[torch.Tensor], begin: int) -> torch.Tensor:
        """Return the states of what stands after the first `begin` tokens."""
        left = []
        for piece in pieces:
            count = piece.shape[-2]
            if count > begin:
                left.append(piece[..., max(begin, 0) :, :])
            begin -= count
        return self._joined(left)

    def _joined(self, pieces: list[torch.Tensor]) -> torch.Tensor:
        return pieces[0] if len(pieces) == 1 else torch.cat([self.empty, *pieces], -2)


def count_common_prefix(texts: Sequence[TokenIds]) -> int:
    """Count the tokens with which all texts begin."""
    return count_shared_prefix(min(texts), max(texts))  # what the two ends of the order share, all share


def batch_by_padded_size(sizes: Sequence[int], limit: int) -> Iterator[list[int]]:
    """Put things of like size together, each batch at most `limit` large when all are padded to its largest."""
    batch: list[int] = []
    for i in sorted(range(len(sizes)), key=lambda i: sizes[i]):
        if batch and (len(batch) + 1) * sizes[i] > limit:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
