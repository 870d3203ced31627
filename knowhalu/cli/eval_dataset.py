"""The command of a data set: its options, what it runs, and what it prints."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from click.exceptions import Exit
from rich.console import Console

from knowhalu.cli.compare import EXIT_INTERRUPTED, ProgressLines, show_tables
from knowhalu.cli.options import FILE_PATH, F, setting_pairs, with_cache, with_fitted, with_index, with_settings
from knowhalu.cli.show import make_console
from knowhalu.datasets.card import DatasetCard
from knowhalu.datasets.loading import open_dataset
from knowhalu.evaluation.compare import ReportMethodProgress
from knowhalu.evaluation.dataset import DatasetEvaluation, FitSource, evaluate_dataset
from knowhalu.evaluation.method_specs import parse_specs
from knowhalu.evaluation.result_tables import make_notes, make_tables, write_results

DATA_PATH = click.Path(exists=True, path_type=Path)


@dataclass(frozen=True)
class EvaluationJob:
    """What a command was asked for; the names are those of its options."""

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
        """Evaluate one data set, and write what was found into a folder."""
        found = evaluate_dataset(
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
        write_results(found, folder)
        return found

    def of(self, data: Path) -> "EvaluationJob":
        """Return the same job for other data."""
        return replace(self, data=data)


def with_evaluation(command: F) -> F:
    """Add the options of an evaluation; the command gets them as keywords, for `EvaluationJob`."""
    for decorate in (
        with_settings,
        with_fitted,
        with_cache,
        click.option("--restart", is_flag=True, help="Begin anew; the old outcomes are kept beside the new ones."),
        with_index,
        click.option("--reasoner", metavar="NAME", help="Who thinks in methods that do not say it themselves."),
        click.option("--limit", type=click.IntRange(min=2), help="So many rows at most, drawn once, whole groups together."),
        click.option("--fit-split", metavar="SPLIT", help="Split to fit the trivial rules on; default: val or dev, if any."),
        click.option("--fit", type=FILE_PATH, help="Labelled rows to fit the trivial rules on, none of which is evaluated."),
        click.option(
            "--out", "-o", "folder", type=click.Path(file_okay=False, path_type=Path), default=Path("runs"),
            help="Folder for the results, in which each data set gets its own; default: runs.",
        ),
        click.option("--split", metavar="SPLIT", help="Split to evaluate, or all; default: test, where there is one."),
        click.option(
            "--method", "--methods", "-m", "methods", multiple=True, default=("knowhalu",), metavar="A,B,C",
            help="Methods, as in knowhalu compare; the first is what others are tested against. Default: knowhalu.",
        ),
        click.option("--data", type=DATA_PATH, required=True, metavar="PATH", help="File or folder with the data set."),
    ):  # fmt: skip
        command = decorate(command)
    return command


def make_command(card: DatasetCard) -> click.Command:
    """Return the command of a data set; its help is its card."""

    @with_evaluation
    def run(**given: Any) -> None:
        job = EvaluationJob(**given)
        folder = job.folder / card.name
        with evaluation_hint_on_interrupt(folder):
            found = job.run(card, folder, ProgressLines(make_console(stderr=True)))
        show_evaluation(make_console(), found)
        click.echo(f"written: {folder / 'comparison.json'}, {folder / 'comparison.md'}")

    about = f"{card.about[:1].upper()}{card.about[1:]}." if card.about else f"The data set {card.name}."
    forms = "; or ".join(", ".join(layout.fields) for layout in card.layouts)
    text = f"{about}\n\nLabels. {card.labels}.\n\nFields. {forms}.\n\nLicence: {card.licence}."
    return click.command(card.name, help=text)(run)


@contextmanager
def evaluation_hint_on_interrupt(folder: Path) -> Iterator[None]:
    """End an evaluation that is interrupted with a line that says how to go on."""
    try:
        yield
    except KeyboardInterrupt as error:
        click.echo(f"interrupted: what was finished is kept in {folder}. The same command goes on from there.", err=True)
        raise Exit(EXIT_INTERRUPTED) from error


def show_evaluation(console: Console, evaluation: DatasetEvaluation) -> None:
    """Print all tables, what the figures mean, and the warnings last, where they are seen."""
    show_tables(console, make_tables(evaluation), evaluation.comparison.results)
    for line in make_notes(evaluation):
        console.print(line, style="dim")
    for line in evaluation.warnings:
        console.print(f"warning: {line}", style="yellow")
