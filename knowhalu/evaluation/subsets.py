"""Subsets of the compared rows with figures of their own: rows matched by length, and the parts of a data set."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.evaluation.bootstrap import Estimate, draw_resamples, metrics_with_intervals
from knowhalu.evaluation.labelled_rows import LabelledRows
from knowhalu.evaluation.runs import RunResult
from knowhalu.text.sentences import word_count
from knowhalu.types import META_PAIR, META_PART, Sample

LENGTH_MATCHED, MEAN_OF_PARTS = "length-matched", "mean of the parts"
RowIndices = NDArray[np.intp]


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


class MatchingFeatures(NamedTuple):
    """What is held of every row, in order: gold, the words of its response, its pair and its part of the set, where there are."""

    hallucinated: list[bool]
    words: list[int]
    pairs: list[Hashable]
    parts: list[str | None]


def matching_features(samples: Iterable[Sample]) -> MatchingFeatures:
    """Note of every sample what subsets are made of."""
    seen = MatchingFeatures([], [], [], [])
    for sample in samples:
        part = sample.meta.get(META_PART)
        seen.hallucinated.append(sample.label == "hallucinated")
        seen.words.append(word_count(sample.response))
        seen.pairs.append(str(pair) if (pair := sample.meta.get(META_PAIR)) is not None else None)
        seen.parts.append(part if isinstance(part, str) else None)
    return seen


def matched_pairs(seen: MatchingFeatures, near: int) -> RowIndices:
    """Return the places of pairs, one right and one hallucinated, whose responses differ by at most `near` words."""
    members: dict[Hashable, list[int]] = {}
    for place, pair in enumerate(seen.pairs):
        if pair is not None:
            members.setdefault(pair, []).append(place)
    return _places(
        [two for two in members.values() if len(two) == 2 and _one_of_each(seen, two) and _distance(seen, two) <= near]
    )


def matched_rows(seen: MatchingFeatures, near: int) -> RowIndices:
    """Return the places of as many right as hallucinated rows: each with one of the other label within `near` words.

    The nearest are matched first, and of two that are as near the one that evens out what length could tell so far.
    """
    free: dict[int, list[int]] = {}
    for place in reversed(range(len(seen.words))):
        if not seen.hallucinated[place]:
            free.setdefault(seen.words[place], []).append(place)
    waiting = sorted((i for i, gold in enumerate(seen.hallucinated) if gold), key=lambda i: seen.words[i])
    chosen, longer = [], 0
    for distance in range(near + 1):
        left = []
        for place in waiting:
            sides = (-distance, distance) if longer > 0 else (distance, -distance)
            side = next((side for side in sides if free.get(seen.words[place] + side)), None)
            if side is None:
                left.append(place)
            else:
                chosen.append([free[seen.words[place] + side].pop(), place])
                longer += side
        waiting = left
    return _places(chosen)


def rows_by_part(seen: MatchingFeatures, most: int = 20) -> dict[str, RowIndices]:
    """Return the places of each part of a set, where it has 2 to `most` parts and every row is of one."""
    names = sorted({part for part in seen.parts if part is not None})
    if None in seen.parts or not 2 <= len(names) <= most:
        return {}
    parts = np.array(seen.parts)
    return {name: np.flatnonzero(parts == name) for name in names}


def _one_of_each(seen: MatchingFeatures, two: Sequence[int]) -> bool:
    return seen.hallucinated[two[0]] is not seen.hallucinated[two[1]]


def _distance(seen: MatchingFeatures, two: Sequence[int]) -> int:
    return abs(seen.words[two[0]] - seen.words[two[1]])


def _places(chosen: Iterable[Sequence[int]]) -> RowIndices:
    return np.array(sorted(place for two in chosen for place in two), dtype=np.intp)
