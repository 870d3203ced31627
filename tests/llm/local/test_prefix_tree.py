"""The prefix tree returns the states of the longest stored prefix and stays within its memory limit."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.llm.local.forward import PrefixTree, batch_by_padded_size, count_common_prefix
from knowhalu.llm.local.prompt_encoding import count_shared_prefix

texts = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=8).map(tuple), min_size=1, max_size=25)
BYTES = 4
"""Of a token in these tests: one layer, keys only, one head, one number."""


def states(tokens, begin=0):
    """Make states that depend on all tokens before, as a model's do."""
    sums = [float(hash(tokens[: i + 1]) % 10_007) for i in range(begin, len(tokens))]
    return torch.tensor(sums, dtype=torch.float32).view(1, 1, 1, -1, 1)


def found(kept, tokens):
    pieces = kept.find(tokens)
    return torch.cat([*pieces, torch.empty(1, 1, 1, 0, 1)], -2)


def nodes(kept):
    waiting = list(kept._root.children.values())
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.children.values()


@given(texts, texts)
def test_the_longest_stored_prefix_is_found_with_its_states(known, asked):
    kept = PrefixTree(10**6)
    for tokens in known:
        kept.keep(tokens, states(tokens))
    for tokens in [*known, *asked]:
        longest = max(count_shared_prefix(tokens, k) for k in known)
        assert torch.equal(found(kept, tokens), states(tokens[:longest]))


@given(texts, st.integers(0, 20))
def test_memory_stays_within_the_limit_and_found_states_are_right(known, tokens_allowed):
    kept = PrefixTree(tokens_allowed * BYTES)
    for tokens in known:
        before = found(kept, tokens).shape[-2]
        kept.keep(tokens, states(tokens, before), before)
        assert kept.bytes <= tokens_allowed * BYTES
        assert kept.bytes == sum(n.states.untyped_storage().nbytes() for n in nodes(kept))
        again = found(kept, tokens)
        assert torch.equal(again, states(tokens[: again.shape[-2]]))


def test_a_shared_prefix_is_stored_once():
    kept = PrefixTree(10**6)
    fixed = tuple(range(100))
    for own in range(100, 110):
        kept.keep((*fixed, own, 7), states((*fixed, own, 7)))
    assert kept.bytes == (100 + 10 * 2) * BYTES


def test_the_least_recently_used_is_dropped_first():
    kept = PrefixTree(6 * BYTES)
    for first in (1, 2, 3):
        kept.keep((first, 0), states((first, 0)))
    kept.find((1, 0))
    kept.keep((4, 0), states((4, 0)))
    assert [found(kept, (first, 0)).shape[-2] for first in (1, 2, 3, 4)] == [2, 0, 2, 2]


def test_a_prefix_outlives_its_continuations():
    kept = PrefixTree(8 * BYTES)
    fixed = (1, 2, 3, 4)
    for own in range(5, 50):
        kept.keep((*fixed, own, own), states((*fixed, own, own)))
        assert found(kept, (*fixed, 0)).shape[-2] == 4


def test_states_after_a_missing_prefix_are_not_stored():
    kept = PrefixTree(10**6)
    kept.keep((1, 2, 3, 4), states((1, 2, 3, 4), 2), 2)
    assert kept.bytes == 0 and kept.find((1, 2, 3, 4)) == []


@given(texts)
def test_the_common_prefix_of_many_texts(many):
    shared = count_common_prefix(many)
    assert len({t[:shared] for t in many}) == 1
    assert any(len(t) == shared for t in many) or len({t[: shared + 1] for t in many}) > 1


@given(st.lists(st.integers(1, 50)), st.integers(1, 100))
def test_batches_hold_each_index_once_and_stay_within_the_limit(sizes, limit):
    made = list(batch_by_padded_size(sizes, limit))
    assert sorted(i for b in made for i in b) == list(range(len(sizes)))
    assert all(len(b) == 1 or len(b) * max(sizes[i] for i in b) <= limit for b in made)
