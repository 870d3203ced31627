"""`knowhalu compare`: several methods on the same labelled rows."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from knowhalu.cli.main import EXIT_INTERRUPTED
from knowhalu.cli.options import (
    FILE_PATH,
    setting_pairs,
    with_cache,
    with_fitted,
    with_index,
    with_restart,
    with_settings,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from knowhalu.batch import RunProgress
    from knowhalu.cli.tables import PlainProgress
    from knowhalu.evaluation.compare import Comparison, MethodResult
    from knowhalu.evaluation.tables import ResultTable

MAX_WIDTH = 10_000


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
    input: Path,
    methods: tuple[str, ...],
    folder: Path | None,
    fit: Path | None,
    reasoner: str | None,
    limit: int | None,
    profile: Path | None,
    allow_fitted: bool,
    index: Path | None,
    all_figures: bool,
    restart: bool,
    no_cache: bool,
    settings_file: Path | None,
    pairs: tuple[str, ...],
) -> None:
    """Run several methods on the labelled rows of IN and compare them, also with rules on length and word overlap alone.

    Write a method as [NAME=]METHOD[:REASONER][[SETTING=VALUE,...]], for example
    -m "knowhalu,knowhalu:llm,sure=knowhalu[delta1=0.9],own=knowhalu[profile=P.toml]". --profile applies to every method that it
    was calibrated for. The folder holds the outcomes of each method in a file, so that the same command resumes a stopped run.
    """
    from knowhalu.cli.show import make_console
    from knowhalu.evaluation.compare import compare as run_comparison
    from knowhalu.evaluation.result_tables import write_results
    from knowhalu.evaluation.runs import parse_specs

    console = make_console()
    folder = folder or Path(f"{input.name.removesuffix('.gz').removesuffix('.jsonl').removesuffix('.json')}.compare")
    progress = ProgressLines(make_console(stderr=True))
    try:
        comparison = run_comparison(
            input, parse_specs(methods), folder, file=settings_file, fit=fit, limit=limit, restart=restart, progress=progress,
            pairs=setting_pairs(
                pairs, index, no_cache=no_cache, reasoner=reasoner, profile=profile, allow_fitted=allow_fitted
            ),
        )  # fmt: skip
    except KeyboardInterrupt as error:
        click.echo(f"interrupted: finished outcomes are kept in {folder}. The same command resumes the run.", err=True)
        raise Exit(EXIT_INTERRUPTED) from error
    paths = write_results(comparison, folder)
    show_comparison(console, comparison, all_figures=all_figures)
    click.echo(f"written: {', '.join(map(str, paths))}")


def show_comparison(console: "Console", comparison: "Comparison", *, all_figures: bool = False) -> None:
    """Print the tables of a comparison, the commonest failures, and notes on the figures."""
    from knowhalu.evaluation.result_tables import make_notes, make_tables

    show_tables(console, make_tables(comparison), comparison.results, all_figures=all_figures)
    for line in make_notes(comparison):
        console.print(line, style="dim")


def show_tables(
    console: "Console", tables: Iterable["ResultTable"], results: Iterable["MethodResult"], *, all_figures: bool = False
) -> None:
    """Print tables, and the commonest failures of each method.

    Extra tables of all rows are printed where they fit the terminal; `all_figures` prints all of them.
    """
    from knowhalu.cli.show import shorten_text

    omitted = 0
    for table in tables:
        layout = terminal_table(table)
        if table.extra and not all_figures and (table.parts or not fits_console(layout, console)):
            omitted += 1
            continue
        console.print(layout)
        console.print()
    for result in results:
        for reason, count in list(result.failures.items())[:2]:
            console.print(f"{shorten_text(result.name, 40)}: {count:,} x {shorten_text(reason, 240)}", style="magenta")
    if omitted:
        console.print(f"{omitted} more tables: use --all-figures, or see comparison.md in the folder.", style="dim")


def terminal_table(table: "ResultTable") -> "Table":
    """Lay out a table for the terminal."""
    from rich.table import Table

    from knowhalu.cli.show import shorten_text

    layout = Table(title=shorten_text(table.title, 200), title_justify="left", box=None, pad_edge=False)
    for i, name in enumerate(table.head):
        layout.add_column(shorten_text(name, 60), justify="right" if i else "left", no_wrap=not i)
    for row in table.rows:
        layout.add_row(*(shorten_text(cell, 60) for cell in row))
    return layout


def fits_console(table: "Table", console: "Console") -> bool:
    """Return whether a table fits the console without breaking a cell."""
    return console.measure(table, options=console.options.update(max_width=MAX_WIDTH)).maximum <= console.width


class ProgressLines:
    """Lines of progress, each with the name of its method."""

    def __init__(self, console: "Console") -> None:
        self.console = console
        self._by_method: dict[str, PlainProgress] = {}

    def __call__(self, name: str, progress: "RunProgress") -> None:
        """Print a line, unless the last one of the method is recent."""
        from knowhalu.cli.tables import PlainProgress

        if name not in self._by_method:
            self._by_method[name] = PlainProgress(self.console, before=f"{name}: ")
        self._by_method[name](progress)
