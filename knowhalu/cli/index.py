"""The `index` commands: build an index of documents, look at it, search it, verify it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from knowhalu.cli.index_search import FOLDER, extend, model_options, search, serve

if TYPE_CHECKING:
    from collections.abc import Callable

    from knowhalu.retrieval.build import Progress
    from knowhalu.retrieval.sources import Sources

SHOWN = 20


@click.group()
def index() -> None:
    """Build, inspect, search and verify indexes of documents."""


for command in (search, extend, serve):
    index.add_command(command)


@index.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", "-o", required=True, type=click.Path(path_type=Path), help="Folder of the new index.")
@click.option("--embedder", default="minilm", show_default=True, help="minilm, a model folder, or flag:<folder>.")
@click.option("--words", default=100, show_default=True, type=click.IntRange(0), help="Longest passage; 0 keeps documents whole.")
@click.option(
    "--titles/--no-titles", default=True, show_default=True, help="Put the title before a passage's text for embedding."
)
@click.option("--text-field", multiple=True, help="Field that holds the text (else text, contents, passage or body).")
@click.option("--title-field", multiple=True, help="Field that holds the title (else title).")
@click.option("--id-field", multiple=True, help="Field that holds the id (else id, _id or docid; else file and line).")
@click.option("--no-quotes", is_flag=True, help="Take quotation marks in TSV and CSV for plain characters.")
@click.option("--on-error", type=click.Choice(["raise", "skip"]), default="raise", show_default=True)
@click.option("--force", is_flag=True, help="Replace an index that is there.")
@model_options
def build(sources: tuple[Path, ...], out: Path, embedder: str, words: int, titles: bool, force: bool, **given: Any) -> None:
    """Build an index of SOURCES: JSONL, TSV, CSV, Parquet, .txt and .md files, or folders of these.

    A build that is stopped leaves nothing behind under the name of the index.
    """
    from knowhalu.encoder.embedder import load_embedder
    from knowhalu.retrieval.build import build_index
    from knowhalu.retrieval.manifest import Chunking

    reader = _reader(
        sources, **{name: given[name] for name in ("text_field", "title_field", "id_field", "no_quotes", "on_error")}
    )
    model = load_embedder(embedder, precision=given["precision"], device=given["device"])
    started = time.perf_counter()
    with _bar(reader) as progress:
        made = build_index(reader, out, model, chunking=Chunking(words=words, titles=titles), force=force, progress=progress)
    seconds, counts = time.perf_counter() - started, made.counts
    _report_left_out(reader)
    click.echo(
        f"{out}: {counts.passages:,} passages of {counts.documents:,} documents in {seconds:.1f} s "
        f"({counts.passages / seconds:,.0f} per second); {counts.duplicates:,} duplicates dropped"
    )


def _reader(sources: tuple[Path, ...], *, no_quotes: bool, on_error: Any, **names: tuple[str, ...]) -> "Sources":
    from knowhalu.retrieval.rows import Fields
    from knowhalu.retrieval.sources import Sources

    usual = Fields()
    fields = Fields(
        names["text_field"] or usual.text, names["title_field"] or usual.title, names["id_field"] or usual.id
    )  # fmt: skip
    return Sources(sources, fields=fields, on_error=on_error, quotes=not no_quotes)


@contextmanager
def _bar(reader: "Sources") -> "Iterator[Callable[[Progress], None]]":
    """Show how much of the sources is read, the rate and the time that is left; nothing where nobody watches."""
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (
        TextColumn("embedding"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[done]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, disable=not console.is_terminal) as bar:
        task, started = bar.add_task("", total=reader.total, done=""), time.perf_counter()

        def show(state: "Progress") -> None:
            rate = state.passages / (time.perf_counter() - started)
            bar.update(task, completed=reader.read, done=f"{state.passages:,} passages, {rate:,.0f} per second, left")

        yield show


def _report_left_out(reader: "Sources") -> None:
    if reader.ignored:
        click.echo(f"{len(reader.ignored)} files of other kinds were left out, such as {reader.ignored[0]}", err=True)
    for problem in reader.problems[:SHOWN]:
        click.echo(f"skipped {problem}", err=True)
    if reader.skipped:
        click.echo(f"{reader.skipped:,} records were skipped", err=True)


@index.command()
@FOLDER
@click.option("--json", "as_json", is_flag=True, help="Print the manifest as JSON.")
def info(folder: Path, as_json: bool) -> None:
    """Show what the index in FOLDER holds and how it was made."""
    from rich.filesize import decimal

    from knowhalu.retrieval.index import read_info

    made = read_info(folder)
    if as_json:
        click.echo(made.model_dump_json(indent=1))
        return
    size = sum(entry.size for entry in made.files.values())
    words = f"at most {made.chunking.words} words" if made.chunking.words else "whole documents"
    for name, value in (
        ("passages", f"{made.counts.passages:,} of {made.counts.documents:,} documents"),
        ("duplicates", f"{made.counts.duplicates:,} dropped"),
        ("chunking", words + (", titles embedded" if made.chunking.titles else "")),
        ("embedder", f"{made.embedder.name}, {made.embedder.dimension} dimensions, {made.embedder.fingerprint[:12]}"),
        ("vectors", f"{made.factory}, {made.metric}"),
        ("size", decimal(size)),
        ("made by", f"{made.created_by}, format {made.format}"),
    ):
        click.echo(f"{name:<11}{value}")


@index.command()
@FOLDER
def verify(folder: Path) -> None:
    """Check every byte of the index in FOLDER against its manifest."""
    from knowhalu.errors import IndexFormatError
    from knowhalu.retrieval.index import verify as problems_of

    if problems := problems_of(folder):
        for problem in problems:
            click.echo(problem)
        raise IndexFormatError(f"{folder}: {len(problems)} problems found. Copy the index again, or rebuild it")
    click.echo(f"{folder}: intact")
