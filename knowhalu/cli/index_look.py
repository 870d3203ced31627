"""The `index` commands that look at an index: what it holds, and whether it is intact."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from knowhalu.cli.index_options import FOLDER, describe

if TYPE_CHECKING:
    from knowhalu.retrieval.manifest import Manifest
    from knowhalu.retrieval.stored import State


@click.command()
@FOLDER
@click.option("--json", "as_json", is_flag=True, help="Print the manifest, and what there is of parts, as JSON.")
def info(folder: Path, as_json: bool) -> None:
    """Show what an index holds and how it can be searched."""
    import json

    from knowhalu.retrieval.index import read_info
    from knowhalu.retrieval.stored import open_stored, states

    made, parts = read_info(folder), states(open_stored(folder))
    if as_json:
        click.echo(json.dumps(made.model_dump(mode="json") | {"parts": [part._asdict() for part in parts]}, indent=1))
        return
    for name, value in (*_lines(made), *((part.kind, _part_words(part, made, folder)) for part in parts)):
        click.echo(f"{name:<11}{value}")


def _lines(made: "Manifest") -> Iterator[tuple[str, str]]:
    from rich.filesize import decimal

    size = sum(entry.size for entry in made.files.values())
    yield "passages", f"{made.counts.passages:,} of {made.counts.documents:,} documents"
    yield "duplicates", f"{made.counts.duplicates:,} dropped"
    yield "chunking", describe(made.chunking)
    yield "embedder", f"{made.embedder.name}, {made.embedder.dimension} dimensions, {made.embedder.fingerprint[:12]}"
    yield "vectors", f"{made.storage} in {len(made.shards)} shard{'s' * (len(made.shards) != 1)}, {made.metric}"
    yield "search", _search_words(made)
    yield "version", f"generation {made.generation}, content {made.content[:12]}, seal {made.seal[:16]}"
    yield "size", decimal(size)
    yield "made by", f"{made.created_by}, format {made.format}"


def _search_words(made: "Manifest") -> str:
    if made.factory == "Flat":
        return "Flat: all vectors are compared"
    asked, later = made.search.parameters, made.rows - made.search.rows
    width = f"nprobe {asked.nprobe}" if "IVF" in made.factory else f"ef_search {asked.ef_search}"
    added = f"; {later:,} passages added since are compared one by one, `index compact` takes them in" if later else ""
    return f"{made.factory}, {width}, refine {asked.refine}{added}"


def _part_words(part: "State", made: "Manifest", folder: Path) -> str:
    from rich.filesize import decimal

    if part.problem:
        return part.problem
    said = f"up to date, {decimal(part.size)}" + (f", {part.encoder}" if part.encoder else "")
    if part.covered == made.rows:
        return said
    cure = f"`knowhalu index extend {folder} --{part.kind}` brings it up to date"
    return f"covers {part.covered:,} of {made.rows:,} stored passages and cannot be searched, {decimal(part.size)}; {cure}"


@click.command()
@FOLDER
def verify(folder: Path) -> None:
    """Check every byte of an index and of its parts."""
    from knowhalu.errors import IndexFormatError
    from knowhalu.retrieval.index import verify as problems_of

    if problems := problems_of(folder):
        for problem in problems:
            click.echo(problem)
        found = f"{len(problems)} problem{'s' * (len(problems) != 1)} found"
        raise IndexFormatError(f"{folder}: {found}. Copy the index again, or rebuild it")
    click.echo(f"{folder}: intact")
