"""Several methods over the same labelled rows: figures with intervals, cost, and tests of each against the first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.api import Checker
from knowhalu.batch import Progress
from knowhalu.build import Kept, thinker
from knowhalu.errors import InputError, SettingsError
from knowhalu.evaluation.bootstrap import Estimate, draws, limits, resampled, with_intervals
from knowhalu.evaluation.fitted_rules import fit_rules, validation
from knowhalu.evaluation.metrics import Floats, counts, figures
from knowhalu.evaluation.response_only import RESPONSE_ONLY, response_only
from knowhalu.evaluation.rows import Rows, limited, read_rows
from knowhalu.evaluation.runs import Timed, Told, run
from knowhalu.evaluation.significance import holm, mcnemar
from knowhalu.evaluation.slices import ROW_TRAITS, VERDICT_TRAITS, Breakdown, Parting, breakdowns, named_parts
from knowhalu.evaluation.specs import Spec
from knowhalu.load_settings import read_settings
from knowhalu.methods.baselines.trivial import RULES
from knowhalu.profiles import read_profile
from knowhalu.settings import Settings, TrivialOptions

Report = Callable[[str, Progress], None]
SAME = "the same rows"
"""What a rule is fitted on where there are no other rows."""


class Entrant(NamedTuple):
    """A method that takes part, with its settings; `fitted` says on which rows a baseline was fitted, if it was here."""

    spec: Spec
    settings: Settings
    fitted: str | None = None


@dataclass(frozen=True)
class Result:
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
class Against:
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
    results: tuple[Result, ...]
    tests: tuple[Against, ...]
    notes: tuple[str, ...]
    breakdowns: tuple[Breakdown, ...] = ()


def compare(
    input: Path,
    specs: Sequence[Spec],
    folder: Path,
    *,
    file: Path | None = None,
    pairs: Sequence[str] = (),
    fit: Path | None = None,
    limit: int | None = None,
    restart: bool = False,
    progress: Report | None = None,
) -> Comparison:
    """Run every method over the labelled rows of `input` and compare what they said; outcomes stay in `folder`.

    Started again with the same folder, it checks only what has no verdict yet. The trivial rules always take part, fitted on the
    rows of `fit`, or else on the compared rows. Raises InputError for rows, SettingsError for methods, ResumeError where the
    folder holds outcomes of other settings.
    """
    chosen, plain = entrants(specs, file, pairs)
    whole = read_rows(input)
    folder.mkdir(parents=True, exist_ok=True)
    rows = limited(whole, limit, folder)
    return compared(rows, enter(rows, chosen, plain, folder, fit=fit, restart=restart, progress=progress), fit)


def entrants(specs: Sequence[Spec], file: Path | None = None, pairs: Sequence[str] = ()) -> tuple[list[Entrant], Settings]:
    """Return the methods with their settings, and those of the trivial rules.

    Raises SettingsError naming the method, and for a profile that is for none of them.
    """
    chosen, profile = [Entrant(spec, spec.settings(file, pairs)) for spec in specs], read_settings(file, pairs).profile
    if profile is not None and not any(entrant.settings.profile for entrant in chosen):
        made = read_profile(profile).method
        raise SettingsError(f"{profile}: is for {made}, which is not compared. Add it to the methods, or leave out the profile")
    return chosen, Spec("trivial", "trivial-length").settings(file, pairs, profiled=False)


def enter(
    rows: Rows,
    chosen: list[Entrant],
    plain: Settings,
    folder: Path,
    *,
    fit: Path | None = None,
    restart: bool = False,
    responses: bool = False,
    progress: Report | None = None,
) -> list[tuple[Entrant, Told]]:
    """Run every method and the trivial rules over rows, and return what each said; outcomes stay in `folder`.

    With `responses`, what the words of the responses alone give away is learned too, where scikit-learn is installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept, basis = Kept(), validation(fit, rows) if fit is not None else rows
    told: list[tuple[Entrant, Told]] = []
    _refuse_bare(rows, chosen)
    for entrant in chosen:
        Checker(entrant.settings).refuse_fitted(rows.contents, str(rows.path))
    for entrant in _with_trivial(chosen, basis, rows, folder, plain, kept):
        output, report = folder / f"{entrant.spec.name}.jsonl", progress and _named(progress, entrant.spec.name)
        if entrant.fitted is not None:
            output.unlink(missing_ok=True)  # fitted anew, it costs nothing to ask again
        found = run(Timed(entrant.settings, kept), rows, output, restart=restart, progress=report)
        told.append((entrant, found))
    if responses and not rows.missing:
        learned = response_only(rows, basis, folder / f"{RESPONSE_ONLY}.jsonl")
        told += [(Entrant(Spec(RESPONSE_ONLY, RESPONSE_ONLY), plain, learned.fitted), learned.told)] if learned else []
    return told


