"""Run the evaluations of `knowhalu eval`: one data set, or every file of a folder."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click
from click.exceptions import Exit
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from knowhalu.batch import RunProgress
from knowhalu.cli.compare import ProgressLines, show_tables
from knowhalu.cli.main import EXIT_ERROR, EXIT_INTERRUPTED
from knowhalu.cli.options import setting_pairs
from knowhalu.cli.show import make_console, shorten_text
from knowhalu.datasets.card import DatasetCard
from knowhalu.datasets.catalog import dataset_cards
from knowhalu.datasets.loading import data_files, is_saved_dataset, open_dataset, recognise_dataset, stem_of
from knowhalu.errors import InputError, KnowHaluError
from knowhalu.evaluation.compare import ReportMethodProgress
from knowhalu.evaluation.dataset import BaselineScores, DatasetEvaluation, FitSource, evaluate_dataset
from knowhalu.evaluation.result_tables import best_rule_cell, make_notes, make_tables, tables_as_markdown, write_results
from knowhalu.evaluation.runs import parse_specs
from knowhalu.evaluation.tables import ResultTable, format_percent


@dataclass(frozen=True)
class EvaluationJob:
    """The options of an evaluation command, under their names."""

    data: Path
    methods: tuple[str, ...]
    split: str | None
    folder: Path
    fit: Path | None
    fit_split: str | None
    limit: int | None
    reasoner: str | None
    index: Path | None
    restart: bool
    no_cache: bool
    profile: Path | None
    allow_fitted: bool
    settings_file: Path | None
    pairs: tuple[str, ...]

    def run(self, card: str | DatasetCard, folder: Path, progress: ReportMethodProgress) -> DatasetEvaluation:
        """Evaluate one data set, and write the results into a folder."""
        evaluation = evaluate_dataset(
            open_dataset(card, self.data, self.split),
            self.data,
            parse_specs(self.methods),
            folder,
            fit=FitSource(self.fit, self.fit_split),
            file=self.settings_file,
            limit=self.limit,
            restart=self.restart,
            progress=progress,
            pairs=setting_pairs(
                self.pairs,
                self.index,
                no_cache=self.no_cache,
                reasoner=self.reasoner,
                profile=self.profile,
                allow_fitted=self.allow_fitted,
            ),
        )
        write_results(evaluation, folder)
        return evaluation

    def of(self, data: Path) -> "EvaluationJob":
        """Return the same job for other data."""
        return replace(self, data=data)


def evaluate_one(card: DatasetCard, job: EvaluationJob) -> None:
    """Evaluate one data set, and print and write the results."""
    folder = job.folder / card.name
    with evaluation_hint_on_interrupt(folder):
        evaluation = job.run(card, folder, ProgressLines(make_console(stderr=True)))
    show_evaluation(make_console(), evaluation)
    click.echo(f"written: {folder / 'comparison.json'}, {folder / 'comparison.md'}")


@contextmanager
def evaluation_hint_on_interrupt(folder: Path) -> Iterator[None]:
    """End an interrupted evaluation with a line on how to resume it."""
    try:
        yield
    except KeyboardInterrupt as error:
        click.echo(f"interrupted: finished outcomes are kept in {folder}. The same command resumes the evaluation.", err=True)
        raise Exit(EXIT_INTERRUPTED) from error


def show_evaluation(console: Console, evaluation: DatasetEvaluation) -> None:
    """Print all tables and notes, and the warnings last, where they are seen."""
    show_tables(console, make_tables(evaluation), evaluation.comparison.results)
    for line in make_notes(evaluation):
        console.print(line, style="dim")
    for line in evaluation.warnings:
        console.print(f"warning: {line}", style="yellow")


def evaluate_folder(job: EvaluationJob) -> None:
    """Evaluate every file of a folder whose format is recognised; a file that fails does not stop the others."""
    console = make_console()
    sets, unknown, failed = find_known_files(job.data)
    evaluations: dict[str, DatasetEvaluation] = {}
    with evaluation_hint_on_interrupt(job.folder), show_set_progress(make_console(stderr=True), len(sets)) as begin:
        for name, (path, kind) in sets.items():
            try:
                evaluations[name] = job.of(path).run(kind, job.folder / name, begin(name))
            except KnowHaluError as error:
                failed[name] = str(error)
    _show(console, job.folder, evaluations)
    for path in unknown:
        click.echo(
            f"left out: {path}: its format is not recognised. Name its data set: knowhalu eval NAME --data {path}", err=True
        )
    for name, message in failed.items():
        click.echo(f"not evaluated: {name}: {shorten_text(message, 400)}", err=True)
    if failed:
        raise Exit(EXIT_ERROR)


def find_known_files(folder: Path) -> tuple[dict[str, tuple[Path, str]], list[Path], dict[str, str]]:
    """Return the files to evaluate by the name of their results, the unrecognised files, and the errors of broken ones.

    The name is that of the data set, with the file name where several files belong to one. Raises InputError where no file is
    recognised.
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
        raise InputError(f"{folder}: no file has a recognised format. See knowhalu eval --help.")
    return sets, [path for path, kind in kinds.items() if kind is None], broken


