"""Reranking: a slower model reads what a fast search found and puts it into a better order."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from knowhalu.errors import BackendError, InputError
from knowhalu.index.protocols import Retriever, check_k
from knowhalu.types import Passage


class QueryPassage(NamedTuple):
    """A query and a passage that was found for it."""

    query: str
    passage: Passage


PassageScorer = Callable[[Sequence[QueryPassage]], Sequence[float]]
"""Scores pairs in order; more is better. A cross-encoder, or anything else that reads query and passage together."""


class RerankingRetriever:
    """Let a scorer order the first `depth` passages of another retriever; what lies deeper keeps its order behind them.

    With `blend`, `blend` times the scorer's number is added to the search's score, which is first stretched to 0 to 1 over
    these passages; without, the scorer alone decides. Of equal scores, the one that was found first comes first.
    """

    def __init__(self, inner: Retriever, scorer: PassageScorer, *, depth: int = 20, blend: float | None = None) -> None:
        if depth < 1:
            raise InputError(f"the depth of reranking is {depth}: rerank at least 1 passage")
        self.inner, self.scorer, self.depth, self.blend = inner, scorer, depth, blend

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return at most `k` passages for each query, best first; all pairs are scored in one call.

        Raises BackendError where the scorer gives not one number for each pair.
        """
        check_k(k)
        found = self.inner.search(queries, max(k, self.depth))
        pairs = [QueryPassage(q, p) for q, passages in zip(queries, found, strict=True) for p in passages[: self.depth]]
        scores = [float(s) for s in self.scorer(pairs)] if pairs else []
        if len(scores) != len(pairs) or any(s != s for s in scores):
            raise BackendError("rerank", f"{len(scores)} scores for {len(pairs)} passages, or one that is not a number")
        left = iter(scores)
        return [self._ordered(passages, [next(left) for _ in passages[: self.depth]])[:k] for passages in found]

    def _ordered(self, passages: list[Passage], scores: list[float]) -> list[Passage]:
        if self.blend is not None and scores:
            found = [p.score for p in passages[: len(scores)]]
            low, width = min(found), (max(found) - min(found)) or 1.0
            scores = [(before - low) / width + self.blend * score for before, score in zip(found, scores, strict=True)]
        order = sorted(range(len(scores)), key=lambda i: -scores[i])
        best = [passages[i].model_copy(update={"score": scores[i]}) for i in order]
        # scores of the two kinds do not compare; those behind get the last of the new ones, so that none rises
        floor = min(scores, default=0.0)
        return best + [p.model_copy(update={"score": floor}) for p in passages[len(best) :]]
