"""Slices of the compared rows, by type of error, set, length, steps or agreement, with the metrics of each."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.evaluation.bootstrap import Estimate, metrics_with_intervals
from knowhalu.evaluation.metrics import Flags, Predictions
from knowhalu.results import Verdict
from knowhalu.types import META_SET, META_TYPE, Sample

SLICE_METRICS = ("tpr", "tnr", "average", "balanced", "auc", "inconclusive")


@dataclass(frozen=True)
class Slice:
    """The rows of one part that a method has a verdict of, and its figures there: `SLICE_METRICS`, by name."""

    name: str
    rows: int
    hallucinated: int
    figures: dict[str, Estimate]


@dataclass(frozen=True)
class MethodSlices:
    """What one method got in each part."""

    method: str
    parts: tuple[Slice, ...]


@dataclass(frozen=True)
class Breakdown:
    """Every method's figures in parts by one key of `traits.TITLES`.

    By a key of the row, all methods have the same parts; by one of the verdict, each method has its own.
    """

    key: str
    title: str
    results: tuple[MethodSlices, ...]


class Slicing(NamedTuple):
    """What one method said, the group number of each of its rows, and by key the name of the part that each row is in."""

    method: str
    said: Predictions
    groups: NDArray[np.intp]
    names: dict[str, list[str | None]]


def make_breakdowns(partings: Sequence[Slicing], drawn: NDArray[np.uint8]) -> tuple[Breakdown, ...]:
    """Give the figures by every key by which the rows of some method fall into two parts or more.

    `drawn` says how often each group came in each resample, as for `metrics_with_intervals`.
    """
    found = (Breakdown(key, title, tuple(_method_slices(partings, key, drawn))) for key, title in BREAKDOWN_TITLES.items())
    return tuple(b for b in found if b.results)


def _method_slices(partings: Sequence[Slicing], key: str, drawn: NDArray[np.uint8]) -> Iterable[MethodSlices]:
    for parting in partings:
        names = np.array([name or "" for name in parting.names[key]])
        order = sorted(set(names.tolist()) - {""}, key=slice_sort_key)
        if len(order) > 1:
            yield MethodSlices(parting.method, tuple(_slice(name, parting, names == name, drawn) for name in order))


def _slice(name: str, parting: Slicing, chosen: Flags, drawn: NDArray[np.uint8]) -> Slice:
    said = parting.said.rows(chosen)
    shown = metrics_with_intervals(said, parting.groups[chosen], drawn, SLICE_METRICS)
    return Slice(name, len(said.gold), int(said.gold.sum()), shown)


def slice_sort_key(name: str) -> tuple[bool, int, str]:
    """Put numbers before names, by their size, and what was put together last."""
    first = name.split()[0]
    return name == OTHER_SLICES, int(first) if first.isdecimal() else -1, name


ROW_TRAITS = {"type": "Type of error", "set": "Set", "words": "Words of the text"}
VERDICT_TRAITS = {"steps": "Steps of the check", "segments": "Segments of the text", "forms": "Forms of knowledge"}
BREAKDOWN_TITLES: Mapping[str, str] = {**ROW_TRAITS, **VERDICT_TRAITS}
"""Keys of breakdowns, and what they are called."""
MAX_SLICES = 20
"""Parts of one key at most; the rarest beyond are put together."""
OTHER_SLICES = "others"


class RowTraits(NamedTuple):
    """What a row says of itself: `meta.type` and `meta.set`, where it has them, and the number of words of its response."""

    type: str | None
    set: str | None
    words: int


class VerdictTraits(NamedTuple):
    """What a verdict looks like: its steps of both forms, its segments, and whether both forms of knowledge agree."""

    steps: int
    segments: int
    forms: str


def row_traits(sample: Sample) -> RowTraits:
    """Return the traits of a row."""
    named = (sample.meta.get(name) for name in (META_TYPE, META_SET))
    kind, group = (str(value) if isinstance(value, str | int) and str(value).strip() else None for value in named)
    return RowTraits(kind, group, len(sample.response.split()))


def verdict_traits(verdict: Verdict) -> VerdictTraits:
    """Return the traits of a verdict."""
    judgments = [j for s in verdict.segments for j in (s.base, s.supplement) if j is not None]
    agree = {s.forms_agree for s in verdict.segments} - {None}
    forms = "disagree" if False in agree else "agree" if agree else "only one was judged by"
    return VerdictTraits(sum(len(j.steps) for j in judgments), len(verdict.segments), forms)


def slice_names(key: str, values: Sequence[Hashable]) -> list[str | None]:
    """Return the name of the part that each value belongs to; None where it has none.

    Words are parted in thirds, numbers of steps and segments at fixed borders.
    """
    if key == "words":
        return _thirds([int(str(v)) for v in values])
    if key in ("steps", "segments"):
        return [_step_group(int(str(v))) for v in values]
    known = [None if v is None else str(v) for v in values]
    names, sizes = np.unique([v for v in known if v is not None] or [""], return_counts=True)
    kept = {str(names[i]) for i in np.argsort(-sizes, kind="stable")[:MAX_SLICES]}
    return [v if v is None or v in kept else OTHER_SLICES for v in known]


def _thirds(numbers: Sequence[int]) -> list[str | None]:
    low, high = np.quantile(numbers, (1 / 3, 2 / 3), method="lower")
    third = [0 if n <= low else 1 if n <= high else 2 for n in numbers]
    members = [[n for n, t in zip(numbers, third, strict=True) if t == part] for part in range(3)]
    names = [f"{min(m)} to {max(m)}" if m and min(m) < max(m) else str(min(m, default="")) for m in members]
    return [names[t] for t in third]


def _step_group(number: int) -> str:
    return str(number) if number <= 2 else "3 to 5" if number <= 5 else "6 and more"
