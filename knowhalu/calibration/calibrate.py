"""Calibrate a method on labelled rows: read or make its outcomes, choose thresholds on them, and write a profile."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from knowhalu import __version__
from knowhalu.api import Checker
from knowhalu.batch import RunProgress, detect
from knowhalu.calibration.cascade import StageShare, TunableCascade, read_tunable_cascade, stage_shares
from knowhalu.calibration.measures import measures_with_intervals
from knowhalu.calibration.tunable import (
    RowIndices,
    Tunable,
    VerdictLines,
    ask_all_settings,
    measured_lines,
    read_fixed_predictions,
    read_set_names,
    read_tunable_theta,
    read_verdict_lines,
    stored_run_settings,
    tunable_options,
)
from knowhalu.calibration.tuning import Goal, TunedValues, Tuner, TuningResult, join_predictions
from knowhalu.calibration.two_forms import ThresholdGrid, TunableForms, read_tunable_forms
from knowhalu.errors import InputError
from knowhalu.evaluation.bootstrap import Estimate
from knowhalu.evaluation.labelled_rows import LabelledRows, read_labelled_rows
from knowhalu.evaluation.metrics import Flags, Predictions
from knowhalu.io.outcomes import read_run_header
from knowhalu.io.output_files import check_output_path
from knowhalu.methods.common.calibrated import ScalingKind
from knowhalu.profiles import FILE_HEADER, CalibrationData, FittedSettings, Profile, pack_row_hashes, report_path, write_profile
from knowhalu.settings import Settings

Measures = dict[str, Estimate]
FIGURES_START = '{\n "profile": {'
"""The beginning of the file of figures of a profile; see `knowhalu.calibration.report`."""
PROFILE_PARTS = ("verifier", "prompts", "index")
DEFAULT_RISK = 0.05


@dataclass(frozen=True)
class Calibration:
    """The chosen settings and their measures: before, on the fitted rows, and on held-out rows; `on` has the same by set.

    `sent_on` is the share of rows that the encoder of a cascade leaves undecided, by set; "" stands for all rows.
    """

    profile: Profile
    groups: int
    before: Measures
    fitted: Measures
    held: Measures | None
    on: dict[str, tuple[Measures, Measures | None]] = field(default_factory=dict)
    stages: tuple[StageShare, ...] = ()
    sent_on: dict[str, Estimate] = field(default_factory=dict)
    grids: dict[str, ThresholdGrid] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def calibrate(
    input: Path,
    output: Path,
    settings: Settings,
    *,
    goal: Goal | None = None,
    scaling: ScalingKind = "none",
    by_set: bool = False,
    outcomes: Path | None = None,
    restart: bool = False,
    progress: Callable[[RunProgress], None] | None = None,
) -> Calibration:
    """Choose thresholds and scaling for a method on the labelled rows of `input`, and write the profile to `output`.

    The outcomes are read from `outcomes`, a file of `knowhalu detect` on the same rows, or else written next to the profile; a
    second call checks only rows without a verdict. Raises InputError for rows and for goals out of reach, SettingsError for
    settings, ResumeError where the outcomes next to the profile belong to another run.
    """
    _refuse_outputs(output, [input, *([outcomes] if outcomes else [])])
    rows = read_labelled_rows(input)
    if rows.missing:
        raise InputError(f"{input}: no row is {rows.missing}, so nothing can be chosen on it. Give rows of both labels.")
    if outcomes is None:
        settings = ask_all_settings(settings)
        checker, outcomes = Checker(settings), output.with_suffix(".outcomes.jsonl")
        output.parent.mkdir(parents=True, exist_ok=True)
        detect(checker, input, outcomes, restart=restart, progress=progress)
    head = read_run_header(outcomes)
    settings = stored_run_settings(head, settings, outcomes)
    lines = read_verdict_lines(outcomes, rows)
    calibration = _calibrate_rows(rows, lines, settings, head, _goal(goal, settings, scaling), scaling, by_set)
    write_profile(calibration.profile, output)
    return calibration


def _refuse_outputs(output: Path, inputs: Sequence[Path]) -> None:
    """Raise InputError where the profile, or the file of its figures, would replace another file."""
    if output.suffix != ".toml":
        raise InputError(
            f"{output}: is not a name for a profile. Use the suffix .toml; figures are written to a .json file of that name."
        )
    check_output_path(output, FILE_HEADER, "a profile", inputs)
    check_output_path(report_path(output), FIGURES_START, "the figures of a profile", inputs)


def _goal(given: Goal | None, settings: Settings, scaling: ScalingKind) -> Goal:
    """Return the goal, or the default of the method; raises InputError where a method has no such goal."""
    if settings.method != "cascade":
        if given is not None and given.aim == "risk":
            raise InputError("--max-risk is the goal of a cascade alone. Add --method cascade, or give another goal.")
        return given or Goal("labels" if tunable_options(settings) else "average")
    if (given is not None and given.aim != "risk") or scaling != "none":
        raise InputError("a cascade has one goal, --max-risk, and no scaling: its stages measure differently. Leave out others.")
    return given or Goal("risk", DEFAULT_RISK)


def _calibrate_rows(
    rows: LabelledRows,
    lines: VerdictLines,
    settings: Settings,
    head: dict[str, str],
    goal: Goal,
    scaling: ScalingKind,
    by_set: bool,
) -> Calibration:
    judged, lines = len(lines), measured_lines(lines)
    unmeasured = judged - len(lines)
    places = np.array([place for place, _ in lines], dtype=np.intp)
    gold, groups = rows.gold[places], rows.groups[places]
    if not gold.any() or gold.all():
        _refuse_one_label(rows, gold, unmeasured)
    tuned = read_tunable(settings, lines, gold, goal)
    sets = read_set_names(rows.path) if by_set or settings.method == "cascade" else []
    named = [sets[place] for place in places] if sets else []
    tuner = Tuner(tuned, gold, groups, goal, scaling, tuple(named) if by_set else None)
    choice = tuner.choose(np.arange(len(gold)))
    predictions = tuner.predict(choice)
    notes = _notes(rows, judged, unmeasured, named if by_set else None, choice)
    try:
        crossed = tuner.crossed()
    except InputError as error:
        crossed = []
        notes.append(f"Not cross-validated: with a part of the rows held out, {error}")
    held = join_predictions([(mask, tuner.predict(other)) for mask, other in crossed]) if crossed else None
    fitted = measures_with_intervals(predictions, groups)
    on_held = measures_with_intervals(held, groups) if held is not None else None
    return Calibration(
        profile=_profile(rows, settings, head, goal, choice, fitted, on_held),
        groups=len(np.unique(groups)),
        before=measures_with_intervals(_uncalibrated_predictions(tuned, lines, gold), groups),
        fitted=fitted,
        held=on_held,
        on=_measures_by_set(predictions, held, groups, named),
        **(stage_shares(tuned, tuner, choice, crossed, predictions, held, named) if isinstance(tuned, TunableCascade) else {}),
        grids=_grids(tuned, tuner),
        notes=tuple(notes),
    )


def _refuse_one_label(rows: LabelledRows, gold: Flags, unmeasured: int) -> NoReturn:
    """Raise InputError for verdicts that are all on rows of one label."""
    has = "has a verdict with a probability" if unmeasured else "has a verdict"
    which = has if not len(gold) else f"that is {'hallucinated' if not gold.any() else 'faithful'} {has}"
    cure = "See why in the outcomes, and run it again."
    if unmeasured:
        cure = (
            f"{unmeasured:,} rows were judged by a model whose server gives no log-probabilities: draw several judgments, "
            "--set llm.votes=20, or use a server that gives them."
        )
    raise InputError(f"{rows.path}: no row {which}, so nothing can be chosen. {cure}")


def read_tunable(settings: Settings, lines: VerdictLines, gold: Flags, goal: Goal) -> Tunable:
    """Return the stored verdicts with what can be tuned in their method."""
    if settings.method == "cascade":
        return read_tunable_cascade(lines, gold, goal.value)
    if settings.method == "knowhalu":
        return read_tunable_forms(lines, gold)
    if settings.method in ("factored", "factored-academic"):
        return read_tunable_theta(lines, gold, settings.factored.rule)
    return read_fixed_predictions(lines, gold)


def _uncalibrated_predictions(tuned: Tunable, lines: VerdictLines, gold: Flags) -> Predictions:
    """Return the predictions of the method without a profile."""
    if not isinstance(tuned, TunableCascade):
        return read_fixed_predictions(lines, gold).all
    usual = Settings().model_dump(mode="json", include={"cascade", "lexical"})
    return tuned.predict(usual)


def _measures_by_set(
    predictions: Predictions, held: Predictions | None, groups: RowIndices, named: Sequence[str]
) -> dict[str, tuple[Measures, Measures | None]]:
    by_set = {}
    for name in sorted(set(named) - {""}):
        members = np.array(named) == name
        on_held = measures_with_intervals(held.rows(members), groups[members]) if held is not None else None
        by_set[name] = (measures_with_intervals(predictions.rows(members), groups[members]), on_held)
    return by_set


def _grids(tuned: Tunable, tuner: Tuner) -> dict[str, ThresholdGrid]:
    """Return the grid of all rows (""), and of each set that has its own."""
    if not isinstance(tuned, TunableForms):
        return {}
    everything = np.arange(len(tuned.gold))
    parts = {"": everything, **tuner.members(everything)}
    return {name: (some := tuned.some(rows)).grid(some.better_form()) for name, rows in parts.items()}


def _notes(rows: LabelledRows, judged: int, unmeasured: int, named: Sequence[str] | None, choice: TuningResult) -> list[str]:
    notes = []
    if missing := len(rows.gold) - judged:
        notes.append(f"{missing:,} rows have no verdict and count for nothing here.")
    if unmeasured:
        notes.append(f"{unmeasured:,} rows were judged without probabilities and count for nothing here.")
    if few := sorted(set(named or ()) - {"", *choice.sets}):
        notes.append(f"Too few rows of one label for values of their own, so those of all rows are used: {', '.join(few)}.")
    if named is not None and not any(named):
        notes.append("No row names a set (meta.set), so there is nothing to choose by set.")
    return notes


def _profile(
    rows: LabelledRows,
    settings: Settings,
    head: dict[str, str],
    goal: Goal,
    choice: TuningResult,
    fitted: Measures,
    held: Measures | None,
) -> Profile:
    with rows.path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    basis = CalibrationData(
        file=rows.path.name, sha256=sha256, rows=len(rows.gold), hallucinated=int(rows.gold.sum()),
        hashes=pack_row_hashes(rows.contents),
    )  # fmt: skip
    measures = {"fitted": fitted, **({"cross-validated": held} if held else {})}
    return Profile(
        version=__version__, made=date.today().isoformat(), goal=str(goal), data=basis,
        parts={name: head[name] for name in PROFILE_PARTS if head.get(name, "none") != "none"},
        settings=_merge_settings(tunable_options(settings, all=True), choice.whole),
        decision=choice.whole.decision,
        sets={name: FittedSettings(settings=chosen.settings, decision=chosen.decision) for name, chosen in choice.sets.items()},
        figures={name: {n: _numbers(f) for n, f in figures.items() if f.value is not None} for name, figures in measures.items()},
    )  # fmt: skip


def _numbers(figure: Estimate) -> list[float]:
    return [round(v, 4) for v in figure if v is not None]


def _merge_settings(tree: dict[str, Any], chosen: TunedValues) -> dict[str, Any]:
    return {**tree, **{name: {**tree.get(name, {}), **options} for name, options in chosen.settings.items()}}
