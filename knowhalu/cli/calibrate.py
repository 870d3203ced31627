"""`knowhalu calibrate`: thresholds and scaling from labelled rows, into a profile."""

from pathlib import Path

import click

from knowhalu.calibration.calibrate import calibrate as calibrated
from knowhalu.calibration.objectives import Aim, Goal
from knowhalu.calibration.report import describe_choice, make_notes, make_tables, write_calibration
from knowhalu.cli.compare import terminal_table
from knowhalu.cli.detect import resume_hint_on_interrupt, show_progress
from knowhalu.cli.options import FILE_PATH, make_settings, with_cache, with_index, with_method, with_settings
from knowhalu.cli.show import make_console, shorten_text
from knowhalu.errors import InputError
from knowhalu.methods.common.calibrated import ScalingKind

SHARE_RANGE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command()
@click.argument("input", metavar="LABELLED", type=FILE_PATH)
@click.option("--out", "-o", "output", required=True, type=click.Path(path_type=Path), help="TOML file for the profile.")
@with_method
@with_index
@click.option("--outcomes", type=FILE_PATH, help="Outcomes of `knowhalu detect` on these rows: nothing is asked again.")
@click.option("--goal", type=click.Choice(["average"]), help="Choose the border of P(hallucinated) with the best Avg Acc.")
@click.option("--target-precision", "precision", type=SHARE_RANGE, help="Flag as many as may be at this precision.")
@click.option("--max-abstain", "abstain", type=SHARE_RANGE, help="Leave the least sure open, this share of all rows at most.")
@click.option("--max-risk", "risk", type=SHARE_RANGE, help="Of a cascade: let a stage decide at this rate of errors at most.")
@click.option(
    "--scaling", type=click.Choice(["none", "temperature", "platt", "isotonic"]), default="none", show_default=True,
    help="How P(hallucinated) is turned into a share of hallucinations.",
)  # fmt: skip
@click.option("--by-set", is_flag=True, help="Choose for every set (meta.set) by itself, where it has rows enough.")
@click.option("--restart", is_flag=True, help="Ask anew; the old outcomes are kept beside the new ones.")
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
    scaling: ScalingKind,
    by_set: bool,
    restart: bool,
    no_cache: bool,
    settings_file: Path | None,
    pairs: tuple[str, ...],
) -> None:
    """Choose thresholds on the labelled rows of LABELLED, and say how good they are on rows they were not chosen on.

    Without a goal: KnowHalu's base form, delta1 and delta2, Factored Verification's theta, a cascade's rules and band, and of any
    other method the border of P(hallucinated). Outcomes are kept beside the profile: stopped and started again, or with another
    goal, nothing is asked twice. Use a profile by --profile in check, detect and compare.
    """
    console = make_console()
    settings = make_settings(settings_file, pairs, index, no_cache=no_cache, method=method, reasoner=reasoner)
    aim = _goal(goal, precision=precision, abstain=abstain, risk=risk)
    kept = outcomes or output.with_suffix(".outcomes.jsonl")
    with resume_hint_on_interrupt(kept), show_progress(make_console(stderr=True)) as report:
        found = calibrated(
            input, output, settings, goal=aim, scaling=scaling, by_set=by_set, outcomes=outcomes, restart=restart, progress=report
        )
    for line in describe_choice(found):
        console.print(shorten_text(line, 600))
    for sheet in make_tables(found):
        console.print()
        console.print(terminal_table(sheet))
    for line in make_notes(found):
        console.print(line, style="dim")
    click.echo(f"written: {output}, {write_calibration(found, output)}; outcomes: {kept}")


def _goal(goal: str | None, **shares: float | None) -> Goal | None:
    """Return the one goal that is given; raises InputError where two are."""
    aims: dict[str, Aim] = {"precision": "precision", "abstain": "abstain", "risk": "risk"}
    given = [Goal("average")] if goal else []
    given += [Goal(aims[name], share) for name, share in shares.items() if share is not None]
    if len(given) > 1:
        raise InputError(f"several goals are given: {'; '.join(map(str, given))}. Keep one of them.")
    return given[0] if given else None
