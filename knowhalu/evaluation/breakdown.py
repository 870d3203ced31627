"""A comparison's rows in parts, by type of error, set, length, steps or agreement, with the main figures of each part."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.evaluation.figures import Flags, Said
from knowhalu.evaluation.intervals import Figure, with_intervals
from knowhalu.evaluation.traits import OTHERS, TITLES

SHOWN = ("tpr", "tnr", "average", "balanced", "auc", "inconclusive")


@dataclass(frozen=True)
class Part:
    """The rows of one part that a method has a verdict of, and its figures there: `SHOWN`, by name."""

    name: str
    rows: int
    hallucinated: int
    figures: dict[str, Figure]


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
