"""A retriever without a model, for tests and examples: rank passages by the words that they share with the query."""

import math
from collections import Counter
from collections.abc import Sequence

from knowhalu.index.protocols import check_k
from knowhalu.text.sentences import content_words
from knowhalu.types import Passage


class MemoryRetriever:
    """Search a few passages in memory, deterministically: rare words count more, ties keep the given order."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = tuple(passages)
        self._words = [frozenset(content_words(str(p))) for p in self.passages]
        self._holders = Counter(w for words in self._words for w in words)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return at most `k` passages for each query, best first; passages without a shared word are last."""
        check_k(k)
        return [self._rank(query, k) if query.strip() else [] for query in queries]

    def _rank(self, query: str, k: int) -> list[Passage]:
        query_words = sorted(set(content_words(query)))
        weights = {w: math.log(1 + len(self.passages) / (1 + self._holders[w])) for w in query_words}
        total = sum(weights.values()) or 1.0
        scores = [sum(weights[w] for w in query_words if w in words) / total for words in self._words]
        order = sorted(range(len(scores)), key=lambda i: -scores[i])[:k]
        return [self.passages[i].model_copy(update={"score": scores[i]}) for i in order]
