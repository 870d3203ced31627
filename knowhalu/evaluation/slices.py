"""Some of the compared rows with metrics of their own: slices by a trait, length-matched rows, and the parts of a data set.

Slices are by type of error, set, length, steps or agreement. Length-matched rows and parts are subsets, whose intervals are over
the groups of their own rows.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.datasets.card import DatasetCard
from knowhalu.evaluation.bootstrap import Estimate, draw_resamples, metrics_with_intervals
from knowhalu.evaluation.labelled_rows import LabelledRows
from knowhalu.evaluation.metrics import Flags, Predictions
from knowhalu.evaluation.runs import RunResult
from knowhalu.text.sentences import word_count
from knowhalu.types import META_PAIR, META_PART, Sample

SLICE_METRICS = ("tpr", "tnr", "average", "balanced", "auc", "inconclusive")
ROW_TRAITS = {"type": "Type of error", "set": "Set", "words": "Words of the text"}
VERDICT_TRAITS = {"steps": "Steps of the check", "segments": "Segments of the text", "forms": "Forms of knowledge"}
BREAKDOWN_TITLES: Mapping[str, str] = {**ROW_TRAITS, **VERDICT_TRAITS}
"""Keys of breakdowns with their titles."""
MAX_SLICES = 20
"""Slices of one key at most; the rarest ones are combined."""
OTHER_SLICES = "others"
LENGTH_MATCHED, MEAN_OF_PARTS = "length-matched", "mean of the parts"
RowIndices = NDArray[np.intp]


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
        return next((result for result in self.results if result.name == name), None)


def make_subset(name: str, about: str, places: RowIndices, rows: LabelledRows, results: Mapping[str, RunResult]) -> Subset:
    """Compute the metrics of every method on the rows at some places, with intervals over the groups of these rows."""
    numbers = np.unique(rows.groups[places], return_inverse=True)[1]
    groups = np.zeros(len(rows.gold), dtype=np.intp)
    groups[places] = numbers
    drawn = draw_resamples(int(numbers.max(initial=0)) + 1)
    subset_results = []
    for method, result in results.items():
        chosen = np.isin(result.places, places)
        figures = metrics_with_intervals(result.predictions.rows(chosen), groups[result.places[chosen]], drawn)
        subset_results.append(SubsetResult(method, int(chosen.sum()), figures))
    return Subset(name, about, len(places), int(rows.gold[places].sum()), tuple(subset_results))


def mean_subset(parts: Sequence[Subset]) -> Subset:
    """Return the mean of every metric over the parts, each counting the same; None where a part lacks the metric."""
    means = []
    for name in [result.name for result in parts[0].results]:
        results = [result for part in parts if (result := part.of(name)) is not None]
        figures = {figure: Estimate(_mean([r.figures[figure].value for r in results])) for figure in results[0].figures}
        means.append(SubsetResult(name, sum(result.rows for result in results), figures))
    rows, wrong = sum(part.rows for part in parts), sum(part.hallucinated for part in parts)
    return Subset(MEAN_OF_PARTS, f"the mean over {len(parts)} parts, each counting the same", rows, wrong, tuple(means))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


class MatchingFeatures(NamedTuple):
    """Columns of all rows for the choice of subsets: gold, words of the response, pair and part of the set, where known."""

    hallucinated: list[bool]
    words: list[int]
    pairs: list[Hashable]
    parts: list[str | None]

    @property
    def are_paired(self) -> bool:
        """Tell whether some rows belong to pairs."""
        return any(pair is not None for pair in self.pairs)


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
    gold, words = features.hallucinated, features.words
    members: dict[Hashable, list[int]] = {}
    for place, pair in enumerate(features.pairs):
        if pair is not None:
            members.setdefault(pair, []).append(place)
    whole = [places for places in members.values() if len(places) == 2]
    return _sorted_places((a, b) for a, b in whole if gold[a] is not gold[b] and abs(words[a] - words[b]) <= near)


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
                chosen.append((free[features.words[place] + side].pop(), place))
                longer += side
        waiting = left
    return _sorted_places(chosen)


def rows_by_part(features: MatchingFeatures, most: int = 20) -> dict[str, RowIndices]:
    """Return the places of each part of a set, where it has 2 to `most` parts and every row is of one."""
    names = sorted({part for part in features.parts if part is not None})
    if None in features.parts or not 2 <= len(names) <= most:
        return {}
    parts = np.array(features.parts)
    return {name: np.flatnonzero(parts == name) for name in names}


def _sorted_places(pairs: Iterable[tuple[int, int]]) -> RowIndices:
    return np.array(sorted(place for pair in pairs for place in pair), dtype=np.intp)


def length_matched(card: DatasetCard, features: MatchingFeatures) -> RowIndices:
    """Return the places of length-matched rows: of its pairs where a set has some."""
    return matched_pairs(features, card.near) if features.are_paired else matched_rows(features, card.near)


def make_subsets(
    card: DatasetCard, matched: RowIndices, rows: LabelledRows, features: MatchingFeatures, results: Mapping[str, RunResult]
) -> tuple[Subset, ...]:
    """Return the length-matched rows of pairs and of derived sets, the parts of a set, and their mean."""
    subsets = []
    if len(matched) and (card.derived or features.are_paired):
        about = f"{len(matched) // 2:,} right and as many hallucinated responses, each within {card.near} words of its other"
        subsets.append(make_subset(LENGTH_MATCHED, about, matched, rows, results))
    parts = [make_subset(name, "a part of the set", places, rows, results) for name, places in rows_by_part(features).items()]
    return (*subsets, *parts, *([mean_subset(parts)] if parts else []))
