"""What is chosen on labelled rows, for all of them and for sets, and how it does on rows that it was not chosen on."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from knowhalu.calibration.measures import folds
from knowhalu.calibration.objectives import Goal, borders
from knowhalu.calibration.outcomes import Places, Tuned, made_said
from knowhalu.calibration.scaling import fit_scaling
from knowhalu.errors import InputError
from knowhalu.evaluation.metrics import Flags, Floats, Said
from knowhalu.methods.common.calibrated import Decision, Kind

FEWEST = 10
"""Rows of each label that a set needs to get values of its own."""


class Chosen(NamedTuple):
    """Settings of the method, and the last step."""

    settings: dict[str, Any]
    decision: Decision


class Choice(NamedTuple):
    """What was chosen for all rows, and for sets that are chosen for by themselves."""

    whole: Chosen
    sets: dict[str, Chosen]


class Chooser(NamedTuple):
    """Stored verdicts and the way to choose by them; `sets` has the set of each, where sets are to have values of their own."""

    tuned: Tuned
    gold: Flags
    groups: Places
    goal: Goal
    scaling: Kind
    sets: tuple[str, ...] | None = None

    def choose(self, rows: Places) -> Choice:
        """Choose on some of the rows; raises InputError where the goal cannot be reached there."""
        own = {}
        for name, members in self.members(rows).items():
            try:
                own[name] = self._chosen(members)
            except InputError as error:
                raise InputError(f"set {name!r}: {error}") from error
        return Choice(self._chosen(rows), own)

    def members(self, rows: Places) -> dict[str, Places]:
        """Return the rows of every set that has enough of both labels."""
        if self.sets is None:
            return {}
        named = np.array(self.sets)[rows]
        found = {str(name): rows[named == name] for name in np.unique(named) if name}
        return {
            n: m for n, m in found.items() if min(int(self.gold[m].sum()), int((~self.gold[m]).sum())) >= FEWEST
        }  # fmt: skip

    def said(self, choice: Choice) -> Said:
        """Return what is said of all rows by what was chosen."""
        parts = [(there, self._applied(chosen)) for there, chosen in self.by_rows(choice)]
        return joined([(np.ones(len(self.gold), np.bool_), self._applied(choice.whole)), *parts])

    def by_rows(self, choice: Choice) -> list[tuple[Flags, Chosen]]:
        """Return what was chosen for each set, with the rows that it is for."""
        return [(np.array(self.sets) == name, chosen) for name, chosen in choice.sets.items()]

    def crossed(self) -> list[tuple[Flags, Choice]]:
        """Return every fold of whole groups with what was chosen on all others; raises InputError where nothing can be."""
        parts = folds(self.groups)
        if not parts:
            raise InputError("all rows are of one group, so none is left to test on")
        return [(held, self.choose(np.flatnonzero(~held))) for held in parts]

    def _chosen(self, rows: Places) -> Chosen:
        settings = self.tuned.fit(rows)
        said = self.tuned.said(settings).rows(rows)
        scaling = fit_scaling(self.scaling, said.probability, said.gold)
        found = borders(self.goal, said._replace(probability=scaling(said.probability)))
        if found is None:
            return Chosen(settings, Decision(scaling=scaling))
        return Chosen(settings, Decision(scaling=scaling, low=found.low, high=found.high))

    def _applied(self, chosen: Chosen) -> Said:
        said = self.tuned.said(chosen.settings)
        return decided(said, chosen.decision)


def joined(parts: Sequence[tuple[Flags, Said]]) -> Said:
    """Take from each of several sayings of all rows the rows that it is for; the later one counts."""
    said = parts[0][1]
    for there, own in parts[1:]:
        chosen = (np.where(there, b, a) for a, b in zip(said[:4], own[:4], strict=True))
        said = Said(*chosen)
    return said


def decided(said: Said, decision: Decision) -> Said:
    """Scale and decide anew what was said of many rows, as `knowhalu.methods.common.calibrated.decided` does one verdict."""
    p: Floats = decision.scaling(said.probability)
    if decision.low is None or decision.high is None:
        return made_said(said.gold, said.settled & ~said.abstained, said.abstained, p)
    left = said.abstained | ((decision.low < p) & (p <= decision.high))
    return made_said(said.gold, p > decision.high, left, p)
