"""Borders of P(hallucinated) for a stated goal, and what is reachable where the goal is not."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from knowhalu.calibration.tunable import RowIndices
from knowhalu.errors import InputError
from knowhalu.evaluation.metrics import Floats, Predictions

Aim = Literal["labels", "average", "precision", "abstain", "risk"]
MIN_FLAGGED = 10
"""Rows that a precision must be of, at least: one lucky row is none."""


class Goal(NamedTuple):
    """What is aimed at: the method's own labels, the best average accuracy, a precision, or a share left open at most."""

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
    """P of at most `low` is faithful, over `high` hallucinated, else left open."""

    low: float
    high: float


class CutPoints(NamedTuple):
    """The places where decided rows in order of their P can be parted, and counts over and under each: arrays of equal length.

    At `at[i]`, `size[i]` rows are under; of these `passed[i]` are faithful, and of those over it `found[i]` are hallucinated.
    """

    at: Floats
    size: RowIndices
    passed: RowIndices
    found: RowIndices


def cut_points(said: Predictions) -> CutPoints:
    """Order the rows that are not left open and find all places between two different P, and at both ends."""
    decided = said.rows(~said.abstained)
    order = np.argsort(decided.probability, kind="stable")
    p, gold = decided.probability[order], decided.gold[order]
    size = np.r_[0, np.flatnonzero(p[1:] > p[:-1]) + 1, len(p)].astype(np.intp)
    size = np.unique(size)
    under = np.r_[-1.0 if len(p) and p[0] == 0 else 0.0, p][size]  # of a P of 0, nothing but -1 is under
    over = np.r_[p, 1.0][size]
    hallucinated = np.r_[0, np.cumsum(gold)]
    return CutPoints((under + over) / 2, size, size - hallucinated[size], hallucinated[-1] - hallucinated[size])


def fit_decision_thresholds(goal: Goal, said: Predictions) -> DecisionThresholds | None:
    """Return the borders that reach a goal on these rows, None where labels are left as they are.

    Raises InputError, saying what is reachable, where none do.
    """
    if goal.aim not in _FITTERS:
        return None
    if said.gold.all() or not said.gold.any():
        raise InputError("borders need rows of both labels. Give more rows.")
    if said.abstained.all():
        raise InputError("the method left all rows open, so no border can be chosen. Give rows that have sources.")
    return _FITTERS[goal.aim](goal.value, said, cut_points(said))


def _average(value: float, said: Predictions, at: CutPoints) -> DecisionThresholds:
    reached = at.found / said.gold.sum() + at.passed / (~said.gold).sum()
    best = _nearest_to_half(at.at, reached >= reached.max() - 1e-12)
    return DecisionThresholds(best, best)


def _precision(value: float, said: Predictions, at: CutPoints) -> DecisionThresholds:
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
            f"flagged rows, which finds {at.found[best] / said.gold.sum():.1%} of the hallucinated. Ask for that, or for less."
        )
    first = int(np.flatnonzero(reached >= value)[0])
    return DecisionThresholds(float(at.at[first]), float(at.at[first]))


def _abstain(value: float, said: Predictions, at: CutPoints) -> DecisionThresholds:
    """Leave open the run of neighbouring rows without which the others are decided best, as many as may be."""
    room = int(np.floor(value * len(said.gold) + 1e-9)) - int(said.abstained.sum())
    if room < 0:
        raise InputError(
            f"the method itself leaves {said.abstained.mean():.1%} of these rows open, more than {value:.1%}. "
            "Allow more by --max-abstain, or take another goal."
        )
    ends = np.searchsorted(at.size, at.size + room, side="right") - 1
    decided = said.gold[~said.abstained]
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
    """Return that of equally good borders which is nearest to 0.5: the least surprise."""
    ok = at[among]
    return float(ok[np.abs(ok - 0.5).argmin()])


_FITTERS: dict[Aim, Callable[[float, Predictions, CutPoints], DecisionThresholds]] = {
    "average": _average,
    "precision": _precision,
    "abstain": _abstain,
}
