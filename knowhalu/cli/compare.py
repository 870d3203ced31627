"""`knowhalu compare`: several methods over the same labelled rows."""

from pathlib import Path

import click
from click.exceptions import Exit
from rich.console import Console
from rich.table import Table

from knowhalu.batch import Progress
from knowhalu.cli.options import FILE, all_pairs, with_cache, with_fitted, with_index, with_settings
from knowhalu.cli.show import make_console, short
from knowhalu.cli.tables import PlainProgress
from knowhalu.evaluation.comparison import Comparison
from knowhalu.evaluation.comparison import compare as compared
from knowhalu.evaluation.report import remarks, sheets, write
from knowhalu.evaluation.specs import parse_specs

INTERRUPTED = 130


@click.command()
@click.argument("input", metavar="IN", type=FILE)
@click.option(
    "--methods", "-m", multiple=True, required=True, metavar="A,B,C", help="Methods; the first is what others are tested against."
)
@click.option(
    "--out", "-o", "folder", type=click.Path(file_okay=False, path_type=Path), help="Folder for the outcomes; default: IN.compare"
)
@click.option("--fit", type=FILE, help="Labelled rows, not those of IN, on which the trivial rules are fitted.")
@click.option("--reasoner", metavar="NAME", help="Who thinks in methods that do not say it themselves.")
@click.option(
    "--limit", type=click.IntRange(min=2), help="Compare so many rows at most, drawn once, rows of one source together."
)
@with_fitted
@with_index
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
    progress = Lines(make_console(stderr=True))
    try:
        found = compared(
            input, parse_specs(methods), folder, file=settings_file, fit=fit, limit=limit, restart=restart, progress=progress,
            pairs=all_pairs(
                pairs, index, no_cache=no_cache, reasoner=reasoner, profile=profile, allow_fitted=allow_fitted
            ),
        )  # fmt: skip
    except KeyboardInterrupt as error:
        click.echo(f"interrupted: what was finished is kept in {folder}. The same command goes on from there.", err=True)
        raise Exit(INTERRUPTED) from error
    paths = write(found, folder)
    show_comparison(console, found)
    click.echo(f"written: {', '.join(map(str, paths))}")


def show_comparison(console: Console, comparison: Comparison) -> None:
    """Print all tables of a comparison, the commonest failures, and what the figures mean."""
    for sheet in sheets(comparison):
        table = Table(title=sheet.title, title_justify="left", box=None, pad_edge=False)
        for i, name in enumerate(sheet.head):
            table.add_column(name, justify="right" if i else "left", no_wrap=not i)
        for row in sheet.rows:
            table.add_row(*(short(cell, 60) for cell in row))
        console.print(table)
        console.print()
    for result in comparison.results:
        for reason, count in list(result.failures.items())[:2]:
            console.print(f"{short(result.name, 40)}: {count:,} x {short(reason, 240)}", style="magenta")
    for line in remarks(comparison):
        console.print(line, style="dim")


class Lines:
    """Lines of progress, each with the method's name before it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._of: dict[str, PlainProgress] = {}

    def __call__(self, name: str, progress: Progress) -> None:
        """Print a line if the method's last is long enough ago."""
        if name not in self._of:
            self._of[name] = PlainProgress(self.console, before=f"{name}: ")
        self._of[name](progress)
