"""Finished runs: their files, their comparisons and evaluations, and the published figures to show with them."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from knowhalu.errors import InputError
from knowhalu.evaluation import published as book
from knowhalu.evaluation.bootstrap import Estimate, draw_resamples, metrics_with_intervals
from knowhalu.evaluation.compare import Comparison, MethodResult, PairedTest
from knowhalu.evaluation.labelled_rows import LabelledRows
from knowhalu.evaluation.metrics import (
    METRICS,
    Predictions,
    fit_threshold_rule,
    metrics_from_counts,
    row_counts,
    unmeasured_notes,
)
from knowhalu.evaluation.oracle import OracleThreshold
from knowhalu.evaluation.result_tables import subset_tables
from knowhalu.evaluation.runs import table_predictions, verdict_traits
from knowhalu.evaluation.slices import Slicing, Subset, SubsetResult, make_breakdowns, slice_names
from knowhalu.evaluation.tables import ResultTable, as_plain
from knowhalu.io.outcomes import OutcomeTable
from knowhalu.methods.baselines.rules import threshold_probability

COMPARISON_FILE = "comparison.json"
RUN_PATH_HINT = "Give a folder of `knowhalu compare`, a folder of such folders, or an outcome file of `knowhalu detect`."
T = TypeVar("T", PairedTest, Comparison, MethodResult)
RERUN_HINT = "Run the same `knowhalu compare` again; its outcomes are kept."
LENGTH_RULE = "trivial-length"
RATES = ("tpr", "tnr")
REPORT_TRAITS = ("steps", "forms")
"""Traits of verdicts by which outcomes that were not compared are divided."""


class RunFiles(NamedTuple):
    """The files of a run: its outcomes by method, its rows and the fields of its comparison, where there are any."""

    name: str
    files: dict[str, Path]
    rows: Path | None
    comparison: dict[str, Any] | None


def find_runs(paths: Sequence[Path], rows: Path | None = None) -> list[RunFiles]:
    """Find the runs at the paths; `rows` is the file of the rows of a single run.

    Raises InputError for a path without a run, and where the compared rows are missing.
    """
    runs = [run for path in paths for run in _runs(path, rows)]
    if rows is not None and len(runs) > 1:
        raise InputError(f"--rows {rows}: there are {len(runs)} runs. It can only name the rows of a single one.")
    names = [run.name for run in runs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two runs are called {name!r}. Rename the folder or file of one of them.")
    return runs


def _runs(path: Path, rows: Path | None) -> list[RunFiles]:
    if path.is_file():
        return [RunFiles(path.stem, {path.stem: path}, rows, None)]
    if not path.is_dir():
        raise InputError(f"{path}: no such file or folder. {RUN_PATH_HINT}")
    if (path / COMPARISON_FILE).is_file():
        return [_compared_run(path, rows)]
    runs = [_compared_run(folder, rows) for folder in sorted(path.iterdir()) if (folder / COMPARISON_FILE).is_file()]
    if not runs:
        raise InputError(f"{path}: neither it nor a folder in it holds a {COMPARISON_FILE}. {RUN_PATH_HINT}")
    return runs


def _compared_run(folder: Path, rows: Path | None) -> RunFiles:
    path = folder / COMPARISON_FILE
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        names, given = [str(result["name"]) for result in fields["results"]], str(fields["input"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a comparison of KnowHalu ({type(error).__name__}: {error}). {RERUN_HINT}") from error
    files = {name: folder / f"{Path(name).name}.jsonl" for name in names}
    for file in files.values():
        if not file.is_file():
            raise InputError(f"{file}: no such file, and {path} names it. Run the same `knowhalu compare` again.")
    return RunFiles(folder.resolve().name, files, rows or _rows_of(folder, Path(given)), fields)


def _rows_of(folder: Path, given: Path) -> Path:
    """Return the file of the compared rows: as given, or next to the outcomes if all files were moved together."""
    places = (given, folder / "input" / given.name, folder / given.name, folder.parent / given.name)
    for place in places:
        if place.is_file():
            return place
    raise InputError(f"{folder}: the compared rows are no longer at {given}. Name their file: --rows FILE.")


class SliceRates(NamedTuple):
    """The rows of a slice with a verdict of a method, and its TPR and TNR there."""

    rows: int
    tpr: float | None
    tnr: float | None


class BreakdownRates(NamedTuple):
    """The rates of every method in every slice: `parts[slice][method]`."""

    title: str
    parts: dict[str, dict[str, SliceRates]]


def read_comparison(given: dict[str, Any], path: Path) -> Comparison:
    """Make a comparison of the fields of its file; raises InputError where they are not those of one."""
    try:
        results = tuple(_result(result) for result in given["results"])
        tests = tuple(_from_fields(PairedTest, {**t, "difference": Estimate(**t["difference"])}) for t in given["tests"])
        # `read_breakdowns` reads the breakdowns
        return _from_fields(
            Comparison, {**given, "results": results, "tests": tests, "notes": tuple(given["notes"]), "breakdowns": ()}
        )
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: not a comparison of KnowHalu ({type(error).__name__}: {error}). {RERUN_HINT}") from error


def check_unchanged(comparison: Comparison, outcomes: dict[str, OutcomeTable], texts: LabelledRows, path: Path) -> None:
    """Raise InputError where the outcomes of a comparison have changed since its file was written."""
    for result in comparison.results:
        entries, predictions = table_predictions(outcomes[result.name], texts)
        now = metrics_from_counts(row_counts(predictions).sum(axis=0))
        then = {name: np.nan if (value := result.figures[name].value) is None else value for name in RATES}
        same = all(np.isclose(now[name], then[name], equal_nan=True) for name in RATES)
        if len(entries) != result.rows or not same:
            raise InputError(f"{path}: is older than the outcomes of {result.name}. {RERUN_HINT}")


def compare_outcomes(name: str, table: OutcomeTable, texts: LabelledRows) -> Comparison | None:
    """Compare one method and the best length rule on the same rows with gold labels; None where no row has a label."""
    entries, predictions = table_predictions(table, texts)
    if not len(entries):
        return None
    places = table.place[entries]
    drawn = draw_resamples(int(texts.groups.max()) + 1)
    used = {k: n / max(1, int(table.has_verdict.sum())) for k, n in table.usage.items()}
    cost: dict[str, float | None] = {**used, "seconds": None}
    metrics = metrics_with_intervals(predictions, texts.groups[places], drawn)
    unmeasured = int((~predictions.measured).sum())
    results = [MethodResult(name, table.method, "", (), len(entries), table.failures, metrics, cost, unmeasured=unmeasured)]
    length = _length_rule_result(predictions, np.array([traits.words for traits in texts.traits])[places])
    notes = unmeasured_notes({name: predictions})
    if length is not None:
        metrics = metrics_with_intervals(length, texts.groups[places], drawn)
        results.append(
            MethodResult(LENGTH_RULE, LENGTH_RULE, "", (), len(entries), {}, metrics, dict.fromkeys(cost), "the same rows")
        )
        notes.append(f"{LENGTH_RULE} is fitted on these same rows: an upper bound of what length alone gives.")
    known = int(texts.labelled.sum())
    if known < len(texts.gold):
        notes.append(f"Figures are of the {known:,} rows with a gold label; {len(texts.gold) - known:,} have none.")
    hallucinated, groups = int(texts.gold.sum()), len(np.unique(texts.groups[texts.labelled]))
    return Comparison(str(texts.path), known, hallucinated, groups, tuple(results), (), tuple(notes))


def _length_rule_result(predictions: Predictions, words: np.ndarray[Any, np.dtype[np.int64]]) -> Predictions | None:
    rule = fit_threshold_rule(zip(predictions.gold.tolist(), words.tolist(), strict=True))
    if rule is None:
        return None
    distance = (words - rule.at) * (1 if rule.over else -1)
    p = np.array([threshold_probability(d, rule.at) for d in distance.tolist()])
    return Predictions(predictions.gold, distance > 0, np.zeros(len(words), dtype=np.bool_), p)


def compute_breakdowns(rows: LabelledRows, outcomes: Mapping[str, OutcomeTable]) -> list[BreakdownRates]:
    """Compute the rates of slices for outcomes that were not compared before."""
    types = slice_names("type", [traits.type or traits.kind for traits in rows.traits])
    words = slice_names("words", [traits.words for traits in rows.traits])
    slicings = []
    for method, table in outcomes.items():
        entries, predictions = table_predictions(table, rows)
        traits = {**verdict_traits(table), "steps": table.steps.tolist()}
        names = {key: slice_names(key, values) for key, values in traits.items() if key in REPORT_TRAITS}
        slicings.append(
            Slicing(method, predictions, np.zeros(len(entries), dtype=np.intp), {
                **{key: [column[place] for place in table.place[entries]] for key, column in (("type", types), ("words", words))},
                **{key: [column[i] for i in entries] for key, column in names.items()},
            })
        )  # fmt: skip
    breakdowns = make_breakdowns(slicings, np.zeros((0, 1), dtype=np.uint8), RATES)
    return [_breakdown_rates(as_plain(breakdown)) for breakdown in breakdowns]


def read_breakdowns(given: Sequence[Any], place: str) -> list[BreakdownRates]:
    """Read the breakdowns of a comparison's file; raises InputError where they are none."""
    try:
        return [_breakdown_rates(fields) for fields in given]
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{place}: its breakdowns cannot be read ({type(error).__name__}: {error}). Compare again.") from error


