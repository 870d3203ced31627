"""How well a token encoder finds passages, with every passage scored: recall at 1 and 10 and the mean reciprocal rank."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from knowhalu.retrieval.base import TokenEncoder
from knowhalu.retrieval.late_build import readable
from knowhalu.retrieval.passages import PassageList
from knowhalu.retrieval.residuals import maxsim

BLOCK = 256


class Found(NamedTuple):
    """Shares of the queries whose first right passage is at rank 1, or among the first 10; and the mean of 1 / rank."""

    recall1: float
    recall10: float
    mrr: float


def quality(rankings: Sequence[Sequence[str]], rows: Sequence[dict[str, Any]]) -> Found:
    """Score rankings of passage ids, each cut where the caller likes; a right passage that is not in one counts as missed."""
    ranks = []
    for ranking, row in zip(rankings, rows, strict=True):
        right = {str(name) for name in row["positives"]}
        ranks.append(next((rank for rank, name in enumerate(ranking, 1) if name in right), 0))
    count = max(1, len(ranks))
    return Found(
        sum(rank == 1 for rank in ranks) / count,
        sum(1 <= rank <= 10 for rank in ranks) / count,
        sum(1 / rank for rank in ranks if rank) / count,
    )


def evaluate(encoder: TokenEncoder, corpus: PassageList, rows: Sequence[dict[str, Any]]) -> Found:
    """Rank all passages for every query by MaxSim without any index."""
    asked = encoder.encode([row["query"] for row in rows], query=True)
    scores = np.zeros((len(rows), len(corpus)), dtype=np.float32)
    for start in range(0, len(corpus), BLOCK):
        found = encoder.encode([readable(p) for p in corpus[start : start + BLOCK]])
        starts = np.cumsum([0, *map(len, found)])[:-1]
        tokens = np.concatenate(found)
        for i, query in enumerate(asked):
            scores[i, start : start + len(found)] = maxsim(query, tokens, starts)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :100]
    return quality([[corpus[j].id for j in row] for row in best.tolist()], rows)
