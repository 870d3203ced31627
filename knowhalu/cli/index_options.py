"""What the `index` commands share: options of reading documents, progress, and the summary of a change."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from knowhalu.index.manifest import Chunking, Manifest
    from knowhalu.index.progress import BuildProgress
    from knowhalu.ingest.sources import DocumentReader

F = TypeVar("F", bound="Callable[..., Any]")
MAX_SHOWN = 20
MIN_PARALLEL_BYTES = 64 * 2**20
"""Bytes of sources from which on parsing is worth other processes."""
MAX_WORKERS = 16
"""The processes that are taken unless more are asked for."""
FOLDER_ARGUMENT = click.argument("folder", type=click.Path(path_type=Path))
SOURCES_ARGUMENT = click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path))
READING_OPTIONS = (
    click.option("--format", "form", default="", help="Read all files as this format; see the list of formats below."),
    click.option("--text-field", multiple=True, help="Field that holds the text (else text, contents, passage, body ...)."),
    click.option("--title-field", multiple=True, help="Field that holds the title (else title)."),
    click.option("--id-field", multiple=True, help="Field that holds the id (else id, _id or docid; else file and line)."),
    click.option("--no-quotes", is_flag=True, help="Take quotation marks in TSV and CSV for plain characters."),
    click.option("--on-error", type=click.Choice(["raise", "skip"]), default="raise", show_default=True,
                 help="Stop at a broken record, or leave it out and list it."),
    click.option("--workers", type=click.IntRange(0), default=0, show_default=True,
                 help="Processes that parse Wikipedia, HTML and PDF; 0 takes as many as there are cores for large sources."),
)  # fmt: skip
CHUNKING_OPTIONS = (
    click.option("--words", default=100, show_default=True, type=click.IntRange(0),
                 help="Longest passage; 0 keeps documents whole."),
    click.option("--overlap", default=0, show_default=True, type=click.IntRange(0),
                 help="Words that a passage may share with the one before, as whole sentences."),
    click.option("--sections/--no-sections", default=True, show_default=True,
                 help="End passages at headings, and put the path of the section after the title."),
    click.option("--titles/--no-titles", default=True, show_default=True,
                 help="Put the title before a passage's text for embedding."),
)  # fmt: skip
MODEL_OPTIONS = (
    click.option("--precision", type=click.Choice(["auto", "fp32", "bf16"]), default="auto", show_default=True),
    click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:N."),
)
STORAGE_OPTIONS = (
    click.option(
        "--factory", default="auto", show_default=True, help="FAISS factory such as Flat, HNSW32 or IVF4096,PQ48; auto: by size."
    ),
    click.option(
        "--storage",
        type=click.Choice(["float32", "float16"]),
        default="float32",
        show_default=True,
        help="How vectors lie on disk; float16 takes half the space.",
    ),
)


class FormatsCommand(click.Command):
    """A command whose help ends with the list of formats."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list."""
        from knowhalu.ingest.sources import FORMATS

        with formatter.section("Formats, known by the names of the files or given with --format"):
            formatter.write_dl([(name, known.about) for name, known in FORMATS.items()])


def with_options(*groups: tuple[Any, ...]) -> "Callable[[F], F]":
    """Give a command the options of these groups, in their order."""

    def decorate(command: F) -> F:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return decorate


def make_reader(sources: tuple[Path, ...], given: dict[str, Any]) -> "DocumentReader":
    """Make the reader that the options of `READING_OPTIONS` describe, and take them out of `given`."""
    import os

    from knowhalu.ingest.records import FieldNames
    from knowhalu.ingest.sources import DocumentReader

    usual = FieldNames()
    names = [given.pop(f"{name}_field") for name in ("text", "title", "id")]
    fields = FieldNames(names[0] or usual.text, names[1] or usual.title, names[2] or usual.id)
    reader = DocumentReader(
        sources, fields=fields, on_error=given.pop("on_error"), quotes=not given.pop("no_quotes"), format=given.pop("form")
    )
    asked = given.pop("workers")
    reader.workers = asked or (min(os.cpu_count() or 1, MAX_WORKERS) if reader.total > MIN_PARALLEL_BYTES else 1)
    return reader