def _breakdown_rates(fields: Mapping[str, Any]) -> BreakdownRates:
    slices: dict[str, dict[str, SliceRates]] = {}
    for result in fields["results"]:
        for part in result["parts"]:
            rates = (part["figures"][name]["value"] for name in RATES)
            slices.setdefault(str(part["name"]), {})[str(result["method"])] = SliceRates(int(part["rows"]), *rates)
    return BreakdownRates(str(fields["title"]), slices)


def _result(given: dict[str, Any]) -> MethodResult:
    figures_of = {name: Estimate(None) for name in METRICS} | {k: Estimate(**v) for k, v in given["figures"].items()}
    oracle = OracleThreshold(found["at"], tuple(found["macro_f1"])) if (found := given.get("oracle")) else None
    return _from_fields(MethodResult, {**given, "settings": tuple(given["settings"]), "figures": figures_of, "oracle": oracle})


def _from_fields(kind: type[T], given: dict[str, Any]) -> T:
    """Make a record of its known fields; a file of another version may have more."""
    return kind(**{f.name: given[f.name] for f in fields(kind) if f.name in given})


class DatasetNotes(NamedTuple):
    """The facts, warnings and tables of a data set; all empty for rows of none."""

    name: str = ""
    facts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    tables: tuple[ResultTable, ...] = ()


