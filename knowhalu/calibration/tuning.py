"""Choose settings and thresholds on labelled rows, for all of them and by set, with cross-validation."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from knowhalu.calibration.measures import group_folds
from knowhalu.calibration.objectives import Goal, fit_decision_thresholds
from knowhalu.calibration.scaling import fit_scaling
from knowhalu.calibration.tunable import RowIndices, Tunable, make_predictions
from knowhalu.errors import InputError
from knowhalu.evaluation.metrics import Flags, Floats, Predictions
from knowhalu.methods.common.calibrated import DecisionRule, ScalingKind

MIN_ROWS_PER_LABEL = 10
"""Rows of each label that a set needs for values of its own."""


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
        own = {}
        for name, members in self.members(rows).items():
            try:
                own[name] = self._chosen(members)
            except InputError as error:
                raise InputError(f"set {name!r}: {error}") from error
        return TuningResult(self._chosen(rows), own)

    def members(self, rows: RowIndices) -> dict[str, RowIndices]:
        """Return the rows of every set with enough rows of both labels."""
        if self.sets is None:
            return {}
        named = np.array(self.sets)[rows]
        found = {str(name): rows[named == name] for name in np.unique(named) if name}
        return {
            n: m for n, m in found.items() if min(int(self.gold[m].sum()), int((~self.gold[m]).sum())) >= MIN_ROWS_PER_LABEL
        }  # fmt: skip

    def predict(self, choice: TuningResult) -> Predictions:
        """Return the predictions for all rows with these values."""
        parts = [(there, self._applied(chosen)) for there, chosen in self.by_rows(choice)]
        return join_predictions([(np.ones(len(self.gold), np.bool_), self._applied(choice.whole)), *parts])

    def by_rows(self, choice: TuningResult) -> list[tuple[Flags, TunedValues]]:
        """Return the values of each set with its rows."""
        return [(np.array(self.sets) == name, chosen) for name, chosen in choice.sets.items()]

    def crossed(self) -> list[tuple[Flags, TuningResult]]:
        """Return every fold of whole groups with the values chosen on the others; raises InputError where there is one group."""
        parts = group_folds(self.groups)
        if not parts:
            raise InputError("all rows are of one group, so none is left to test on")
        return [(held, self.choose(np.flatnonzero(~held))) for held in parts]

    def _chosen(self, rows: RowIndices) -> TunedValues:
        settings = self.tuned.fit(rows)
        predictions = self.tuned.predict(settings).rows(rows)
        scaling = fit_scaling(self.scaling, predictions.probability, predictions.gold)
        found = fit_decision_thresholds(self.goal, predictions._replace(probability=scaling(predictions.probability)))
        if found is None:
            return TunedValues(settings, DecisionRule(scaling=scaling))
        return TunedValues(settings, DecisionRule(scaling=scaling, low=found.low, high=found.high))

    def _applied(self, chosen: TunedValues) -> Predictions:
        predictions = self.tuned.predict(chosen.settings)
        return decide_predictions(predictions, chosen.decision)


def join_predictions(parts: Sequence[tuple[Flags, Predictions]]) -> Predictions:
    """Join several predictions for all rows, each for some of the rows; the later one takes precedence."""
    predictions = parts[0][1]
    for there, own in parts[1:]:
        chosen = (np.where(there, b, a) for a, b in zip(predictions[:4], own[:4], strict=True))
        predictions = Predictions(*chosen)
    return predictions


def decide_predictions(predictions: Predictions, decision: DecisionRule) -> Predictions:
    """Scale and decide the predictions of many rows, like `apply_decision_rule` for one verdict."""
    p: Floats = decision.scaling(predictions.probability)
    if decision.low is None or decision.high is None:
        return make_predictions(predictions.gold, predictions.settled & ~predictions.abstained, predictions.abstained, p)
    left = predictions.abstained | ((decision.low < p) & (p <= decision.high))
    return make_predictions(predictions.gold, p > decision.high, left, p)
