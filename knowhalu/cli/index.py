"""The `index` commands: build an index of documents, look at it, search it, verify it."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from knowhalu.cli.index_options import (
    CUTTING,
    MODEL,
    READING,
    SOURCES,
    ListsFormats,
    chunking_of,
    describe,
    reader_of,
    report_left_out,
    with_options,
)
from knowhalu.cli.index_plan import plan, show_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from knowhalu.retrieval.build import Progress
    from knowhalu.retrieval.sources import Sources

FOLDER = click.argument("folder", type=click.Path(path_type=Path))


@click.group()
def index() -> None:
    """Build, inspect, search and verify indexes of documents."""


index.add_command(plan)


@index.command(cls=ListsFormats)
@SOURCES
@click.option("--out", "-o", required=True, type=click.Path(path_type=Path), help="Folder of the new index.")
@click.option("--embedder", default="minilm", show_default=True, help="minilm, a model folder, or flag:<folder>.")
@with_options(CUTTING, READING)
@click.option("--force", is_flag=True, help="Replace an index that is there.")
@click.option("--plan", "only_plan", is_flag=True, help="Print what it would take, and build nothing (see `index plan`).")
@with_options(MODEL)
def build(sources: tuple[Path, ...], out: Path, embedder: str, force: bool, only_plan: bool, **given: Any) -> None:
    """Build an index of SOURCES: files and folders of the formats below.

    A build that is stopped leaves nothing behind under the name of the index.
    """
    from knowhalu.encoder.embedder import load_embedder
    from knowhalu.retrieval.build import build_index

    reader, chunking = reader_of(sources, given), chunking_of(given)
    model = load_embedder(embedder, **given)
    if only_plan:
        show_plan(reader, model, chunking)
        return
    started = time.perf_counter()
    with _bar(reader) as progress:
        made = build_index(reader, out, model, chunking=chunking, force=force, progress=progress)
    seconds, counts = time.perf_counter() - started, made.counts
    report_left_out(reader)
    click.echo(
        f"{out}: {counts.passages:,} passages of {counts.documents:,} documents in {seconds:.1f} s "
        f"({counts.passages / seconds:,.0f} per second); {counts.duplicates:,} duplicates dropped"
    )


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
    for name, value in (
        ("passages", f"{made.counts.passages:,} of {made.counts.documents:,} documents"),
        ("duplicates", f"{made.counts.duplicates:,} dropped"),
        ("chunking", describe(made.chunking)),
        ("embedder", f"{made.embedder.name}, {made.embedder.dimension} dimensions, {made.embedder.fingerprint[:12]}"),
        ("vectors", f"{made.factory}, {made.metric}"),
        ("size", decimal(size)),
        ("made by", f"{made.created_by}, format {made.format}"),
    ):
        click.echo(f"{name:<11}{value}")


@index.command()
@FOLDER
@click.argument("queries", nargs=-1, required=True)
@click.option("-k", default=5, show_default=True, type=click.IntRange(1), help="Passages for each query.")
@click.option("--embedder", help="The model that built the index, where it is not the shipped one.")
@click.option("--query-prefix", help="Instruction that stands before a query, as some models want it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each query.")
@with_options(MODEL)
def search(folder: Path, queries: tuple[str, ...], k: int, embedder: str | None, as_json: bool, **model: Any) -> None:
    """Search the index in FOLDER for each of QUERIES."""
    from knowhalu.encoder.embedder import DEFAULT, load_embedder
    from knowhalu.errors import IndexFormatError
    from knowhalu.retrieval.index import FaissIndex, read_info

    made = read_info(folder).embedder
    if embedder is None and made.name != DEFAULT:
        raise IndexFormatError(f"{folder}: was built with the embedder {made.name!r}. Name its folder with --embedder")
    found = FaissIndex.open(folder, load_embedder(embedder or DEFAULT, **model)).search(queries, k)
    for query, passages in zip(queries, found, strict=True):
        if as_json:
            row = {"query": query, "passages": [p.model_dump(mode="json") for p in passages]}
            click.echo(json.dumps(row, ensure_ascii=False))
            continue
        click.secho(query, bold=True)
        for rank, p in enumerate(passages, 1):
            click.echo(f"{rank:>3}. {p.score:.3f}  {p.title or p.document}  [{p.id}, characters {p.start}-{p.end}]")
            click.echo(click.wrap_text(p.text, initial_indent="     ", subsequent_indent="     ", preserve_paragraphs=True))


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
