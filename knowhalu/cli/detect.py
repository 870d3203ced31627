"""`knowhalu detect`: every row of a file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from click.exceptions import Exit
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from knowhalu import batch
from knowhalu.api import Checker
from knowhalu.cli.options import FILE_PATH, make_settings, with_cache, with_fitted, with_index, with_method, with_settings
from knowhalu.cli.show import make_console
from knowhalu.cli.tables import PlainProgress, format_duration, show_summary

EXIT_INTERRUPTED = 130


@click.command()
@click.argument("input", metavar="IN", type=FILE_PATH)
@click.option("--out", "-o", "output", required=True, type=click.Path(path_type=Path), help="JSONL file for the outcomes.")
@with_method
@with_fitted
@with_index
@click.option("--restart", is_flag=True, help="Start from the beginning; the old OUT is kept as OUT.old.")
@click.option("--keep-failures", is_flag=True, help="Do not retry rows that got no verdict in an earlier run.")
@with_cache
@with_settings
def detect(
    input: Path,
    output: Path,
    index: Path | None,
    restart: bool,
    keep_failures: bool,
    method: str | None,
    reasoner: str | None,
    profile: Path | None,
    allow_fitted: bool,
    no_cache: bool,
    settings_file: Path | None,
    pairs: tuple[str, ...],
) -> None:
    """Check every row of IN (JSONL, also gzipped, or a JSON array) and write one line for each to OUT.

    All rows are validated before the first is checked. A stopped job continues when the same command is run again. Rows have
    the fields response (or answer, summary, claim) and optionally id, question, documents, knowledge, label, kind, meta.
    """
    settings = make_settings(
        settings_file, pairs, index, no_cache=no_cache, method=method, reasoner=reasoner, profile=profile,
        allow_fitted=allow_fitted,
    )  # fmt: skip
    checker = Checker(settings)
    with resume_hint_on_interrupt(output), show_progress(make_console(stderr=True)) as report:
        summary = batch.detect(checker, input, output, restart=restart, retry_failures=not keep_failures, progress=report)
    show_summary(make_console(), summary)
    click.echo(f"outcomes: {output}")


@contextmanager
def resume_hint_on_interrupt(output: Path) -> Iterator[None]:
    """End an interrupted job with a line that tells how to continue it."""
    try:
        yield
    except KeyboardInterrupt as error:
        click.echo(f"interrupted: finished rows are kept in {output}. Run the same command again to continue.", err=True)
        raise Exit(EXIT_INTERRUPTED) from error


@contextmanager
def show_progress(console: Console) -> Iterator[Callable[[batch.RunProgress], None]]:
    """Show a bar on a terminal, and plain lines in a log."""
    if not console.is_terminal:
        yield PlainProgress(console)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeElapsedColumn())
    with Bar(*columns, console=console) as bar:
        task = bar.add_task("", total=None, rate="reading and validating")

        def report(p: batch.RunProgress) -> None:
            left = f"{format_duration((p.total - p.done) / p.rate)} left" if p.rate > 0 else ""
            failed = f", {p.failed:,} without a verdict" if p.failed else ""
            bar.update(task, total=p.total, completed=p.done, rate=f"{p.rate:.1f}/s, {left}{failed}, taken")

        yield report
