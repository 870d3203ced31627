"""Fusion of rankings by ranks and by scores, and reranking of the first passages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.errors import BackendError, InputError
from knowhalu.retrieval.documents import MemoryRetriever
from knowhalu.retrieval.hybrid import HybridRetriever, RerankingRetriever, reciprocal_rank_fusion, score_fusion
from knowhalu.types import Passage

NAMES = "abcdefgh"
RANKINGS = st.lists(st.permutations(NAMES).flatmap(lambda p: st.integers(0, 8).map(lambda n: p[:n])), min_size=1, max_size=4)


def ranking(names, scores=None):
    return [Passage(id=n, text=n, score=s) for n, s in zip(names, scores or range(len(names), 0, -1), strict=True)]


def ids(found):
    return [p.id for p in found]


def test_rank_fusion_matches_a_computation_by_hand():
    found = reciprocal_rank_fusion([ranking("abc"), ranking("bd")], 10)
    assert ids(found) == ["b", "a", "d", "c"]
    assert [p.score for p in found] == pytest.approx([1 / 62 + 1 / 61, 1 / 61, 1 / 62, 1 / 63])


def test_weights_and_constant_change_the_scores():
    found = reciprocal_rank_fusion([ranking("ab"), ranking("ba")], 1, constant=1.0, weights=[1.0, 3.0])
    assert ids(found) == ["b"] and found[0].score == pytest.approx(1 / 3 + 3 / 2)


def test_ties_go_to_the_best_rank_and_then_to_the_first_ranking():
    assert ids(reciprocal_rank_fusion([ranking("ab"), ranking("ba"), ranking("c")], 3)) == ["a", "b", "c"]
    assert ids(reciprocal_rank_fusion([ranking("xy"), ranking("zw")], 4)) == ["x", "z", "y", "w"]


def test_a_passage_twice_in_one_ranking_counts_once():
    assert reciprocal_rank_fusion([ranking("aab")], 2)[0].score == pytest.approx(1 / 61)
    assert reciprocal_rank_fusion([ranking("aab")], 2)[1].score == pytest.approx(1 / 62)


@given(RANKINGS)
def test_the_order_of_the_rankings_changes_no_score(rankings):
    there = reciprocal_rank_fusion([ranking(r) for r in rankings], 20)
    back = reciprocal_rank_fusion([ranking(r) for r in reversed(rankings)], 20)
    assert {p.id: p.score for p in there} == {p.id: p.score for p in back}


@given(RANKINGS, st.data())
def test_a_better_rank_never_lowers_the_score(rankings, data):
    which = data.draw(st.integers(0, len(rankings) - 1))
    if len(rankings[which]) < 2:
        return
    at = data.draw(st.integers(1, len(rankings[which]) - 1))
    name, raised = rankings[which][at], list(rankings[which])
    raised[at - 1], raised[at] = raised[at], raised[at - 1]
    changed = [raised if i == which else r for i, r in enumerate(rankings)]
    before = ids(reciprocal_rank_fusion([ranking(r) for r in rankings], 20))
    after = ids(reciprocal_rank_fusion([ranking(r) for r in changed], 20))
    assert after.index(name) <= before.index(name)


@given(RANKINGS)
def test_one_ranking_alone_keeps_its_order(rankings):
    assert ids(reciprocal_rank_fusion([ranking(rankings[0])], 20)) == list(rankings[0])


def test_score_fusion_matches_a_computation_by_hand():
    left, right = ranking("ab", [0.9, 0.5]), ranking("bc", [20.0, 10.0])
    # both were cut at 2, so what is missing gets the lowest score that is there
    found = score_fusion([left, right], 3, depth=2, weights=[1.0, 0.1])
    assert {p.id: p.score for p in found} == pytest.approx({"b": 0.5 + 2.0, "a": 0.9 + 1.0, "c": 0.5 + 1.0})
    assert ids(found) == ["b", "a", "c"]
    # a ranking that ended by itself says 0 of all others
    found = score_fusion([left, right], 3, depth=5, weights=[1.0, 0.1])
    assert {p.id: p.score for p in found} == pytest.approx({"b": 2.5, "c": 1.0, "a": 0.9})


class Spy(MemoryRetriever):
    """Remembers how many passages it was asked for."""

    asked = 0

    def search(self, queries, k):
        self.asked = k
        return super().search(queries, k)


@pytest.mark.parametrize(("k", "depth", "asked"), [(3, 10, 10), (30, 10, 30)])
def test_each_retriever_is_searched_to_the_depth(k, depth, asked):
    spy = Spy(ranking("abc"))
    HybridRetriever([spy, MemoryRetriever(ranking("abc"))], depth=depth).search(["a"], k)
    assert spy.asked == asked


@pytest.mark.parametrize("options", [{"weights": [1.0]}, {"weights": [1.0, -1.0]}, {"constant": 0.0}])
def test_weights_that_do_not_fit_are_refused(options):
    with pytest.raises(InputError):
        HybridRetriever([MemoryRetriever(ranking("a"))] * 2, **options)


class Fixed:
    """Finds the same passages for every query."""

    def __init__(self, names):
        self.passages = [Passage(id=n, text=n, score=float(-i)) for i, n in enumerate(names)]

    def search(self, queries, k):
        return [self.passages[:k] if q.strip() else [] for q in queries]


def by(**scores):
    return lambda pairs: [scores[p.passage.id] for p in pairs]


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
