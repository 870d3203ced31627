"""Reads what requests want to go on with: first the prefix that they share, once, then what is new of each."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from knowhalu.llm.local.attention import BatchedKVCache
from knowhalu.llm.local.forward import MAX_TOKENS_PER_FORWARD, SharedPrefixModel
from knowhalu.llm.local.prefix_tree import PrefixTree, TokenIds, count_shared_prefix

MAX_BATCH_TOKENS_ON_CPU = 128
"""Tokens of different texts that are read in one pass: on a CPU more only means more padding."""


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
