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

from knowhalu.batch import Progress
from knowhalu.cli.compare import Lines, show_sheets
from knowhalu.cli.eval_dataset import Job, kept_when_interrupted, with_evaluation
from knowhalu.cli.main import ERROR
from knowhalu.cli.show import make_console, short
from knowhalu.datasets.catalog import DATASETS
from knowhalu.datasets.files import data_files, is_saved, stem_of
from knowhalu.datasets.loading import recognise
from knowhalu.errors import InputError, KnowHaluError
from knowhalu.evaluation.baselines import Beside
from knowhalu.evaluation.compare import Report
from knowhalu.evaluation.dataset import Evaluation
from knowhalu.evaluation.dataset_tables import best_rule
from knowhalu.evaluation.tables import Sheet, percent, tables


@click.command()
@with_evaluation
def evaluate_all(**given: Any) -> None:
    """Evaluate every file of the folder --data whose form is known, one after the other.

    Stopped and started again with the same command, it goes on where it was. A file that cannot be evaluated holds up no other;
    it is named at the end, and the exit code is 2.
    """
    job, console = Job(**given), make_console()
    sets, unknown, failed = known_files(job.data)
    found: dict[str, Evaluation] = {}
    with kept_when_interrupted(job.folder), shown_progress(make_console(stderr=True), len(sets)) as begin:
        for name, (path, kind) in sets.items():
            try:
                found[name] = job.of(path).run(kind, job.folder / name, begin(name))
            except KnowHaluError as error:
                failed[name] = str(error)
    _show(console, job.folder, found)
    for path in unknown:
        click.echo(f"left out: {path}: of no form that is known. Name its data set: knowhalu eval NAME --data {path}", err=True)
    for name, message in failed.items():
        click.echo(f"not evaluated: {name}: {short(message, 400)}", err=True)
    if failed:
        raise Exit(ERROR)


def known_files(folder: Path) -> tuple[dict[str, tuple[Path, str]], list[Path], dict[str, str]]:
    """Return what can be evaluated in a folder, by the name of its results, the files of no known form, and the broken ones.

    The name is that of the data set, or of the file where several are of one set. Raises InputError where nothing is known.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: is not a folder. Name the data set of a file: knowhalu eval NAME --data {folder}")
    kinds: dict[Path, str | None] = {}
    broken: dict[str, str] = {}
    for path in _places(folder):
        try:
            kinds[path] = recognise(path)
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
    beside = {name for card in DATASETS.values() for layout in card.layouts for name in layout.beside}
    saved = sorted(f for f in folder.iterdir() if f.is_dir() and is_saved(f))
    return [*(f for f in data_files(folder) if f.name not in beside), *saved]


def _show(console: Console, folder: Path, found: Mapping[str, Evaluation]) -> None:
    if not found:
        return
    sheet = overview(found)
    show_sheets(console, [sheet], ())
    path = folder / "overview.md"
    path.write_text(tables([sheet], ()) + "\n", encoding="utf-8")
    click.echo(f"written: {path}, and comparison.json and comparison.md in {', '.join(str(folder / name) for name in found)}")


def overview(found: Mapping[str, Evaluation]) -> Sheet:
    """Lay out Avg Acc of every method that is no rule, set by set, with what must stand beside it."""
    head = ("", "rows", "method", "Avg Acc", "best rule", "length rule", "length-matched", "warnings")
    rows = [
        (name, f"{e.comparison.rows:,}", result.name, percent(result.figures["average"]), *_beside(e.beside[result.name]),
         str(len(e.warnings)))
        for name, e in found.items() for result in e.comparison.results if result.name in e.asked
    ]  # fmt: skip
    return Sheet("Average accuracy", head, rows)


def _beside(beside: Beside) -> tuple[str, ...]:
    return best_rule(beside), percent(beside.length_average), percent(beside.matched_average)


@contextmanager
def shown_progress(console: Console, sets: int) -> Iterator[Callable[[str], Report]]:
    """Show two bars on a terminal, sets and the rows of the method that runs, and plain lines in a log."""
    if not console.is_terminal:
        yield lambda name: _prefixed(Lines(console), name)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console) as bar:
        all_, rows = bar.add_task("sets", total=sets), bar.add_task("", total=None)
        begun: list[str] = []

        def begin(name: str) -> Report:
            begun.append(name)
            bar.update(all_, completed=len(begun) - 1)
            return lambda method, p: bar.update(rows, description=f"{name}: {short(method, 40)}", total=p.total, completed=p.done)

        yield begin
        bar.update(all_, completed=sets)


def _prefixed(lines: Lines, name: str) -> Report:
    def report(method: str, progress: Progress) -> None:
        lines(f"{name}: {method}", progress)

    return report
