"""Slices of the compared rows, by type of error, set, length, steps or agreement, with the metrics of each."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.evaluation.bootstrap import Estimate, with_intervals
from knowhalu.evaluation.metrics import Flags, Said
from knowhalu.results import Verdict
from knowhalu.types import SET, TYPE, Sample

SHOWN = ("tpr", "tnr", "average", "balanced", "auc", "inconclusive")


@dataclass(frozen=True)
class Part:
    """The rows of one part that a method has a verdict of, and its figures there: `SHOWN`, by name."""

    name: str
    rows: int
    hallucinated: int
    figures: dict[str, Estimate]


@dataclass(frozen=True)
class Parted:
    """What one method got in each part."""

    method: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Breakdown:
    """Every method's figures in parts by one key of `traits.TITLES`.

    By a key of the row, all methods have the same parts; by one of the verdict, each method has its own.
    """

    key: str
    title: str
    results: tuple[Parted, ...]


class Parting(NamedTuple):
    """What one method said, the group number of each of its rows, and by key the name of the part that each row is in."""

    method: str
    said: Said
    groups: NDArray[np.intp]
    names: dict[str, list[str | None]]


def breakdowns(partings: Sequence[Parting], drawn: NDArray[np.uint8]) -> tuple[Breakdown, ...]:
    """Give the figures by every key by which the rows of some method fall into two parts or more.

    `drawn` says how often each group came in each resample, as for `with_intervals`.
    """
    found = (Breakdown(key, title, tuple(_parted(partings, key, drawn))) for key, title in TITLES.items())
    return tuple(b for b in found if b.results)


def _parted(partings: Sequence[Parting], key: str, drawn: NDArray[np.uint8]) -> Iterable[Parted]:
    for parting in partings:
        names = np.array([name or "" for name in parting.names[key]])
        order = sorted(set(names.tolist()) - {""}, key=in_order)
        if len(order) > 1:
            yield Parted(parting.method, tuple(_part(name, parting, names == name, drawn) for name in order))


def _part(name: str, parting: Parting, chosen: Flags, drawn: NDArray[np.uint8]) -> Part:
    said = parting.said.rows(chosen)
    shown = with_intervals(said, parting.groups[chosen], drawn, SHOWN)
    return Part(name, len(said.gold), int(said.gold.sum()), shown)


def in_order(name: str) -> tuple[bool, int, str]:
    """Put numbers before names, by their size, and what was put together last."""
    first = name.split()[0]
    return name == OTHERS, int(first) if first.isdecimal() else -1, name


ROW_TRAITS = {"type": "Type of error", "set": "Set", "words": "Words of the text"}
VERDICT_TRAITS = {"steps": "Steps of the check", "segments": "Segments of the text", "forms": "Forms of knowledge"}
TITLES: Mapping[str, str] = {**ROW_TRAITS, **VERDICT_TRAITS}
"""Keys of breakdowns, and what they are called."""
MOST = 20
"""Parts of one key at most; the rarest beyond are put together."""
OTHERS = "others"


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


def traits_of(sample: Sample) -> RowTraits:
    """Return the traits of a row."""
    named = (sample.meta.get(name) for name in (TYPE, SET))
    kind, group = (str(value) if isinstance(value, str | int) and str(value).strip() else None for value in named)
    return RowTraits(kind, group, len(sample.response.split()))


def traits_of_verdict(verdict: Verdict) -> VerdictTraits:
    """Return the traits of a verdict."""
    judgments = [j for s in verdict.segments for j in (s.base, s.supplement) if j is not None]
    agree = {s.forms_agree for s in verdict.segments} - {None}
    forms = "disagree" if False in agree else "agree" if agree else "only one was judged by"
    return VerdictTraits(sum(len(j.steps) for j in judgments), len(verdict.segments), forms)


def named_parts(key: str, values: Sequence[Hashable]) -> list[str | None]:
    """Return the name of the part that each value belongs to; None where it has none.

    Words are parted in thirds, numbers of steps and segments at fixed borders.
    """
    if key == "words":
        return _thirds([int(str(v)) for v in values])
    if key in ("steps", "segments"):
        return [_counted(int(str(v))) for v in values]
    known = [None if v is None else str(v) for v in values]
    names, sizes = np.unique([v for v in known if v is not None] or [""], return_counts=True)
    kept = {str(names[i]) for i in np.argsort(-sizes, kind="stable")[:MOST]}
    return [v if v is None or v in kept else OTHERS for v in known]


def _thirds(numbers: Sequence[int]) -> list[str | None]:
    low, high = np.quantile(numbers, (1 / 3, 2 / 3), method="lower")
    third = [0 if n <= low else 1 if n <= high else 2 for n in numbers]
    members = [[n for n, t in zip(numbers, third, strict=True) if t == part] for part in range(3)]
    names = [f"{min(m)} to {max(m)}" if m and min(m) < max(m) else str(min(m, default="")) for m in members]
    return [names[t] for t in third]


def _counted(number: int) -> str:
    return str(number) if number <= 2 else "3 to 5" if number <= 5 else "6 and more"
