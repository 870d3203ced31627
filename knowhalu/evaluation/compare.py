"""Several methods over the same labelled rows: figures with intervals, cost, and tests of each against the first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.api import Checker
from knowhalu.batch import RunProgress
from knowhalu.build import BackendPool, reasoner_of
from knowhalu.errors import InputError, SettingsError
from knowhalu.evaluation.bootstrap import Estimate, draw_resamples, metrics_with_intervals, percentile_interval, resample_metrics
from knowhalu.evaluation.fitted_rules import fit_rules, read_validation_rows
from knowhalu.evaluation.labelled_rows import LabelledRows, limit_rows, read_labelled_rows
from knowhalu.evaluation.method_specs import MethodSpec
from knowhalu.evaluation.metrics import Floats, metrics_from_counts, row_counts
from knowhalu.evaluation.response_only import RESPONSE_ONLY, run_response_only
from knowhalu.evaluation.runs import RunResult, TimedChecker, run_method
from knowhalu.evaluation.significance import holm, mcnemar
from knowhalu.evaluation.slices import ROW_TRAITS, VERDICT_TRAITS, Breakdown, Slicing, make_breakdowns, slice_names
from knowhalu.methods.baselines.options import TrivialOptions
from knowhalu.methods.baselines.trivial import TRIVIAL_RULES
from knowhalu.profiles import read_profile
from knowhalu.settings import Settings, read_settings

ReportMethodProgress = Callable[[str, RunProgress], None]
SAME_ROWS = "the same rows"
"""What a rule is fitted on where there are no other rows."""


class MethodRun(NamedTuple):
    """A method that takes part, with its settings; `fitted` says on which rows a baseline was fitted, if it was here."""

    spec: MethodSpec
    settings: Settings
    fitted: str | None = None


@dataclass(frozen=True)
class MethodResult:
    """What one method got: on the rows of which it has a verdict, with costs per such row."""

    name: str
    method: str
    reasoner: str
    settings: tuple[str, ...]
    rows: int
    failures: dict[str, int]
    figures: dict[str, Estimate]
    cost: dict[str, float | None]
    fitted: str | None = None


@dataclass(frozen=True)
class PairedTest:
    """A method against the first one, on the rows of which both have a verdict.

    `difference` is that of Avg Acc, the first's taken off; `p` is McNemar's, `holm` the same corrected for the number of tests.
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
    """All results, the first method's before others', and what a reader must know of them."""

    input: str
    rows: int
    hallucinated: int
    groups: int
    results: tuple[MethodResult, ...]
    tests: tuple[PairedTest, ...]
    notes: tuple[str, ...]
    breakdowns: tuple[Breakdown, ...] = ()


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
    """Run every method over the labelled rows of `input` and compare what they said; outcomes stay in `folder`.

    Started again with the same folder, it checks only what has no verdict yet. The trivial rules always take part, fitted on the
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

    Raises SettingsError naming the method, and for a profile that is for none of them.
    """
    chosen, profile = [MethodRun(spec, spec.settings(file, pairs)) for spec in specs], read_settings(file, pairs).profile
    if profile is not None and not any(entrant.settings.profile for entrant in chosen):
        made = read_profile(profile).method
        raise SettingsError(f"{profile}: is for {made}, which is not compared. Add it to the methods, or leave out the profile")
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
    """Run every method and the trivial rules over rows, and return what each said; outcomes stay in `folder`.

    With `responses`, what the words of the responses alone give away is learned too, where scikit-learn is installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept, basis = BackendPool(), read_validation_rows(fit, rows) if fit is not None else rows
    told: list[tuple[MethodRun, RunResult]] = []
    _refuse_rows_without_sources(rows, chosen)
    for entrant in chosen:
        Checker(entrant.settings).refuse_fitted(rows.contents, str(rows.path))
    for entrant in _with_trivial(chosen, basis, rows, folder, plain, kept):
        output, report = folder / f"{entrant.spec.name}.jsonl", progress and _progress_of(progress, entrant.spec.name)
        if entrant.fitted is not None:
            output.unlink(missing_ok=True)  # fitted anew, it costs nothing to ask again
        found = run_method(TimedChecker(entrant.settings, kept), rows, output, restart=restart, progress=report)
        told.append((entrant, found))
    if responses and not rows.missing:
        learned = run_response_only(rows, basis, folder / f"{RESPONSE_ONLY}.jsonl")
        told += [(MethodRun(MethodSpec(RESPONSE_ONLY, RESPONSE_ONLY), plain, learned.fitted), learned.told)] if learned else []
    return told


def _progress_of(progress: ReportMethodProgress, name: str) -> Callable[[RunProgress], None]:
    return lambda p: progress(name, p)


def _refuse_rows_without_sources(rows: LabelledRows, chosen: Sequence[MethodRun]) -> None:
    """Refuse rows without sources for a method that needs some, before others spend hours on them."""
    for entrant in chosen:
        if rows.bare and Checker(entrant.settings).needs_sources:
            what = f"{entrant.spec.name} needs sources. Rows with neither documents nor knowledge: {rows.bare:,}"
            raise InputError(f"{rows.path}: {what}. Add them to the rows, or an index: --index FOLDER.")


def _with_trivial(
    chosen: list[MethodRun], basis: LabelledRows, rows: LabelledRows, folder: Path, settings: Settings, kept: BackendPool
) -> list[MethodRun]:
    """Give every trivial rule that has no border one that is fitted on `basis`, and add those that do not take part so.

    Rules that look at the sources are not added where there are rows without any.
    """
    there = {e.spec.method for e in chosen if _has_no_threshold(e)} | {e.spec.name for e in chosen}
    usual = settings.trivial if settings.trivial.rule else TrivialOptions()
    entrants = chosen + [
        MethodRun(MethodSpec(name, name), settings.model_copy(update={"method": name, "trivial": usual}))
        for name, rule in TRIVIAL_RULES.items()
        if name not in there and not (rule.reads and _lacks_sources(settings, rows, basis))
    ]
    if not any(map(_has_no_threshold, entrants)):
        return entrants
    if basis.missing:
        return [e for e in entrants if not _has_no_threshold(e)]
    names = dict.fromkeys(e.spec.method for e in entrants if _has_no_threshold(e))
    rule = TrivialOptions(rule=fit_rules(names, basis, settings, folder, kept))
    on = SAME_ROWS if basis is rows else str(basis.path)
    return [
        e._replace(settings=e.settings.model_copy(update={"trivial": rule}), fitted=on) if _has_no_threshold(e) else e
        for e in entrants
    ]


def _lacks_sources(settings: Settings, *parts: LabelledRows) -> bool:
    return not settings.retrieval.has_source and any(rows.bare for rows in parts)


def _has_no_threshold(entrant: MethodRun) -> bool:
    options = entrant.settings.trivial
    return entrant.spec.method in TRIVIAL_RULES and options.border is None and options.rule is None


def compare_results(rows: LabelledRows, told: Sequence[tuple[MethodRun, RunResult]], fit: Path | None = None) -> Comparison:
    """Compare what the methods said of the rows; `fit` says where the rules were fitted, if elsewhere."""
    drawn = draw_resamples(int(rows.groups.max()) + 1)
    tests = [_paired_test(rows, told[0][1], entrant, other, drawn) for entrant, other in told[1:]]
    corrected = holm([test.p for test in tests])
    return Comparison(
        input=str(rows.path),
        rows=len(rows.gold),
        hallucinated=int(rows.gold.sum()),
        groups=drawn.shape[1],
        results=tuple(_method_result(entrant, found, rows, drawn) for entrant, found in told),
        tests=tuple(PairedTest(**{**vars(t), "holm": p}) for t, p in zip(tests, corrected, strict=True)),
        notes=tuple(_notes(rows, told, fit)),
        breakdowns=make_breakdowns(_slicings(rows, told), drawn),
    )


def _method_result(entrant: MethodRun, found: RunResult, rows: LabelledRows, drawn: NDArray[np.uint8]) -> MethodResult:
    return MethodResult(
        name=entrant.spec.name,
        method=entrant.spec.method,
        reasoner=reasoner_of(entrant.settings),
        settings=entrant.spec.pairs,
        rows=len(found.places),
        failures=found.failures,
        figures=metrics_with_intervals(found.said, rows.groups[found.places], drawn),
        cost=found.cost,
        fitted=entrant.fitted,
    )


def _paired_test(
    rows: LabelledRows, first: RunResult, entrant: MethodRun, other: RunResult, drawn: NDArray[np.uint8]
) -> PairedTest:
    places, ours, theirs = np.intersect1d(first.places, other.places, return_indices=True)
    one, two = first.said.rows(ours), other.said.rows(theirs)
    test = mcnemar(one.right, two.right)
    groups = rows.groups[places]
    spread: Floats = resample_metrics(two, groups, drawn)["average"] - resample_metrics(one, groups, drawn)["average"]
    a, b = (float(metrics_from_counts(row_counts(said).sum(axis=0))["average"]) for said in (one, two))
    low, high = percentile_interval(spread) if len(np.unique(groups)) > 1 else (None, None)
    difference = Estimate(None) if np.isnan(b - a) else Estimate(b - a, low, high)
    return PairedTest(entrant.spec.name, len(places), test.first_only, test.other_only, test.p, test.p, difference)


def _notes(rows: LabelledRows, told: Sequence[tuple[MethodRun, RunResult]], fit: Path | None) -> list[str]:
    """Say what a reader of the figures must know."""
    notes = []
    if rows.missing:
        rate = "TNR" if rows.missing == "faithful" else "TPR"
        notes.append(
            f"No row is {rows.missing}: {rate}, Avg Acc, balanced accuracy, macro F1 and ROC-AUC cannot be given"
            + ("" if fit else ", and no trivial rule can be fitted") + "."
        )  # fmt: skip
    elif any(entrant.fitted == SAME_ROWS for entrant, _ in told):
        notes.append(
            "The trivial rules are fitted on the compared rows: an upper bound of what they get. --fit fits them elsewhere."
        )
    shared = [entrant.spec.name for entrant, _ in told if reasoner_of(entrant.settings) == "encoder"]
    if len(shared) > 1 and any(entrant.settings.encoder.remember for entrant, _ in told):
        notes.append(
            "What the verifier had said of a pair for one method it was not asked again for the next, so seconds depend on the "
            "order. --set encoder.remember=0 times each method alone."
        )
    if int(rows.groups.max()) == 0 and len(rows.gold) > 1:
        notes.append("All rows share a source, a question or a group, so there are no intervals.")
    absent = [name for name in TRIVIAL_RULES if name not in {entrant.spec.method for entrant, _ in told}]
    if absent and not rows.missing:
        notes.append(f"{' and '.join(absent)} left out: there are rows without sources.")
    failed = {entrant.spec.name: sum(found.failures.values()) for entrant, found in told if found.failures}
    if failed:
        counted = ", ".join(f"{name} {n:,}" for name, n in failed.items())
        notes.append(
            f"Rows without a verdict are in no figure of their method ({counted}); a test counts rows that both methods have."
        )
    return notes


def _slicings(rows: LabelledRows, told: Sequence[tuple[MethodRun, RunResult]]) -> list[Slicing]:
    """Name the part of every row and verdict by every key."""
    of_rows = {key: slice_names(key, [getattr(t, key) for t in rows.traits]) for key in ROW_TRAITS}
    return [
        Slicing(entrant.spec.name, found.said, rows.groups[found.places], {
            **{key: [names[place] for place in found.places] for key, names in of_rows.items()},
            **{key: slice_names(key, [getattr(t, key) for t in found.traits]) for key in VERDICT_TRAITS},
        })
        for entrant, found in told
    ]  # fmt: skip
