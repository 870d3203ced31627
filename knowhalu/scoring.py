"""Scores: verdicts against gold labels, and what length alone would get on the same rows."""

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
class LengthRule:
    """The rule "hallucinated if more (or fewer) than `words` words" that fits some rows best, and its score on them."""

    words: int
    longer: bool
    score: Score

    def __str__(self) -> str:
        """Return the rule in words."""
        return f"{'more' if self.longer else 'fewer'} than {self.words} words"


def score(rows: Iterable[tuple[bool, bool | None]]) -> Score:
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


def length_rule(rows: Iterable[tuple[bool, int]]) -> LengthRule | None:
    """Fit the best length rule to pairs (gold: hallucinated, words), on these same rows: an upper bound of what length gives.

    Return None where one of the two gold labels is missing.
    """
    ordered = sorted((words, gold) for gold, words in rows)
    positives = sum(gold for _, gold in ordered)
    negatives = len(ordered) - positives
    if not positives or not negatives:
        return None
    best = (-1.0, 0, True)
    short_positives = short_negatives = 0
    for words, group in groupby(ordered, key=lambda row: row[0]):
        # both rules leave a text of exactly `words` words to the faithful side
        shorter = (short_positives / positives + 1 - short_negatives / negatives) / 2
        golds = [gold for _, gold in group]
        short_positives += sum(golds)
        short_negatives += len(golds) - sum(golds)
        longer = (1 - short_positives / positives + short_negatives / negatives) / 2
        best = max(best, (longer, words, True), (shorter, words, False), key=lambda found: found[0])
    _, words, is_longer = best
    return LengthRule(words, is_longer, score((g, w > words if is_longer else w < words) for w, g in ordered))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
