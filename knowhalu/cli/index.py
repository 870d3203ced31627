"""The `index` commands that plan, build and change an index; those that inspect and search it are registered here."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from knowhalu.cli.index_options import (
    CHUNKING_OPTIONS,
    FOLDER_ARGUMENT,
    MODEL_OPTIONS,
    READING_OPTIONS,
    SOURCES_ARGUMENT,
    STORAGE_OPTIONS,
    FormatsCommand,
    make_chunking,
    make_reader,
    report_skipped,
    with_options,
)
from knowhalu.cli.index_search import extend, info, search, serve, verify

if TYPE_CHECKING:
    from knowhalu.index.manifest import Chunking
    from knowhalu.index.plan import BuildPlan
    from knowhalu.index.protocols import Embedder
    from knowhalu.ingest.sources import DocumentReader


@click.command(cls=FormatsCommand)
@SOURCES_ARGUMENT
@click.option("--embedder", default="minilm", show_default=True, help="minilm, a model folder, or flag:<folder>.")
@click.option("--exact", is_flag=True, help="Read all of the sources instead of a sample.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@with_options(CHUNKING_OPTIONS, READING_OPTIONS, STORAGE_OPTIONS, MODEL_OPTIONS)
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
    import json

    from knowhalu.index.faiss_file import choose_factory
    from knowhalu.index.plan import plan_build

    made = plan_build(
        reader,
        embedder,
        chunking,
        factory=lambda count: choose_factory(factory, count, embedder.dimension),
        number_bytes=2 if storage == "float16" else 4,
        exact=exact,
    )
    if as_json:
        click.echo(json.dumps(made._asdict()))
        return
    for name, value in _lines(made, embedder.name):
        click.echo(f"{name:<11}{value}")


def _lines(made: "BuildPlan", embedder: str) -> list[tuple[str, str]]:
    from rich.filesize import decimal

    about = "" if made.exact else "about "
    times = [("reading", made.reading), (f"embedding ({made.rate:,.0f} passages per second)", made.embedding)]
    times += [("search structure", made.searching)] if made.searching else []
    basis = "all sources were read" if made.exact else (
        f"{made.sampled:,} documents were read, and the rest is assumed to resemble them byte for byte"
    )  # fmt: skip
    return [
        ("documents", f"{about}{made.documents:,}"),
        ("passages", f"{about}{made.passages:,}, of {made.words:.0f} words on average"),
        ("disk", f"about {decimal(made.disk)}"),
        ("memory", f"about {decimal(made.memory)} at most"),
        (
            "time",
            f"about {_format_seconds(sum(t for _, t in times))}: "
            + ", ".join(f"{_format_seconds(t)} {what}" for what, t in times),
        ),
        ("factory", f"{made.factory}, embedder {embedder}"),
        ("assumed", f"{basis}; no passage is a duplicate; the load of this machine stays the same"),
        *([("broken", f"{made.problems:,} of the records cannot be used")] if made.problems else []),
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


FORCE_OPTION = click.option("--force", is_flag=True, help="Discard unfinished work of another kind on this index.")
BUILD_OPTIONS = (
    *STORAGE_OPTIONS,
    click.option("--shard", default=100_000, show_default=True, type=click.IntRange(1), help="Passages in a shard."),
    click.option("--ray", is_flag=True, help="Embed the shards on all machines and GPUs of a Ray cluster."),
)


@click.group()
def index() -> None:
    """Build, change, inspect, search and verify indexes of documents."""


for command in (plan, info, verify, search, extend, serve):
    index.add_command(command)


@index.command(cls=FormatsCommand)
@SOURCES_ARGUMENT
@click.option("--out", "-o", required=True, type=click.Path(path_type=Path), help="Folder of the new index.")
@click.option("--embedder", default="minilm", show_default=True, help="minilm, a model folder, or flag:<folder>.")
@with_options(CHUNKING_OPTIONS, READING_OPTIONS, BUILD_OPTIONS)
@click.option("--force", is_flag=True, help="Replace an existing index, and discard unfinished work of another kind.")
@click.option("--plan", "only_plan", is_flag=True, help="Print the estimated cost and build nothing (see `index plan`).")
@with_options(MODEL_OPTIONS)
def build(sources: tuple[Path, ...], out: Path, embedder: str, force: bool, only_plan: bool, **given: Any) -> None:
    """Build an index of files and folders.

    SOURCES have one of the formats below. The same command resumes a stopped build from its last finished shard.
    """
    from knowhalu.cli.index_options import progress_bar, refresh_bm25
    from knowhalu.encoder.embedder import load_embedder
    from knowhalu.index.build import build_index
    from knowhalu.index.embedding import embed_locally

    reader, chunking = make_reader(sources, given), make_chunking(given)
    choice: dict[str, Any] = {"precision": given["precision"], "device": given["device"]}
    model, started = load_embedder(embedder, **choice), time.perf_counter()
    making = {name: given[name] for name in ("factory", "storage", "shard")}
    if only_plan:
        show_plan(reader, model, chunking, factory=given["factory"], storage=given["storage"])
        return
    stage = _on_ray(embedder, choice) if given["ray"] else embed_locally
    with progress_bar(reader) as progress:
        made = build_index(reader, out, model, chunking=chunking, force=force, progress=progress, stage=stage, **making)
    seconds, counts = time.perf_counter() - started, made.counts
    report_skipped(reader)
    click.echo(
        f"{out}: {counts.passages:,} passages of {counts.documents:,} documents in {seconds:.1f} s "
        f"({counts.passages / seconds:,.0f} per second); {counts.duplicates:,} duplicates dropped"
    )
    refresh_bm25(out)


def _on_ray(embedder: str, choice: dict[str, Any]) -> Any:
    from functools import partial

    from knowhalu.encoder.embedder import load_embedder
    from knowhalu.index.embedding import RayEmbeddingStage

    return RayEmbeddingStage(partial(load_embedder, embedder, **choice))


@index.command(cls=FormatsCommand)
@FOLDER_ARGUMENT
@SOURCES_ARGUMENT
@click.option("--embedder", help="The model that built the index, if it is not the packaged one.")
@with_options(READING_OPTIONS)
@click.option("--replace", is_flag=True, help="Records without an id replace those of the same file name and line.")
@FORCE_OPTION
@with_options(MODEL_OPTIONS)
def add(folder: Path, sources: tuple[Path, ...], embedder: str | None, replace: bool, force: bool, **given: Any) -> None:
    """Add or replace documents of an index.

    Adds the documents of SOURCES to the index in FOLDER, replacing documents of the same id. The same command resumes a stopped
    addition.
    """
    from knowhalu.cli.index_options import index_summary, load_index_embedder, progress_bar, refresh_bm25
    from knowhalu.index.update import add_documents

    model = load_index_embedder(folder, embedder, precision=given["precision"], device=given["device"])
    reader = make_reader(sources, given)
    replaced = list[int]()
    with progress_bar(reader) as progress:
        made = add_documents(reader, folder, model, force=force, replace=replace, progress=progress, on_replaced=replaced.append)
    report_skipped(reader)
    click.echo(index_summary(folder, made) + (f", {sum(replaced):,} of its documents replaced" if any(replaced) else ""))
    refresh_bm25(folder)


@index.command()
@FOLDER_ARGUMENT
@click.argument("ids", nargs=-1)
@click.option("--file", type=click.Path(path_type=Path), help="File of ids, one on each line.")
@FORCE_OPTION
def delete(folder: Path, ids: tuple[str, ...], file: Path | None, force: bool) -> None:
    """Delete documents by their ids."""
    from knowhalu.cli.index_options import run_delete

    run_delete(folder, ids, file, force)


@index.command()
@FOLDER_ARGUMENT
@FORCE_OPTION
def compact(folder: Path, force: bool) -> None:
    """Rewrite an index with all its changes.

    The index in FOLDER becomes what a build of its documents would be; they are not embedded again.
    """
    from knowhalu.cli.index_options import run_compact

    run_compact(folder, force)
