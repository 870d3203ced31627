"""Evaluate methods on a data set: convert its rows to samples, compare the methods on them, and score the baselines."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from knowhalu.datasets.card import DatasetCard
from knowhalu.datasets.loading import ALL, VALIDATION, DatasetSource, hash_files, load_samples, open_dataset, recognise_dataset
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
"""The splits on which rules are fitted by default: the first that a set has besides the compared one."""


@dataclass(frozen=True)
class DatasetFacts:
    """The origin of the rows: `rows` counts those of the chosen split, of which `--limit` may have selected some."""

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
    """A comparison on a data set, with the baseline scores of every method (`beside`), subsets, and warnings.

    `asked` names the requested methods, without the rules that always take part.
    """

    asked: tuple[str, ...]
    comparison: Comparison
    dataset: DatasetFacts
    beside: dict[str, BaselineScores]
    subsets: tuple[Subset, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class FitSource:
    """The rows on which baselines are fitted: a file, a split of the set, or, with neither, its validation split, if any."""

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
    """Compare methods and all baselines on a data set; the outcomes stay in `folder`.

    `path` is that of the source. A second call with the same folder checks only rows without a verdict. Raises InputError for
    rows, and where a derived set has no length-matched rows.
    """
    chosen, plain = make_method_runs(specs, file, pairs)
    inputs = folder / "input"
    if any(file.resolve().parent == inputs.resolve() for file in source.files):
        raise InputError(
            f"{path}: is in the folder to which its rows would be written. Nothing was changed. Give another folder."
        )
    whole = read_labelled_rows(write_samples(load_samples(source), inputs / "all.jsonl"))
    fitted = _fit_rows(source, path, fit or FitSource(), whole.contents.keys(), inputs)
    rows = limit_rows(whole, limit, folder)
    features = matching_features(read_samples(rows.path))
    matched = _matched(source.card, features)
    if source.card.derived and not len(matched):
        what = f"{source.name}: among {len(rows.gold):,} rows none are length-matched, and a figure of {source.card.derived}"
        raise InputError(f"{what} is not given without them. Take more rows: raise --limit, or leave it out.")
    results = run_methods(rows, chosen, plain, folder, fit=fitted, restart=restart, responses=True, progress=progress)
    subsets = _subsets(source.card, matched, rows, features, {run.spec.name: result for run, result in results})
    comparison = compare_results(rows, results, fitted)
    beside_scores, warnings = (
        baseline_scores(comparison, subsets),
        list(baseline_warnings(comparison, source.card, subsets, rows.bare)),
    )
    if source.card.derived:
        comparison, bare = withhold_figures(comparison, beside_scores)
        warnings += [f"{name}: figures withheld, since it has no verdict on the length-matched rows of a label." for name in bare]
    return DatasetEvaluation(
        asked=tuple(spec.name for spec in specs), comparison=comparison, dataset=_facts(source, path, len(whole.gold)),
        beside=beside_scores, subsets=subsets, warnings=tuple(warnings),
    )  # fmt: skip


def _fit_rows(source: DatasetSource, path: Path, fit: FitSource, compared: Set[str], inputs: Path) -> Path | None:
    """Write the rows to fit on; None where there are none. Rows of a split that are also compared are left out."""
    if fit.path is not None:
        return write_samples(load_samples(_open_same_layout(source, fit.path, fit.split or ALL)), inputs / VALIDATION_FILE)
    other = open_dataset(source.card, path, fit.split) if fit.split is not None else _validation(source, path)
    if other is None:
        return None
    left = [sample for sample in load_samples(other) if hash_sample(sample) not in compared]
    if fit.split is None and len({sample.label for sample in left}) < 2:
        return None  # the split was chosen by default, so it is no error that nothing can be fitted on it
    return write_samples(left, inputs / VALIDATION_FILE)


def _open_same_layout(source: DatasetSource, path: Path, split: str) -> DatasetSource:
    """Open a file with the layouts of the same data set, or else of another known one."""
    try:
        return open_dataset(source.card, path, split)
    except InputError:
        name = recognise_dataset(path)
        if name is None or name == source.name:
            raise
        return open_dataset(name, path, split)


def _validation(source: DatasetSource, path: Path) -> DatasetSource | None:
    """Return the validation split of a set, where its rows or file names have one besides the compared split."""
    for split in AUTO_FIT_SPLITS if source.split not in (None, ALL) else ():
        if split == source.split or (source.split_rows and split not in source.split_rows):
            continue
        try:
            return open_dataset(source.card, path, split)
        except InputError:
            continue
    return None


def _matched(card: DatasetCard, features: MatchingFeatures) -> RowIndices:
    paired = any(pair is not None for pair in features.pairs)
    return matched_pairs(features, card.near) if paired else matched_rows(features, card.near)


def _subsets(
    card: DatasetCard, matched: RowIndices, rows: LabelledRows, features: MatchingFeatures, results: Mapping[str, RunResult]
) -> tuple[Subset, ...]:
    """Return the length-matched rows of pairs and of derived sets, the parts of a set, and their mean."""
    subsets = []
    if len(matched) and (card.derived or any(pair is not None for pair in features.pairs)):
        about = f"{len(matched) // 2:,} right and as many hallucinated responses, each within {card.near} words of its other"
        subsets.append(make_subset(LENGTH_MATCHED, about, matched, rows, results))
    parts = [make_subset(name, "a part of the set", places, rows, results) for name, places in rows_by_part(features).items()]
    return (*subsets, *parts, *([mean_subset(parts)] if parts else []))


def _facts(source: DatasetSource, path: Path, rows: int) -> DatasetFacts:
    card = source.card
    return DatasetFacts(
        name=source.name, about=card.about, task=card.task, labels=card.labels, split=source.split, path=str(path),
        sha256=hash_files(source.files), rows=rows, licence=card.licence, derived=card.derived,
    )  # fmt: skip
