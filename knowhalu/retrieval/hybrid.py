"""Retrievers over other retrievers: fuse the results of several by ranks or scores, or rerank those of one by a slower model."""

from collections.abc import Callable, Sequence
from functools import partial
from math import fsum
from typing import Literal, NamedTuple

from knowhalu.errors import BackendError, InputError
from knowhalu.index.protocols import Retriever, check_k
from knowhalu.types import Passage

RRF_CONSTANT = 60.0
"""The smaller, the more the first ranks count; the value of the paper."""


def reciprocal_rank_fusion(
    rankings: Sequence[Sequence[Passage]], k: int, *, constant: float = RRF_CONSTANT, weights: Sequence[float] | None = None
) -> list[Passage]:
    """Fuse rankings of one query by reciprocal ranks (Cormack, Clarke and Buettcher 2009, section 2).

    The score of a passage is the sum of `weight / (constant + rank)` over the rankings that contain it, with ranks from 1.
    Passages are matched by id, and the first ranking with a passage provides its text. Ties are ordered by the best rank in any
    ranking, then by the earliest ranking with that rank. Scores do not depend on the order of the rankings.
    """
    weights = [1.0] * len(rankings) if weights is None else weights
    terms: dict[str, list[float]] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, name in enumerate(dict.fromkeys(p.id for p in ranking), 1):
            terms.setdefault(name, []).append(weight / (constant + rank))
    return _top_by_sum(rankings, terms, k)


def score_fusion(rankings: Sequence[Sequence[Passage]], k: int, *, depth: int, weights: Sequence[float]) -> list[Passage]:
    """Fuse rankings of one query by the weighted sum of their scores (Bruch, Gai and Ingber 2023, section 4).

    A ranking without a passage contributes its lowest score if it was cut at `depth`, else 0: scores are absolute, such as a
    cosine or BM25. Passages are matched and ties broken as in `reciprocal_rank_fusion`.
    """
    terms: dict[str, list[float]] = {p.id: [] for ranking in rankings for p in ranking}
    for ranking, weight in zip(rankings, weights, strict=True):
        scores = {p.id: p.score for p in reversed(ranking)}
        missing = min(scores.values()) if len(ranking) >= depth else 0.0
        for name, summands in terms.items():
            summands.append(weight * scores.get(name, missing))
    return _top_by_sum(rankings, terms, k)


def _top_by_sum(rankings: Sequence[Sequence[Passage]], terms: dict[str, list[float]], k: int) -> list[Passage]:
    """Order passages by the sum of their terms; ties by the best rank in any ranking, then by the earliest ranking."""
    places: dict[str, tuple[int, int]] = {}
    passages: dict[str, Passage] = {}
    for number, ranking in enumerate(rankings):
        for rank, passage in enumerate(ranking):
            passages.setdefault(passage.id, passage)
            places[passage.id] = min(places.get(passage.id, (rank, number)), (rank, number))
    # fsum rounds once, so the same terms in any order tie exactly
    scores = {name: fsum(numbers) for name, numbers in terms.items()}
    best = sorted(scores, key=lambda name: (-scores[name], places[name]))[:k]
    return [passages[name].model_copy(update={"score": scores[name]}) for name in best]


class HybridRetriever:
    """Fuse the first `depth` passages (at least `k`) of several retrievers, by ranks or scores.

    Raises InputError unless there is one weight for each retriever.
    """

    def __init__(
        self,
        retrievers: Sequence[Retriever],
        *,
        by: Literal["ranks", "scores"] = "ranks",
        depth: int = 100,
        constant: float = RRF_CONSTANT,
        weights: Sequence[float] | None = None,
    ) -> None:
        self.retrievers, self.by, self.depth, self.constant = tuple(retrievers), by, depth, constant
        self.weights = tuple(weights) if weights is not None else (1.0,) * len(self.retrievers)
        if len(self.weights) != len(self.retrievers) or not self.retrievers:
            raise InputError(f"{len(self.weights)} weights for {len(self.retrievers)} retrievers. Give each retriever one weight")
        if min(self.weights) < 0 or constant <= 0:
            raise InputError("a weight is negative, or the constant is not positive. Give other numbers")

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return at most `k` passages for each query, best first; the score is that of the fusion."""
        check_k(k)
        depth = max(k, self.depth)
        results = [retriever.search(queries, depth) for retriever in self.retrievers]
        if self.by == "scores":
            fuse = partial(score_fusion, depth=depth, weights=self.weights)
        else:
            fuse = partial(reciprocal_rank_fusion, constant=self.constant, weights=self.weights)
        return [fuse(rankings, k) for rankings in zip(*results, strict=True)]


class QueryPassage(NamedTuple):
    """A query and a passage retrieved for it."""

    query: str
    passage: Passage


PassageScorer = Callable[[Sequence[QueryPassage]], Sequence[float]]
"""Scores pairs in order; higher is better. A cross-encoder, or any model that reads query and passage together."""


class RerankingRetriever:
    """Rerank the first `depth` passages of another retriever by a scorer; deeper passages follow in their order.

    With `blend`, `blend` times the score of the scorer is added to the score of the search, scaled to 0..1 over these passages;
    without, the scorer alone decides. Ties keep the order of the search.
    """

    def __init__(self, inner: Retriever, scorer: PassageScorer, *, depth: int = 20, blend: float | None = None) -> None:
        if depth < 1:
            raise InputError(f"the depth of reranking is {depth}. Rerank at least 1 passage")
        self.inner, self.scorer, self.depth, self.blend = inner, scorer, depth, blend

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return at most `k` passages for each query, best first; all pairs are scored in one call.

        Raises BackendError unless the scorer returns one number for each pair.
        """
        check_k(k)
        results = self.inner.search(queries, max(k, self.depth))
        pairs = [QueryPassage(q, p) for q, passages in zip(queries, results, strict=True) for p in passages[: self.depth]]
        scores = [float(s) for s in self.scorer(pairs)] if pairs else []
        if len(scores) != len(pairs) or any(s != s for s in scores):
            raise BackendError("rerank", f"the scorer returned {len(scores)} scores for {len(pairs)} passages, or NaN")
        remaining = iter(scores)
        return [self._ordered(passages, [next(remaining) for _ in passages[: self.depth]])[:k] for passages in results]

    def _ordered(self, passages: list[Passage], scores: list[float]) -> list[Passage]:
        if self.blend is not None and scores:
            first = [p.score for p in passages[: len(scores)]]
            low, width = min(first), (max(first) - min(first)) or 1.0
            scores = [(before - low) / width + self.blend * score for before, score in zip(first, scores, strict=True)]
        order = sorted(range(len(scores)), key=lambda i: -scores[i])
        best = [passages[i].model_copy(update={"score": scores[i]}) for i in order]
        # the two kinds of scores are not comparable; deeper passages get the lowest new score, so none rises
        floor = min(scores, default=0.0)
        return best + [p.model_copy(update={"score": floor}) for p in passages[len(best) :]]
