"""Choose settings, scaling and thresholds for a goal on labelled rows, for all of them and by set, with cross-validation.

Thresholds are of P(hallucinated). Where a goal is out of reach, the error names the reachable value.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from knowhalu.calibration.measures import group_folds
from knowhalu.calibration.tunable import RowIndices, Tunable, make_predictions
from knowhalu.errors import InputError
from knowhalu.evaluation.metrics import Flags, Floats, Predictions
from knowhalu.methods.common.calibrated import DecisionRule, ProbabilityScaling, ScalingKind, log_odds

Aim = Literal["labels", "average", "precision", "abstain", "risk"]
MIN_FLAGGED = 10
"""Flagged rows that a precision needs at least."""
MIN_ROWS_PER_LABEL = 10
"""Rows of each label that a set needs for values of its own."""
MAX_NEWTON_STEPS, NEWTON_TOLERANCE = 100, 1e-10
SCALING_DIGITS = 6


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
    size = np.unique(np.r_[0, np.flatnonzero(p[1:] > p[:-1]) + 1, len(p)].astype(np.intp))
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
    best = float(at.at[_best(at.at, at.at, reached)])
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
    best = _best(at.at, at.at[ends], reached)
    return DecisionThresholds(float(at.at[best]), float(at.at[ends[best]]))


def _best(low: Floats, high: Floats, reached: Floats) -> int:
    """Return the index of the highest value, of equally high ones that whose thresholds are nearest to 0.5."""
    equal = np.flatnonzero(reached >= np.nanmax(reached) - 1e-12)
    return int(equal[np.abs((low[equal] + high[equal]) / 2 - 0.5).argmin()])


_FITTERS: dict[Aim, Callable[[float, Predictions, CutPoints], DecisionThresholds]] = {
    "average": _average, "precision": _precision, "abstain": _abstain,
}  # fmt: skip


def fit_scaling(kind: ScalingKind, probability: Floats, gold: Flags) -> ProbabilityScaling:
    """Fit a scaling of one kind to probabilities; `gold` is true for hallucinated.

    Raises InputError where a label is missing, or where higher probabilities do not go with more hallucinations.
    """
    if kind == "none":
        return ProbabilityScaling()
    if gold.all() or not gold.any():
        raise InputError(f"{kind} scaling needs rows of both labels. Give more rows, or --scaling none.")
    if kind == "isotonic":
        x, y = fit_isotonic(probability, gold.astype(float))
        return ProbabilityScaling(kind=kind, x=tuple(x.tolist()), y=tuple(y.round(SCALING_DIGITS).tolist()))
    slope, shift = fit_logistic(log_odds(probability), gold, shifts=kind == "platt")
    if round(slope, SCALING_DIGITS) <= 0:
        raise InputError("P(hallucinated) is no higher where rows are hallucinated, so no scaling helps. Give --scaling none.")
    return ProbabilityScaling(kind=kind, slope=round(slope, SCALING_DIGITS), shift=round(shift, SCALING_DIGITS))


def fit_logistic(z: Floats, gold: Flags, *, shifts: bool) -> tuple[float, float]:
    """Return slope and shift of the maximum-likelihood sigmoid(slope x z + shift), by Newton's method.

    The targets are slightly inside 0 and 1, so that separable classes have a solution (Platt 1999, section 2.2).
    """
    positives, negatives = gold.sum(), (~gold).sum()
    target = np.where(gold, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    x = np.stack([z, np.ones_like(z)], axis=1)[:, : 1 + shifts]
    w = np.zeros(1 + shifts)
    for _ in range(MAX_NEWTON_STEPS):
        p = 1 / (1 + np.exp(-(x @ w)))
        gradient, bend = x.T @ (p - target), (x * (p * (1 - p))[:, None]).T @ x
        step = np.linalg.lstsq(bend + NEWTON_TOLERANCE * np.eye(len(w)), gradient, rcond=None)[0]
        w = w - step
        if np.abs(step).max() < NEWTON_TOLERANCE:
            break
    return float(w[0]), float(w[1]) if shifts else 0.0


def fit_isotonic(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the ends of the constant pieces of the isotonic regression (pool adjacent violators)."""
    from scipy.optimize import isotonic_regression

    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    fit = isotonic_regression(np.bincount(inverse, weights=y) / counts, weights=counts)
    ends = np.unique(np.r_[fit.blocks[:-1], fit.blocks[1:] - 1])
    return values[ends], fit.x[ends]


