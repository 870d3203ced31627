"""Figures of said against gold labels, from counts: of all rows at once, or of every resample of a bootstrap at once.

A hallucination is a positive. TPR and TNR count an abstention as neither found nor passed. Balanced accuracy and macro F1
settle an abstention by its probability, ROC-AUC looks at the probabilities alone. A figure is NaN where a class that it needs
is missing.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
COUNTS = ("positives", "negatives", "found", "passed", "abstained_positives", "abstained_negatives", "hits", "alarms")
FIGURES = ("tpr", "tnr", "average", "balanced", "macro_f1", "auc", "arp", "arn")


class Said(NamedTuple):
    """What one method said of some rows: arrays of equal length.

    `gold` and `settled` are true for hallucinated, `abstained` where the verdict left it open, `settled` says what then counts.
    """

    gold: Flags
    settled: Flags
    abstained: Flags
    probability: Floats

    def rows(self, chosen: NDArray[np.intp] | Flags) -> "Said":
        """Return some of the rows."""
        return Said(self.gold[chosen], self.settled[chosen], self.abstained[chosen], self.probability[chosen])

    @property
    def right(self) -> Flags:
        """Tell of every row whether its verdict is right; an abstention is not."""
        found: Flags = (self.gold == self.settled) & ~self.abstained
        return found


def counts(said: Said) -> Floats:
    """Return the `COUNTS` of every single row: an array of shape (rows, 8) of ones and zeros."""
    gold, settled, open_ = said.gold, said.settled, said.abstained
    columns = (gold, ~gold, gold & settled & ~open_, ~gold & ~settled & ~open_, gold & open_, ~gold & open_,
               gold & settled, ~gold & settled)  # fmt: skip
    return np.stack(columns, axis=1).astype(np.float64)


def figures(total: Floats) -> dict[str, Floats]:
    """Return all figures but ROC-AUC of added-up counts, an array of shape (..., 8)."""
    positives, negatives, found, passed, arp, arn, hits, alarms = np.moveaxis(total, -1, 0)
    misses, quiet = positives - hits, negatives - alarms
    tpr, tnr = _share(found, positives), _share(passed, negatives)
    f1 = (_f1(hits, misses + alarms, positives) + _f1(quiet, misses + alarms, negatives)) / 2
    return {
        "tpr": tpr, "tnr": tnr, "average": (tpr + tnr) / 2,
        "balanced": (_share(hits, positives) + _share(quiet, negatives)) / 2, "macro_f1": f1,
        "arp": _share(arp, positives), "arn": _share(arn, negatives),
    }  # fmt: skip


def auc(said: Said, weights: Floats | None = None) -> Floats:
    """Return the ROC-AUC of the probabilities, ties counted half, for row weights of shape (..., rows); 1 each without."""
    w = np.ones(len(said.gold)) if weights is None else weights
    if not len(said.gold):
        return np.full(w.shape[:-1], np.nan)
    order = np.argsort(said.probability, kind="stable")
    p, gold = said.probability[order], said.gold[order]
    starts = np.flatnonzero(np.r_[True, p[1:] != p[:-1]])
    ordered = w[..., order]
    positives = np.add.reduceat(ordered * gold, starts, axis=-1)
    negatives = np.add.reduceat(ordered * ~gold, starts, axis=-1)
    below = np.cumsum(negatives, axis=-1) - negatives / 2
    return _share((positives * below).sum(axis=-1), positives.sum(axis=-1) * negatives.sum(axis=-1))


def _share(part: Floats, whole: Floats) -> Floats:
    missing = np.asarray(whole) == 0
    return np.where(missing, np.nan, part / np.where(missing, 1.0, whole))


def _f1(right: Floats, wrong: Floats, members: Floats) -> Floats:
    """Return the F1 of a class; NaN where the class has no member, whatever was said."""
    return np.where(members == 0, np.nan, _share(2 * right, 2 * right + wrong))
