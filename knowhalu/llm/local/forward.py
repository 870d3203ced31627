"""Forward passes of a transformers model: over a shared prefix with stored states, or from the first token.

A radix tree holds the states of the prompts that were computed, so that a prefix that many prompts share is stored once.
`SharedPrefixModel` needs plain attention in every layer. It is tried on a few tokens when the model is opened; a model whose
logits differ from those of its own forward pass is run by `SinglePromptModel` instead.
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
    register_attention,
    use_kv_cache,
)
from knowhalu.llm.local.prompt_encoding import TokenIds, count_shared_prefix

MAX_TOKENS_PER_FORWARD = 1024
"""The most tokens in one forward pass."""
MAX_BATCH_TOKENS_ON_CPU = 128
"""The most tokens of different prompts in one forward pass on a CPU, where more would only mean more padding."""
TOKEN_AXIS = -2
"""States are `[layers, 2 (keys, values), heads, tokens, head size]`."""
PROBE_TOKENS = (2, 1, 3, 2, 3, 1, 2, 1)
PROBE_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}
"""The largest difference allowed at the probe, as a share of the largest logit."""


class SinglePromptModel:
    """Compute every prompt from its first token, one at a time, with the model's own cache where it has one."""

    def __init__(self, model: Any) -> None:
        self.model, self.device = model, model.device
        self.computed = 0
        parameters = inspect.signature(model.forward).parameters
        self._keeps_few, self._caches = "logits_to_keep" in parameters, "past_key_values" in parameters

    def read(self, tokens: Sequence[int], cache: Any = None, keep: int = 1) -> tuple[torch.Tensor, Any]:
        """Process the next tokens of one prompt; returns the last logits (`[keep, vocabulary]`) and the cache."""
        if not self._caches:
            tokens = [*(cache or ()), *tokens]
        self.computed += len(tokens)
        options: dict[str, Any] = {"logits_to_keep": keep} if self._keeps_few else {}
        if self._caches:
            options |= {"past_key_values": cache, "use_cache": True}
        out = self.model(torch.tensor([list(tokens)], device=self.device), **options)
        return out.logits[0, -keep:].float(), out.past_key_values if self._caches else tokens


class SharedPrefixModel:
    """Process many prompts together that share a prefix; raises UnsupportedAttention where the model's attention is not plain.

    `window` is the longest prompt in tokens, None for no limit: some models attend to a sliding window.
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
                raise UnsupportedAttention("its attention cannot be replaced")
            self.empty = self._probe(alone)
        except Exception as error:
            model.set_attn_implementation(before)
            raise UnsupportedAttention(str(error)) from error
        self.computed = alone.computed = 0

    def read(self, columns: BatchedKVCache, rows: Sequence[Sequence[int]], keep: int = 1) -> torch.Tensor:
        """Process the next tokens of every row; returns the logits of the last ones, `[rows, keep, vocabulary]`, in fp32.

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
        with use_kv_cache(columns):
            out = self.model(
                ids.to(device),
                attention_mask=columns.mask[:, :, 0],
                position_ids=positions,
                past_key_values=self._cache(layers=layers),
                use_cache=True,
                logits_to_keep=keep,
            )
        columns.close()
        logits: torch.Tensor = out.logits[:, -keep:].float()
        return logits

    def _probe(self, alone: SinglePromptModel) -> torch.Tensor:
        """Compare both forward passes on a few tokens; returns empty states of the model's shape."""
        vocabulary = self.model.get_input_embeddings().num_embeddings
        tokens = [t % vocabulary for t in PROBE_TOKENS]
        expected, cache = alone.read(tokens)
        layers = [torch.stack([layer.keys[0], layer.values[0]]) for layer in cache.layers]
        if any(layer.shape != layers[0].shape for layer in layers):
            raise UnsupportedAttention("its layers differ in shape")
        states = torch.stack(layers)
        self.empty = states[..., :0, :].clone()
        columns = BatchedKVCache.of(states[..., :3, :], [states[..., 3:4, :], self.empty], len(tokens))
        logits = self.read(columns, [tokens[4:], tokens[3:]])[:, -1]
        difference = float((logits - expected).abs().max())
        if not difference <= PROBE_TOLERANCE[states.dtype] * float(expected.abs().max()):
            raise UnsupportedAttention(f"its logits differ by {difference:.2g}")
        return self.empty