class TunedValues(NamedTuple):
    """The settings of the method, and the rule that decides by its probability."""

    settings: dict[str, Any]
    decision: DecisionRule


class TuningResult(NamedTuple):
    """The values for all rows, and for sets with values of their own."""

    whole: TunedValues
    sets: dict[str, TunedValues]


class Tuner(NamedTuple):
    """Stored verdicts and a goal; `sets` has the set of each row, where sets get values of their own."""

    tuned: Tunable
    gold: Flags
    groups: RowIndices
    goal: Goal
    scaling: ScalingKind
    sets: tuple[str, ...] | None = None

    def choose(self, rows: RowIndices) -> TuningResult:
        """Choose the values on some rows; raises InputError where the goal cannot be reached there."""
        by_set = {}
        for name, members in self.members(rows).items():
            try:
                by_set[name] = self._chosen(members)
            except InputError as error:
                raise InputError(f"set {name!r}: {error}") from error
        return TuningResult(self._chosen(rows), by_set)

    def members(self, rows: RowIndices) -> dict[str, RowIndices]:
        """Return the rows of every set with enough rows of both labels."""
        if self.sets is None:
            return {}
        named = np.array(self.sets)[rows]
        members = {str(name): rows[named == name] for name in np.unique(named) if name}
        return {
            n: m for n, m in members.items() if min(int(self.gold[m].sum()), int((~self.gold[m]).sum())) >= MIN_ROWS_PER_LABEL
        }  # fmt: skip

    def predict(self, choice: TuningResult) -> Predictions:
        """Return the predictions for all rows with these values."""
        by_set = [(mask, self._applied(chosen)) for mask, chosen in self.by_rows(choice)]
        return join_predictions([(np.ones(len(self.gold), np.bool_), self._applied(choice.whole)), *by_set])

    def by_rows(self, choice: TuningResult) -> list[tuple[Flags, TunedValues]]:
        """Return the values of each set with its rows."""
        return [(np.array(self.sets) == name, chosen) for name, chosen in choice.sets.items()]

    def crossed(self) -> list[tuple[Flags, TuningResult]]:
        """Return every fold of whole groups with the values chosen on the others; raises InputError where there is one group."""
        folds = group_folds(self.groups)
        if not folds:
            raise InputError("all rows are of one group, so none is left to test on")
        return [(held, self.choose(np.flatnonzero(~held))) for held in folds]

    def _chosen(self, rows: RowIndices) -> TunedValues:
        settings = self.tuned.fit(rows)
        predictions = self.tuned.predict(settings).rows(rows)
        scaling = fit_scaling(self.scaling, predictions.probability, predictions.gold)
        thresholds = fit_decision_thresholds(self.goal, predictions._replace(probability=scaling(predictions.probability)))
        if thresholds is None:
            return TunedValues(settings, DecisionRule(scaling=scaling))
        return TunedValues(settings, DecisionRule(scaling=scaling, low=thresholds.low, high=thresholds.high))

    def _applied(self, chosen: TunedValues) -> Predictions:
        return decide_predictions(self.tuned.predict(chosen.settings), chosen.decision)


def join_predictions(parts: Sequence[tuple[Flags, Predictions]]) -> Predictions:
    """Join several predictions for all rows, each for some of the rows; the later one takes precedence."""
    joined = parts[0][1]
    for mask, predictions in parts[1:]:
        joined = Predictions(*(np.where(mask, b, a) for a, b in zip(joined[:4], predictions[:4], strict=True)))
    return joined


def decide_predictions(predictions: Predictions, decision: DecisionRule) -> Predictions:
    """Scale and decide the predictions of many rows, like `apply_decision_rule` for one verdict."""
    p: Floats = decision.scaling(predictions.probability)
    if decision.low is None or decision.high is None:
        return make_predictions(predictions.gold, predictions.settled & ~predictions.abstained, predictions.abstained, p)
    left = predictions.abstained | ((decision.low < p) & (p <= decision.high))
    return make_predictions(predictions.gold, p > decision.high, left, p)
