"""A radix tree of the prompts that a model has computed; a prefix that many prompts share is stored once."""

from collections.abc import Iterator, Sequence

import torch

TokenIds = tuple[int, ...]
TOKEN_AXIS = -2
"""States are `[layers, 2 (keys, values), heads, tokens, head size]`."""


def count_shared_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """Count the tokens of the longest common prefix of two texts."""
    if one[: len(other)] == other[: len(one)]:
        return min(len(one), len(other))
    return next(i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)


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
