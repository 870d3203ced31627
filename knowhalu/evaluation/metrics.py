"""Metrics of predictions against gold labels, for all rows at once or for every resample of a bootstrap.

A hallucination is a positive. TPR, TNR and accuracy count an abstention as an error of neither kind, and as no hit. Balanced
accuracy and F1 decide an abstention by its probability, as faithful where it has none; ECE and Brier use the probabilities
alone. Probabilities that were not measured are NaN: metrics of probabilities are those of the other rows. A metric is NaN where
its input is missing, such as a class. Metrics of the order of the rows are in `ranking_metrics`.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
ECE_BINS = 10
"""Bins of equal width for the expected calibration error (Naeini et al. 2015)."""
ADDITIVE_METRICS = ("tpr", "tnr", "average", "balanced", "macro_f1", "arp", "arn", "inconclusive", "accuracy", "f1_hallucinated",
           "f1_faithful", "ece", "brier", "span_precision", "span_recall", "span_f1", "wrong_hallucinated",
           "wrong_faithful")  # fmt: skip
"""Metrics that follow from counts summed over rows."""
RANKING_METRICS = ("auc", "pr_auc", "coverage_area")
"""Metrics of the order of the rows; see `ranking_metrics`."""
METRICS = (*ADDITIVE_METRICS, *RANKING_METRICS)
UNMEASURED_NOTE = (
    "Rows without a probability, as a server without log-probabilities or a batch of labels leaves them, are not in ROC-AUC, "
    "PR-AUC, ECE, Brier, accuracy over coverage and the curves of their method ({}); their labels count in all other figures. "
    "--set llm.votes=20 measures probabilities by votes."
)
BIASED_METRICS = ("ece",)
"""Metrics that noise increases, in a resample more than in the rows: a bootstrap interval would miss the true value."""


class Predictions(NamedTuple):
    """The predictions of one method for some rows: arrays of equal length.

    `gold` and `settled` are true for hallucinated; `abstained` marks inconclusive verdicts, which `settled` decides by their
    probability. `wrong` counts the errors that a verdict found. `characters`, of shape (rows, 3), counts the characters flagged
    correctly, flagged, and in the gold spans. Both may be None.
    """

    gold: Flags
    settled: Flags
    abstained: Flags
    probability: Floats
    wrong: Floats | None = None
    characters: Floats | None = None

    def rows(self, chosen: NDArray[np.intp] | Flags) -> "Predictions":
        """Return some of the rows."""
        return Predictions(*(None if part is None else part[chosen] for part in self))  # type: ignore[arg-type]

    @property
    def right(self) -> Flags:
        """Return which verdicts are right; an abstention is not."""
        flags: Flags = (self.gold == self.settled) & ~self.abstained
        return flags

    @property
    def measured(self) -> Flags:
        """Return which rows have a probability."""
        return ~np.isnan(self.probability)


def unmeasured_notes(predictions: Mapping[str, Predictions]) -> list[str]:
    """Return a note on the methods with rows that have no probability, with their number; no note where there are none."""
    counts = {name: (int((~one.measured).sum()), len(one.gold)) for name, one in predictions.items()}
    counted = ", ".join(f"{name} {n:,} of {rows:,}" for name, (n, rows) in counts.items() if n)
    return [UNMEASURED_NOTE.format(counted)] if counted else []


def row_counts(predictions: Predictions) -> Floats:
    """Return the counts of every row, whose sums give the metrics: an array of shape (rows, 15 + ECE_BINS)."""
    gold, settled, open_, p = predictions.gold, predictions.settled, predictions.abstained, predictions.probability
    labels = (gold, ~gold, gold & settled & ~open_, ~gold & ~settled & ~open_, gold & open_, ~gold & open_, gold & settled,
              ~gold & settled)  # fmt: skip
    unknown = np.full(len(gold), np.nan)
    wrong = unknown if predictions.wrong is None else predictions.wrong
    characters = np.stack([unknown] * 3, axis=1) if predictions.characters is None else predictions.characters
    measured, surplus = predictions.measured, np.zeros((len(gold), ECE_BINS))
    p = np.where(measured, p, gold)  # which adds nothing to the errors
    surplus[np.arange(len(gold)), bin_numbers(p)] = p - gold
    singly = np.stack([*labels, (p - gold) ** 2, np.where(gold, wrong, 0 * wrong), np.where(gold, 0 * wrong, wrong)], axis=1)
    return np.concatenate([singly.astype(np.float64), characters, surplus, measured[:, None]], axis=1)


def metrics_from_counts(total: Floats) -> dict[str, Floats]:
    """Return the `ADDITIVE_METRICS` of summed counts, an array of shape (..., 15 + ECE_BINS)."""
    columns = np.moveaxis(total, -1, 0)
    positives, negatives, found, passed, arp, arn, hits, alarms, squares, wrong_positives, wrong_negatives = columns[:11]
    misses, quiet, rows = positives - hits, negatives - alarms, positives + negatives
    tpr, tnr = safe_ratio(found, positives), safe_ratio(passed, negatives)
    f1, f0 = _f1(hits, misses + alarms, positives), _f1(quiet, misses + alarms, negatives)
    return {
        "tpr": tpr, "tnr": tnr, "average": (tpr + tnr) / 2,
        "balanced": (safe_ratio(hits, positives) + safe_ratio(quiet, negatives)) / 2, "macro_f1": (f1 + f0) / 2,
        "arp": safe_ratio(arp, positives), "arn": safe_ratio(arn, negatives), "inconclusive": safe_ratio(arp + arn, rows),
        "accuracy": safe_ratio(found + passed, rows), "f1_hallucinated": f1, "f1_faithful": f0,
        "ece": safe_ratio(np.abs(columns[14:-1]).sum(axis=0), columns[-1]), "brier": safe_ratio(squares, columns[-1]),
        **_span_figures(*columns[11:14]),
        "wrong_hallucinated": safe_ratio(wrong_positives, positives), "wrong_faithful": safe_ratio(wrong_negatives, negatives),
    }  # fmt: skip


def bin_numbers(probability: Floats) -> NDArray[np.intp]:
    """Return the bin of each probability, from 0; a bin includes its lower end, the last also 1."""
    return np.minimum((probability * ECE_BINS).astype(np.intp), ECE_BINS - 1)


def _span_figures(both: Floats, marked: Floats, gold: Floats) -> dict[str, Floats]:
    return {
        "span_precision": safe_ratio(both, marked),
        "span_recall": safe_ratio(both, gold),
        "span_f1": _f1(both, marked + gold - 2 * both, gold),
    }


def safe_ratio(part: Floats, whole: Floats) -> Floats:
    """Return part / whole, NaN where the whole is 0."""
    missing = np.asarray(whole) == 0
    return np.where(missing, np.nan, part / np.where(missing, 1.0, whole))


def _f1(right: Floats, wrong: Floats, members: Floats) -> Floats:
    """Return the F1 of a class; NaN where the class has no member."""
    return np.where(members == 0, np.nan, safe_ratio(2 * right, 2 * right + wrong))


Weights = NDArray[np.number]


class RankingSteps(NamedTuple):
    """An order in steps of equal value: rows of the step, marked rows of it, and both cumulated; arrays of shape (..., steps)."""

    size: Floats
    gain: Floats
    rows: Floats
    marked: Floats


def ranking_metrics(
    predictions: Predictions, weights: Weights | None = None, names: Collection[str] = RANKING_METRICS
) -> dict[str, Floats]:
    """Return these `RANKING_METRICS` for integer row weights of shape (..., rows); without weights, each row counts once.

    Rows without a probability have no place in the order, and are left out.
    """
    w = np.ones(len(predictions.gold), dtype=np.uint8) if weights is None else weights
    if not (measured := predictions.measured).all():
        predictions, w = predictions.rows(measured), w[..., measured]
    if not len(predictions.gold):
        return {name: np.full(w.shape[:-1], np.nan) for name in names}
    metrics = {}
    if "auc" in names or "pr_auc" in names:
        by_probability = _steps(-predictions.probability, predictions.gold, w)
        metrics = {"auc": _auc(by_probability), "pr_auc": _average_precision(by_probability)}
    if "coverage_area" in names:
        metrics["coverage_area"] = _coverage_area(
            _steps(-prediction_confidence(predictions), predictions.gold == predictions.settled, w)
        )
    return {name: value for name, value in metrics.items() if name in names}


def prediction_confidence(predictions: Predictions) -> Floats:
    """Return the confidence of each verdict: the distance of its probability from 0.5, and -1 where it abstains."""
    confidence: Floats = np.where(predictions.abstained, -1.0, np.abs(predictions.probability - 0.5))
    return confidence


def _steps(value: Floats, marked: Flags, weights: Weights) -> RankingSteps:
    """Sum the weights of all rows and of the marked rows in the order of a value."""
    order = np.argsort(value, kind="stable")
    ordered = value[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    size = np.take(weights, order, axis=-1).astype(np.float64)
    gain = size * marked[order]
    if len(starts) < len(order):
        size, gain = (np.add.reduceat(part, starts, axis=-1) for part in (size, gain))
    return RankingSteps(size, gain, np.cumsum(size, axis=-1), np.cumsum(gain, axis=-1))


def _auc(steps: RankingSteps) -> Floats:
    """Return the share of pairs in which the marked row comes first, a tie counting half."""
    positives, total = steps.marked[..., -1], steps.rows[..., -1]
    first = _product(steps.size - steps.gain, steps.marked) - _product(steps.size - steps.gain, steps.gain) / 2
    return safe_ratio(first, positives * (total - positives))


def _average_precision(steps: RankingSteps) -> Floats:
    """Return the sum of precision times the gain in recall, without interpolation."""
    return safe_ratio(_product(steps.gain, steps.marked / np.maximum(steps.rows, 1)), steps.marked[..., -1])


def _coverage_area(right: RankingSteps) -> Floats:
    """Return the mean accuracy of the k most confident verdicts over all k; inside a tie, over all its orders.

    With a rows (r of them right) before a tie and b after it, of which a share s is right, the expected accuracies of its
    k = a+1 ... b add up to (r - a s) (H(b) - H(a)) + (b - a) s, H being the harmonic numbers.
    """
    total = right.rows[..., -1]
    harmonic = np.r_[0.0, np.cumsum(1 / np.arange(1, int(np.max(total, initial=0)) + 1))]
    after, before = right.rows.astype(np.intp), (right.rows - right.size).astype(np.intp)
    share = right.gain / np.maximum(right.size, 1)
    offset = right.marked - right.gain - before * share
    return safe_ratio(_product(offset, harmonic[after] - harmonic[before]) + right.marked[..., -1], total)


def _product(one: Floats, other: Floats) -> Floats:
    product: Floats = np.einsum("...i,...i->...", one, other)
    return product


@dataclass(frozen=True)
class Score:
    """Counts of verdicts on labelled rows; a hallucination is a positive, and an abstention is neither label.

    Rates are None where no row of that gold label has a verdict.
    """

    positives: int = 0
    negatives: int = 0
    found: int = 0
    passed: int = 0
    abstained_positives: int = 0
    abstained_negatives: int = 0

    @property
    def tpr(self) -> float | None:
        """Return the share of hallucinated rows with the verdict hallucinated."""
        return _rate(self.found, self.positives)

    @property
    def tnr(self) -> float | None:
        """Return the share of faithful rows with the verdict faithful."""
        return _rate(self.passed, self.negatives)

    @property
    def average(self) -> float | None:
        """Return the mean of TPR and TNR (the papers' Avg Acc)."""
        return None if self.tpr is None or self.tnr is None else (self.tpr + self.tnr) / 2

    @property
    def arp(self) -> float | None:
        """Return the share of hallucinated rows with an abstention."""
        return _rate(self.abstained_positives, self.positives)

    @property
    def arn(self) -> float | None:
        """Return the share of faithful rows with an abstention."""
        return _rate(self.abstained_negatives, self.negatives)


@dataclass(frozen=True)
class ThresholdRule:
    """The best rule "hallucinated if the value is over (or under) `at`" on some rows, and its score on them."""

    at: float
    over: bool
    score: Score


def score_labels(rows: Iterable[tuple[bool, bool | None]]) -> Score:
    """Score pairs of a gold label and a verdict: true for hallucinated, None for an abstention."""
    counts = dict.fromkeys(((g, s) for g in (True, False) for s in (True, False, None)), 0)
    for row in rows:
        counts[row] += 1
    return Score(
        positives=sum(n for (gold, _), n in counts.items() if gold),
        negatives=sum(n for (gold, _), n in counts.items() if not gold),
        found=counts[True, True],
        passed=counts[False, False],
        abstained_positives=counts[True, None],
        abstained_negatives=counts[False, None],
    )


def fit_threshold_rule(rows: Iterable[tuple[bool, float]]) -> ThresholdRule | None:
    """Fit the best threshold to pairs of a gold label (true: hallucinated) and a value; its score is an upper bound.

    Return None where one of the two gold labels is missing.
    """
    ordered = sorted((value, gold) for gold, value in rows)
    positives = sum(gold for _, gold in ordered)
    negatives = len(ordered) - positives
    if not positives or not negatives:
        return None
    best = (-1.0, 0.0, True)
    lower_positives = lower_negatives = 0
    for value, group in groupby(ordered, key=lambda row: row[0]):
        # both rules call a text with exactly the threshold faithful
        under = (lower_positives / positives + 1 - lower_negatives / negatives) / 2
        golds = [gold for _, gold in group]
        lower_positives += sum(golds)
        lower_negatives += len(golds) - sum(golds)
        over = (1 - lower_positives / positives + lower_negatives / negatives) / 2
        best = max(best, (over, value, True), (under, value, False), key=lambda rule: rule[0])
    _, at, is_over = best
    return ThresholdRule(at, is_over, score_labels((g, v > at if is_over else v < at) for v, g in ordered))


def _rate(part: int, whole: int) -> float | None:
    return part / whole if whole else None
