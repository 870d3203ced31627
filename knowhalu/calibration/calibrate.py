"""Calibration of a method on labelled rows: its outcomes, stored or made, what is chosen by them, and the profile of it."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from knowhalu import __version__
from knowhalu.api import Checker
from knowhalu.batch import RunProgress, detect
from knowhalu.calibration.cascade import TunableCascade, read_tunable_cascade
from knowhalu.calibration.measures import estimate_ratio, measures_with_intervals
from knowhalu.calibration.objectives import Goal
from knowhalu.calibration.run_settings import ask_all_settings, stored_run_settings, tunable_options
from knowhalu.calibration.tunable import (
    RowIndices,
    Tunable,
    VerdictLines,
    read_fixed_predictions,
    read_set_names,
    read_tunable_theta,
    read_verdict_lines,
)
from knowhalu.calibration.tuning import TunedValues, Tuner, TuningResult, join_predictions
from knowhalu.calibration.two_forms import ThresholdGrid, TunableForms, read_tunable_forms
from knowhalu.errors import InputError
from knowhalu.evaluation.bootstrap import Estimate
from knowhalu.evaluation.labelled_rows import LabelledRows, read_labelled_rows
from knowhalu.evaluation.metrics import Flags, Predictions
from knowhalu.io.outcomes import read_run_header
from knowhalu.io.output_files import check_output_path
from knowhalu.methods.cascade import ENCODER_STAGE, LLM_STAGE, RULES_STAGE
from knowhalu.methods.common.calibrated import ScalingKind
from knowhalu.profiles import FILE_HEADER, CalibrationData, FittedSettings, Profile, pack_row_hashes, report_path, write_profile
from knowhalu.settings import Settings

Measures = dict[str, Estimate]
FIGURES_START = '{\n "profile": {'
"""How the file beside a profile begins; see `knowhalu.calibration.report`."""
PROFILE_PARTS = ("verifier", "prompts", "index")
DEFAULT_RISK = 0.05


@dataclass(frozen=True)
class StageShare:
    """What a stage of a cascade calls one label: how many rows, which share of all, and its error rate, also cross-validated."""

    name: str
    label: str
    rows: int
    share: Estimate
    errors: Estimate
    held: Estimate


@dataclass(frozen=True)
class Calibration:
    """What was chosen, and how good it is: before, on the fitted rows, and on rows held out; `on` are the same for sets.

    `sent_on` is the share of rows that a cascade's encoder leaves undecided, by set; "" is all of them.
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

    The outcomes come from `outcomes`, a file of `knowhalu detect` on the same rows, or else are made beside the profile; started
    again, it checks only what has no verdict yet. Raises InputError for rows and for goals out of reach, SettingsError for
    settings, ResumeError where the outcomes beside the profile are of another run.
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
    found = _calibrate_rows(rows, lines, settings, head, _goal(goal, settings, scaling), scaling, by_set)
    write_profile(found.profile, output)
    return found


def _refuse_outputs(output: Path, inputs: Sequence[Path]) -> None:
    """Refuse a name by which the profile, or what is written beside it, would take the place of something else."""
    if output.suffix != ".toml":
        raise InputError(f"{output}: is no name for a profile. Let it end in .toml; its figures are written beside it, in .json.")
    check_output_path(output, FILE_HEADER, "a profile", inputs)
    check_output_path(report_path(output), FIGURES_START, "the figures of a profile", inputs)


def _goal(given: Goal | None, settings: Settings, scaling: ScalingKind) -> Goal:
    """Return the goal, or what is usual for the method; raises InputError where a method has no such goal."""
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
    places = np.array([place for place, _ in lines], dtype=np.intp)
    gold, groups = rows.gold[places], rows.groups[places]
    if not gold.any() or gold.all():
        which = "has a verdict" if not len(gold) else f"that is {'faithful' if gold.all() else 'hallucinated'} has a verdict"
        raise InputError(f"{rows.path}: no row {which}, so nothing can be chosen. See why in the outcomes, and run it again.")
    tuned = read_tunable(settings, lines, gold, goal)
    sets = read_set_names(rows.path) if by_set or settings.method == "cascade" else []
    named = [sets[place] for place in places] if sets else []
    chooser = Tuner(tuned, gold, groups, goal, scaling, tuple(named) if by_set else None)
    choice = chooser.choose(np.arange(len(gold)))
    said = chooser.said(choice)
    notes = _notes(rows, places, named if by_set else None, choice)
    try:
        crossed = chooser.crossed()
    except InputError as error:
        crossed = []
        notes.append(f"Not cross-validated: with a part of the rows held out, {error}")
    held = join_predictions([(mask, chooser.said(other)) for mask, other in crossed]) if crossed else None
    fitted, on_held = measures_with_intervals(said, groups), measures_with_intervals(held, groups) if held is not None else None
    return Calibration(
        profile=_profile(rows, settings, head, goal, choice, fitted, on_held),
        groups=len(np.unique(groups)),
        before=measures_with_intervals(_uncalibrated_predictions(tuned, lines, gold), groups),
        fitted=fitted,
        held=on_held,
        on=_measures_by_set(said, held, groups, named),
        **(_stage_shares(tuned, chooser, choice, crossed, named) if isinstance(tuned, TunableCascade) else {}),
        grids=_grids(tuned, chooser),
        notes=tuple(notes),
    )