def make_chunking(given: dict[str, Any]) -> "Chunking":
    """Make the chunking that the options of `CHUNKING_OPTIONS` describe, and take them out of `given`."""
    from knowhalu.index.chunking import check_chunk_limits
    from knowhalu.index.manifest import Chunking

    chunking = Chunking(**{name: given.pop(name) for name in ("words", "overlap", "sections", "titles")})
    check_chunk_limits(chunking.words, chunking.overlap)
    return chunking


def describe_chunking(chunking: "Chunking") -> str:
    """Say how documents were cut."""
    if not chunking.words:
        return "whole documents" + (", titles embedded" if chunking.titles else "")
    said = f"at most {chunking.words} words" + (f", {chunking.overlap} of them shared" if chunking.overlap else "")
    return said + (", by sections" if chunking.sections else "") + (", titles embedded" if chunking.titles else "")


def report_skipped(reader: "DocumentReader") -> None:
    """Say which files and records were left out, and why."""
    if reader.ignored:
        click.echo(f"{len(reader.ignored):,} left out: files of other kinds, such as {reader.ignored[0]}", err=True)
    for reason, count in sorted(reader.left_out.items(), key=lambda found: -found[1]):
        click.echo(f"{count:,} left out: {reason}", err=True)
    for problem in reader.problems[:MAX_SHOWN]:
        click.echo(f"skipped {problem}", err=True)
    if reader.skipped:
        click.echo(f"{reader.skipped:,} skipped in all", err=True)


@contextmanager
def progress_bar(reader: "DocumentReader | None" = None) -> "Iterator[Callable[[BuildProgress], None]]":
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

        def show(state: "BuildProgress") -> None:
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


def index_summary(folder: Path, made: "Manifest") -> str:
    """Return what an index holds in one line."""
    counts = made.counts
    return f"{folder}: {counts.passages:,} passages of {counts.documents:,} documents, generation {made.generation}"


def refresh_bm25(folder: Path) -> None:
    """Bring the part for words up to date with a changed index; say where the one for tokens, which needs its model, is not."""
    from knowhalu.index.bm25_part import build_lexical_part, is_lexical_part_current
    from knowhalu.index.extension import extend_index, open_stored_passages, part_states

    stored = open_stored_passages(folder)
    for part in part_states(stored):
        if part.covered == len(stored.passages):
            continue
        if part.kind == "lexical":
            extend_index(stored, "lexical", build_lexical_part, is_lexical_part_current)
            click.echo(f"{folder / part.kind}: up to date")
        else:
            click.echo(f"{folder / part.kind}: out of date. `knowhalu index extend {folder} --late` brings it up to date")


def load_index_embedder(folder: Path, embedder: str | None, **model: Any) -> Any:
    """Load the embedder of an index; raises IndexFormatError where only the user knows its folder."""
    from knowhalu.encoder.embedder import DEFAULT_EMBEDDER, load_embedder
    from knowhalu.errors import IndexFormatError
    from knowhalu.index.open import read_index_info

    made = read_index_info(folder).embedder
    if embedder is None and made.name != DEFAULT_EMBEDDER:
        raise IndexFormatError(f"{folder}: was built with the embedder {made.name!r}. Name its folder with --embedder")
    return load_embedder(embedder or DEFAULT_EMBEDDER, **model)


def run_delete(folder: Path, ids: tuple[str, ...], file: Path | None, force: bool) -> None:
    """Delete documents by the ids given and those in a file, one to a line."""
    from knowhalu.errors import InputError
    from knowhalu.index.update import delete_documents

    names = list(ids)
    if file is not None:
        try:
            names += [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{file}: cannot be read ({error}). Give a UTF-8 file with one id to a line") from error
    if not names:
        raise InputError("no document named. Give ids, or a file of ids with --file")
    click.echo(index_summary(folder, delete_documents(names, folder, force=force)))
    refresh_bm25(folder)


def run_compact(folder: Path, force: bool) -> None:
    """Compact an index."""
    from knowhalu.index.compact import compact_index

    with progress_bar() as progress:
        made = compact_index(folder, force=force, progress=progress)
    click.echo(index_summary(folder, made))
    refresh_bm25(folder)
