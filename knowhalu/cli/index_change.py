"""The `index` commands that change an index: add, delete, compact; and what building and adding have in common."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from knowhalu.retrieval.manifest import Manifest
    from knowhalu.retrieval.progress import Progress
    from knowhalu.retrieval.sources import Sources


@contextmanager
def bar(reader: "Sources | None" = None) -> "Iterator[Callable[[Progress], None]]":
    """Show stage, passages, rate, memory and the time that is left; nothing where nobody watches.

    While sources are read, the bar is the share of their bytes.
    """
    from rich.console import Console
    from rich.filesize import decimal
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[done]}"))
    with Bar(*columns, console=console, disable=not console.is_terminal) as shown:
        task, started = shown.add_task("reading", total=None, done=""), time.perf_counter()

        def show(state: "Progress") -> None:
            done, total, left = state.done, state.total, state.left
            if state.stage == "reading" and reader is not None:
                done, total = reader.read, reader.total
                left = (time.perf_counter() - started) * (total / done - 1) if done else None
            unit = "documents" if state.stage == "reading" else "passages"
            words = [f"{state.done:,} {unit}", f"{state.rate:,.0f} per second", f"{decimal(state.memory)} memory"]
            words += [f"{_duration(left)} left"] if left is not None else []
            shown.update(task, description=state.stage, completed=done, total=total or None, done=", ".join(words))

        yield show


def _duration(seconds: float) -> str:
    minutes, hours = int(seconds) // 60, int(seconds) // 3600
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min" if minutes >= 2 else f"{seconds:.0f} s"


def summary(folder: Path, made: "Manifest") -> str:
    """Return what an index holds in one line."""
    counts = made.counts
    return f"{folder}: {counts.passages:,} passages of {counts.documents:,} documents, generation {made.generation}"


def refresh(folder: Path) -> None:
    """Bring the part for words up to date with a changed index; say where the one for tokens, which needs its model, is not."""
    from knowhalu.retrieval.lexical_build import build_lexical, is_current
    from knowhalu.retrieval.stored import extend, open_stored, states

    stored = open_stored(folder)
    for part in states(stored):
        if part.covered == len(stored.passages):
            continue
        if part.kind == "lexical":
            extend(stored, "lexical", build_lexical, is_current)
            click.echo(f"{folder / part.kind}: up to date")
        else:
            click.echo(f"{folder / part.kind}: out of date. `knowhalu index extend {folder} --late` brings it up to date")


def embedder_for(folder: Path, embedder: str | None, **model: Any) -> Any:
    """Load the embedder of an index; raises IndexFormatError where only the user knows its folder."""
    from knowhalu.encoder.embedder import DEFAULT, load_embedder
    from knowhalu.errors import IndexFormatError
    from knowhalu.retrieval.index import read_info

    made = read_info(folder).embedder
    if embedder is None and made.name != DEFAULT:
        raise IndexFormatError(f"{folder}: was built with the embedder {made.name!r}. Name its folder with --embedder")
    return load_embedder(embedder or DEFAULT, **model)


def run_delete(folder: Path, ids: tuple[str, ...], file: Path | None, force: bool) -> None:
    """Delete documents by the ids given and those in a file, one to a line."""
    from knowhalu.errors import InputError
    from knowhalu.retrieval.change import delete_documents

    names = list(ids)
    if file is not None:
        try:
            names += [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{file}: cannot be read ({error}). Give a UTF-8 file with one id to a line") from error
    if not names:
        raise InputError("no document named. Give ids, or a file of ids with --file")
    click.echo(summary(folder, delete_documents(names, folder, force=force)))
    refresh(folder)


def run_compact(folder: Path, force: bool) -> None:
    """Compact an index."""
    from knowhalu.retrieval.compact import compact

    with bar() as progress:
        made = compact(folder, force=force, progress=progress)
    click.echo(summary(folder, made))
    refresh(folder)
