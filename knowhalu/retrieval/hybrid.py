"""Hybrid search: several retrievers asked at once, what they find joined by ranks or by scores."""

from collections.abc import Sequence
from math import fsum
from typing import Literal

from knowhalu.errors import InputError
from knowhalu.index.protocols import Retriever, check_k
from knowhalu.types import Passage

RRF_CONSTANT = 60.0
"""How much the first ranks stand out: the value of the paper."""


def reciprocal_rank_fusion(
    rankings: Sequence[Sequence[Passage]], k: int, *, constant: float = RRF_CONSTANT, weights: Sequence[float] | None = None
) -> list[Passage]:
    """Join rankings of one query (Cormack, Clarke and Buettcher 2009, section 2).

    The score of a passage is the sum of `weight / (constant + rank)` over the rankings that have it, ranks from 1. Passages
    are the same where their ids are; the first ranking that has one gives its text. Equal scores are ordered by the best
    rank in any ranking, then by the earliest ranking that gives it. Scores do not depend on the order of the rankings.
    """
    weights = [1.0] * len(rankings) if weights is None else weights
    parts: dict[str, list[float]] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, name in enumerate(dict.fromkeys(p.id for p in ranking), 1):
            parts.setdefault(name, []).append(weight / (constant + rank))
    return _top_by_sum(rankings, parts, k)


def score_fusion(rankings: Sequence[Sequence[Passage]], k: int, *, depth: int, weights: Sequence[float]) -> list[Passage]:
    """Join rankings of one query by the weighted sum of their scores (Bruch, Gai and Ingber 2023, section 4).

    Where a ranking does not have a passage, its lowest score stands in if the ranking was cut at `depth`, else 0: scores
    have a meaning of their own, such as a cosine or BM25. Passages are matched and ties broken as in the rank fusion.
    """
    parts: dict[str, list[float]] = {p.id: [] for ranking in rankings for p in ranking}
    for ranking, weight in zip(rankings, weights, strict=True):
        scores = {p.id: p.score for p in reversed(ranking)}
        missing = min(scores.values()) if len(ranking) >= depth else 0.0
        for name, found in parts.items():
            found.append(weight * scores.get(name, missing))
    return _top_by_sum(rankings, parts, k)


def _top_by_sum(rankings: Sequence[Sequence[Passage]], parts: dict[str, list[float]], k: int) -> list[Passage]:
    """Sum the parts and order by them; equal sums by the best rank in any ranking, then by the earliest ranking."""
    places: dict[str, tuple[int, int]] = {}
    known: dict[str, Passage] = {}
    for number, ranking in enumerate(rankings):
        for rank, passage in enumerate(ranking):
            known.setdefault(passage.id, passage)
            places[passage.id] = min(places.get(passage.id, (rank, number)), (rank, number))
    # a sum rounded once is the same in any order, so two passages with the same parts tie exactly
    scores = {name: fsum(found) for name, found in parts.items()}
    best = sorted(scores, key=lambda name: (-scores[name], places[name]))[:k]
    return [known[name].model_copy(update={"score": scores[name]}) for name in best]


class HybridRetriever:
    """Ask several retrievers for `depth` passages each (more where `k` is larger) and fuse what they find, by ranks or scores.

    Raises InputError where the weights do not fit the retrievers.
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
            raise InputError(f"{len(self.weights)} weights for {len(self.retrievers)} retrievers: give each retriever one weight")
        if min(self.weights) < 0 or constant <= 0:
            raise InputError("a weight is below 0, or the constant is not above 0: give other numbers")

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return at most `k` passages for each query, best first; the score is that of the fusion."""
        check_k(k)
        depth = max(k, self.depth)
        found = [retriever.search(queries, depth) for retriever in self.retrievers]
        return [self._joined(rankings, k, depth) for rankings in zip(*found, strict=True)]

    def _joined(self, rankings: Sequence[Sequence[Passage]], k: int, depth: int) -> list[Passage]:
        if self.by == "scores":
            return score_fusion(rankings, k, depth=depth, weights=self.weights)
        return reciprocal_rank_fusion(rankings, k, constant=self.constant, weights=self.weights)
