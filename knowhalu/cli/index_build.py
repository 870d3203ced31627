"""The `index` commands that plan and build an index, and the options, progress and summaries of all that change one."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from knowhalu.cli.options import with_options
from knowhalu.errors import IndexFormatError, counted

if TYPE_CHECKING:
    from knowhalu.index.build import BuildProgress
    from knowhalu.index.manifest import Chunking, Manifest
    from knowhalu.index.plan import BuildPlan
    from knowhalu.index.protocols import Embedder
    from knowhalu.ingest.sources import DocumentReader

MAX_SHOWN = 20
MIN_PARALLEL_BYTES = 64 * 2**20
"""Bytes of sources from which parsing in several processes pays."""
MAX_WORKERS = 16
"""Most processes, unless --workers gives a number."""
with_sources = click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path))
with_reading = with_options(
    click.option("--format", "form", default="", help="Read all files as this format of the list below."),
    click.option("--text-field", multiple=True, help="Field with the text (default: text, contents, passage, body ...)."),
    click.option("--title-field", multiple=True, help="Field with the title (default: title)."),
    click.option("--id-field", multiple=True, help="Field with the id (default: id, _id or docid, or else file and line)."),
    click.option("--no-quotes", is_flag=True, help="Read quotation marks in TSV and CSV as plain characters."),
    click.option("--on-error", type=click.Choice(["raise", "skip"]), default="raise", show_default=True,
                 help="Stop at a broken record, or skip and list it."),
    click.option("--workers", type=click.IntRange(0), default=0, show_default=True,
                 help="Processes that parse Wikipedia, HTML and PDF; 0: one for each core for large sources."),
)  # fmt: skip
with_chunking = with_options(
    click.option("--words", default=100, show_default=True, type=click.IntRange(0),
                 help="Most words of a passage; 0 keeps documents whole."),
    click.option("--overlap", default=0, show_default=True, type=click.IntRange(0),
                 help="Words, in whole sentences, that a passage may share with the previous one."),
    click.option("--sections/--no-sections", default=True, show_default=True,
                 help="End passages at headings, and add the section path to the title."),
    click.option("--titles/--no-titles", default=True, show_default=True,
                 help="Embed passages with their title."),
)  # fmt: skip
with_model = with_options(
    click.option("--precision", type=click.Choice(["auto", "fp32", "bf16"]), default="auto", show_default=True),
    click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:N."),
)
with_storage = with_options(
    click.option("--factory", default="auto", show_default=True,
                 help="FAISS factory such as Flat, HNSW32 or IVF4096,PQ48; auto: by size."),
    click.option("--storage", type=click.Choice(["float32", "float16"]), default="float32", show_default=True,
                 help="Format of stored vectors; float16 takes half the space."),
)  # fmt: skip
with_embedder = click.option("--embedder", default="minilm", show_default=True, help="minilm, a model folder, or flag:<folder>.")


class FormatsCommand(click.Command):
    """A command whose help ends with the list of document formats."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of formats."""
        from knowhalu.ingest.sources import FORMATS

        with formatter.section("Formats, recognised by file name or given with --format"):
            formatter.write_dl([(name, known.about) for name, known in FORMATS.items()])


def make_reader(sources: tuple[Path, ...], given: dict[str, Any]) -> "DocumentReader":
    """Make the reader of the options `with_reading`, and remove them from `given`."""
    from knowhalu.ingest.records import FieldNames
    from knowhalu.ingest.sources import DocumentReader

    default = FieldNames()
    fields = FieldNames(*(given.pop(f"{name}_field") or getattr(default, name) for name in ("text", "title", "id")))
    reader = DocumentReader(
        sources, fields=fields, on_error=given.pop("on_error"), quotes=not given.pop("no_quotes"), format=given.pop("form")
    )
    workers = given.pop("workers")
    reader.workers = workers or (min(os.cpu_count() or 1, MAX_WORKERS) if reader.total > MIN_PARALLEL_BYTES else 1)
    return reader


def make_chunking(given: dict[str, Any]) -> "Chunking":
    """Make the chunking of the options `with_chunking`, and remove them from `given`."""
    from knowhalu.index.chunking import check_chunk_limits
    from knowhalu.index.manifest import Chunking

    chunking = Chunking(**{name: given.pop(name) for name in ("words", "overlap", "sections", "titles")})
    check_chunk_limits(chunking.words, chunking.overlap)
    return chunking


