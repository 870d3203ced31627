"""Tables and progress of runs over many rows."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from knowhalu.batch import RunProgress, RunSummary
from knowhalu.cli.show import shorten_text
from knowhalu.errors import counted

if TYPE_CHECKING:
    from knowhalu.evaluation.compare import MethodResult
    from knowhalu.evaluation.metrics import Score, ThresholdRule
    from knowhalu.evaluation.tables import ResultTable

MAX_REASONS = 8
MAX_WIDTH = 10_000
RESUME_HINT = "interrupted: finished rows are kept in {}. Run the same command again to continue."
"""The last line of an interrupted job, with the file of its outcomes."""


def show_summary(console: Console, summary: RunSummary, did: str = "checked") -> None:
    """Print the counts of a run, its failures by reason, and the scores if there were gold labels."""
    table = Table(title=counted(summary.samples, "sample"), title_justify="left", box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column(justify="right")
    for name, count in {**summary.labels, **{f"  of kind {k}": n for k, n in summary.kinds.items()}}.items():
        table.add_row(name, f"{count:,}", format_share(count / summary.samples))
    for name, count in summary.changes.items():
        table.add_row(f"  sentences {name}", f"{count:,}", "")
    if summary.failed:
        table.add_row("no verdict", f"{summary.failed:,}", format_share(summary.failed / summary.samples))
    console.print(table)
    for reason, count in list(summary.failures.items())[:MAX_REASONS]:
        console.print(f"  {count:,} x {shorten_text(reason, 160)}", style="magenta")
    if len(summary.failures) > MAX_REASONS:
        console.print(f"  and {counted(len(summary.failures) - MAX_REASONS, 'other reason')}")
    kept = f"; {summary.kept:,} were finished before" if summary.kept else ""
    done = f"{summary.samples - summary.kept:,} {did} in {format_duration(summary.seconds)}"
    console.print(f"{done} ({format_rate(summary.rate)}){kept}")
    if summary.score is not None:
        console.print()
        show_scores(console, {"all": summary.score}, summary.length)
        if summary.failed:
            verb = "is" if summary.failed == 1 else "are"
            console.print(f"{counted(summary.failed, 'sample')} without a verdict {verb} not in this score.")


def show_scores(console: Console, scores: Mapping[str, "Score"], length: "ThresholdRule | None") -> None:
    """Print the score of every group, and that of a rule on length alone on the same rows."""
    table = Table(title="Against the gold labels", title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for name in ("hallucinated", "faithful", "TPR", "TNR", "Avg Acc", "abstained +", "abstained -"):
        table.add_column(name, justify="right")
    for name, score in scores.items():
        table.add_row(shorten_text(name, 40), *_cells(score), style="bold" if name == "all" else "")
    if length is not None:
        rule = f"{'more' if length.over else 'fewer'} than {length.at:g} words"
        table.add_row(f"length alone: {rule}", *_cells(length.score), style="dim")
    console.print(table)
    console.print("TPR: share of hallucinated rows that were flagged; TNR: of faithful rows that passed; Avg Acc: their mean.")
    console.print("An abstention counts as neither (+: among hallucinated rows, -: among faithful rows).")
    if length is not None:
        console.print("'length alone' is fitted on these same rows: an upper bound of what length gives here.")


def _cells(score: "Score") -> list[str]:
    rates = (score.tpr, score.tnr, score.average, score.arp, score.arn)
    return [f"{score.positives:,}", f"{score.negatives:,}", *map(format_share, rates)]


def show_tables(
    console: Console, tables: Iterable["ResultTable"], results: Iterable["MethodResult"], *, all_figures: bool = False
) -> None:
    """Print tables, and the commonest failures of each method.

    Extra tables of all rows are printed where they fit the terminal; `all_figures` prints all of them.
    """
    omitted = 0
    for table in tables:
        layout = terminal_table(table)
        width = console.measure(layout, options=console.options.update(max_width=MAX_WIDTH)).maximum
        if table.extra and not all_figures and (table.parts or width > console.width):
            omitted += 1
            continue
        console.print(layout)
        console.print()
    for result in results:
        for reason, count in list(result.failures.items())[:2]:
            console.print(f"{shorten_text(result.name, 40)}: {count:,} x {shorten_text(reason, 240)}", style="magenta")
    if omitted:
        console.print(f"{counted(omitted, 'more table')}: use --all-figures, or see comparison.md in the folder.", style="dim")


def terminal_table(table: "ResultTable") -> Table:
    """Lay out a table for the terminal."""
    layout = Table(title=shorten_text(table.title, 200), title_justify="left", box=None, pad_edge=False)
    for i, name in enumerate(table.head):
        layout.add_column(shorten_text(name, 60), justify="right" if i else "left", no_wrap=not i)
    for row in table.rows:
        layout.add_row(*(shorten_text(cell, 60) for cell in row))
    return layout


def format_share(value: float | None) -> str:
    """Return a share in percent, or a dash where there is none."""
    return "-" if value is None else f"{value:.1%}"


def format_duration(seconds: float) -> str:
    """Return a duration in words, such as `3 min 20 s`."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


class PlainProgress:
    """Progress in a log: one line every few seconds, and one at the end."""

    def __init__(self, console: Console, every: float = 5.0, before: str = "") -> None:
        self.console, self.every, self.before = console, every, before
        self._printed = time.monotonic()

    def __call__(self, progress: RunProgress) -> None:
        """Print a line, unless the last one is recent."""
        now = time.monotonic()
        if now - self._printed >= self.every or progress.done == progress.total:
            self._printed = now
            self.console.print(f"{self.before}{progress_line(progress)}")


def progress_line(progress: RunProgress) -> str:
    """Return the progress of a run: rows, remaining time as far as it is known, and failures; at the end time and rate."""
    rows = f"{progress.done:,} of {progress.total:,}"
    return f"{rows} ({progress.done / progress.total:.0%}){_progress_details(progress)}"


def _progress_details(progress: RunProgress) -> str:
    if progress.done == progress.total:
        details = f" in {format_duration(progress.seconds)}, {format_rate(progress.rate)}"
    else:
        left = progress.seconds_left
        details = "" if left is None else f", about {_round_duration(left)} left"
    return f"{details}, {progress.failed:,} without a verdict" if progress.failed else details


def format_rate(rate: float) -> str:
    """Return outcomes a second, a minute or an hour: in the unit that has at least one, so that a slow run has a rate, too."""
    if rate >= 1:
        return f"{rate:.1f}/s"
    return f"{60 * rate:.1f}/min" if 60 * rate >= 1 else f"{3600 * rate:.1f}/h"


def _round_duration(seconds: float) -> str:
    """Return an estimate in words, no more precise than it is."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 3600 else format_duration(seconds)


@contextmanager
def show_progress(console: Console) -> Iterator[Callable[[RunProgress], None]]:
    """Show a bar on a terminal, and plain lines in a log."""
    if not console.is_terminal:
        yield PlainProgress(console)
        return
    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[details]}"))
    with Bar(*columns, console=console) as bar:
        task = bar.add_task("", total=None, details="starting")

        def report(p: RunProgress) -> None:
            bar.update(task, total=p.total, completed=p.done, details=_progress_details(p).removeprefix(", ").strip())

        yield report


class ProgressLines:
    """Lines of progress, each with the name of its method."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._by_method: dict[str, PlainProgress] = {}

    def __call__(self, name: str, progress: RunProgress) -> None:
        """Print a line, unless the last one of the method is recent."""
        if name not in self._by_method:
            self._by_method[name] = PlainProgress(self.console, before=f"{name}: ")
        self._by_method[name](progress)
