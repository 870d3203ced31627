"""What the token encoder learns from and is measured on: questions with right passages and hard negatives."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from knowhalu.index.bm25_part import build_lexical_part
from knowhalu.index.late_part import passage_text
from knowhalu.index.part import IndexPart
from knowhalu.index.passages import PassageList
from knowhalu.index.protocols import TokenEncoder
from knowhalu.index.residuals import maxsim
from knowhalu.retrieval.bm25 import LexicalIndex
from knowhalu.training.data_files import read_training_rows
from knowhalu.types import Passage


class RetrievalQuestion(NamedTuple):
    """A query, the ids of passages that answer it and of some that do not, and all passages by id."""

    text: str
    right: list[str]
    wrong: list[str]
    passages: dict[str, str]


def read_corpus(path: Path) -> PassageList:
    """Read passages with `doc_id`, `text` and maybe `title`."""
    return PassageList(Passage(id=str(r["doc_id"]), text=r["text"], title=r.get("title") or "") for r in read_training_rows(path))


def mine_hard_negatives(rows: Iterable[dict[str, Any]], corpus: PassageList, *, depth: int = 20) -> list[RetrievalQuestion]:
    """Give every query the passages that BM25 finds for it and that are not right, the best `depth` of them."""
    known = {p.id: f"{p.title}. {p.text}" if p.title else p.text for p in corpus}
    found = []
    with TemporaryDirectory() as folder:
        build_lexical_part(corpus, Path(folder) / "lexical", "")
        index = LexicalIndex([IndexPart(Path(folder) / "lexical", "lexical")], corpus)
        for row in rows:
            right = [str(name) for name in row["positives"] if str(name) in known]
            if right:
                wrong = [corpus[i].id for i, _ in index.rank(row["query"], depth) if corpus[i].id not in right]
                found.append(RetrievalQuestion(row["query"], right, wrong, known))
    return found


ENCODE_BATCH = 256


class RetrievalScores(NamedTuple):
    """Shares of the queries whose first right passage is at rank 1, or among the first 10; and the mean of 1 / rank."""

    recall1: float
    recall10: float
    mrr: float


def score_rankings(rankings: Sequence[Sequence[str]], rows: Sequence[dict[str, Any]]) -> RetrievalScores:
    """Score rankings of passage ids, each cut where the caller likes; a right passage that is not in one counts as missed."""
    ranks = []
    for ranking, row in zip(rankings, rows, strict=True):
        right = {str(name) for name in row["positives"]}
        ranks.append(next((rank for rank, name in enumerate(ranking, 1) if name in right), 0))
    count = max(1, len(ranks))
    return RetrievalScores(
        sum(rank == 1 for rank in ranks) / count,
        sum(1 <= rank <= 10 for rank in ranks) / count,
        sum(1 / rank for rank in ranks if rank) / count,
    )


def evaluate_retrieval(encoder: TokenEncoder, corpus: PassageList, rows: Sequence[dict[str, Any]]) -> RetrievalScores:
    """Rank all passages for every query by MaxSim without any index."""
    asked = encoder.encode([row["query"] for row in rows], query=True)
    scores = np.zeros((len(rows), len(corpus)), dtype=np.float32)
    for start in range(0, len(corpus), ENCODE_BATCH):
        found = encoder.encode([passage_text(p) for p in corpus[start : start + ENCODE_BATCH]])
        starts = np.cumsum([0, *map(len, found)])[:-1]
        tokens = np.concatenate(found)
        for i, query in enumerate(asked):
            scores[i, start : start + len(found)] = maxsim(query, tokens, starts)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :100]
    return score_rankings([[corpus[j].id for j in row] for row in best.tolist()], rows)