def report_skipped(reader: "DocumentReader") -> None:
    """Print the files and records that were left out, with the reasons."""
    if reader.ignored:
        click.echo(f"{len(reader.ignored):,} left out: files of other kinds, such as {reader.ignored[0]}", err=True)
    for reason, count in sorted(reader.left_out.items(), key=lambda item: -item[1]):
        click.echo(f"{count:,} left out: {reason}", err=True)
    for problem in reader.problems[:MAX_SHOWN]:
        click.echo(f"skipped {problem}", err=True)
    if reader.skipped:
        click.echo(f"{reader.skipped:,} skipped in all", err=True)


@contextmanager
def progress_bar(reader: "DocumentReader | None" = None) -> Iterator[Callable[["BuildProgress"], None]]:
    """Show stage, passages, rate, memory and remaining time on a terminal; elsewhere nothing.

    While sources are read, the bar shows the share of their bytes.
    """
    from rich.console import Console
    from rich.filesize import decimal
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[done]}"))
    with Bar(*columns, console=console, disable=not console.is_terminal) as shown:
        task, started = shown.add_task("reading", total=None, done=""), time.perf_counter()

        def show(state: "BuildProgress") -> None:
            done, total, left = state.done, state.total, state.left
            if state.stage == "reading" and reader is not None:
                done, total = reader.read, reader.total
                left = (time.perf_counter() - started) * (total / done - 1) if done else None
            unit = "document" if state.stage == "reading" else "passage"
            words = [counted(state.done, unit), f"{state.rate:,.0f} per second", f"{decimal(state.memory)} memory"]
            words += [f"{_duration(left)} left"] if left is not None else []
            shown.update(task, description=state.stage, completed=done, total=total or None, done=", ".join(words))

        yield show


def _duration(seconds: float) -> str:
    minutes, hours = int(seconds) // 60, int(seconds) // 3600
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min" if minutes >= 2 else f"{seconds:.0f} s"


def index_summary(folder: Path, manifest: "Manifest") -> str:
    """Summarise an index in one line."""
    counts = manifest.counts
    passages, documents = counted(counts.passages, "passage"), counted(counts.documents, "document")
    return f"{folder}: {passages} of {documents}, generation {manifest.generation}"


def load_index_embedder(folder: Path, embedder: str | None, **model: Any) -> Any:
    """Load the embedder of an index; raises IndexFormatError if it is not the packaged one and --embedder is missing."""
    from knowhalu.encoder.embedder import DEFAULT_EMBEDDER, load_embedder
    from knowhalu.index.manifest import read_index_info

    name = read_index_info(folder).embedder.name
    if embedder is None and name != DEFAULT_EMBEDDER:
        raise IndexFormatError(f"{folder}: the index was built with the embedder {name!r}. Give its folder with --embedder")
    return load_embedder(embedder or DEFAULT_EMBEDDER, **model)


def refresh_bm25(folder: Path) -> None:
    """Update the BM25 part of a changed index; report a late-interaction part that is out of date, since it needs its model."""
    from knowhalu.index.extension import extend_index, open_stored_passages, part_states
    from knowhalu.retrieval.bm25 import build_lexical_part, is_lexical_part_current

    stored = open_stored_passages(folder)
    for part in part_states(stored):
        if part.covered == len(stored.passages):
            continue
        if part.kind == "lexical":
            extend_index(stored, "lexical", build_lexical_part, is_lexical_part_current)
            click.echo(f"{folder / part.kind}: up to date")
        else:
            click.echo(f"{folder / part.kind}: out of date. `knowhalu index extend {folder} --late` brings it up to date")