def _attention_window(model: Any) -> int | None:
    """Return the model's sliding window, None for full attention; raises UnsupportedAttention for other kinds of layers."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    windows = []
    for layer in DynamicCache(config=model.config).layers:
        if type(layer) is DynamicSlidingWindowLayer:
            windows.append(int(layer.sliding_window))
        elif type(layer) is not DynamicLayer:
            raise UnsupportedAttention(f"it keeps {type(layer).__name__}")
    return min(windows, default=None)


class _PrefixNode:
    """A run of tokens after those of its parent, and their states."""

    __slots__ = ("children", "parent", "states", "tokens", "used")

    def __init__(self, tokens: TokenIds, states: torch.Tensor, parent: "_PrefixNode | None", used: int) -> None:
        self.tokens, self.states, self.parent, self.used = tokens, states, parent, used
        self.children: dict[int, _PrefixNode] = {}


class PrefixTree:
    """Store the states of prompts, in at most `limit` bytes; the least recently used are dropped first.

    Prefixes are compared token by token: two texts that are tokenized differently share nothing.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.bytes = limit, 0
        self._clock = 0
        self._root = _PrefixNode((), torch.empty(0), None, 0)

    def find(self, tokens: TokenIds) -> list[torch.Tensor]:
        """Return the states of the longest stored prefix, piece by piece; they are views and must not be changed."""
        return [node.states.narrow(TOKEN_AXIS, 0, count) for node, count in self._walk(tokens)]

    def keep(self, tokens: TokenIds, states: torch.Tensor, begin: int = 0) -> None:
        """Store the states of `tokens[begin:]`, unless the tokens before them are no longer stored."""
        node, known = self._root, 0
        for node, count in list(self._walk(tokens)):
            known += count
            if count < len(node.tokens):
                node = self._split(node, count)
        if known < begin or known == len(tokens):
            return
        new = _PrefixNode(tokens[known:], _copy_slice(states, known - begin, len(tokens) - begin), node, self._clock)
        node.children[tokens[known]] = new
        self.bytes += new.states.nbytes
        while self.bytes > self.limit:
            self._drop(min(self._leaves(), key=lambda n: n.used))

    def _walk(self, tokens: TokenIds) -> Iterator[tuple[_PrefixNode, int]]:
        """Descend along the tokens; yields each node and how many of its tokens match."""
        self._clock += 1
        node, at = self._root, 0
        while at < len(tokens) and (child := node.children.get(tokens[at])) is not None:
            count = count_shared_prefix(child.tokens, tokens[at : at + len(child.tokens)])
            child.used = self._clock
            yield child, count
            if count < len(child.tokens):
                return
            node, at = child, at + count

    def _split(self, node: _PrefixNode, count: int) -> _PrefixNode:
        """Split a node and return the upper half. Both halves get memory of their own, so that dropping one frees it."""
        upper = _PrefixNode(node.tokens[:count], _copy_slice(node.states, 0, count), node.parent, node.used)
        if node.parent is not None:
            node.parent.children[node.tokens[0]] = upper
        upper.children[node.tokens[count]] = node
        node.tokens, node.states, node.parent = node.tokens[count:], _copy_slice(node.states, count, len(node.tokens)), upper
        return upper

    def _leaves(self) -> Iterator[_PrefixNode]:
        pending = list(self._root.children.values())
        while pending:
            node = pending.pop()
            if not node.children:
                yield node
            pending += node.children.values()

    def _drop(self, leaf: _PrefixNode) -> None:
        self.bytes -= leaf.states.nbytes
        if leaf.parent is not None:
            del leaf.parent.children[leaf.tokens[0]]


