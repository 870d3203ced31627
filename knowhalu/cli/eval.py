"""`knowhalu eval`: one command for each data set. Help comes from the catalogue; what runs is imported when it is called."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from knowhalu.cli.eval_revisions import revisions
from knowhalu.cli.options import FILE_PATH, with_cache, with_fitted, with_index, with_options, with_restart, with_settings
from knowhalu.datasets.catalog import dataset_card, dataset_titles, is_card_path
from knowhalu.registry import ignored_extensions

if TYPE_CHECKING:
    from knowhalu.datasets.card import DatasetCard

OUTPUT_SUFFIXES = (".md", ".json")
EXTRA_COMMANDS = {
    "all": "Evaluate every file of a folder whose format is recognised.",
    "paper": "Print the tables of the papers as published, with our results below.",
    "revisions": "Evaluate revised texts: hallucinations before and after, and likeness to references.",
}


class DatasetGroup(click.Group):
    """A group whose commands are the data sets, `all`, `paper` and `revisions`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the catalogue."""
        return [*EXTRA_COMMANDS, *dataset_titles()]

    def get_command(self, ctx: click.Context, name: str) -> click.Command:
        """Return a command; raises SettingsError with the nearest name for an unknown one."""
        name = name if is_card_path(name) or ":" in name else name.replace("_", "-")
        extra = {"all": evaluate_all, "paper": paper, "revisions": revisions}
        return extra[name] if name in extra else make_command(dataset_card(name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List all commands from the catalogue."""
        with formatter.section("Commands"):
            formatter.write_dl(list(EXTRA_COMMANDS.items()))
        with formatter.section("Data sets"):
            formatter.write_dl(list(dataset_titles().items()))
        for line in ignored_extensions("datasets", dataset_titles()):
            formatter.write_text(line)


@click.group(cls=DatasetGroup)
def evaluate() -> None:
    """Evaluate methods on a data set on your disk, or on one that your TOML file describes; nothing is downloaded.

    Try: knowhalu eval ragtruth --data RAGTruth/dataset -m knowhalu,conli --limit 500 -o runs
    """


with_evaluation = with_options(
    click.option(
        "--data", type=click.Path(exists=True, path_type=Path), required=True, metavar="PATH",
        help="File or folder of the data set.",
    ),
    click.option(
        "--method", "--methods", "-m", "methods", multiple=True, default=("knowhalu",), metavar="A,B,C",
        help="Methods, as in knowhalu compare; each is tested against the first. Default: knowhalu.",
    ),
    click.option("--split", metavar="SPLIT", help="Split to evaluate, or all; default: test, if there is one."),
    click.option(
        "--out", "-o", "folder", type=click.Path(file_okay=False, path_type=Path), default=Path("runs"),
        help="Folder for the results, with a folder for each data set; default: runs.",
    ),
    click.option("--fit", type=FILE_PATH, help="Labelled rows to fit the trivial rules on; none of them may be evaluated."),
    click.option("--fit-split", metavar="SPLIT", help="Split to fit the trivial rules on; default: val or dev, if any."),
    click.option("--limit", type=click.IntRange(min=2), help="A fixed random sample of this size, whole groups together."),
    click.option("--reasoner", metavar="NAME", help="Reasoner of methods that name none: encoder or llm."),
    with_index,
    with_restart,
    with_cache,
    with_fitted,
    with_settings,
)  # fmt: skip
"""The options of an evaluation; the command receives them as keywords, for `run_evaluation`."""


def make_command(card: "DatasetCard") -> click.Command:
    """Return the command of a data set; its help is its card."""

    @with_evaluation
    def run(**given: Any) -> None:
        from knowhalu.cli.eval_run import evaluate_one

        evaluate_one(card, **given)

    about = f"{card.about[:1].upper()}{card.about[1:]}." if card.about else f"The data set {card.name}."
    forms = "; or ".join(", ".join(layout.fields) for layout in card.layouts)
    text = f"{about}\n\nLabels. {card.labels}.\n\nFields. {forms}.\n\nLicence: {card.licence}."
    return click.command(card.name, help=text)(run)


@click.command("all")
@with_evaluation
def evaluate_all(**given: Any) -> None:
    """Evaluate every file of the folder --data whose format is recognised, one after the other.

    The same command resumes a stopped evaluation. A file that cannot be evaluated does not stop the others; it is listed at the
    end, and the exit code is 2.
    """
    from knowhalu.cli.eval_run import evaluate_folder

    evaluate_folder(**given)


@click.command()
@click.option("--paper", default="knowhalu", show_default=True, metavar="NAME", help="knowhalu, conli or factored.")
@click.option("--table", "number", type=click.IntRange(min=1), help="Number of the table in the paper; default: all known ones.")
@click.option(
    "--runs", default=Path("runs"), show_default=True, type=click.Path(file_okay=False, path_type=Path),
    help="Folder of comparisons, each in a folder named after its data set, such as runs/knowhalu-qa or runs/first/knowhalu-qa.",
)  # fmt: skip
@click.option("--data", default="DATA", metavar="PATH", help="Folder of the data sets, for the commands that are printed.")
@click.option("--index", default="INDEX", metavar="DIRECTORY", help="Index of Wikipedia, for the commands that are printed.")
@click.option("--out", "-o", type=click.Path(dir_okay=False, path_type=Path), help="File to write, .md or .json.")
def paper(paper: str, number: int | None, runs: Path, data: str, index: str, out: Path | None) -> None:
    """Print tables of a paper: the published figures, and below them ours, as far as comparisons in --runs have them.

    Every row of ours names its reasoner (encoder, or llm:MODEL with the model of the run). One without a result states what it
    needs, with the command that produces it.
    """
    from knowhalu.errors import SettingsError
    from knowhalu.evaluation.paper import as_json, as_markdown, make_paper_table
    from knowhalu.evaluation.paper_commands import RunPlace
    from knowhalu.evaluation.published import published_table, published_tables

    if out is not None and out.suffix not in OUTPUT_SUFFIXES:
        raise SettingsError(f"{out}: the file must end in .md or .json. Give another -o")
    if out is not None and out.exists():
        raise SettingsError(f"{out}: the file exists. Give another -o")
    chosen = [published_table(paper, number)] if number is not None else published_tables(paper)
    tables = [make_paper_table(table, RunPlace(runs, data, index)) for table in chosen]
    if out is not None and out.suffix == ".json":
        content = json.dumps([as_json(t) for t in tables], indent=1, ensure_ascii=False) + "\n"
    else:
        content = "\n".join(as_markdown(t) for t in tables)
    if out is None:
        click.echo(content, nl=False)
    else:
        out.write_text(content, encoding="utf-8")
        click.echo(f"written: {out}")