def read_dataset_notes(fields: Mapping[str, Any], place: str) -> DatasetNotes:
    """Return the notes that an evaluation added to its comparison; raises InputError where they cannot be read."""
    try:
        about = fields.get("dataset") or {}
        tables = subset_tables([_subset(given) for given in fields.get("subsets", ())], count_mean=True)
        warnings = tuple(str(line) for line in fields.get("warnings", ()))
        return DatasetNotes(str(about.get("name", "")), tuple(_facts(about)), warnings, tuple(tables))
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(f"{place}: not an evaluation of KnowHalu ({type(error).__name__}: {error}). Run it again.") from error


def _facts(about: Mapping[str, Any]) -> list[str]:
    names = {"about": "", "labels": "Labels", "split": "Split", "licence": "Licence", "sha256": "SHA-256"}
    return [f"{title}: {about[name]}" if title else str(about[name]) for name, title in names.items() if about.get(name)]


def _subset(given: Mapping[str, Any]) -> Subset:
    """Make a subset from the fields of its file; metrics of another version are unknown."""
    unknown = dict.fromkeys(METRICS, Estimate(None))
    results = (
        SubsetResult(str(r["name"]), r["rows"], unknown | {name: Estimate(**figure) for name, figure in r["figures"].items()})
        for r in given["results"]
    )
    return Subset(given["name"], given["about"], given["rows"], given.get("hallucinated", 0), tuple(results))


class PublishedScore(NamedTuple):
    """A published result on a data set: the system, the metric, its value as a share, and the source."""

    system: str
    figure: str
    value: float
    source: str


def published_scores(name: str) -> tuple[PublishedScore, ...]:
    """Return the published results on the data set of this name, or of this run folder; empty where none is known."""
    known = book.read_published()
    keys = [key for key, about in known.sets.items() if name == key or name in about.folders]
    numbers = [n for key in keys for n in book.published_numbers(set=key) if n.metric in METRICS]
    in_row = Counter((n.paper, n.table, n.labels, n.metric) for n in numbers)
    scores = []
    for n in numbers:
        # the name of the row, with the column where the row has several numbers of one metric
        column = n.column if in_row[n.paper, n.table, n.labels, n.metric] > 1 else ""
        source = f"{known.papers[n.paper].title.partition(':')[0]}, table {n.table}"
        scores.append(PublishedScore(", ".join(filter(None, (*n.labels, column))), n.metric, n.value / 100, source))
    return tuple(scores)
