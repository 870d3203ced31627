"""Parts of the compared rows that are reported by themselves: those matched by length, and the parts that a set is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from knowhalu.evaluation.bootstrap import Estimate, draw_resamples, metrics_with_intervals
from knowhalu.evaluation.labelled_rows import LabelledRows
from knowhalu.evaluation.length_matching import RowIndices
from knowhalu.evaluation.runs import RunResult

LENGTH_MATCHED, MEAN_OF_PARTS = "length-matched", "mean of the parts"


class SubsetResult(NamedTuple):
    """What one method got on a subset, of whose rows it has verdicts of `rows`."""

    name: str
    rows: int
    figures: dict[str, Estimate]


@dataclass(frozen=True)
class Subset:
    """Some of the compared rows, and what every method got on them."""

    name: str
    about: str
    rows: int
    hallucinated: int
    results: tuple[SubsetResult, ...]

    def of(self, name: str) -> SubsetResult | None:
        """Return what a method got."""
        return next((share for share in self.results if share.name == name), None)


def make_subset(name: str, about: str, places: RowIndices, rows: LabelledRows, told: Mapping[str, RunResult]) -> Subset:
    """Compute the figures of every method on some places of the rows, with intervals by the groups that are among them."""
    numbers = np.unique(rows.groups[places], return_inverse=True)[1]
    groups = np.zeros(len(rows.gold), dtype=np.intp)
    groups[places] = numbers
    drawn = draw_resamples(int(numbers.max(initial=0)) + 1)
    shares = []
    for method, found in told.items():
        mine = np.isin(found.places, places)
        figures = metrics_with_intervals(found.predictions.rows(mine), groups[found.places[mine]], drawn)
        shares.append(SubsetResult(method, int(mine.sum()), figures))
    return Subset(name, about, len(places), int(rows.gold[places].sum()), tuple(shares))


def mean_subset(parts: Sequence[Subset]) -> Subset:
    """Return the mean of every figure over parts, each counting the same; a figure that a part cannot give has none."""
    shares = []
    for name in [share.name for share in parts[0].results]:
        found = [share for part in parts if (share := part.of(name)) is not None]
        values = {figure: [share.figures[figure].value for share in found] for figure in found[0].figures}
        shares.append(SubsetResult(name, sum(share.rows for share in found), {f: Estimate(_mean(v)) for f, v in values.items()}))
    rows, wrong = sum(part.rows for part in parts), sum(part.hallucinated for part in parts)
    return Subset(MEAN_OF_PARTS, f"the mean over {len(parts)} parts, each counting the same", rows, wrong, tuple(shares))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
