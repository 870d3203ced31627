"""Figures of said against gold labels, from counts: of all rows at once, or of every resample of a bootstrap at once.

A hallucination is a positive. TPR, TNR and accuracy count an abstention as neither found nor passed. Balanced accuracy and F1
settle an abstention by its probability; ECE and Brier look at the probabilities alone. A figure is NaN where what it needs
is missing: a class, or what only some rows know. Those that need an order of the rows are in `ranked`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
BINS = 10
"""Bins of equal width that ECE parts the probabilities into (Naeini et al. 2015)."""
COUNTED = ("tpr", "tnr", "average", "balanced", "macro_f1", "arp", "arn", "inconclusive", "accuracy", "f1_hallucinated",
           "f1_faithful", "ece", "brier", "span_precision", "span_recall", "span_f1", "wrong_hallucinated",
           "wrong_faithful")  # fmt: skip
"""Figures that follow from counts added up over rows."""
RANKED = ("auc", "pr_auc", "coverage_area")
"""Figures that follow from an order of the rows; see `ranked`."""
FIGURES = (*COUNTED, *RANKED)
BIASED = ("ece",)
"""Figures that chance alone makes larger, in a resample more than in the rows: a bootstrap interval would not hold the truth."""


class Said(NamedTuple):
    """What one method said of some rows: arrays of equal length.

    `gold` and `settled` are true for hallucinated, `abstained` where the verdict left it open, `settled` says what then counts.
    `wrong` counts what a verdict found wrong in its text. `characters`, of shape (rows, 3), counts the characters that it marked
    rightly, that it marked, and that are marked in the gold spans. Both may be left out.
    """

    gold: Flags
    settled: Flags
    abstained: Flags
    probability: Floats
    wrong: Floats | None = None
    characters: Floats | None = None

    def rows(self, chosen: NDArray[np.intp] | Flags) -> "Said":
        """Return some of the rows."""
        return Said(*(None if part is None else part[chosen] for part in self))  # type: ignore[arg-type]

    @property
    def right(self) -> Flags:
        """Tell of every row whether its verdict is right; an abstention is not."""
        found: Flags = (self.gold == self.settled) & ~self.abstained
        return found


def counts(said: Said) -> Floats:
    """Return what is added up to get figures, of every single row: an array of shape (rows, 14 + BINS)."""
    gold, settled, open_, p = said.gold, said.settled, said.abstained, said.probability
    labels = (gold, ~gold, gold & settled & ~open_, ~gold & ~settled & ~open_, gold & open_, ~gold & open_, gold & settled,
              ~gold & settled)  # fmt: skip
    unknown = np.full(len(gold), np.nan)
    wrong = unknown if said.wrong is None else said.wrong
    characters = np.stack([unknown] * 3, axis=1) if said.characters is None else said.characters
    surplus = np.zeros((len(gold), BINS))
    surplus[np.arange(len(gold)), bin_of(p)] = p - gold
    singly = np.stack([*labels, (p - gold) ** 2, np.where(gold, wrong, 0 * wrong), np.where(gold, 0 * wrong, wrong)], axis=1)
    return np.concatenate([singly.astype(np.float64), characters, surplus], axis=1)


def figures(total: Floats) -> dict[str, Floats]:
    """Return the `COUNTED` figures of added-up counts, an array of shape (..., 14 + BINS)."""
    columns = np.moveaxis(total, -1, 0)
    positives, negatives, found, passed, arp, arn, hits, alarms, squares, wrong_positives, wrong_negatives = columns[:11]
    misses, quiet, rows = positives - hits, negatives - alarms, positives + negatives
    tpr, tnr = _share(found, positives), _share(passed, negatives)
    f1, f0 = _f1(hits, misses + alarms, positives), _f1(quiet, misses + alarms, negatives)
    return {
        "tpr": tpr, "tnr": tnr, "average": (tpr + tnr) / 2,
        "balanced": (_share(hits, positives) + _share(quiet, negatives)) / 2, "macro_f1": (f1 + f0) / 2,
        "arp": _share(arp, positives), "arn": _share(arn, negatives), "inconclusive": _share(arp + arn, rows),
        "accuracy": _share(found + passed, rows), "f1_hallucinated": f1, "f1_faithful": f0,
        "ece": _share(np.abs(columns[14:]).sum(axis=0), rows), "brier": _share(squares, rows),
        **_span_figures(*columns[11:14]),
        "wrong_hallucinated": _share(wrong_positives, positives), "wrong_faithful": _share(wrong_negatives, negatives),
    }  # fmt: skip


def bin_of(probability: Floats) -> NDArray[np.intp]:
    """Return the number of the bin of each probability, from 0; a bin has its lower end, the last also 1."""
    return np.minimum((probability * BINS).astype(np.intp), BINS - 1)


def _span_figures(both: Floats, marked: Floats, gold: Floats) -> dict[str, Floats]:
    return {
        "span_precision": _share(both, marked),
        "span_recall": _share(both, gold),
        "span_f1": _f1(both, marked + gold - 2 * both, gold),
    }


def _share(part: Floats, whole: Floats) -> Floats:
    missing = np.asarray(whole) == 0
    return np.where(missing, np.nan, part / np.where(missing, 1.0, whole))


def _f1(right: Floats, wrong: Floats, members: Floats) -> Floats:
    """Return the F1 of a class; NaN where the class has no member, whatever was said."""
    return np.where(members == 0, np.nan, _share(2 * right, 2 * right + wrong))
