"""Evaluate methods on a data set: convert its rows to samples, compare the methods on them, and score the baselines.

A trivial rule may solve a set, so the scores of the baselines and the warnings that follow from them go with every figure.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from knowhalu.datasets.card import DatasetCard
from knowhalu.datasets.loading import ALL, VALIDATION, DatasetSource, hash_files, load_samples, open_dataset, recognise_dataset
from knowhalu.errors import InputError
from knowhalu.evaluation.baselines import RESPONSE_ONLY
from knowhalu.evaluation.bootstrap import Estimate
from knowhalu.evaluation.compare import (
    Comparison,
    MethodResult,
    ReportMethodProgress,
    compare_results,
    make_method_runs,
    run_methods,
)
from knowhalu.evaluation.labelled_rows import limit_rows, read_labelled_rows, write_samples
from knowhalu.evaluation.runs import MethodSpec
from knowhalu.evaluation.slices import (
    LENGTH_MATCHED,
    Subset,
    length_matched,
    make_subsets,
    matching_features,
)
from knowhalu.io.samples import hash_sample, read_samples
from knowhalu.methods.baselines.rules import TRIVIAL_RULES

VALIDATION_FILE = "validation.jsonl"
AUTO_FIT_SPLITS = (*VALIDATION, "dev")
"""The splits on which rules are fitted by default: the first that a set has besides the compared one."""
SOLVED_THRESHOLD = 0.75
"""Average accuracy from which on a rule counts as solving a set; chance is 0.5."""
LENGTH_RULE = "trivial-length"
"""A rule on the number of words, which is shown with every method."""


class BaselineScores(NamedTuple):
    """The figures to read those of a method with: Avg Acc of the best rule, of length alone, and both on length-matched rows.

    A rule that was fitted on the same rows gives an upper bound.
    """

    rule: str | None
    rule_fitted: str | None
    rule_average: Estimate
    length_average: Estimate
    matched_average: Estimate
    matched_length_average: Estimate


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
    matched = length_matched(source.card, features)
    if source.card.derived and not len(matched):
        what = f"{source.name}: among {len(rows.gold):,} rows none are length-matched, and a figure of {source.card.derived}"
        raise InputError(f"{what} is not given without them. Take more rows: raise --limit, or leave it out.")
    results = run_methods(rows, chosen, plain, folder, fit=fitted, restart=restart, responses=True, progress=progress)
    subsets = make_subsets(source.card, matched, rows, features, {run.spec.name: result for run, result in results})
    comparison = compare_results(rows, results, fitted)
    beside_scores = baseline_scores(comparison, subsets)
    warnings = list(baseline_warnings(comparison, source.card, subsets, rows.bare))
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


def _facts(source: DatasetSource, path: Path, rows: int) -> DatasetFacts:
    card = source.card
    return DatasetFacts(
        name=source.name, about=card.about, task=card.task, labels=card.labels, split=source.split, path=str(path),
        sha256=hash_files(source.files), rows=rows, licence=card.licence, derived=card.derived,
    )  # fmt: skip


def baseline_results(comparison: Comparison) -> list[MethodResult]:
    """Return the results of the baselines, the best first."""
    baselines = [r for r in comparison.results if r.name == r.method and r.method in (*TRIVIAL_RULES, RESPONSE_ONLY)]
    return sorted(baselines, key=lambda r: -(r.figures["average"].value or 0.0))


def baseline_scores(comparison: Comparison, subsets: Sequence[Subset]) -> dict[str, BaselineScores]:
    """Return the baseline scores of every method by its name; unknown figures are empty."""
    rules = baseline_results(comparison)
    matched = next((s for s in subsets if s.name == LENGTH_MATCHED), None)
    best = rules[0] if rules else None
    length = next((r for r in rules if r.method == LENGTH_RULE), None)
    return {
        result.name: BaselineScores(
            rule=best.name if best else None,
            rule_fitted=best.fitted if best else None,
            rule_average=_average(best),
            length_average=_average(length),
            matched_average=_average_on(matched, result.name),
            matched_length_average=_average_on(matched, length.name if length else LENGTH_RULE),
        )
        for result in comparison.results
    }


def withhold_figures(comparison: Comparison, scores: Mapping[str, BaselineScores]) -> tuple[Comparison, list[str]]:
    """Remove the figures of methods that lack a length rule or a length-matched figure.

    Returns the comparison without them, and the names of these methods.
    """
    bare = [name for name, b in scores.items() if b.length_average.value is None or b.matched_average.value is None]
    results = tuple(
        replace(r, figures=dict.fromkeys(r.figures, Estimate(None)), oracle=None) if r.name in bare else r
        for r in comparison.results
    )
    tests = tuple(replace(t, difference=Estimate(None)) if t.name in bare else t for t in comparison.tests)
    return replace(comparison, results=results, tests=tests), bare


def baseline_warnings(comparison: Comparison, card: DatasetCard, subsets: Sequence[Subset], bare: int) -> Iterator[str]:
    """Yield the warnings that a reader of the figures needs, the most serious first."""
    rules = baseline_results(comparison)
    solved = [rule for rule in rules if (_average(rule).value or 0.0) >= SOLVED_THRESHOLD]
    if solved:
        names = ", ".join(f"{rule.title} {100 * (_average(rule).value or 0.0):.1f} %" for rule in solved)
        yield (
            f"Trivial rules solve this set: {names} average accuracy ({SOLVED_THRESHOLD:.0%} or more). "
            "A method may get as much without detecting errors."
        )
    if card.derived:
        yield (
            f"This set is derived from {card.derived}, whose wrong responses were generated and differ in length and style. Its "
            "figures must not be reported without the length rule and the length-matched rows."
        )  # fmt: skip
    yield from _methods_below_best_rule(comparison, rules)
    yield from _rules_solving_matched_rows(subsets, rules)
    if card.pairs and not any(s.name == LENGTH_MATCHED for s in subsets):
        yield "No pair of these rows is length-matched, so nothing can be said about responses of equal length."
    if bare:
        yield f"{bare:,} rows bring no sources: their verdicts depend on the index or on the memory of the model."
    if not any(rule.method == RESPONSE_ONLY for rule in rules):
        yield f"{RESPONSE_ONLY} was not run: it needs rows of both labels and two groups that share no response."


def _methods_below_best_rule(comparison: Comparison, rules: Sequence[MethodResult]) -> Iterator[str]:
    """Yield a warning for each method whose interval is not above the figure of the best rule."""
    best = _average(rules[0]).value if rules else None
    names = {rule.name for rule in rules}
    for result in comparison.results:
        figure = _average(result)
        if result.name in names or best is None or figure.value is None:
            continue
        lower = figure.value if figure.low is None else figure.low
        if lower <= best:
            what = "does not beat" if figure.value <= best else "does not clearly beat"
            shares = f"{100 * figure.value:.1f} % against {100 * best:.1f} %"
            yield f"{result.name} {what} {rules[0].name}: {shares} average accuracy."


def _rules_solving_matched_rows(subsets: Sequence[Subset], rules: Sequence[MethodResult]) -> Iterator[str]:
    """Yield a warning for rules that solve even the length-matched rows."""
    matched = next((s for s in subsets if s.name == LENGTH_MATCHED), None)
    averages = {rule.name: _average_on(matched, rule.name).value or 0.0 for rule in rules}
    solved = {name: value for name, value in averages.items() if value >= SOLVED_THRESHOLD}
    if solved:
        names = ", ".join(f"{name} {100 * value:.1f} %" for name, value in solved.items())
        yield f"The length-matched rows are solved by other rules: {names} average accuracy."


def _average(result: MethodResult | None) -> Estimate:
    return result.figures["average"] if result is not None else Estimate(None)


def _average_on(matched: Subset | None, name: str) -> Estimate:
    result = matched.of(name) if matched is not None else None
    return result.figures["average"] if result is not None else Estimate(None)
