"""`knowhalu calibrate`: choose thresholds and scaling on labelled rows and write them to a profile."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from knowhalu.cli.options import FILE_PATH, make_settings, with_cache, with_index, with_method, with_restart, with_settings
from knowhalu.errors import InputError

if TYPE_CHECKING:
    from knowhalu.calibration.tuning import Aim, Goal
    from knowhalu.methods.common.calibrated import ScalingKind

SHARE_RANGE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command()
@click.argument("input", metavar="LABELLED", type=FILE_PATH)
@click.option("--out", "-o", "output", required=True, type=click.Path(path_type=Path), help="TOML file for the profile.")
@with_method
@with_index
@click.option("--outcomes", type=FILE_PATH, help="Outcomes of `knowhalu detect` on these rows, which are then not checked again.")
@click.option("--goal", type=click.Choice(["average"]), help="Choose the threshold of P(hallucinated) with the best Avg Acc.")
@click.option("--target-precision", "precision", type=SHARE_RANGE, help="Flag as many rows as this precision allows.")
@click.option(
    "--max-abstain",
    "abstain",
    type=SHARE_RANGE,
    help="Leave at most this share of the rows inconclusive, the least certain ones.",
)
@click.option("--max-risk", "risk", type=SHARE_RANGE, help="For a cascade: the highest error rate at which a stage decides.")
@click.option(
    "--scaling", type=click.Choice(["none", "temperature", "platt", "isotonic"]), default="none", show_default=True,
    help="How to calibrate P(hallucinated).",
)  # fmt: skip
@click.option("--by-set", is_flag=True, help="Choose separately for every set (meta.set) with enough rows.")
@with_restart
@with_cache
@with_settings
def calibrate(
    input: Path,
    output: Path,
    method: str | None,
    reasoner: str | None,
    index: Path | None,
    outcomes: Path | None,
    goal: str | None,
    precision: float | None,
    abstain: float | None,
    risk: float | None,
    scaling: "ScalingKind",
    by_set: bool,
    restart: bool,
    no_cache: bool,
    settings_file: Path | None,
    pairs: tuple[str, ...],
) -> None:
    """Choose thresholds on the labelled rows of LABELLED, and estimate by cross-validation how well they generalise.

    Without a goal, it chooses KnowHalu's base form, delta1 and delta2, Factored Verification's theta, a cascade's rules and band,
    and for any other method the threshold of P(hallucinated). Outcomes are stored next to the profile, so that a resumed run or
    another goal checks no row twice. Apply the profile with --profile in check, detect and compare.
    """
    from knowhalu.calibration.calibrate import calibrate as run_calibration
    from knowhalu.calibration.report import describe_choice, make_notes, make_tables, write_calibration
    from knowhalu.cli.compare import terminal_table
    from knowhalu.cli.detect import resume_hint_on_interrupt, show_progress
    from knowhalu.cli.show import make_console, shorten_text

    console = make_console()
    settings = make_settings(settings_file, pairs, index, no_cache=no_cache, method=method, reasoner=reasoner)
    aim = _goal(goal, precision=precision, abstain=abstain, risk=risk)
    kept = outcomes or output.with_suffix(".outcomes.jsonl")
    with resume_hint_on_interrupt(kept), show_progress(make_console(stderr=True)) as report:
        calibration = run_calibration(
            input, output, settings, goal=aim, scaling=scaling, by_set=by_set, outcomes=outcomes, restart=restart, progress=report
        )
    for line in describe_choice(calibration):
        console.print(shorten_text(line, 600))
    for table in make_tables(calibration):
        console.print()
        console.print(terminal_table(table))
    for line in make_notes(calibration):
        console.print(line, style="dim")
    click.echo(f"written: {output}, {write_calibration(calibration, output)}; outcomes: {kept}")


def _goal(goal: str | None, **shares: float | None) -> "Goal | None":
    """Return the goal of the options, if any; raises InputError for several."""
    from knowhalu.calibration.tuning import Goal

    aims: dict[str, Aim] = {"precision": "precision", "abstain": "abstain", "risk": "risk"}
    given = [Goal("average")] if goal else []
    given += [Goal(aims[name], share) for name, share in shares.items() if share is not None]
    if len(given) > 1:
        raise InputError(f"several goals are given: {'; '.join(map(str, given))}. Keep one of them.")
    return given[0] if given else None
