"""Scores: verdicts against gold labels, and what a border on one value, such as length, would get on the same rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True)
class Score:
    """Counts of verdicts on labelled rows; a hallucination is a positive. An abstention counts as neither right nor wrong label.

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
        """Return the share of hallucinated rows that were found."""
        return _share(self.found, self.positives)

    @property
    def tnr(self) -> float | None:
        """Return the share of faithful rows that were passed."""
        return _share(self.passed, self.negatives)

    @property
    def average(self) -> float | None:
        """Return the mean of TPR and TNR (the papers' Avg Acc)."""
        return None if self.tpr is None or self.tnr is None else (self.tpr + self.tnr) / 2

    @property
    def arp(self) -> float | None:
        """Return the share of hallucinated rows on which the verdict abstained."""
        return _share(self.abstained_positives, self.positives)

    @property
    def arn(self) -> float | None:
        """Return the share of faithful rows on which the verdict abstained."""
        return _share(self.abstained_negatives, self.negatives)


@dataclass(frozen=True)
class ThresholdRule:
    """The rule "hallucinated if the value is over (or under) `at`" that fits some rows best, and its score on them."""

    at: float
    over: bool
    score: Score


def score_labels(rows: Iterable[tuple[bool, bool | None]]) -> Score:
    """Score pairs (gold: hallucinated, said: hallucinated or None for an abstention)."""
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
    """Fit the best border to pairs (gold: hallucinated, value); its score on these same rows is an upper bound.

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
        # both rules leave a text that stands exactly at the border to the faithful side
        under = (lower_positives / positives + 1 - lower_negatives / negatives) / 2
        golds = [gold for _, gold in group]
        lower_positives += sum(golds)
        lower_negatives += len(golds) - sum(golds)
        over = (1 - lower_positives / positives + lower_negatives / negatives) / 2
        best = max(best, (over, value, True), (under, value, False), key=lambda found: found[0])
    _, at, is_over = best
    return ThresholdRule(at, is_over, score_labels((g, v > at if is_over else v < at) for v, g in ordered))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