def read_tunable(settings: Settings, lines: VerdictLines, gold: Flags, goal: Goal) -> Tunable:
    """Read of stored verdicts what can be chosen of their method."""
    if settings.method == "cascade":
        return read_tunable_cascade(lines, gold, goal.value)
    if settings.method == "knowhalu":
        return read_tunable_forms(lines, gold)
    if settings.method in ("factored", "factored-academic"):
        return read_tunable_theta(lines, gold, settings.factored.rule)
    return read_fixed_predictions(lines, gold)


def _uncalibrated_predictions(tuned: Tunable, lines: VerdictLines, gold: Flags) -> Predictions:
    """Return what the method says without a profile."""
    if not isinstance(tuned, TunableCascade):
        return read_fixed_predictions(lines, gold).all
    usual = Settings().model_dump(mode="json", include={"cascade", "lexical"})
    return tuned.said(usual)


def _measures_by_set(
    said: Predictions, held: Predictions | None, groups: RowIndices, named: Sequence[str]
) -> dict[str, tuple[Measures, Measures | None]]:
    found = {}
    for name in sorted(set(named) - {""}):
        there = np.array(named) == name
        own = measures_with_intervals(held.rows(there), groups[there]) if held is not None else None
        found[name] = (measures_with_intervals(said.rows(there), groups[there]), own)
    return found


def _grids(tuned: Tunable, chooser: Tuner) -> dict[str, ThresholdGrid]:
    """Return the grid of all rows (""), and of each set that has its own."""
    if not isinstance(tuned, TunableForms):
        return {}
    everything = np.arange(len(tuned.gold))
    parts = {"": everything, **chooser.members(everything)}
    return {name: (own := tuned.some(rows)).grid(own.better_form()) for name, rows in parts.items()}


def _stage_shares(
    tuned: TunableCascade,
    chooser: Tuner,
    choice: TuningResult,
    crossed: Sequence[tuple[Flags, TuningResult]],
    named: Sequence[str],
) -> dict[str, Any]:
    """Count who decides what, and how often wrongly."""
    stage, said, groups = _deciding_stages(tuned, chooser, choice), chooser.said(choice), chooser.groups
    held, held_said = stage, None
    for mask, other in crossed:
        held = np.where(mask, _deciding_stages(tuned, chooser, other), held)
    if crossed:
        held_said = join_predictions([(mask, chooser.said(other)) for mask, other in crossed])
    shares = []
    for name, flagged in [(name, flagged) for name in (RULES_STAGE, ENCODER_STAGE, LLM_STAGE) for flagged in (False, True)]:
        there = (stage == name) & (said.settled == flagged) & ~said.abstained
        errors, held_errors = estimate_ratio(~said.right, there, groups), Estimate(None)
        if held_said is not None:
            held_errors = estimate_ratio(
                ~held_said.right, (held == name) & (held_said.settled == flagged) & ~held_said.abstained, groups
            )
        label = "hallucinated" if flagged else "faithful"
        shares.append(
            StageShare(name, label, int(there.sum()), estimate_ratio(there, np.ones_like(there), groups), errors, held_errors)
        )
    on = (stage == LLM_STAGE) | (stage == "")
    sets = {name: np.array(named) == name for name in sorted(set(named) - {""})}
    sent = {name: estimate_ratio(on, there, groups) for name, there in {"": np.ones_like(on), **sets}.items()}
    return {"stages": tuple(s for s in shares if s.rows), "sent_on": sent}


def _deciding_stages(tuned: TunableCascade, chooser: Tuner, choice: TuningResult) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    stage = tuned.stage(choice.whole.settings)
    for there, chosen in chooser.by_rows(choice):
        stage = np.where(there, tuned.stage(chosen.settings), stage)
    return stage


def _notes(rows: LabelledRows, places: RowIndices, named: Sequence[str] | None, choice: TuningResult) -> list[str]:
    notes = []
    if missing := len(rows.gold) - len(places):
        notes.append(f"{missing:,} rows have no verdict and count for nothing here.")
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
    told = {"fitted": fitted, **({"cross-validated": held} if held else {})}
    return Profile(
        version=__version__, made=date.today().isoformat(), goal=str(goal), data=basis,
        parts={name: head[name] for name in PROFILE_PARTS if head.get(name, "none") != "none"},
        settings=_merge_settings(tunable_options(settings, all=True), choice.whole),
        decision=choice.whole.decision,
        sets={name: FittedSettings(settings=chosen.settings, decision=chosen.decision) for name, chosen in choice.sets.items()},
        figures={name: {n: _numbers(f) for n, f in figures.items() if f.value is not None} for name, figures in told.items()},
    )  # fmt: skip


def _numbers(figure: Estimate) -> list[float]:
    return [round(v, 4) for v in figure if v is not None]


def _merge_settings(tree: dict[str, Any], chosen: TunedValues) -> dict[str, Any]:
    return {**tree, **{name: {**tree.get(name, {}), **own} for name, own in chosen.settings.items()}}
