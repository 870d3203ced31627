"""The `index` commands: build an index of documents and change it; those that look at it and search it are added here."""

import time
from pathlib import Path
from typing import Any

import click

from knowhalu.cli.index_look import info, verify
from knowhalu.cli.index_options import (
    CUTTING,
    FOLDER,
    MODEL,
    READING,
    SOURCES,
    STORING,
    ListsFormats,
    chunking_of,
    reader_of,
    report_left_out,
    with_options,
)
from knowhalu.cli.index_plan import plan, show_plan
from knowhalu.cli.index_search import extend, search, serve

FORCE = click.option("--force", is_flag=True, help="Drop unfinished work of another kind on this index.")
MAKING = (
    *STORING,
    click.option("--shard", default=100_000, show_default=True, type=click.IntRange(1), help="Passages of a shard."),
    click.option("--ray", is_flag=True, help="Embed the shards on all machines and GPUs of a Ray cluster."),
)


@click.group()
def index() -> None:
    """Build, change, inspect, search and verify indexes of documents."""


for command in (plan, info, verify, search, extend, serve):
    index.add_command(command)


@index.command(cls=ListsFormats)
@SOURCES
@click.option("--out", "-o", required=True, type=click.Path(path_type=Path), help="Folder of the new index.")
@click.option("--embedder", default="minilm", show_default=True, help="minilm, a model folder, or flag:<folder>.")
@with_options(CUTTING, READING, MAKING)
@click.option("--force", is_flag=True, help="Replace an index that is there, and drop unfinished work of another kind.")
@click.option("--plan", "only_plan", is_flag=True, help="Print what it would take, and build nothing (see `index plan`).")
@with_options(MODEL)
def build(sources: tuple[Path, ...], out: Path, embedder: str, force: bool, only_plan: bool, **given: Any) -> None:
    """Build an index of files and folders.

    SOURCES are of the formats below.
    A build that is stopped goes on from its last finished shard when the same command is given again.
    """
    from knowhalu.cli.index_change import bar, refresh
    from knowhalu.encoder.embedder import load_embedder
    from knowhalu.retrieval.build import build_index
    from knowhalu.retrieval.embedding import embed_here

    reader, chunking = reader_of(sources, given), chunking_of(given)
    choice: dict[str, Any] = {"precision": given["precision"], "device": given["device"]}
    model, started = load_embedder(embedder, **choice), time.perf_counter()
    making = {name: given[name] for name in ("factory", "storage", "shard")}
    if only_plan:
        show_plan(reader, model, chunking, factory=given["factory"], storage=given["storage"])
        return
    stage = _on_ray(embedder, choice) if given["ray"] else embed_here
    with bar(reader) as progress:
        made = build_index(reader, out, model, chunking=chunking, force=force, progress=progress, stage=stage, **making)
    seconds, counts = time.perf_counter() - started, made.counts
    report_left_out(reader)
    click.echo(
        f"{out}: {counts.passages:,} passages of {counts.documents:,} documents in {seconds:.1f} s "
        f"({counts.passages / seconds:,.0f} per second); {counts.duplicates:,} duplicates dropped"
    )
    refresh(out)


def _on_ray(embedder: str, choice: dict[str, Any]) -> Any:
    from functools import partial

    from knowhalu.encoder.embedder import load_embedder
    from knowhalu.retrieval.on_ray import RayStage

    return RayStage(partial(load_embedder, embedder, **choice))


@index.command(cls=ListsFormats)
@FOLDER
@SOURCES
@click.option("--embedder", help="The model that built the index, where it is not the shipped one.")
@with_options(READING)
@click.option("--replace", is_flag=True, help="Let records without an id replace those of the same file name and line.")
@FORCE
@with_options(MODEL)
def add(folder: Path, sources: tuple[Path, ...], embedder: str | None, replace: bool, force: bool, **given: Any) -> None:
    """Add or replace documents of an index.

    The documents of SOURCES go into the index in FOLDER; one whose id is there already is replaced.
    An addition that is stopped goes on where it was when the same command is given again.
    """
    from knowhalu.cli.index_change import bar, embedder_for, refresh, summary
    from knowhalu.retrieval.change import add_documents

    model = embedder_for(folder, embedder, precision=given["precision"], device=given["device"])
    reader = reader_of(sources, given)
    replaced = list[int]()
    with bar(reader) as progress:
        made = add_documents(reader, folder, model, force=force, replace=replace, progress=progress, on_replaced=replaced.append)
    report_left_out(reader)
    click.echo(summary(folder, made) + (f", {sum(replaced):,} of its documents replaced" if any(replaced) else ""))
    refresh(folder)


@index.command()
@FOLDER
@click.argument("ids", nargs=-1)
@click.option("--file", type=click.Path(path_type=Path), help="File of ids, one to a line.")
@FORCE
def delete(folder: Path, ids: tuple[str, ...], file: Path | None, force: bool) -> None:
    """Delete documents by their ids."""
    from knowhalu.cli.index_change import run_delete

    run_delete(folder, ids, file, force)


@index.command()
@FOLDER
@FORCE
def compact(folder: Path, force: bool) -> None:
    """Take all changes into an index.

    The index in FOLDER is rewritten as a build of its documents would, without embedding them again.
    """
    from knowhalu.cli.index_change import run_compact

    run_compact(folder, force)
