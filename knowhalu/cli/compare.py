"""`knowhalu compare`: several methods over the same labelled rows."""

from collections.abc import Iterable
from pathlib import Path

import click
from click.exceptions import Exit
from rich.console import Console
from rich.table import Table

from knowhalu.batch import RunProgress
from knowhalu.cli.options import FILE_PATH, setting_pairs, with_cache, with_fitted, with_index, with_settings
from knowhalu.cli.show import make_console, shorten_text
from knowhalu.cli.tables import PlainProgress
from knowhalu.evaluation.compare import compare as compared
from knowhalu.evaluation.method_specs import parse_specs
from knowhalu.evaluation.result_tables import make_notes, make_tables, write_results
from knowhalu.evaluation.runs import Comparison, MethodResult
from knowhalu.evaluation.tables import ResultTable

EXIT_INTERRUPTED = 130
MAX_WIDTH = 10_000


@click.command()
@click.argument("input", metavar="IN", type=FILE_PATH)
@click.option(
    "--methods", "-m", multiple=True, required=True, metavar="A,B,C", help="Methods; the first is what others are tested against."
)
@click.option(
    "--out", "-o", "folder", type=click.Path(file_okay=False, path_type=Path), help="Folder for the outcomes; default: IN.compare"
)
@click.option("--fit", type=FILE_PATH, help="Labelled rows, not those of IN, on which the trivial rules are fitted.")
@click.option("--reasoner", metavar="NAME", help="Who thinks in methods that do not say it themselves.")
@click.option(
    "--limit", type=click.IntRange(min=2), help="Compare so many rows at most, drawn once, rows of one source together."
)
@with_fitted
@with_index
@click.option("--all-figures", is_flag=True, help="Show every table, also those that do not fit the terminal.")
@click.option("--restart", is_flag=True, help="Begin anew; the old outcomes are kept beside the new ones.")
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
    """Run several methods over the labelled rows of IN and compare them, beside rules that look at length or overlap only.

    A method is written as [NAME=]METHOD[:REASONER][[SETTING=VALUE,...]], for example
    -m "knowhalu,knowhalu:llm,sure=knowhalu[delta1=0.9],own=knowhalu[profile=P.toml]". --profile is for every method that it
    was made for. Outcomes stay in the folder, one file for each method: stopped and
    started again with the same command, it goes on where it was.
    """
    console = make_console()
    folder = folder or Path(f"{input.name.removesuffix('.gz').removesuffix('.jsonl').removesuffix('.json')}.compare")
    progress = ProgressLines(make_console(stderr=True))
    try:
        found = compared(
            input, parse_specs(methods), folder, file=settings_file, fit=fit, limit=limit, restart=restart, progress=progress,
            pairs=setting_pairs(
                pairs, index, no_cache=no_cache, reasoner=reasoner, profile=profile, allow_fitted=allow_fitted
            ),
        )  # fmt: skip
    except KeyboardInterrupt as error:
        click.echo(f"interrupted: what was finished is kept in {folder}. The same command goes on from there.", err=True)
        raise Exit(EXIT_INTERRUPTED) from error
    paths = write_results(found, folder)
    show_comparison(console, found, all_figures=all_figures)
    click.echo(f"written: {', '.join(map(str, paths))}")


def show_comparison(console: Console, comparison: Comparison, *, all_figures: bool = False) -> None:
    """Print the tables of a comparison, the commonest failures, and what the figures mean."""
    show_tables(console, make_tables(comparison), comparison.results, all_figures=all_figures)
    for line in make_notes(comparison):
        console.print(line, style="dim")


def show_tables(
    console: Console, shown: Iterable[ResultTable], results: Iterable[MethodResult], *, all_figures: bool = False
) -> None:
    """Print tables, and the commonest failures of each method.

    Of the extra tables, those of all rows are printed where they fit the terminal, and all with `all_figures`.
    """
    left_out = 0
    for sheet in shown:
        table = terminal_table(sheet)
        if sheet.extra and not all_figures and (sheet.parts or not fits_console(table, console)):
            left_out += 1
            continue
        console.print(table)
        console.print()
    for result in results:
        for reason, count in list(result.failures.items())[:2]:
            console.print(f"{shorten_text(result.name, 40)}: {count:,} x {shorten_text(reason, 240)}", style="magenta")
    if left_out:
        console.print(f"{left_out} more tables: --all-figures, or comparison.md in the folder.", style="dim")


def terminal_table(sheet: ResultTable) -> Table:
    """Lay out a table for the terminal."""
    table = Table(title=shorten_text(sheet.title, 200), title_justify="left", box=None, pad_edge=False)
    for i, name in enumerate(sheet.head):
        table.add_column(shorten_text(name, 60), justify="right" if i else "left", no_wrap=not i)
    for row in sheet.rows:
        table.add_row(*(shorten_text(cell, 60) for cell in row))
    return table


def fits_console(table: Table, console: Console) -> bool:
    """Tell whether no cell of a table would have to be broken."""
    return console.measure(table, options=console.options.update(max_width=MAX_WIDTH)).maximum <= console.width


class ProgressLines:
    """Lines of progress, each with the method's name before it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._of: dict[str, PlainProgress] = {}

    def __call__(self, name: str, progress: RunProgress) -> None:
        """Print a line if the method's last is long enough ago."""
        if name not in self._of:
            self._of[name] = PlainProgress(self.console, before=f"{name}: ")
        self._of[name](progress)