@click.command(cls=FormatsCommand)
@with_sources
@with_embedder
@click.option("--exact", is_flag=True, help="Read all of the sources instead of a sample.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@with_options(with_chunking, with_reading, with_storage, with_model)
def plan(sources: tuple[Path, ...], embedder: str, exact: bool, as_json: bool, **given: Any) -> None:
    """Estimate the cost of an index without building it.

    Prints documents, passages, disk, memory and time of an index of SOURCES.
    """
    from knowhalu.encoder.embedder import load_embedder

    reader, chunking = make_reader(sources, given), make_chunking(given)
    storing = {name: given.pop(name) for name in ("factory", "storage")}
    show_plan(reader, load_embedder(embedder, **given), chunking, exact=exact, as_json=as_json, **storing)


def show_plan(
    reader: "DocumentReader",
    embedder: "Embedder",
    chunking: "Chunking",
    *,
    factory: str,
    storage: str,
    exact: bool = False,
    as_json: bool = False,
) -> None:
    """Plan a build and print the plan."""
    from knowhalu.index.faiss_file import choose_factory
    from knowhalu.index.plan import plan_build

    build_plan = plan_build(
        reader,
        embedder,
        chunking,
        factory=lambda count: choose_factory(factory, count, embedder.dimension),
        number_bytes=2 if storage == "float16" else 4,
        exact=exact,
    )
    if as_json:
        click.echo(json.dumps(build_plan._asdict()))
        return
    for name, value in _plan_lines(build_plan, embedder.name):
        click.echo(f"{name:<11}{value}")


def _plan_lines(plan: "BuildPlan", embedder: str) -> list[tuple[str, str]]:
    from rich.filesize import decimal

    about = "" if plan.exact else "about "
    times = [("reading", plan.reading), (f"embedding ({plan.rate:,.0f} passages per second)", plan.embedding)]
    times += [("search structure", plan.searching)] if plan.searching else []
    read = f"{counted(plan.sampled, 'document')} {'was' if plan.sampled == 1 else 'were'} read"
    basis = "all sources were read" if plan.exact else f"{read}, and the rest is assumed to resemble them byte for byte"
    return [
        ("documents", f"{about}{plan.documents:,}"),
        ("passages", f"{about}{plan.passages:,}, of {plan.words:.0f} words on average"),
        ("disk", f"about {decimal(plan.disk)}"),
        ("memory", f"about {decimal(plan.memory)} at most"),
        (
            "time",
            f"about {_format_seconds(sum(t for _, t in times))}: "
            + ", ".join(f"{_format_seconds(t)} {what}" for what, t in times),
        ),
        ("factory", f"{plan.factory}, embedder {embedder}"),
        ("assumed", f"{basis}; no passage is a duplicate; the load of this machine stays the same"),
        *([("broken", f"{plan.problems:,} of the records cannot be used")] if plan.problems else []),
    ]


def _format_seconds(seconds: float) -> str:
    """Return a duration in its two largest units."""
    whole = round(seconds)
    if whole < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours = round(seconds / 3600)
    return f"{minutes // 60} h {minutes % 60} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


@click.command(cls=FormatsCommand)
@with_sources
@click.option("--out", "-o", required=True, type=click.Path(path_type=Path), help="Folder of the new index.")
@with_embedder
@with_options(with_chunking, with_reading, with_storage)
@click.option("--shard", default=100_000, show_default=True, type=click.IntRange(1), help="Passages in a shard.")
@click.option("--ray", is_flag=True, help="Embed the shards on all machines and GPUs of a Ray cluster.")
@click.option("--force", is_flag=True, help="Replace an existing index, and discard unfinished work of another kind.")
@click.option("--plan", "only_plan", is_flag=True, help="Print the estimated cost and build nothing (see `index plan`).")
@with_model
def build(sources: tuple[Path, ...], out: Path, embedder: str, force: bool, only_plan: bool, **given: Any) -> None:
    """Build an index of files and folders.

    SOURCES have one of the formats below. The same command resumes a stopped build from its last finished shard.
    """
    from knowhalu.encoder.embedder import load_embedder
    from knowhalu.index.build import build_index
    from knowhalu.index.embedding import RayEmbeddingStage, embed_locally

    reader, chunking = make_reader(sources, given), make_chunking(given)
    choice: dict[str, Any] = {"precision": given["precision"], "device": given["device"]}
    model, started = load_embedder(embedder, **choice), time.perf_counter()
    storing = {name: given[name] for name in ("factory", "storage", "shard")}
    if only_plan:
        show_plan(reader, model, chunking, factory=given["factory"], storage=given["storage"])
        return
    stage = RayEmbeddingStage(partial(load_embedder, embedder, **choice)) if given["ray"] else embed_locally
    with progress_bar(reader) as progress:
        manifest = build_index(reader, out, model, chunking=chunking, force=force, progress=progress, stage=stage, **storing)
    seconds, counts = time.perf_counter() - started, manifest.counts
    report_skipped(reader)
    click.echo(
        f"{out}: {counted(counts.passages, 'passage')} of {counted(counts.documents, 'document')} in {seconds:.1f} s "
        f"({counts.passages / seconds:,.0f} per second); {counted(counts.duplicates, 'duplicate')} dropped"
    )
    refresh_bm25(out)
