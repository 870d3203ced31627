"""`knowhalu compare`, `calibrate` and `report`: work on labelled rows, and pages of finished runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from knowhalu.cli.main import exit_on_interrupt
from knowhalu.cli.options import (
    FILE_PATH,
    SettingOptions,
    make_settings,
    setting_pairs,
    with_cache,
    with_fitted,
    with_index,
    with_method,
    with_restart,
    with_settings,
)
from knowhalu.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from knowhalu.calibration.tuning import Aim, Goal
    from knowhalu.evaluation.compare import Comparison
    from knowhalu.methods.common.calibrated import ScalingKind

OUTPUT_PATH = click.Path(dir_okay=False, path_type=Path)
SHARE_RANGE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command()
@click.argument("input", metavar="IN", type=FILE_PATH)
@click.option(
    "--methods", "-m", multiple=True, required=True, metavar="A,B,C",
    help="The methods; each is tested against the first.",
)  # fmt: skip
@click.option(
    "--out",
    "-o",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for outcomes; default: IN.compare.",
)
@click.option("--fit", type=FILE_PATH, help="Labelled rows, other than those of IN, to fit the trivial rules on.")
@click.option("--reasoner", metavar="NAME", help="Reasoner of methods that name none: encoder or llm.")
@click.option("--limit", type=click.IntRange(min=2), help="Compare a fixed random sample of this size, whole groups together.")
@with_fitted
@with_index
@click.option("--all-figures", is_flag=True, help="Print every table, even if it is wider than the terminal.")
@with_restart
@with_cache
@with_settings
def compare(
    input: Path, methods: tuple[str, ...], folder: Path | None, fit: Path | None, limit: int | None, all_figures: bool,
    restart: bool, **given: Unpack[SettingOptions],
) -> None:  # fmt: skip
    """Run several methods on the labelled rows of IN and compare them, also with rules on length and word overlap alone.

    Write a method as [NAME=]METHOD[:REASONER][[SETTING=VALUE,...]], for example
    -m "knowhalu,knowhalu:llm,sure=knowhalu[delta1=0.9],own=knowhalu[profile=P.toml]". --profile applies to every method that it
    was calibrated for. The folder holds the outcomes of each method in a file, so that the same command resumes a stopped run.
    """
    from knowhalu.cli.show import make_console
    from knowhalu.cli.tables import ProgressLines
    from knowhalu.evaluation.compare import compare as run_comparison
    from knowhalu.evaluation.result_tables import write_results
    from knowhalu.evaluation.runs import parse_specs

    folder = folder or Path(f"{input.name.removesuffix('.gz').removesuffix('.jsonl').removesuffix('.json')}.compare")
    hint = f"interrupted: finished outcomes are kept in {folder}. The same command resumes the run."
    with exit_on_interrupt(hint):
        comparison = run_comparison(
            input, parse_specs(methods), folder, file=given["settings_file"], fit=fit, limit=limit, restart=restart,
            pairs=setting_pairs(given), progress=ProgressLines(make_console(stderr=True)),
        )  # fmt: skip
    paths = write_results(comparison, folder)
    show_comparison(make_console(), comparison, all_figures=all_figures)
    click.echo(f"written: {', '.join(map(str, paths))}")


def show_comparison(console: "Console", comparison: "Comparison", *, all_figures: bool = False) -> None:
    """Print the tables of a comparison, the commonest failures, and notes on the figures."""
    from knowhalu.cli.tables import show_tables
    from knowhalu.evaluation.result_tables import make_notes, make_tables

    show_tables(console, make_tables(comparison), comparison.results, all_figures=all_figures)
    for line in make_notes(comparison):
        console.print(line, style="dim")


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
    input: Path, output: Path, outcomes: Path | None, goal: str | None, precision: float | None, abstain: float | None,
    risk: float | None, scaling: "ScalingKind", by_set: bool, restart: bool, **given: Unpack[SettingOptions],
) -> None:  # fmt: skip
    """Choose thresholds on the labelled rows of LABELLED, and estimate by cross-validation how well they generalise.

    Without a goal, it chooses KnowHalu's base form, delta1 and delta2, Factored Verification's theta, a cascade's rules and band,
    and for any other method the threshold of P(hallucinated). Outcomes are stored next to the profile, so that a resumed run or
    another goal checks no row twice. Apply the profile with --profile in check, detect and compare.
    """
    from knowhalu.calibration.calibrate import calibrate as run_calibration
    from knowhalu.calibration.report import describe_choice, make_notes, make_tables, write_calibration
    from knowhalu.cli.show import make_console, shorten_text
    from knowhalu.cli.tables import RESUME_HINT, show_progress, terminal_table

    console, settings = make_console(), make_settings(given)
    chosen = _goal(goal, precision=precision, abstain=abstain, risk=risk)
    stored = outcomes or output.with_suffix(".outcomes.jsonl")
    with exit_on_interrupt(RESUME_HINT.format(stored)), show_progress(make_console(stderr=True)) as progress:
        calibration = run_calibration(
            input, output, settings, goal=chosen, scaling=scaling, by_set=by_set, outcomes=outcomes, restart=restart,
            progress=progress,
        )  # fmt: skip
    for line in describe_choice(calibration):
        console.print(shorten_text(line, 600))
    for table in make_tables(calibration):
        console.print()
        console.print(terminal_table(table))
    for line in make_notes(calibration):
        console.print(line, style="dim")
    click.echo(f"written: {output}, {write_calibration(calibration, output)}; outcomes: {stored}")


def _goal(goal: str | None, **shares: float | None) -> "Goal | None":
    """Return the goal of the options, if any; raises InputError for several."""
    from knowhalu.calibration.tuning import Goal

    aims: dict[str, Aim] = {"precision": "precision", "abstain": "abstain", "risk": "risk"}
    given = [Goal("average")] if goal else []
    given += [Goal(aims[name], share) for name, share in shares.items() if share is not None]
    if len(given) > 1:
        raise InputError(f"several goals are given: {'; '.join(map(str, given))}. Keep one of them.")
    return given[0] if given else None


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--out", "-o", "output", required=True, type=OUTPUT_PATH, help="HTML file of the page.")
@click.option("--rows", type=FILE_PATH, help="The checked rows, if RUN is an outcome file or the rows have moved.")
@click.option("--profile", type=FILE_PATH, help="A profile of `knowhalu calibrate`, whose grid is drawn.")
@click.option("--items", type=click.IntRange(min=0), default=300, show_default=True, help="Number of outcomes shown in full.")
@click.option("--title", default="", help="Title of the page; default: the names of the runs.")
@click.option("--markdown", type=OUTPUT_PATH, help="Also write the content as Markdown.")
@click.option("--json", "as_json", type=OUTPUT_PATH, help="Also write the content as JSON.")
def report(
    runs: tuple[Path, ...], output: Path, rows: Path | None, profile: Path | None, items: int, title: str,
    markdown: Path | None, as_json: Path | None,
) -> None:  # fmt: skip
    """Write finished runs as one page: figures, curves, cost, and items with their evidence.

    RUN is a folder of `knowhalu compare`, a folder of such folders, or an outcome file of `knowhalu detect`. The page is a single
    file that needs no network. Figures cover all rows; the items are a sample that begins with wrong verdicts.
    """
    from knowhalu.report.chart_data import read_grids
    from knowhalu.report.content import input_paths, make_report
    from knowhalu.report.stored_results import find_runs
    from knowhalu.report.write import check_outputs, write_reports

    outputs = {"html": output, "markdown": markdown, "json": as_json}
    given = {form: path for form, path in outputs.items() if path is not None}
    finished = find_runs(runs, rows)
    check_outputs(given, [*input_paths(finished), *([profile] if profile is not None else [])])
    grids = read_grids(profile) if profile is not None else {}
    write_reports(make_report(finished, title=title, grids=grids, items=items), given)
    click.echo(f"written: {', '.join(map(str, given.values()))}")
