"""`index plan`: what an index of some sources would take on this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from knowhalu.cli.index_options import (
    CUTTING,
    MODEL,
    READING,
    SOURCES,
    STORING,
    ListsFormats,
    chunking_of,
    reader_of,
    with_options,
)

if TYPE_CHECKING:
    from knowhalu.retrieval.base import Embedder
    from knowhalu.retrieval.manifest import Chunking
    from knowhalu.retrieval.plan import Plan
    from knowhalu.retrieval.sources import Sources


@click.command(cls=ListsFormats)
@SOURCES
@click.option("--embedder", default="minilm", show_default=True, help="minilm, a model folder, or flag:<folder>.")
@click.option("--exact", is_flag=True, help="Read all of the sources instead of a sample.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@with_options(CUTTING, READING, STORING, MODEL)
def plan(sources: tuple[Path, ...], embedder: str, exact: bool, as_json: bool, **given: Any) -> None:
    """Say what an index would take; build nothing.

    Prints documents, passages, disk, memory and time of an index of SOURCES.
    """
    from knowhalu.encoder.embedder import load_embedder

    reader, chunking = reader_of(sources, given), chunking_of(given)
    storing = {name: given.pop(name) for name in ("factory", "storage")}
    show_plan(reader, load_embedder(embedder, **given), chunking, exact=exact, as_json=as_json, **storing)


def show_plan(
    reader: "Sources",
    embedder: "Embedder",
    chunking: "Chunking",
    *,
    factory: str,
    storage: str,
    exact: bool = False,
    as_json: bool = False,
) -> None:
    """Make the plan of a build and print it."""
    import json

    from knowhalu.retrieval.faiss_search import choose_factory
    from knowhalu.retrieval.plan import make_plan

    made = make_plan(
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


def _lines(made: "Plan", embedder: str) -> list[tuple[str, str]]:
    from rich.filesize import decimal

    about = "" if made.exact else "about "
    times = [("reading", made.reading), (f"embedding ({made.rate:,.0f} passages per second)", made.embedding)]
    times += [("the search structure", made.searching)] if made.searching else []
    says = "all of the sources were read" if made.exact else (
        f"{made.sampled:,} documents were read; the rest is taken to be like them, byte for byte"
    )  # fmt: skip
    return [
        ("documents", f"{about}{made.documents:,}"),
        ("passages", f"{about}{made.passages:,}, of {made.words:.0f} words on average"),
        ("disk", f"about {decimal(made.disk)}"),
        ("memory", f"about {decimal(made.memory)} at most"),
        ("time", f"about {_span(sum(t for _, t in times))}: " + ", ".join(f"{_span(t)} {what}" for what, t in times)),
        ("factory", f"{made.factory}, embedder {embedder}"),
        ("assumed", f"{says}; no passage is there twice; this machine stays as busy as it is now"),
        *([("broken", f"{made.problems:,} of the records read cannot be used")] if made.problems else []),
    ]


def _span(seconds: float) -> str:
    """Write a time in the two largest units that matter."""
    whole = round(seconds)
    if whole < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours = round(seconds / 3600)
    return f"{minutes // 60} h {minutes % 60} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
