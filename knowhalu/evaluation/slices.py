"""Slices of the compared rows, by type of error, set, length, steps or agreement, with the metrics of each."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.evaluation.bootstrap import Estimate, metrics_with_intervals
from knowhalu.evaluation.metrics import Flags, Predictions
from knowhalu.io.outcomes import OutcomeTable
from knowhalu.types import META_SET, META_TYPE, Sample

SLICE_METRICS = ("tpr", "tnr", "average", "balanced", "auc", "inconclusive")


@dataclass(frozen=True)
class Slice:
    """The rows of one slice with a verdict of a method, and its metrics there (`SLICE_METRICS`)."""

    name: str
    rows: int
    hallucinated: int
    figures: dict[str, Estimate]


@dataclass(frozen=True)
class MethodSlices:
    """The slices of one method."""

    method: str
    parts: tuple[Slice, ...]


@dataclass(frozen=True)
class Breakdown:
    """The metrics of every method in slices by one key of `BREAKDOWN_TITLES`.

    By a trait of the row, all methods have the same slices; by one of the verdict, each method has its own.
    """

    key: str
    title: str
    results: tuple[MethodSlices, ...]


class Slicing(NamedTuple):
    """The predictions of one method, the group number of each row, and by key the name of the slice of each row."""

    method: str
    predictions: Predictions
    groups: NDArray[np.intp]
    names: dict[str, list[str | None]]


def make_breakdowns(
    slicings: Sequence[Slicing], drawn: NDArray[np.uint8], metrics: Sequence[str] = SLICE_METRICS
) -> tuple[Breakdown, ...]:
    """Compute the metrics of every slice, by every key that divides the rows of some method into two slices or more.

    `drawn` counts how often each group came in each resample, as for `metrics_with_intervals`.
    """
    breakdowns = (
        Breakdown(key, title, tuple(_method_slices(slicings, key, drawn, metrics))) for key, title in BREAKDOWN_TITLES.items()
    )
    return tuple(breakdown for breakdown in breakdowns if breakdown.results)


def _method_slices(
    slicings: Sequence[Slicing], key: str, drawn: NDArray[np.uint8], metrics: Sequence[str]
) -> Iterable[MethodSlices]:
    for slicing in slicings:
        names = np.array([name or "" for name in slicing.names.get(key, ())])
        order = sorted(set(names.tolist()) - {""}, key=slice_sort_key)
        if len(order) > 1:
            slices = (_slice(name, slicing, names == name, drawn, metrics) for name in order)
            yield MethodSlices(slicing.method, tuple(slices))


def _slice(name: str, slicing: Slicing, chosen: Flags, drawn: NDArray[np.uint8], metrics: Sequence[str]) -> Slice:
    predictions = slicing.predictions.rows(chosen)
    figures = metrics_with_intervals(predictions, slicing.groups[chosen], drawn, metrics)
    return Slice(name, len(predictions.gold), int(predictions.gold.sum()), figures)


def slice_sort_key(name: str) -> tuple[bool, int, str]:
    """Return a key that sorts numbers by size before names, and the combined rest last."""
    first = name.split()[0]
    return name == OTHER_SLICES, int(first) if first.isdecimal() else -1, name


ROW_TRAITS = {"type": "Type of error", "set": "Set", "words": "Words of the text"}
VERDICT_TRAITS = {"steps": "Steps of the check", "segments": "Segments of the text", "forms": "Forms of knowledge"}
FORMS_AGREEMENT = {1: "agree", 0: "disagree", -1: "only one was judged by"}
"""Names of the values of the column `agree` of an `OutcomeTable`."""
BREAKDOWN_TITLES: Mapping[str, str] = {**ROW_TRAITS, **VERDICT_TRAITS}
"""Keys of breakdowns with their titles."""
MAX_SLICES = 20
"""Slices of one key at most; the rarest ones are combined."""
OTHER_SLICES = "others"


class RowTraits(NamedTuple):
    """The traits of a row: `meta.type` and `meta.set`, where it has them, the words of its response, and its gold kind."""

    type: str | None
    set: str | None
    words: int
    kind: str | None = None


def row_traits(sample: Sample) -> RowTraits:
    """Return the traits of a row."""
    named = (sample.meta.get(name) for name in (META_TYPE, META_SET))
    kind, group = (str(value) if isinstance(value, str | int) and str(value).strip() else None for value in named)
    return RowTraits(kind, group, len(sample.response.split()), sample.kind)


def verdict_traits(table: OutcomeTable) -> dict[str, list[Hashable]]:
    """Return the traits of every outcome by key: steps of both forms, segments, and whether both forms of knowledge agree."""
    return {
        "steps": table.all_steps.tolist(),
        "segments": table.segments.tolist(),
        "forms": [FORMS_AGREEMENT[agree] for agree in table.agree.tolist()],
    }


def slice_names(key: str, values: Sequence[Hashable]) -> list[str | None]:
    """Return the name of the slice of each value; None for no value.

    Numbers of words are divided into thirds, those of steps and segments at fixed limits.
    """
    if key == "words":
        return _thirds([int(str(v)) for v in values])
    if key in ("steps", "segments"):
        return [_step_group(int(str(v))) for v in values]
    known = [None if v is None else str(v) for v in values]
    names, sizes = np.unique([v for v in known if v is not None] or [""], return_counts=True)
    frequent = {str(names[i]) for i in np.argsort(-sizes, kind="stable")[:MAX_SLICES]}
    return [v if v is None or v in frequent else OTHER_SLICES for v in known]


def _thirds(numbers: Sequence[int]) -> list[str | None]:
    low, high = np.quantile(numbers, (1 / 3, 2 / 3), method="lower")
    third = [0 if n <= low else 1 if n <= high else 2 for n in numbers]
    members = [[n for n, t in zip(numbers, third, strict=True) if t == part] for part in range(3)]
    names = [f"{min(m)} to {max(m)}" if m and min(m) < max(m) else str(min(m, default="")) for m in members]
    return [names[t] for t in third]


def _step_group(number: int) -> str:
    return str(number) if number <= 2 else "3 to 5" if number <= 5 else "6 and more"
