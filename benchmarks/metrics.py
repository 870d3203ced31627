"""Metrics with intervals, and what a detector gets that looks at length (and overlap) only."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from knowhalu.text.overlap import coverage
from knowhalu.types import Sample

Array = NDArray[np.float64]


def redrawn(groups: Sequence[str], draws: int, rng: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    """Draw the groups again, `draws` times: row numbers, all rows of a group together."""
    numbers: dict[str, list[int]] = {}
    for i, g in enumerate(groups):
        numbers.setdefault(g, []).append(i)
    members = [np.array(m) for m in numbers.values()]
    for _ in range(draws):
        yield np.concatenate([members[j] for j in rng.integers(0, len(members), len(members))])


def interval(
    metric: Callable[[NDArray[np.intp]], float], groups: Sequence[str], draws: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a metric over row numbers; rows of one group are drawn together."""
    values = [metric(drawn) for drawn in redrawn(groups, draws, np.random.default_rng(seed))]
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)


def auc(faithful: NDArray[np.bool_], scores: Array) -> float:
    """Return ROC-AUC of telling faithful from hallucinated; NaN where only one class is there."""
    return float(roc_auc_score(faithful, scores)) if 0 < faithful.sum() < len(faithful) else float("nan")


def balanced(faithful: NDArray[np.bool_], said: NDArray[np.bool_]) -> float:
    """Return balanced accuracy."""
    return float(balanced_accuracy_score(faithful, said)) if 0 < faithful.sum() < len(faithful) else float("nan")


def trivial(samples: Sequence[Sample], faithful: NDArray[np.bool_], groups: Sequence[str]) -> tuple[float, float]:
    """Return balanced accuracy and AUC of a logistic regression on length and word overlap (5 grouped folds of these rows)."""
    sources = [" ".join([*(d.text for d in s.documents), *s.knowledge]) for s in samples]
    x = np.array(
        [
            [len(s.response.split()), np.log1p(len(s.response.split())), coverage(s.response, t), len(t.split())]
            for s, t in zip(samples, sources, strict=True)
        ]
    )
    scores = np.zeros(len(samples))
    for train, test in GroupKFold(5).split(x, faithful, groups):
        model = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced")).fit(x[train], faithful[train])
        scores[test] = model.predict_proba(x[test])[:, 1]
    return balanced(faithful, scores >= 0.5), auc(faithful, scores)


def length_rule(train: tuple[Array, NDArray[np.bool_]], test: tuple[Array, NDArray[np.bool_]]) -> tuple[float, float]:
    """Fit "more than n words is hallucinated" on one split; return n and the average accuracy on the other."""
    lengths, faithful = train
    best = max(sorted({float(v) for v in lengths}), key=lambda n: balanced(faithful, lengths <= n))
    return best, balanced(test[1], test[0] <= best)
