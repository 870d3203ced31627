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
    """The result of one method on a subset, on the `rows` with a verdict."""

    name: str
    rows: int
    figures: dict[str, Estimate]


@dataclass(frozen=True)
class Subset:
    """Some of the compared rows, and the result of every method on them."""

    name: str
    about: str
    rows: int
    hallucinated: int
    results: tuple[SubsetResult, ...]

    def of(self, name: str) -> SubsetResult | None:
        """Return the result of a method by its name."""
        return next((share for share in self.results if share.name == name), None)


def make_subset(name: str, about: str, places: RowIndices, rows: LabelledRows, results: Mapping[str, RunResult]) -> Subset:
    """Compute the metrics of every method on the rows at some places, with intervals over the groups of these rows."""
    numbers = np.unique(rows.groups[places], return_inverse=True)[1]
    groups = np.zeros(len(rows.gold), dtype=np.intp)
    groups[places] = numbers
    drawn = draw_resamples(int(numbers.max(initial=0)) + 1)
    shares = []
    for method, found in results.items():
        mine = np.isin(found.places, places)
        figures = metrics_with_intervals(found.predictions.rows(mine), groups[found.places[mine]], drawn)
        shares.append(SubsetResult(method, int(mine.sum()), figures))
    return Subset(name, about, len(places), int(rows.gold[places].sum()), tuple(shares))


def mean_subset(parts: Sequence[Subset]) -> Subset:
    """Return the mean of every metric over the parts, each counting the same; None where a part lacks the metric."""
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
    """Columns of all rows for the choice of subsets: gold, words of the response, pair and part of the set, where known."""

    hallucinated: list[bool]
    words: list[int]
    pairs: list[Hashable]
    parts: list[str | None]


def matching_features(samples: Iterable[Sample]) -> MatchingFeatures:
    """Return the matching features of samples."""
    features = MatchingFeatures([], [], [], [])
    for sample in samples:
        part = sample.meta.get(META_PART)
        features.hallucinated.append(sample.label == "hallucinated")
        features.words.append(word_count(sample.response))
        features.pairs.append(str(pair) if (pair := sample.meta.get(META_PAIR)) is not None else None)
        features.parts.append(part if isinstance(part, str) else None)
    return features


def matched_pairs(features: MatchingFeatures, near: int) -> RowIndices:
    """Return the places of pairs, one right and one hallucinated, whose responses differ by at most `near` words."""
    members: dict[Hashable, list[int]] = {}
    for place, pair in enumerate(features.pairs):
        if pair is not None:
            members.setdefault(pair, []).append(place)
    return _places(
        [
            pair
            for pair in members.values()
            if len(pair) == 2 and _one_of_each(features, pair) and _distance(features, pair) <= near
        ]
    )


def matched_rows(features: MatchingFeatures, near: int) -> RowIndices:
    """Return the places of equally many faithful and hallucinated rows: each with one of the other label within `near` words.

    The nearest are matched first; of two equally near ones, the one that balances the lengths of the labels.
    """
    free: dict[int, list[int]] = {}
    for place in reversed(range(len(features.words))):
        if not features.hallucinated[place]:
            free.setdefault(features.words[place], []).append(place)
    waiting = sorted((i for i, gold in enumerate(features.hallucinated) if gold), key=lambda i: features.words[i])
    chosen, longer = [], 0
    for distance in range(near + 1):
        left = []
        for place in waiting:
            sides = (-distance, distance) if longer > 0 else (distance, -distance)
            side = next((side for side in sides if free.get(features.words[place] + side)), None)
            if side is None:
                left.append(place)
            else:
                chosen.append([free[features.words[place] + side].pop(), place])
                longer += side
        waiting = left
    return _places(chosen)


def rows_by_part(features: MatchingFeatures, most: int = 20) -> dict[str, RowIndices]:
    """Return the places of each part of a set, where it has 2 to `most` parts and every row is of one."""
    names = sorted({part for part in features.parts if part is not None})
    if None in features.parts or not 2 <= len(names) <= most:
        return {}
    parts = np.array(features.parts)
    return {name: np.flatnonzero(parts == name) for name in names}


def _one_of_each(features: MatchingFeatures, pair: Sequence[int]) -> bool:
    return features.hallucinated[pair[0]] is not features.hallucinated[pair[1]]


def _distance(features: MatchingFeatures, pair: Sequence[int]) -> int:
    return abs(features.words[pair[0]] - features.words[pair[1]])


def _places(chosen: Iterable[Sequence[int]]) -> RowIndices:
    return np.array(sorted(place for pair in chosen for place in pair), dtype=np.intp)
