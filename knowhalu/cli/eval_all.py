"""`knowhalu eval all`: every file of a folder whose form is known."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.exceptions import Exit
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from knowhalu.batch import RunProgress
from knowhalu.cli.compare import ProgressLines, show_tables
from knowhalu.cli.eval_dataset import EvaluationJob, evaluation_hint_on_interrupt, with_evaluation
from knowhalu.cli.main import EXIT_ERROR
from knowhalu.cli.show import make_console, shorten_text
from knowhalu.datasets.catalog import dataset_cards
from knowhalu.datasets.files import data_files, is_saved_dataset, stem_of
from knowhalu.datasets.loading import recognise_dataset
from knowhalu.errors import InputError, KnowHaluError
from knowhalu.evaluation.baselines import BaselineScores
from knowhalu.evaluation.compare import ReportMethodProgress
from knowhalu.evaluation.dataset import DatasetEvaluation
from knowhalu.evaluation.result_tables import best_rule_cell, tables_as_markdown
from knowhalu.evaluation.tables import ResultTable, format_percent


@click.command()
@with_evaluation
def evaluate_all(**given: Any) -> None:
    """Evaluate every file of the folder --data whose form is known, one after the other.

    Stopped and started again with the same command, it goes on where it was. A file that cannot be evaluated holds up no other;
    it is named at the end, and the exit code is 2.
    """
    job, console = EvaluationJob(**given), make_console()
    sets, unknown, failed = find_known_files(job.data)
    found: dict[str, DatasetEvaluation] = {}
    with evaluation_hint_on_interrupt(job.folder), show_set_progress(make_console(stderr=True), len(sets)) as begin:
        for name, (path, kind) in sets.items():
            try:
                found[name] = job.of(path).run(kind, job.folder / name, begin(name))
            except KnowHaluError as error:
                failed[name] = str(error)
    _show(console, job.folder, found)
    for path in unknown:
        click.echo(f"left out: {path}: of no form that is known. Name its data set: knowhalu eval NAME --data {path}", err=True)
    for name, message in failed.items():
        click.echo(f"not evaluated: {name}: {shorten_text(message, 400)}", err=True)
    if failed:
        raise Exit(EXIT_ERROR)


def find_known_files(folder: Path) -> tuple[dict[str, tuple[Path, str]], list[Path], dict[str, str]]:
    """Return what can be evaluated in a folder, by the name of its results, the files of no known form, and the broken ones.

    The name is that of the data set, or of the file where several are of one set. Raises InputError where nothing is known.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: is not a folder. Name the data set of a file: knowhalu eval NAME --data {folder}")
    kinds: dict[Path, str | None] = {}
    broken: dict[str, str] = {}
    for path in _places(folder):
        try:
            kinds[path] = recognise_dataset(path)
        except KnowHaluError as error:
            broken[str(path)] = str(error)
    sets = {_name(path, kind, kinds): (path, kind) for path, kind in kinds.items() if kind is not None}
    if not sets and not broken:
        raise InputError(f"{folder}: holds no file of a form that is known. See knowhalu eval --help.")
    return sets, [path for path, kind in kinds.items() if kind is None], broken


def _name(path: Path, kind: str, kinds: Mapping[Path, str | None]) -> str:
    """Name the results of a file: by its set, or by its own name where there are several, with the suffix where that tells."""
    stems = [stem_of(other) for other, its in kinds.items() if its == kind]
    if len(stems) == 1:
        return kind
    return f"{kind}-{stem_of(path) if len(set(stems)) == len(stems) else path.name}"


def _places(folder: Path) -> list[Path]:
    """Return the data files and saved folders in a folder, without files that others draw their texts from."""
    beside = {name for card in dataset_cards().values() for layout in card.layouts for name in layout.beside}
    saved = sorted(f for f in folder.iterdir() if f.is_dir() and is_saved_dataset(f))
    return [*(f for f in data_files(folder) if f.name not in beside), *saved]


def _show(console: Console, folder: Path, found: Mapping[str, DatasetEvaluation]) -> None:
    if not found:
        return
    sheet = overview_table(found)
    show_tables(console, [sheet], ())
    path = folder / "overview.md"
    path.write_text(tables_as_markdown([sheet], ()) + "\n", encoding="utf-8")
    click.echo(f"written: {path}, and comparison.json and comparison.md in {', '.join(str(folder / name) for name in found)}")


def overview_table(found: Mapping[str, DatasetEvaluation]) -> ResultTable:
    """Lay out Avg Acc of every method that is no rule, set by set, with what must stand beside it."""
    head = ("", "rows", "method", "Avg Acc", "best rule", "length rule", "length-matched", "warnings")
    rows = [
        (name, f"{e.comparison.rows:,}", result.name, format_percent(result.figures["average"]), *_beside(e.beside[result.name]),
         str(len(e.warnings)))
        for name, e in found.items() for result in e.comparison.results if result.name in e.asked
    ]  # fmt: skip
    return ResultTable("Average accuracy", head, rows)


def _beside(beside: BaselineScores) -> tuple[str, ...]:
    return best_rule_cell(beside), format_percent(beside.length_average), format_percent(beside.matched_average)


@contextmanager
def show_set_progress(console: Console, sets: int) -> Iterator[Callable[[str], ReportMethodProgress]]:
    """Show two bars on a terminal, sets and the rows of the method that runs, and plain lines in a log."""
    if not console.is_terminal:
        yield lambda name: _prefixed(ProgressLines(console), name)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console) as bar:
        all_, rows = bar.add_task("sets", total=sets), bar.add_task("", total=None)
        begun: list[str] = []

        def begin(name: str) -> ReportMethodProgress:
            begun.append(name)
            bar.update(all_, completed=len(begun) - 1)
            return lambda method, p: bar.update(
                rows, description=f"{name}: {shorten_text(method, 40)}", total=p.total, completed=p.done
            )

        yield begin
        bar.update(all_, completed=sets)


def _prefixed(lines: ProgressLines, name: str) -> ReportMethodProgress:
    def report(method: str, progress: RunProgress) -> None:
        lines(f"{name}: {method}", progress)

    return report
