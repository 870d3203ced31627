"""Reranking: order the results of a fast search by the scores of a slower model."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from knowhalu.errors import BackendError, InputError
from knowhalu.index.protocols import Retriever, check_k
from knowhalu.types import Passage


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
