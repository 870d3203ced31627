"""The score cache: equal replies, fewer computed pairs, bounded size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.encoder.score_cache import ScoreCache
from knowhalu.requests import Entail, EntailmentPair, Probabilities

PAIRS = st.builds(EntailmentPair, st.sampled_from("ab"), st.sampled_from(["a", "b", "\ud800"]), st.sampled_from([None, "", "q"]))
REQUESTS = st.lists(st.builds(Entail, st.lists(PAIRS, max_size=4).map(tuple)), max_size=4)


class Verifier:
    """Gives every pair a reply of its own and notes what it was asked."""

    def __init__(self):
        self.asked, self.broken = [], False

    def answer_many(self, requests):
        if self.broken:
            raise RuntimeError("out of memory")
        self.asked += [pair for request in requests for pair in request.pairs]
        return [[reply(pair) for pair in request.pairs] for request in requests]


def reply(pair):
    return Probabilities(hash(pair) % 1000 / 1000, 0.0, 1 - hash(pair) % 1000 / 1000)


@given(st.lists(REQUESTS, max_size=4), st.integers(1, 20))
def test_cached_replies_equal_those_of_the_backend(calls, most):
    memory = ScoreCache(Verifier(), most)
    for requests in calls:
        assert memory.answer_many(requests) == Verifier().answer_many(requests)
        assert len(memory._cached) <= most


def test_cache_computes_a_pair_once_and_evicts_the_oldest():
    a, b, c = (Entail((EntailmentPair("snow is white", claim),)) for claim in "abc")
    memory = ScoreCache(verifier := Verifier(), 2)
    for request in (a, b, a, c, a, b):
        memory.answer_many([request, request])
    assert [pair.claim for pair in verifier.asked] == ["a", "b", "c", "b"]


def test_failed_call_is_not_cached():
    memory, request = ScoreCache(verifier := Verifier(), 5), Entail((EntailmentPair("a", "b"),))
    verifier.broken = True
    with pytest.raises(RuntimeError, match="out of memory"):
        memory.answer_many([request])
    verifier.broken = False
    assert memory.answer_many([request]) == [[reply(request.pairs[0])]]