def _copy_slice(states: torch.Tensor, start: int, end: int) -> torch.Tensor:
    return states.narrow(TOKEN_AXIS, start, end - start).clone(memory_format=torch.contiguous_format)


class PrefilledPrompt(NamedTuple):
    """A computed prompt: its states after the shared prefix, the logits after its last token (`[vocabulary]`).

    `cached` of its tokens were taken from the cache.
    """

    states: torch.Tensor
    logits: torch.Tensor
    cached: int


class PrefixPrefiller:
    """Compute the states of prompts and store them in a prefix tree."""

    def __init__(self, shared: SharedPrefixModel, prefixes: PrefixTree) -> None:
        self.shared, self.prefixes, self.empty = shared, prefixes, shared.empty

    def read(self, texts: Sequence[TokenIds]) -> tuple[torch.Tensor | None, list[PrefilledPrompt]]:
        """Compute different prompts with a common prefix; returns the states of the prefix, and those of each prompt."""
        stored = [self.prefixes.find(t[:-1]) for t in texts]  # the last token is always computed, for its logits
        known = [sum(p.shape[-2] for p in pieces) for pieces in stored]
        common = known[0]
        if len(texts) > 1:
            common = min(count_common_prefix(texts), *(len(t) - 1 for t in texts))
        prefix = self._prefix(texts[0][:common], stored[0])
        cached = [known[0], *(max(k, common) for k in known[1:])]
        suffixes = [self._after(pieces, common) for pieces in stored]
        prompts: dict[int, PrefilledPrompt] = {}
        for batch in batch_by_padded_size([len(t) - max(k, common) for t, k in zip(texts, known, strict=True)], self.at_once):
            new = [texts[i][max(known[i], common) :] for i in batch]
            columns = BatchedKVCache.of(prefix, [suffixes[i] for i in batch], max(map(len, new)))
            logits = self.shared.read(columns, new)[:, -1]
            for row, i in enumerate(batch):
                prompts[i] = PrefilledPrompt(columns.states(row), logits[row], cached[i])
                self.prefixes.keep(texts[i], prompts[i].states, common)
        return prefix, [prompts[i] for i in range(len(texts))]

    @property
    def at_once(self) -> int:
        """The most tokens of different prompts in one forward pass."""
        return MAX_BATCH_TOKENS_ON_CPU if self.empty.device.type == "cpu" else MAX_TOKENS_PER_FORWARD

    def _prefix(self, tokens: TokenIds, stored: list[torch.Tensor]) -> torch.Tensor | None:
        """Return the states of a shared prefix, computing those that are not stored."""
        if not tokens:
            return None
        known = self._joined(stored)[..., : len(tokens), :]
        count = known.shape[-2]
        if count == len(tokens):
            return known
        columns = BatchedKVCache.of(known if count else None, [self.empty], len(tokens) - count)
        self.shared.read(columns, [tokens[count:]])
        new = columns.states(0)
        self.prefixes.keep(tokens, new, count)
        return self._joined([known, new] if count else [new])

    def _after(self, pieces: list[torch.Tensor], begin: int) -> torch.Tensor:
        """Return the states after the first `begin` tokens."""
        rest = []
        for piece in pieces:
            count = piece.shape[-2]
            if count > begin:
                rest.append(piece[..., max(begin, 0) :, :])
            begin -= count
        return self._joined(rest)

    def _joined(self, pieces: list[torch.Tensor]) -> torch.Tensor:
        return pieces[0] if len(pieces) == 1 else torch.cat([self.empty, *pieces], -2)


def count_common_prefix(texts: Sequence[TokenIds]) -> int:
    """Count the tokens of the common prefix of all texts."""
    return count_shared_prefix(min(texts), max(texts))  # a prefix of the first and the last in order is one of all


def batch_by_padded_size(sizes: Sequence[int], limit: int) -> Iterator[list[int]]:
    """Yield batches of indices of similar sizes, each at most `limit` in total when padded to its largest."""
    batch: list[int] = []
    for i in sorted(range(len(sizes)), key=lambda i: sizes[i]):
        if batch and (len(batch) + 1) * sizes[i] > limit:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
