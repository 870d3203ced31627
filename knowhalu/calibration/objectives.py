"""Choose thresholds of P(hallucinated) for a goal, and report the reachable value where the goal is out of reach."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from knowhalu.calibration.tunable import RowIndices
from knowhalu.errors import InputError
from knowhalu.evaluation.metrics import Floats, Predictions

Aim = Literal["labels", "average", "precision", "abstain", "risk"]
MIN_FLAGGED = 10
"""Flagged rows that a precision needs at least."""


class Goal(NamedTuple):
    """A goal: the method's labels, the best average accuracy, a precision, or a limit of abstentions or risk."""

    aim: Aim
    value: float = 0.0

    def __str__(self) -> str:
        """Return the goal in words."""
        return {
            "labels": "the method's own labels",
            "average": "the best average accuracy",
            "precision": f"a precision of {self.value:g} of what is flagged",
            "abstain": f"the best average accuracy of what is decided, with {self.value:g} left open at most",
            "risk": f"at most {self.value:g} of what a stage decides wrong",
        }[self.aim]


class DecisionThresholds(NamedTuple):
    """P of at most `low` is faithful, over `high` hallucinated, and inconclusive between."""

    low: float
    high: float


class CutPoints(NamedTuple):
    """The possible thresholds of decided rows ordered by P, with counts on both sides: arrays of equal length.

    `size[i]` rows are under `at[i]`; of these `passed[i]` are faithful, and of those over it `found[i]` are hallucinated.
    """

    at: Floats
    size: RowIndices
    passed: RowIndices
    found: RowIndices


def cut_points(predictions: Predictions) -> CutPoints:
    """Return all thresholds between different P of the decided rows, and at both ends."""
    decided = predictions.rows(~predictions.abstained)
    order = np.argsort(decided.probability, kind="stable")
    p, gold = decided.probability[order], decided.gold[order]
    size = np.r_[0, np.flatnonzero(p[1:] > p[:-1]) + 1, len(p)].astype(np.intp)
    size = np.unique(size)
    under = np.r_[-1.0 if len(p) and p[0] == 0 else 0.0, p][size]  # only -1 is under a P of 0
    over = np.r_[p, 1.0][size]
    hallucinated = np.r_[0, np.cumsum(gold)]
    return CutPoints((under + over) / 2, size, size - hallucinated[size], hallucinated[-1] - hallucinated[size])


def fit_decision_thresholds(goal: Goal, predictions: Predictions) -> DecisionThresholds | None:
    """Return the thresholds that reach a goal on these rows, None where the labels stay as they are.

    Raises InputError with the reachable value where none do.
    """
    if goal.aim not in _FITTERS:
        return None
    if predictions.gold.all() or not predictions.gold.any():
        raise InputError("thresholds need rows of both labels. Give more rows.")
    if predictions.abstained.all():
        raise InputError("the method was inconclusive on all rows, so no threshold can be chosen. Give rows that have sources.")
    return _FITTERS[goal.aim](goal.value, predictions, cut_points(predictions))


def _average(value: float, predictions: Predictions, at: CutPoints) -> DecisionThresholds:
    reached = at.found / predictions.gold.sum() + at.passed / (~predictions.gold).sum()
    best = _nearest_to_half(at.at, reached >= reached.max() - 1e-12)
    return DecisionThresholds(best, best)


def _precision(value: float, predictions: Predictions, at: CutPoints) -> DecisionThresholds:
    flagged = int(at.size[-1]) - at.size
    known = flagged >= MIN_FLAGGED
    if not known.any():
        raise InputError(
            f"a precision is of {MIN_FLAGGED} flagged rows at least, and only {flagged[0]} are decided. Give more rows."
        )
    reached = np.where(known, at.found / np.maximum(flagged, 1), -1.0)
    if reached.max() < value:
        best = int(reached.argmax())
        raise InputError(
            f"a precision of {value:g} cannot be reached on these rows: the highest is {reached[best]:.3f}, of {flagged[best]:,} "
            f"flagged rows, and {at.found[best] / predictions.gold.sum():.1%} of the hallucinated are among them. Lower it."
        )
    first = int(np.flatnonzero(reached >= value)[0])
    return DecisionThresholds(float(at.at[first]), float(at.at[first]))


def _abstain(value: float, predictions: Predictions, at: CutPoints) -> DecisionThresholds:
    """Abstain on the neighbouring rows without which the others are decided best, as many as are allowed."""
    room = int(np.floor(value * len(predictions.gold) + 1e-9)) - int(predictions.abstained.sum())
    if room < 0:
        raise InputError(
            f"the method itself leaves {predictions.abstained.mean():.1%} of these rows open, more than {value:.1%}. "
            "Allow more by --max-abstain, or take another goal."
        )
    ends = np.searchsorted(at.size, at.size + room, side="right") - 1
    decided = predictions.gold[~predictions.abstained]
    positives, negatives = int(decided.sum()), int((~decided).sum())
    flagged = at.found[ends]
    open_positives = at.found - flagged
    open_negatives = (at.size[ends] - at.size) - open_positives
    with np.errstate(divide="ignore", invalid="ignore"):
        reached = flagged / (positives - open_positives) + at.passed / (negatives - open_negatives)
    if np.isnan(reached).all():
        raise InputError(f"leaving {value:.1%} open leaves no row of one label. Allow less by --max-abstain, or give more rows.")
    best = _best(at.at, reached, ends)
    return DecisionThresholds(float(at.at[best]), float(at.at[ends[best]]))


def _best(at: Floats, reached: Floats, ends: RowIndices) -> int:
    ok = np.flatnonzero(reached >= np.nanmax(reached) - 1e-12)
    return int(ok[np.abs((at[ok] + at[ends[ok]]) / 2 - 0.5).argmin()])


def _nearest_to_half(at: Floats, among: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    """Return the threshold nearest to 0.5 among equally good ones."""
    ok = at[among]
    return float(ok[np.abs(ok - 0.5).argmin()])


_FITTERS: dict[Aim, Callable[[float, Predictions, CutPoints], DecisionThresholds]] = {
    "average": _average,
    "precision": _precision,
    "abstain": _abstain,
}
