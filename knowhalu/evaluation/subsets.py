"""Parts of the compared rows that are reported by themselves: those matched by length, and the parts that a set is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from knowhalu.evaluation.bootstrap import Estimate, draws, with_intervals
from knowhalu.evaluation.matching import Places
from knowhalu.evaluation.rows import Rows
from knowhalu.evaluation.runs import Told

LENGTH_MATCHED, MEAN = "length-matched", "mean of the parts"


class Share(NamedTuple):
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
    results: tuple[Share, ...]

    def of(self, name: str) -> Share | None:
        """Return what a method got."""
        return next((share for share in self.results if share.name == name), None)


def subset(name: str, about: str, places: Places, rows: Rows, told: Mapping[str, Told]) -> Subset:
    """Compute the figures of every method on some places of the rows, with intervals by the groups that are among them."""
    numbers = np.unique(rows.groups[places], return_inverse=True)[1]
    groups = np.zeros(len(rows.gold), dtype=np.intp)
    groups[places] = numbers
    drawn = draws(int(numbers.max(initial=0)) + 1)
    shares = []
    for method, found in told.items():
        mine = np.isin(found.places, places)
        figures = with_intervals(found.said.rows(mine), groups[found.places[mine]], drawn)
        shares.append(Share(method, int(mine.sum()), figures))
    return Subset(name, about, len(places), int(rows.gold[places].sum()), tuple(shares))


def mean_of(parts: Sequence[Subset]) -> Subset:
    """Return the mean of every figure over parts, each counting the same; a figure that a part cannot give has none."""
    shares = []
    for name in [share.name for share in parts[0].results]:
        found = [share for part in parts if (share := part.of(name)) is not None]
        values = {figure: [share.figures[figure].value for share in found] for figure in found[0].figures}
        shares.append(Share(name, sum(share.rows for share in found), {f: Estimate(_mean(v)) for f, v in values.items()}))
    rows, wrong = sum(part.rows for part in parts), sum(part.hallucinated for part in parts)
    return Subset(MEAN, f"the mean over {len(parts)} parts, each counting the same", rows, wrong, tuple(shares))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
