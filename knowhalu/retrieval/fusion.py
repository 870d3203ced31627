"""Hybrid search: several retrievers asked at once, their rankings joined by reciprocal rank fusion."""

from collections.abc import Sequence
from math import fsum

from knowhalu.errors import InputError
from knowhalu.retrieval.base import Retriever, check_k
from knowhalu.types import Passage

CONSTANT = 60.0
"""How much the first ranks stand out: the value of the paper."""


def reciprocal_rank_fusion(
    rankings: Sequence[Sequence[Passage]], k: int, *, constant: float = CONSTANT, weights: Sequence[float] | None = None
) -> list[Passage]:
    """Join rankings of one query (Cormack, Clarke and Buettcher 2009, section 2).

    The score of a passage is the sum of `weight / (constant + rank)` over the rankings that have it, ranks from 1. Passages
    are the same where their ids are; the first ranking that has one gives its text. Equal scores are ordered by the best
    rank in any ranking, then by the earliest ranking that gives it. Scores do not depend on the order of the rankings.
    """
    weights = [1.0] * len(rankings) if weights is None else weights
    parts: dict[str, list[float]] = {}
    places: dict[str, tuple[int, int]] = {}
    known: dict[str, Passage] = {}
    for number, (ranking, weight) in enumerate(zip(rankings, weights, strict=True)):
        seen: set[str] = set()
        for rank, passage in enumerate(ranking, 1):
            if passage.id in seen:
                continue
            seen.add(passage.id)
            known.setdefault(passage.id, passage)
            parts.setdefault(passage.id, []).append(weight / (constant + rank))
            places[passage.id] = min(places.get(passage.id, (rank, number)), (rank, number))
    # a sum rounded once is the same in any order, so two passages with the same ranks tie exactly
    scores = {name: fsum(found) for name, found in parts.items()}
    best = sorted(scores, key=lambda name: (-scores[name], places[name]))[:k]
    return [known[name].model_copy(update={"score": scores[name]}) for name in best]


class HybridRetriever:
    """Ask several retrievers for `depth` passages each (more where `k` is larger) and fuse what they find.

    Raises InputError where the weights do not fit the retrievers.
    """

    def __init__(
        self,
        retrievers: Sequence[Retriever],
        *,
        depth: int = 100,
        constant: float = CONSTANT,
        weights: Sequence[float] | None = None,
    ) -> None:
        self.retrievers, self.depth, self.constant = tuple(retrievers), depth, constant
        self.weights = tuple(weights) if weights is not None else (1.0,) * len(self.retrievers)
        if len(self.weights) != len(self.retrievers) or not self.retrievers:
            raise InputError(f"{len(self.weights)} weights for {len(self.retrievers)} retrievers: give each retriever one weight")
        if min(self.weights) < 0 or constant <= 0:
            raise InputError("a weight is below 0, or the constant is not above 0: give other numbers")

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return at most `k` passages for each query, best first; the score is that of the fusion."""
        check_k(k)
        found = [retriever.search(queries, max(k, self.depth)) for retriever in self.retrievers]
        return [
            reciprocal_rank_fusion(rankings, k, constant=self.constant, weights=self.weights)
            for rankings in zip(*found, strict=True)
        ]
