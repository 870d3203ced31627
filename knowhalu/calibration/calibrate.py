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
from knowhalu.batch import Progress, detect
from knowhalu.calibration.cascade import Stages, read_stages
from knowhalu.calibration.choice import Choice, Chooser, Chosen, joined
from knowhalu.calibration.measures import measured, ratio
from knowhalu.calibration.objectives import Goal
from knowhalu.calibration.outcomes import Lines, Places, Tuned, head_of, plain, read_lines, sets_of
from knowhalu.calibration.runs import asking_all, options_of, run_of
from knowhalu.calibration.theta import read_thetas
from knowhalu.calibration.two_forms import Forms, Grid, read_forms
from knowhalu.errors import InputError
from knowhalu.evaluation.bootstrap import Estimate
from knowhalu.evaluation.metrics import Flags, Said
from knowhalu.evaluation.rows import Rows, read_rows
from knowhalu.io.atomic import refuse_others
from knowhalu.methods.cascade import ENCODER, LLM, RULES
from knowhalu.methods.common.calibrated import Kind
from knowhalu.profiles import HEAD, Basis, Fit, Profile, beside, hashes_of, write_profile
from knowhalu.settings import Settings

Figures = dict[str, Estimate]
OPENS = '{\n "profile": {'
"""How the file beside a profile begins; see `knowhalu.calibration.report`."""
PARTS = ("verifier", "prompts", "index")
RISK = 0.05


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
    before: Figures
    fitted: Figures
    held: Figures | None
    on: dict[str, tuple[Figures, Figures | None]] = field(default_factory=dict)
    stages: tuple[StageShare, ...] = ()
    sent_on: dict[str, Estimate] = field(default_factory=dict)
    grids: dict[str, Grid] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def calibrate(
    input: Path,
    output: Path,
    settings: Settings,
    *,
    goal: Goal | None = None,
    scaling: Kind = "none",
    by_set: bool = False,
    outcomes: Path | None = None,
    restart: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Calibration:
    """Choose thresholds and scaling for a method on the labelled rows of `input`, and write the profile to `output`.

    The outcomes come from `outcomes`, a file of `knowhalu detect` on the same rows, or else are made beside the profile; started
    again, it checks only what has no verdict yet. Raises InputError for rows and for goals out of reach, SettingsError for
    settings, ResumeError where the outcomes beside the profile are of another run.
    """
    _refuse_outputs(output, [input, *([outcomes] if outcomes else [])])
    rows = read_rows(input)
    if rows.missing:
        raise InputError(f"{input}: no row is {rows.missing}, so nothing can be chosen on it. Give rows of both labels.")
    if outcomes is None:
        settings = asking_all(settings)
        checker, outcomes = Checker(settings), output.with_suffix(".outcomes.jsonl")
        output.parent.mkdir(parents=True, exist_ok=True)
        detect(checker, input, outcomes, restart=restart, progress=progress)
    head = head_of(outcomes)
    settings = run_of(head, settings, outcomes)
    lines = read_lines(outcomes, rows)
    found = _calibrated(rows, lines, settings, head, _goal(goal, settings, scaling), scaling, by_set)
    write_profile(found.profile, output)
    return found


def _refuse_outputs(output: Path, inputs: Sequence[Path]) -> None:
    """Refuse a name by which the profile, or what is written beside it, would take the place of something else."""
    if output.suffix != ".toml":
        raise InputError(f"{output}: is no name for a profile. Let it end in .toml; its figures are written beside it, in .json.")
    refuse_others(output, HEAD, "a profile", inputs)
    refuse_others(beside(output), OPENS, "the figures of a profile", inputs)


def _goal(given: Goal | None, settings: Settings, scaling: Kind) -> Goal:
    """Return the goal, or what is usual for the method; raises InputError where a method has no such goal."""
    if settings.method != "cascade":
        if given is not None and given.aim == "risk":
            raise InputError("--max-risk is the goal of a cascade alone. Add --method cascade, or give another goal.")
        return given or Goal("labels" if options_of(settings) else "average")
    if (given is not None and given.aim != "risk") or scaling != "none":
        raise InputError("a cascade has one goal, --max-risk, and no scaling: its stages measure differently. Leave out others.")
    return given or Goal("risk", RISK)


def _calibrated(
    rows: Rows, lines: Lines, settings: Settings, head: dict[str, str], goal: Goal, scaling: Kind, by_set: bool
) -> Calibration:
    places = np.array([place for place, _ in lines], dtype=np.intp)
    gold, groups = rows.gold[places], rows.groups[places]
    if not gold.any() or gold.all():
        which = "has a verdict" if not len(gold) else f"that is {'faithful' if gold.all() else 'hallucinated'} has a verdict"
        raise InputError(f"{rows.path}: no row {which}, so nothing can be chosen. See why in the outcomes, and run it again.")
    tuned = tuned_of(settings, lines, gold, goal)
    sets = sets_of(rows.path) if by_set or settings.method == "cascade" else []
    named = [sets[place] for place in places] if sets else []
    chooser = Chooser(tuned, gold, groups, goal, scaling, tuple(named) if by_set else None)
    choice = chooser.choose(np.arange(len(gold)))
    said = chooser.said(choice)
    notes = _notes(rows, places, named if by_set else None, choice)
    try:
        crossed = chooser.crossed()
    except InputError as error:
        crossed = []
        notes.append(f"Not cross-validated: with a part of the rows held out, {error}")
    held = joined([(mask, chooser.said(other)) for mask, other in crossed]) if crossed else None
    fitted, on_held = measured(said, groups), measured(held, groups) if held is not None else None
    return Calibration(
        profile=_profile(rows, settings, head, goal, choice, fitted, on_held),
        groups=len(np.unique(groups)),
        before=measured(_before(tuned, lines, gold), groups),
        fitted=fitted,
        held=on_held,
        on=_on(said, held, groups, named),
        **(_staged(tuned, chooser, choice, crossed, named) if isinstance(tuned, Stages) else {}),
        grids=_grids(tuned, chooser),
        notes=tuple(notes),
    )


def tuned_of(settings: Settings, lines: Lines, gold: Flags, goal: Goal) -> Tuned:
    """Read of stored verdicts what can be chosen of their method."""
    if settings.method == "cascade":
        return read_stages(lines, gold, goal.value)
    if settings.method == "knowhalu":
        return read_forms(lines, gold)
    if settings.method in ("factored", "factored-academic"):
        return read_thetas(lines, gold, settings.factored.rule)
    return plain(lines, gold)


def _before(tuned: Tuned, lines: Lines, gold: Flags) -> Said:
    """Return what the method says without a profile."""
    if not isinstance(tuned, Stages):
        return plain(lines, gold).all
    usual = Settings().model_dump(mode="json", include={"cascade", "lexical"})
    return tuned.said(usual)


def _on(said: Said, held: Said | None, groups: Places, named: Sequence[str]) -> dict[str, tuple[Figures, Figures | None]]:
    found = {}
    for name in sorted(set(named) - {""}):
        there = np.array(named) == name
        own = measured(held.rows(there), groups[there]) if held is not None else None
        found[name] = (measured(said.rows(there), groups[there]), own)
    return found


def _grids(tuned: Tuned, chooser: Chooser) -> dict[str, Grid]:
    """Return the grid of all rows (""), and of each set that has its own."""
    if not isinstance(tuned, Forms):
        return {}
    everything = np.arange(len(tuned.gold))
    parts = {"": everything, **chooser.members(everything)}
    return {name: (own := tuned.some(rows)).grid(own.better_form()) for name, rows in parts.items()}


def _staged(
    tuned: Stages, chooser: Chooser, choice: Choice, crossed: Sequence[tuple[Flags, Choice]], named: Sequence[str]
) -> dict[str, Any]:
    """Count who decides what, and how often wrongly."""
    stage, said, groups = _deciding(tuned, chooser, choice), chooser.said(choice), chooser.groups
    held, held_said = stage, None
    for mask, other in crossed:
        held = np.where(mask, _deciding(tuned, chooser, other), held)
    if crossed:
        held_said = joined([(mask, chooser.said(other)) for mask, other in crossed])
    shares = []
    for name, flagged in [(name, flagged) for name in (RULES, ENCODER, LLM) for flagged in (False, True)]:
        there = (stage == name) & (said.settled == flagged) & ~said.abstained
        errors, held_errors = ratio(~said.right, there, groups), Estimate(None)
        if held_said is not None:
            held_errors = ratio(~held_said.right, (held == name) & (held_said.settled == flagged) & ~held_said.abstained, groups)
        label = "hallucinated" if flagged else "faithful"
        shares.append(StageShare(name, label, int(there.sum()), ratio(there, np.ones_like(there), groups), errors, held_errors))
    on = (stage == LLM) | (stage == "")
    sets = {name: np.array(named) == name for name in sorted(set(named) - {""})}
    sent = {name: ratio(on, there, groups) for name, there in {"": np.ones_like(on), **sets}.items()}
    return {"stages": tuple(s for s in shares if s.rows), "sent_on": sent}


def _deciding(tuned: Stages, chooser: Chooser, choice: Choice) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    stage = tuned.stage(choice.whole.settings)
    for there, chosen in chooser.by_rows(choice):
        stage = np.where(there, tuned.stage(chosen.settings), stage)
    return stage


def _notes(rows: Rows, places: Places, named: Sequence[str] | None, choice: Choice) -> list[str]:
    notes = []
    if missing := len(rows.gold) - len(places):
        notes.append(f"{missing:,} rows have no verdict and count for nothing here.")
    if few := sorted(set(named or ()) - {"", *choice.sets}):
        notes.append(f"Too few rows of one label for values of their own, so those of all rows are used: {', '.join(few)}.")
    if named is not None and not any(named):
        notes.append("No row names a set (meta.set), so there is nothing to choose by set.")
    return notes


def _profile(
    rows: Rows, settings: Settings, head: dict[str, str], goal: Goal, choice: Choice, fitted: Figures, held: Figures | None
) -> Profile:
    with rows.path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    basis = Basis(
        file=rows.path.name, sha256=sha256, rows=len(rows.gold), hallucinated=int(rows.gold.sum()),
        hashes=hashes_of(rows.contents),
    )  # fmt: skip
    told = {"fitted": fitted, **({"cross-validated": held} if held else {})}
    return Profile(
        version=__version__, made=date.today().isoformat(), goal=str(goal), data=basis,
        parts={name: head[name] for name in PARTS if head.get(name, "none") != "none"},
        settings=_merged(options_of(settings, all=True), choice.whole),
        decision=choice.whole.decision,
        sets={name: Fit(settings=chosen.settings, decision=chosen.decision) for name, chosen in choice.sets.items()},
        figures={name: {n: _numbers(f) for n, f in figures.items() if f.value is not None} for name, figures in told.items()},
    )  # fmt: skip


def _numbers(figure: Estimate) -> list[float]:
    return [round(v, 4) for v in figure if v is not None]


def _merged(tree: dict[str, Any], chosen: Chosen) -> dict[str, Any]:
    return {**tree, **{name: {**tree.get(name, {}), **own} for name, own in chosen.settings.items()}}
