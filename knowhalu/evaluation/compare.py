"""Compare several methods on the same labelled rows: metrics with intervals, cost, and tests of each against the first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from knowhalu.api import Checker
from knowhalu.batch import RunProgress
from knowhalu.build import BackendPool, reasoner_of
from knowhalu.errors import InputError, SettingsError, hide_password
from knowhalu.evaluation.baselines import RESPONSE_ONLY, fit_rules, read_validation_rows, run_response_only
from knowhalu.evaluation.bootstrap import (
    Estimate,
    draw_resamples,
    holm,
    make_estimate,
    mcnemar,
    metrics_with_intervals,
    percentile_interval,
    resample_metrics,
)
from knowhalu.evaluation.labelled_rows import LabelledRows, limit_rows, read_labelled_rows
from knowhalu.evaluation.metrics import Floats, metrics_from_counts, row_counts, unmeasured_notes
from knowhalu.evaluation.oracle import OracleThreshold, oracle_threshold
from knowhalu.evaluation.runs import SAME_ROWS, MethodRun, MethodSpec, RunResult, TimedChecker, run_method
from knowhalu.evaluation.slices import ROW_TRAITS, VERDICT_TRAITS, Breakdown, Slicing, make_breakdowns, slice_names
from knowhalu.methods.baselines.rules import TRIVIAL_RULES
from knowhalu.methods.options import TrivialOptions
from knowhalu.profiles import read_profile
from knowhalu.settings import Settings, read_settings


@dataclass(frozen=True)
class MethodResult:
    """The result of one method on the rows with a verdict, and the cost of each such row.

    Of these, `unmeasured` rows have no probability. The seconds of a `sequential` result are those of one row after another.
    `oracle` is the best threshold on these very rows.
    """

    name: str
    method: str
    reasoner: str
    settings: tuple[str, ...]
    rows: int
    failures: dict[str, int]
    figures: dict[str, Estimate]
    cost: dict[str, float | None]
    fitted: str | None = None
    unmeasured: int = 0
    sequential: bool = False
    oracle: OracleThreshold | None = None

    @property
    def title(self) -> str:
        """Return the name, and that the figures are an upper bound where the method was fitted on the compared rows."""
        return f"{self.name} (upper bound)" if self.fitted == SAME_ROWS else self.name


@dataclass(frozen=True)
class PairedTest:
    """A test of a method against the first one, on the rows where both have a verdict.

    `difference` is its Avg Acc minus that of the first; `p` is McNemar's, `holm` the same corrected for the number of tests.
    """

    name: str
    rows: int
    first_only: int
    other_only: int
    p: float
    holm: float
    difference: Estimate


@dataclass(frozen=True)
class Comparison:
    """All results, that of the first method at the front, and the notes that a reader needs."""

    input: str
    rows: int
    hallucinated: int
    groups: int
    results: tuple[MethodResult, ...]
    tests: tuple[PairedTest, ...]
    notes: tuple[str, ...]
    breakdowns: tuple[Breakdown, ...] = ()


ReportMethodProgress = Callable[[str, RunProgress], None]


def compare(
    input: Path,
    specs: Sequence[MethodSpec],
    folder: Path,
    *,
    file: Path | None = None,
    pairs: Sequence[str] = (),
    fit: Path | None = None,
    limit: int | None = None,
    restart: bool = False,
    progress: ReportMethodProgress | None = None,
) -> Comparison:
    """Run every method on the labelled rows of `input` and compare their verdicts; the outcomes stay in `folder`.

    A second call with the same folder checks only rows without a verdict. The trivial rules always take part, fitted on the
    rows of `fit`, or else on the compared rows. Raises InputError for rows, SettingsError for methods, ResumeError where the
    folder holds outcomes of other settings.
    """
    chosen, plain = make_method_runs(specs, file, pairs)
    whole = read_labelled_rows(input)
    folder.mkdir(parents=True, exist_ok=True)
    rows = limit_rows(whole, limit, folder)
    return compare_results(rows, run_methods(rows, chosen, plain, folder, fit=fit, restart=restart, progress=progress), fit)


def make_method_runs(
    specs: Sequence[MethodSpec], file: Path | None = None, pairs: Sequence[str] = ()
) -> tuple[list[MethodRun], Settings]:
    """Return the methods with their settings, and those of the trivial rules.

    Raises SettingsError naming the method, and for a profile of another method.
    """
    chosen, profile = [MethodRun(spec, spec.settings(file, pairs)) for spec in specs], read_settings(file, pairs).profile
    if profile is not None and not any(method_run.settings.profile for method_run in chosen):
        method = read_profile(profile).method
        raise SettingsError(f"{profile}: is for {method}, which is not compared. Add it to the methods, or leave out the profile")
    return chosen, MethodSpec("trivial", "trivial-length").settings(file, pairs, profiled=False)


def run_methods(
    rows: LabelledRows,
    chosen: list[MethodRun],
    plain: Settings,
    folder: Path,
    *,
    fit: Path | None = None,
    restart: bool = False,
    responses: bool = False,
    progress: ReportMethodProgress | None = None,
) -> list[tuple[MethodRun, RunResult]]:
    """Run every method and the trivial rules on rows, and return their results; the outcomes stay in `folder`.

    With `responses`, the response-only baseline takes part, too.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pool, basis = BackendPool(), read_validation_rows(fit, rows) if fit is not None else rows
    results: list[tuple[MethodRun, RunResult]] = []
    _refuse_rows_without_sources(rows, chosen)
    for method_run in chosen:
        Checker(method_run.settings).refuse_fitted(rows.contents, str(rows.path))
    for method_run in _with_trivial(chosen, basis, rows, folder, plain, pool):
        output, report = folder / f"{method_run.spec.name}.jsonl", progress and _progress_of(progress, method_run.spec.name)
        if method_run.fitted is not None:
            output.unlink(missing_ok=True)  # fitted again, and its checks cost nothing
        result = run_method(TimedChecker(method_run.settings, pool), rows, output, restart=restart, progress=report)
        results.append((method_run, result))
    if responses and not rows.missing:
        learned = run_response_only(rows, basis, folder / f"{RESPONSE_ONLY}.jsonl")
        if learned is not None:
            results.append((MethodRun(MethodSpec(RESPONSE_ONLY, RESPONSE_ONLY), plain, learned.fitted), learned.result))
    return results