def _name(path: Path, kind: str, kinds: Mapping[Path, str | None]) -> str:
    """Return the name of a file's results: its set, with the file name where the set has several files."""
    stems = [stem_of(other) for other, other_kind in kinds.items() if other_kind == kind]
    if len(stems) == 1:
        return kind
    return f"{kind}-{stem_of(path) if len(set(stems)) == len(stems) else path.name}"


def _places(folder: Path) -> list[Path]:
    """Return the data files and saved data sets of a folder, without files that only hold texts of others."""
    beside = {name for card in dataset_cards().values() for layout in card.layouts for name in layout.beside}
    saved = sorted(f for f in folder.iterdir() if f.is_dir() and is_saved_dataset(f))
    return [*(f for f in data_files(folder) if f.name not in beside), *saved]


def _show(console: Console, folder: Path, evaluations: Mapping[str, DatasetEvaluation]) -> None:
    if not evaluations:
        return
    overview = overview_table(evaluations)
    show_tables(console, [overview], ())
    path = folder / "overview.md"
    path.write_text(tables_as_markdown([overview], ()) + "\n", encoding="utf-8")
    click.echo(
        f"written: {path}, and comparison.json and comparison.md in {', '.join(str(folder / name) for name in evaluations)}"
    )


def overview_table(evaluations: Mapping[str, DatasetEvaluation]) -> ResultTable:
    """Lay out Avg Acc of every method on every set, with the scores of the trivial rules and the number of warnings."""
    head = ("", "rows", "method", "Avg Acc", "best rule", "length rule", "length-matched", "warnings")
    rows = [
        (name, f"{e.comparison.rows:,}", result.name, format_percent(result.figures["average"]), *_beside(e.beside[result.name]),
         str(len(e.warnings)))
        for name, e in evaluations.items() for result in e.comparison.results if result.name in e.asked
    ]  # fmt: skip
    return ResultTable("Average accuracy", head, rows)


def _beside(beside: BaselineScores) -> tuple[str, ...]:
    return best_rule_cell(beside), format_percent(beside.length_average), format_percent(beside.matched_average)


@contextmanager
def show_set_progress(console: Console, sets: int) -> Iterator[Callable[[str], ReportMethodProgress]]:
    """Show bars of the sets and of the running method's rows on a terminal, and plain lines in a log."""
    if not console.is_terminal:
        yield lambda name: _prefixed(ProgressLines(console), name)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console) as bar:
        all_, rows = bar.add_task("sets", total=sets), bar.add_task("", total=None)
        started: list[str] = []

        def begin(name: str) -> ReportMethodProgress:
            started.append(name)
            bar.update(all_, completed=len(started) - 1)
            return lambda method, p: bar.update(
                rows, description=f"{name}: {shorten_text(method, 40)}", total=p.total, completed=p.done
            )

        yield begin
        bar.update(all_, completed=sets)


def _prefixed(lines: ProgressLines, name: str) -> ReportMethodProgress:
    def report(method: str, progress: RunProgress) -> None:
        lines(f"{name}: {method}", progress)

    return report
