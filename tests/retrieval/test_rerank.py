"""Reranking: the scorer orders the first passages, and the others follow."""

import pytest

from knowhalu.errors import BackendError, InputError
from knowhalu.retrieval.rerank import RerankingRetriever
from knowhalu.types import Passage


class Fixed:
    """Finds the same passages for every query."""

    def __init__(self, names):
        self.passages = [Passage(id=n, text=n, score=float(-i)) for i, n in enumerate(names)]

    def search(self, queries, k):
        return [self.passages[:k] if q.strip() else [] for q in queries]


def by(**scores):
    return lambda pairs: [scores[p.passage.id] for p in pairs]


def ids(found):
    return [p.id for p in found]


def test_the_first_passages_are_reranked_and_the_rest_follows():
    (found,) = RerankingRetriever(Fixed("abcd"), by(a=0.1, b=0.9, c=0.5), depth=3).search(["q"], 4)
    assert ids(found) == ["b", "c", "a", "d"]
    assert [p.score for p in found] == [0.9, 0.5, 0.1, 0.1]


def test_equal_scores_keep_the_order_of_the_search():
    assert ids(RerankingRetriever(Fixed("abc"), by(a=1, b=1, c=1)).search(["q"], 3)[0]) == ["a", "b", "c"]


def test_a_blend_adds_to_the_scaled_scores_of_the_search():
    scorer = by(a=0.0, b=0.4, c=0.9)  # the search gave 0, -1 and -2, which stretch to 1, 0.5 and 0
    (found,) = RerankingRetriever(Fixed("abc"), scorer, blend=2.0).search(["q"], 3)
    assert ids(found) == ["c", "b", "a"]
    assert [p.score for p in found] == pytest.approx([1.8, 1.3, 1.0])
    assert ids(RerankingRetriever(Fixed("abc"), scorer, blend=0.0).search(["q"], 3)[0]) == ["a", "b", "c"]
    assert ids(RerankingRetriever(Fixed("a"), scorer, blend=1.0).search(["q"], 3)[0]) == ["a"]


def test_all_pairs_are_scored_in_one_call_to_the_full_depth():
    calls = []

    def scorer(pairs):
        calls.append([(p.query, p.passage.id) for p in pairs])
        return [ord(p.passage.id) for p in pairs]

    found = RerankingRetriever(Fixed("abc"), scorer, depth=3).search(["x", " ", "y"], 1)
    assert [ids(f) for f in found] == [["c"], [], ["c"]]
    assert calls == [[(q, n) for q in "xy" for n in "abc"]]


@pytest.mark.parametrize("scores", [[1.0], [1.0, 2.0, 3.0], [1.0, float("nan")]])
def test_a_failing_scorer_is_an_error(scores):
    with pytest.raises(BackendError, match="rerank"):
        RerankingRetriever(Fixed("ab"), lambda pairs: scores).search(["q"], 2)


def test_a_depth_below_one_is_refused():
    with pytest.raises(InputError):
        RerankingRetriever(Fixed("a"), by(a=1), depth=0)
