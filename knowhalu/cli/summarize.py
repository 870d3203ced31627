"""`knowhalu summarize`: write summaries that answer questions from papers, as rows for the other commands."""

from pathlib import Path
from typing import Unpack

import click

from knowhalu.cli.main import exit_on_interrupt
from knowhalu.cli.options import FILE_PATH, SettingOptions, make_settings, with_cache, with_settings

INTERRUPTED_HINT = "interrupted: nothing was written. The same command takes the replies so far from the reply cache."


@click.command()
@click.argument("input", metavar="IN", type=FILE_PATH)
@click.option(
    "--out", "-o", "output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="JSONL file for the summaries."
)
@with_cache
@with_settings
def summarize(input: Path, output: Path, **given: Unpack[SettingOptions]) -> None:
    """Write a summary for every row of IN: it answers the question of the row from its papers, and cites them.

    Rows have the fields question and documents (a list of {title, text}, with author and year in the titles), and optionally id
    and meta. The rows of OUT are input for `knowhalu detect` and `knowhalu revise`, best with --method factored-academic. The
    language model is that of the settings (llm, writer_llm).
    """
    from knowhalu.cli.show import make_console, shorten_text
    from knowhalu.cli.tables import format_duration, show_progress
    from knowhalu.summarize import summarize as write_summaries

    with exit_on_interrupt(INTERRUPTED_HINT), show_progress(make_console(stderr=True)) as report:
        counts = write_summaries(make_settings(given), input, output, progress=report)
    console = make_console()
    console.print(f"{counts.written:,} of {counts.rows:,} summaries written in {format_duration(counts.seconds)}")
    for reason, count in counts.failures.items():
        console.print(f"  no summary: {count:,} x {shorten_text(reason, 240)}", style="magenta")
    click.echo(f"summaries: {output}")