def _named(progress: Report, name: str) -> Callable[[Progress], None]:
    return lambda p: progress(name, p)


def _refuse_bare(rows: Rows, chosen: Sequence[Entrant]) -> None:
    """Refuse rows without sources for a method that needs some, before others spend hours on them."""
    for entrant in chosen:
        if rows.bare and Checker(entrant.settings).needs_sources:
            what = f"{entrant.spec.name} needs sources. Rows with neither documents nor knowledge: {rows.bare:,}"
            raise InputError(f"{rows.path}: {what}. Add them to the rows, or an index: --index FOLDER.")


def _with_trivial(chosen: list[Entrant], basis: Rows, rows: Rows, folder: Path, settings: Settings, kept: Kept) -> list[Entrant]:
    """Give every trivial rule that has no border one that is fitted on `basis`, and add those that do not take part so.

    Rules that look at the sources are not added where there are rows without any.
    """
    there = {e.spec.method for e in chosen if _has_no_border(e)} | {e.spec.name for e in chosen}
    usual = settings.trivial if settings.trivial.rule else TrivialOptions()
    entrants = chosen + [
        Entrant(Spec(name, name), settings.model_copy(update={"method": name, "trivial": usual}))
        for name, rule in RULES.items() if name not in there and not (rule.reads and _is_bare(settings, rows, basis))
    ]  # fmt: skip
    if not any(map(_has_no_border, entrants)):
        return entrants
    if basis.missing:
        return [e for e in entrants if not _has_no_border(e)]
    names = dict.fromkeys(e.spec.method for e in entrants if _has_no_border(e))
    rule = TrivialOptions(rule=fit_rules(names, basis, settings, folder, kept))
    on = SAME if basis is rows else str(basis.path)
    return [
        e._replace(settings=e.settings.model_copy(update={"trivial": rule}), fitted=on) if _has_no_border(e) else e
        for e in entrants
    ]


def _is_bare(settings: Settings, *parts: Rows) -> bool:
    return not settings.retrieval.has_source and any(rows.bare for rows in parts)


def _has_no_border(entrant: Entrant) -> bool:
    options = entrant.settings.trivial
    return entrant.spec.method in RULES and options.border is None and options.rule is None


def compared(rows: Rows, told: Sequence[tuple[Entrant, Told]], fit: Path | None = None) -> Comparison:
    """Compare what the methods said of the rows; `fit` says where the rules were fitted, if elsewhere."""
    drawn = draws(int(rows.groups.max()) + 1)
    tests = [_against(rows, told[0][1], entrant, other, drawn) for entrant, other in told[1:]]
    corrected = holm([test.p for test in tests])
    return Comparison(
        input=str(rows.path),
        rows=len(rows.gold),
        hallucinated=int(rows.gold.sum()),
        groups=drawn.shape[1],
        results=tuple(_result(entrant, found, rows, drawn) for entrant, found in told),
        tests=tuple(Against(**{**vars(t), "holm": p}) for t, p in zip(tests, corrected, strict=True)),
        notes=tuple(_notes(rows, told, fit)),
        breakdowns=breakdowns(_partings(rows, told), drawn),
    )


