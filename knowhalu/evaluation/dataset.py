"""A data set evaluated: its rows normalised, every method compared on them, and beside each figure what it must be read with."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from knowhalu.datasets.card import DatasetCard
from knowhalu.datasets.files import ALL, VALIDATION
from knowhalu.datasets.loading import DatasetSource, hash_files, load_samples, open_dataset, recognise_dataset
from knowhalu.errors import InputError
from knowhalu.evaluation.baselines import BaselineScores, baseline_scores, baseline_warnings, withhold_figures
from knowhalu.evaluation.compare import ReportMethodProgress, compare_results, make_method_runs, run_methods
from knowhalu.evaluation.labelled_rows import LabelledRows, limit_rows, read_labelled_rows, write_samples
from knowhalu.evaluation.method_specs import MethodSpec
from knowhalu.evaluation.runs import Comparison, RunResult
from knowhalu.evaluation.subsets import (
    LENGTH_MATCHED,
    MatchingFeatures,
    RowIndices,
    Subset,
    make_subset,
    matched_pairs,
    matched_rows,
    matching_features,
    mean_subset,
    rows_by_part,
)
from knowhalu.io.samples import hash_sample, read_samples

VALIDATION_FILE = "validation.jsonl"
AUTO_FIT_SPLITS = (*VALIDATION, "dev")
"""The splits on which rules are fitted by themselves, the first that a set has beside the compared one."""


@dataclass(frozen=True)
class DatasetFacts:
    """Where the rows came from: `rows` counts those of the chosen split, of which `--limit` may have taken a part."""

    name: str
    about: str
    task: str
    labels: str
    split: str | None
    path: str
    sha256: str
    rows: int
    licence: str
    derived: str = ""


@dataclass(frozen=True)
class DatasetEvaluation:
    """A comparison on a data set, with what stands beside every figure, subsets, and what a reader is warned of.

    `asked` names the methods that were asked for, without the rules that always take part.
    """

    asked: tuple[str, ...]
    comparison: Comparison
    dataset: DatasetFacts
    beside: dict[str, BaselineScores]
    subsets: tuple[Subset, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class FitSource:
    """Where baselines are fitted: on a file, on a split of the set, or, with neither, on its validation split if it has one."""

    path: Path | None = None
    split: str | None = None


def evaluate_dataset(
    source: DatasetSource,
    path: Path,
    specs: Sequence[MethodSpec],
    folder: Path,
    *,
    fit: FitSource | None = None,
    file: Path | None = None,
    pairs: Sequence[str] = (),
    limit: int | None = None,
    restart: bool = False,
    progress: ReportMethodProgress | None = None,
) -> DatasetEvaluation:
    """Compare methods on a data set, beside every baseline that knows nothing of truth; all outcomes stay in `folder`.

    `path` is where the source was found. Started again with the same folder, it checks only what has no verdict yet. Raises
    InputError for rows, and where a set that must not be read without its length-matched rows has none.
    """
    chosen, plain = make_method_runs(specs, file, pairs)
    inputs = folder / "input"
    if any(file.resolve().parent == inputs.resolve() for file in source.files):
        raise InputError(f"{path}: lies where its rows would be written. Nothing was changed. Give another folder.")
    whole = read_labelled_rows(write_samples(load_samples(source), inputs / "all.jsonl"))
    fitted = _fit_rows(source, path, fit or FitSource(), whole.contents.keys(), inputs)
    rows = limit_rows(whole, limit, folder)
    seen = matching_features(read_samples(rows.path))
    matched = _matched(source.card, seen)
    if source.card.derived and not len(matched):
        what = f"{source.name}: among {len(rows.gold):,} rows none are length-matched, and a figure of {source.card.derived}"
        raise InputError(f"{what} is not given without them. Take more rows: raise --limit, or leave it out.")
    told = run_methods(rows, chosen, plain, folder, fit=fitted, restart=restart, responses=True, progress=progress)
    subsets = _subsets(source.card, matched, rows, seen, {entrant.spec.name: found for entrant, found in told})
    comparison = compare_results(rows, told, fitted)
    besides, warned = baseline_scores(comparison, subsets), list(baseline_warnings(comparison, source.card, subsets, rows.bare))
    if source.card.derived:
        comparison, bare = withhold_figures(comparison, besides)
        warned += [f"{name}: figures withheld, since it has no verdict on the length-matched rows of a label." for name in bare]
    return DatasetEvaluation(
        asked=tuple(spec.name for spec in specs), comparison=comparison, dataset=_facts(source, path, len(whole.gold)),
        beside=besides, subsets=subsets, warnings=tuple(warned),
    )  # fmt: skip


def _fit_rows(source: DatasetSource, path: Path, fit: FitSource, compared: Set[str], inputs: Path) -> Path | None:
    """Write the rows to fit on; None where there are none. Of a split of the set, rows that are compared too are left out."""
    if fit.path is not None:
        return write_samples(load_samples(_load_same_form(source, fit.path, fit.split or ALL)), inputs / VALIDATION_FILE)
    found = open_dataset(source.card, path, fit.split) if fit.split is not None else _validation(source, path)
    if found is None:
        return None
    left = [sample for sample in load_samples(found) if hash_sample(sample) not in compared]
    if fit.split is None and len({sample.label for sample in left}) < 2:
        return None  # nobody asked for it, so it is no error that nothing can be fitted on it
    return write_samples(left, inputs / VALIDATION_FILE)


def _load_same_form(source: DatasetSource, path: Path, split: str) -> DatasetSource:
    """Open a file of the same form, or else of one that is known."""
    try:
        return open_dataset(source.card, path, split)
    except InputError:
        name = recognise_dataset(path)
        if name is None or name == source.name:
            raise
        return open_dataset(name, path, split)


def _validation(source: DatasetSource, path: Path) -> DatasetSource | None:
    """Return the validation split of a set, if its rows or the names of its files tell of one beside the compared split."""
    for split in AUTO_FIT_SPLITS if source.split not in (None, ALL) else ():
        if split == source.split or (source.split_rows and split not in source.split_rows):
            continue
        try:
            return open_dataset(source.card, path, split)
        except InputError:
            continue
    return None


def _matched(card: DatasetCard, seen: MatchingFeatures) -> RowIndices:
    paired = any(pair is not None for pair in seen.pairs)
    return matched_pairs(seen, card.near) if paired else matched_rows(seen, card.near)


def _subsets(
    card: DatasetCard, matched: RowIndices, rows: LabelledRows, seen: MatchingFeatures, told: Mapping[str, RunResult]
) -> tuple[Subset, ...]:
    """Return the length-matched rows of pairs and of sets that must not be read without, the parts of a set, and their mean."""
    found = []
    if len(matched) and (card.derived or any(pair is not None for pair in seen.pairs)):
        about = f"{len(matched) // 2:,} right and as many hallucinated responses, each within {card.near} words of its other"
        found.append(make_subset(LENGTH_MATCHED, about, matched, rows, told))
    parts = [make_subset(name, "a part of the set", places, rows, told) for name, places in rows_by_part(seen).items()]
    return (*found, *parts, *([mean_subset(parts)] if parts else []))


def _facts(source: DatasetSource, path: Path, rows: int) -> DatasetFacts:
    card = source.card
    return DatasetFacts(
        name=source.name, about=card.about, task=card.task, labels=card.labels, split=source.split, path=str(path),
        sha256=hash_files(source.files), rows=rows, licence=card.licence, derived=card.derived,
    )  # fmt: skip