def _progress_of(progress: ReportMethodProgress, name: str) -> Callable[[RunProgress], None]:
    return lambda p: progress(name, p)


def _refuse_rows_without_sources(rows: LabelledRows, chosen: Sequence[MethodRun]) -> None:
    """Raise InputError for rows without sources and a method that needs some, before other methods spend hours on them."""
    for method_run in chosen:
        if rows.bare and Checker(method_run.settings).needs_sources:
            what = f"{method_run.spec.name} needs sources. Rows with neither documents nor knowledge: {rows.bare:,}"
            raise InputError(f"{rows.path}: {what}. Add them to the rows, or an index: --index FOLDER.")


def _with_trivial(
    chosen: list[MethodRun], basis: LabelledRows, rows: LabelledRows, folder: Path, settings: Settings, pool: BackendPool
) -> list[MethodRun]:
    """Fit a threshold on `basis` for every trivial rule without one, and add the rules that were not requested.

    Rules that look at the sources are not added where there are rows without any.
    """
    present = {run.spec.method for run in chosen if _has_no_threshold(run)} | {run.spec.name for run in chosen}
    lacks_sources = not settings.retrieval.has_source and bool(rows.bare or basis.bare)
    usual = settings.trivial if settings.trivial.rule else TrivialOptions()
    runs = chosen + [
        MethodRun(MethodSpec(name, name), settings.model_copy(update={"method": name, "trivial": usual}))
        for name, rule in TRIVIAL_RULES.items()
        if name not in present and not (rule.reads and lacks_sources)
    ]
    names = dict.fromkeys(run.spec.method for run in runs if _has_no_threshold(run))
    if not names:
        return runs
    if basis.missing:
        return [run for run in runs if not _has_no_threshold(run)]
    fitted = TrivialOptions(rule=fit_rules(names, basis, settings, folder, pool))
    on = SAME_ROWS if basis is rows else str(basis.path)
    return [
        run._replace(settings=run.settings.model_copy(update={"trivial": fitted}), fitted=on) if _has_no_threshold(run) else run
        for run in runs
    ]


def _has_no_threshold(method_run: MethodRun) -> bool:
    options = method_run.settings.trivial
    return method_run.spec.method in TRIVIAL_RULES and options.threshold is None and options.rule is None


def compare_results(rows: LabelledRows, results: Sequence[tuple[MethodRun, RunResult]], fit: Path | None = None) -> Comparison:
    """Compare the results of methods on the same rows; `fit` is the file on which the rules were fitted, if it is another."""
    drawn = draw_resamples(int(rows.groups.max()) + 1)
    tests = [_paired_test(rows, results[0][1], method_run, other, drawn) for method_run, other in results[1:]]
    corrected = holm([test.p for test in tests])
    return Comparison(
        input=str(rows.path),
        rows=len(rows.gold),
        hallucinated=int(rows.gold.sum()),
        groups=drawn.shape[1],
        results=tuple(_method_result(method_run, result, rows, drawn) for method_run, result in results),
        tests=tuple(PairedTest(**{**vars(t), "holm": p}) for t, p in zip(tests, corrected, strict=True)),
        notes=tuple(_notes(rows, results, fit)),
        breakdowns=make_breakdowns(_slicings(rows, results), drawn),
    )