def _result(entrant: Entrant, found: Told, rows: Rows, drawn: NDArray[np.uint8]) -> Result:
    return Result(
        name=entrant.spec.name, method=entrant.spec.method, reasoner=thinker(entrant.settings), settings=entrant.spec.pairs,
        rows=len(found.places), failures=found.failures, figures=with_intervals(found.said, rows.groups[found.places], drawn),
        cost=found.cost, fitted=entrant.fitted,
    )  # fmt: skip


def _against(rows: Rows, first: Told, entrant: Entrant, other: Told, drawn: NDArray[np.uint8]) -> Against:
    places, ours, theirs = np.intersect1d(first.places, other.places, return_indices=True)
    one, two = first.said.rows(ours), other.said.rows(theirs)
    test = mcnemar(one.right, two.right)
    groups = rows.groups[places]
    spread: Floats = resampled(two, groups, drawn)["average"] - resampled(one, groups, drawn)["average"]
    a, b = (float(figures(counts(said).sum(axis=0))["average"]) for said in (one, two))
    low, high = limits(spread) if len(np.unique(groups)) > 1 else (None, None)
    difference = Estimate(None) if np.isnan(b - a) else Estimate(b - a, low, high)
    return Against(entrant.spec.name, len(places), test.first_only, test.other_only, test.p, test.p, difference)


def _notes(rows: Rows, told: Sequence[tuple[Entrant, Told]], fit: Path | None) -> list[str]:
    """Say what a reader of the figures must know."""
    notes = []
    if rows.missing:
        rate = "TNR" if rows.missing == "faithful" else "TPR"
        notes.append(
            f"No row is {rows.missing}: {rate}, Avg Acc, balanced accuracy, macro F1 and ROC-AUC cannot be given"
            + ("" if fit else ", and no trivial rule can be fitted") + "."
        )  # fmt: skip
    elif any(entrant.fitted == SAME for entrant, _ in told):
        notes.append(
            "The trivial rules are fitted on the compared rows: an upper bound of what they get. --fit fits them elsewhere."
        )
    shared = [entrant.spec.name for entrant, _ in told if thinker(entrant.settings) == "encoder"]
    if len(shared) > 1 and any(entrant.settings.encoder.remember for entrant, _ in told):
        notes.append(
            "What the verifier had said of a pair for one method it was not asked again for the next, so seconds depend on the "
            "order. --set encoder.remember=0 times each method alone."
        )
    if int(rows.groups.max()) == 0 and len(rows.gold) > 1:
        notes.append("All rows share a source, a question or a group, so there are no intervals.")
    absent = [name for name in RULES if name not in {entrant.spec.method for entrant, _ in told}]
    if absent and not rows.missing:
        notes.append(f"{' and '.join(absent)} left out: there are rows without sources.")
    failed = {entrant.spec.name: sum(found.failures.values()) for entrant, found in told if found.failures}
    if failed:
        counted = ", ".join(f"{name} {n:,}" for name, n in failed.items())
        notes.append(
            f"Rows without a verdict are in no figure of their method ({counted}); a test counts rows that both methods have."
        )
    return notes


def _partings(rows: Rows, told: Sequence[tuple[Entrant, Told]]) -> list[Parting]:
    """Name the part of every row and verdict by every key."""
    of_rows = {key: named_parts(key, [getattr(t, key) for t in rows.traits]) for key in ROW_TRAITS}
    return [
        Parting(entrant.spec.name, found.said, rows.groups[found.places], {
            **{key: [names[place] for place in found.places] for key, names in of_rows.items()},
            **{key: named_parts(key, [getattr(t, key) for t in found.traits]) for key in VERDICT_TRAITS},
        })
        for entrant, found in told
    ]  # fmt: skip
