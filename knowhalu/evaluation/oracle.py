"""Oracle thresholds: chosen on the very rows that they are scored on, as an upper bound of what a threshold could give.

For one set, the threshold with the best macro F1; for several, the one whose mean of their macro F1 is best (CoNLI, section 4.1.3
and appendix C). Rows whose probability was not measured are left out.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from knowhalu.evaluation.metrics import Floats, Predictions

ALL_FLAGGED = -1.0
"""The threshold that every probability is above."""


class OracleThreshold(NamedTuple):
    """The best threshold of P(hallucinated), above which a text counts as hallucinated, and the macro F1 of each set there."""

    at: float
    macro_f1: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Return the mean over the sets."""
        return sum(self.macro_f1) / len(self.macro_f1)


def oracle_threshold(sets: Sequence[Predictions]) -> OracleThreshold | None:
    """Return the oracle threshold of one set, or the one that several share; of equally good ones the nearest to 0.5.

    Return None where a set has no measured row of one of the labels.
    """
    measured = [one.rows(one.measured) for one in sets]
    if not measured or any(one.gold.all() or not one.gold.any() for one in measured):
        return None
    values = np.unique(np.concatenate([one.probability for one in measured]))
    cuts = np.r_[ALL_FLAGGED, (values[1:] + values[:-1]) / 2, values[-1]]
    scores = np.stack([_macro_f1(one, cuts) for one in measured])
    mean = scores.mean(axis=0)
    best = np.flatnonzero(mean >= mean.max() - 1e-12)
    chosen = best[np.argmin(np.abs(cuts[best] - 0.5))]
    return OracleThreshold(float(cuts[chosen]), tuple(map(float, scores[:, chosen])))


def _macro_f1(predictions: Predictions, cuts: Floats) -> Floats:
    """Return the macro F1 of the rule "above the cut is hallucinated", for every cut."""
    wrong, right = (np.sort(predictions.probability[predictions.gold == label]) for label in (True, False))
    hits, alarms = (len(p) - np.searchsorted(p, cuts, side="right") for p in (wrong, right))
    misses, quiet = len(wrong) - hits, len(right) - alarms
    mistakes = misses + alarms
    score: Floats = hits / (2 * hits + mistakes) + quiet / (2 * quiet + mistakes)
    return score