def _method_result(method_run: MethodRun, result: RunResult, rows: LabelledRows, drawn: NDArray[np.uint8]) -> MethodResult:
    return MethodResult(
        name=method_run.spec.name,
        method=method_run.spec.method,
        reasoner=reasoner_of(method_run.settings),
        settings=tuple(map(hide_password, method_run.spec.pairs)),
        rows=len(result.places),
        failures=result.failures,
        figures=metrics_with_intervals(result.predictions, rows.groups[result.places], drawn),
        cost=result.cost,
        fitted=method_run.fitted,
        unmeasured=int((~result.predictions.measured).sum()),
        sequential=result.sequential,
        oracle=oracle_threshold([result.predictions]),
    )


def _paired_test(
    rows: LabelledRows, first: RunResult, method_run: MethodRun, other: RunResult, drawn: NDArray[np.uint8]
) -> PairedTest:
    places, ours, theirs = np.intersect1d(first.places, other.places, return_indices=True)
    one, two = first.predictions.rows(ours), other.predictions.rows(theirs)
    test = mcnemar(one.right, two.right)
    groups = rows.groups[places]
    spread: Floats = resample_metrics(two, groups, drawn)["average"] - resample_metrics(one, groups, drawn)["average"]
    a, b = (float(metrics_from_counts(row_counts(predictions).sum(axis=0))["average"]) for predictions in (one, two))
    low, high = percentile_interval(spread) if len(np.unique(groups)) > 1 else (None, None)
    difference = make_estimate(b - a, low, high)
    return PairedTest(method_run.spec.name, len(places), test.first_only, test.other_only, test.p, test.p, difference)


def _notes(rows: LabelledRows, results: Sequence[tuple[MethodRun, RunResult]], fit: Path | None) -> list[str]:
    """Return the notes that a reader of the figures needs."""
    notes = []
    if rows.missing:
        rate = "TNR" if rows.missing == "faithful" else "TPR"
        notes.append(
            f"No row is {rows.missing}: {rate}, Avg Acc, balanced accuracy, macro F1 and ROC-AUC cannot be given"
            + ("" if fit else ", and no trivial rule can be fitted") + "."
        )  # fmt: skip
    elif any(method_run.fitted == SAME_ROWS for method_run, _ in results):
        notes.append(
            "The trivial rules are fitted on the compared rows: an upper bound of what they get. --fit fits them elsewhere."
        )
    shared = [method_run.spec.name for method_run, _ in results if reasoner_of(method_run.settings) == "encoder"]
    if len(shared) > 1 and any(method_run.settings.encoder.remember for method_run, _ in results):
        notes.append(
            "Scores of the verifier are reused from one method to the next, so seconds depend on the order. "
            "--set encoder.remember=0 times each method alone."
        )
    if int(rows.groups.max()) == 0 and len(rows.gold) > 1:
        notes.append("All rows share a source, a question or a group, so there are no intervals.")
    absent = [name for name in TRIVIAL_RULES if name not in {method_run.spec.method for method_run, _ in results}]
    if absent and not rows.missing:
        notes.append(f"{' and '.join(absent)} left out: there are rows without sources.")
    failed = {method_run.spec.name: sum(result.failures.values()) for method_run, result in results if result.failures}
    if failed:
        counted = ", ".join(f"{name} {n:,}" for name, n in failed.items())
        notes.append(
            f"Rows without a verdict are in no figure of their method ({counted}); a test counts rows that both methods have."
        )
    return [*notes, *unmeasured_notes({method_run.spec.name: result.predictions for method_run, result in results})]


def _slicings(rows: LabelledRows, results: Sequence[tuple[MethodRun, RunResult]]) -> list[Slicing]:
    """Return the slice of every row and verdict by every key."""
    of_rows = {key: slice_names(key, [getattr(t, key) for t in rows.traits]) for key in ROW_TRAITS}
    return [
        Slicing(method_run.spec.name, result.predictions, rows.groups[result.places], {
            **{key: [names[place] for place in result.places] for key, names in of_rows.items()},
            **{key: slice_names(key, result.traits[key]) for key in VERDICT_TRAITS},
        })
        for method_run, result in results
    ]  # fmt: skip
