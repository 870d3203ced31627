"""Run the evaluations of `knowhalu eval`: one data set, or every file of a folder."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import click
from click.exceptions import Exit
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from knowhalu.cli.main import EXIT_ERROR, exit_on_interrupt
from knowhalu.cli.options import SettingOptions, setting_pairs
from knowhalu.cli.show import make_console, shorten_text
from knowhalu.cli.tables import ProgressLines, show_tables
from knowhalu.datasets.card import DatasetCard
from knowhalu.datasets.catalog import dataset_cards
from knowhalu.datasets.loading import data_files, is_saved_dataset, open_dataset, recognise_dataset, stem_of
from knowhalu.errors import InputError, KnowHaluError
from knowhalu.evaluation.compare import ReportMethodProgress
from knowhalu.evaluation.dataset import DatasetEvaluation, FitSource, evaluate_dataset
from knowhalu.evaluation.oracle import oracle_threshold
from knowhalu.evaluation.result_tables import (
    ORACLE_TITLE,
    best_rule_cell,
    make_notes,
    make_tables,
    tables_as_markdown,
    write_results,
)
from knowhalu.evaluation.runs import parse_specs, read_predictions
from knowhalu.evaluation.tables import ResultTable, format_percent

RESUME_HINT = "interrupted: finished outcomes are kept in {}. The same command resumes the evaluation."
"""The last line of an interrupted evaluation, with its folder."""


def evaluate_one(card: DatasetCard, *, folder: Path, **given: Any) -> None:
    """Evaluate one data set, and print and write the results."""
    target = folder / card.name
    with exit_on_interrupt(RESUME_HINT.format(target)):
        evaluation = run_evaluation(card, target, ProgressLines(make_console(stderr=True)), **given)
    show_evaluation(make_console(), evaluation)
    click.echo(f"written: {target / 'comparison.json'}, {target / 'comparison.md'}")


def run_evaluation(
    card: str | DatasetCard, folder: Path, progress: ReportMethodProgress, *, data: Path, methods: tuple[str, ...],
    split: str | None, fit: Path | None, fit_split: str | None, limit: int | None, restart: bool,
    **given: Unpack[SettingOptions],
) -> DatasetEvaluation:  # fmt: skip
    """Evaluate one data set by the options of a command, and write the results into a folder."""
    evaluation = evaluate_dataset(
        open_dataset(card, data, split), data, parse_specs(methods), folder, fit=FitSource(fit, fit_split),
        file=given["settings_file"], limit=limit, restart=restart, progress=progress, pairs=setting_pairs(given),
    )  # fmt: skip
    write_results(evaluation, folder)
    return evaluation


def show_evaluation(console: Console, evaluation: DatasetEvaluation) -> None:
    """Print all tables and notes, and the warnings last, where they are seen."""
    show_tables(console, make_tables(evaluation), evaluation.comparison.results)
    for line in make_notes(evaluation):
        console.print(line, style="dim")
    for line in evaluation.warnings:
        console.print(f"warning: {line}", style="yellow")


def evaluate_folder(*, data: Path, folder: Path, **given: Any) -> None:
    """Evaluate every file of the folder `data` whose format is recognised; a file that fails does not stop the others."""
    sets, unknown, failed = find_known_files(data)
    evaluations: dict[str, DatasetEvaluation] = {}
    with exit_on_interrupt(RESUME_HINT.format(folder)), show_set_progress(make_console(stderr=True), len(sets)) as begin:
        for name, (path, kind) in sets.items():
            try:
                evaluations[name] = run_evaluation(kind, folder / name, begin(name), data=path, **given)
            except KnowHaluError as error:
                failed[name] = str(error)
    if evaluations:
        _show_overview(folder, evaluations)
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


def _show_overview(folder: Path, evaluations: Mapping[str, DatasetEvaluation]) -> None:
    tables = [overview_table(evaluations), *oracle_tables(folder, evaluations)]
    show_tables(make_console(), tables, ())
    path = folder / "overview.md"
    path.write_text(tables_as_markdown(tables, ()) + "\n", encoding="utf-8")
    click.echo(
        f"written: {path}, and comparison.json and comparison.md in {', '.join(str(folder / name) for name in evaluations)}"
    )


def overview_table(evaluations: Mapping[str, DatasetEvaluation]) -> ResultTable:
    """Lay out Avg Acc of every method on every set, with the scores of the trivial rules and the number of warnings."""
    head = ("", "rows", "method", "Avg Acc", "best rule", "length rule", "length-matched", "warnings")
    rows: list[tuple[str, ...]] = []
    for name, e in evaluations.items():
        for result in e.comparison.results:
            if result.name in e.asked:
                rules, average = e.beside[result.name], format_percent(result.figures["average"])
                trivial = best_rule_cell(rules), format_percent(rules.length_average), format_percent(rules.matched_average)
                rows.append((name, f"{e.comparison.rows:,}", result.name, average, *trivial, str(len(e.warnings))))
    return ResultTable("Average accuracy", head, rows)


def oracle_tables(folder: Path, evaluations: Mapping[str, DatasetEvaluation]) -> list[ResultTable]:
    """Lay out the oracle thresholds of every method on every set, and the one threshold that all sets of a method share."""
    rows: list[tuple[str, ...]] = []
    for method in dict.fromkeys(name for e in evaluations.values() for name in e.asked):
        own = {name: r.oracle for name, e in evaluations.items()
               for r in e.comparison.results if r.name == method and r.oracle is not None}  # fmt: skip
        files = ((Path(evaluations[name].comparison.input), folder / name / f"{method}.jsonl") for name in own)
        shared = oracle_threshold([read_predictions(*pair) for pair in files])
        if shared is not None and len(own) > 1:
            pairs = zip(own.items(), shared.macro_f1, strict=True)
            rows += [(name, method, f"{o.at:.3f}", f"{100 * o.mean:.1f}", f"{shared.at:.3f}", f"{100 * f1:.1f}")
                     for (name, o), f1 in pairs]  # fmt: skip
            mean = sum(o.mean for o in own.values()) / len(own)
            rows.append(("mean", method, "", f"{100 * mean:.1f}", f"{shared.at:.3f}", f"{100 * shared.mean:.1f}"))
    head = ("", "method", "oracle threshold", "macro F1", "threshold of all sets", "macro F1")
    return [ResultTable(ORACLE_TITLE, head, rows)] if rows else []


@contextmanager
def show_set_progress(console: Console, sets: int) -> Iterator[Callable[[str], ReportMethodProgress]]:
    """Show bars of the sets and of the running method's rows on a terminal, and plain lines in a log."""
    if not console.is_terminal:
        yield partial(_prefixed_lines, console)
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


def _prefixed_lines(console: Console, name: str) -> ReportMethodProgress:
    lines = ProgressLines(console)
    return lambda method, progress: lines(f"{name}: {method}", progress)
