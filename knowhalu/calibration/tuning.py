"""What is chosen on labelled rows, for all of them and for sets, and how it does on rows that it was not chosen on."""

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
"""Rows of each label that a set needs to get values of its own."""


class TunedValues(NamedTuple):
    """Settings of the method, and the last step."""

    settings: dict[str, Any]
    decision: DecisionRule


class TuningResult(NamedTuple):
    """What was chosen for all rows, and for sets that are chosen for by themselves."""

    whole: TunedValues
    sets: dict[str, TunedValues]


class Tuner(NamedTuple):
    """Stored verdicts and the way to choose by them; `sets` has the set of each, where sets are to have values of their own."""

    tuned: Tunable
    gold: Flags
    groups: RowIndices
    goal: Goal
    scaling: ScalingKind
    sets: tuple[str, ...] | None = None

    def choose(self, rows: RowIndices) -> TuningResult:
        """Choose on some of the rows; raises InputError where the goal cannot be reached there."""
        own = {}
        for name, members in self.members(rows).items():
            try:
                own[name] = self._chosen(members)
            except InputError as error:
                raise InputError(f"set {name!r}: {error}") from error
        return TuningResult(self._chosen(rows), own)

    def members(self, rows: RowIndices) -> dict[str, RowIndices]:
        """Return the rows of every set that has enough of both labels."""
        if self.sets is None:
            return {}
        named = np.array(self.sets)[rows]
        found = {str(name): rows[named == name] for name in np.unique(named) if name}
        return {
            n: m for n, m in found.items() if min(int(self.gold[m].sum()), int((~self.gold[m]).sum())) >= MIN_ROWS_PER_LABEL
        }  # fmt: skip

    def said(self, choice: TuningResult) -> Predictions:
        """Return what is said of all rows by what was chosen."""
        parts = [(there, self._applied(chosen)) for there, chosen in self.by_rows(choice)]
        return join_predictions([(np.ones(len(self.gold), np.bool_), self._applied(choice.whole)), *parts])

    def by_rows(self, choice: TuningResult) -> list[tuple[Flags, TunedValues]]:
        """Return what was chosen for each set, with the rows that it is for."""
        return [(np.array(self.sets) == name, chosen) for name, chosen in choice.sets.items()]

    def crossed(self) -> list[tuple[Flags, TuningResult]]:
        """Return every fold of whole groups with what was chosen on all others; raises InputError where nothing can be."""
        parts = group_folds(self.groups)
        if not parts:
            raise InputError("all rows are of one group, so none is left to test on")
        return [(held, self.choose(np.flatnonzero(~held))) for held in parts]

    def _chosen(self, rows: RowIndices) -> TunedValues:
        settings = self.tuned.fit(rows)
        said = self.tuned.said(settings).rows(rows)
        scaling = fit_scaling(self.scaling, said.probability, said.gold)
        found = fit_decision_thresholds(self.goal, said._replace(probability=scaling(said.probability)))
        if found is None:
            return TunedValues(settings, DecisionRule(scaling=scaling))
        return TunedValues(settings, DecisionRule(scaling=scaling, low=found.low, high=found.high))

    def _applied(self, chosen: TunedValues) -> Predictions:
        said = self.tuned.said(chosen.settings)
        return decide_predictions(said, chosen.decision)


def join_predictions(parts: Sequence[tuple[Flags, Predictions]]) -> Predictions:
    """Take from each of several sayings of all rows the rows that it is for; the later one counts."""
    said = parts[0][1]
    for there, own in parts[1:]:
        chosen = (np.where(there, b, a) for a, b in zip(said[:4], own[:4], strict=True))
        said = Predictions(*chosen)
    return said


def decide_predictions(said: Predictions, decision: DecisionRule) -> Predictions:
    """Scale and decide the predictions of many rows, as `apply_decision_rule` does for one verdict."""
    p: Floats = decision.scaling(said.probability)
    if decision.low is None or decision.high is None:
        return make_predictions(said.gold, said.settled & ~said.abstained, said.abstained, p)
    left = said.abstained | ((decision.low < p) & (p <= decision.high))
    return make_predictions(said.gold, p > decision.high, left, p)
