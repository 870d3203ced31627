"""Options, progress and summaries that the `index` commands share."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from knowhalu.index.build import BuildProgress
    from knowhalu.index.manifest import Chunking, Manifest
    from knowhalu.ingest.sources import DocumentReader

F = TypeVar("F", bound="Callable[..., Any]")
MAX_SHOWN = 20
MIN_PARALLEL_BYTES = 64 * 2**20
"""Bytes of sources from which parsing in several processes pays."""
MAX_WORKERS = 16
"""Most processes, unless --workers gives a number."""
FOLDER_ARGUMENT = click.argument("folder", type=click.Path(path_type=Path))
SOURCES_ARGUMENT = click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path))
READING_OPTIONS = (
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
CHUNKING_OPTIONS = (
    click.option("--words", default=100, show_default=True, type=click.IntRange(0),
                 help="Most words of a passage; 0 keeps documents whole."),
    click.option("--overlap", default=0, show_default=True, type=click.IntRange(0),
                 help="Words, in whole sentences, that a passage may share with the previous one."),
    click.option("--sections/--no-sections", default=True, show_default=True,
                 help="End passages at headings, and add the section path to the title."),
    click.option("--titles/--no-titles", default=True, show_default=True,
                 help="Embed passages with their title."),
)  # fmt: skip
MODEL_OPTIONS = (
    click.option("--precision", type=click.Choice(["auto", "fp32", "bf16"]), default="auto", show_default=True),
    click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:N."),
)
STORAGE_OPTIONS = (
    click.option(
        "--factory",
        default="auto",
        show_default=True,
        help="FAISS factory such as Flat, HNSW32 or IVF4096,PQ48; auto: by size.",
    ),
    click.option(
        "--storage",
        type=click.Choice(["float32", "float16"]),
        default="float32",
        show_default=True,
        help="Format of stored vectors; float16 takes half the space.",
    ),
)


class FormatsCommand(click.Command):
    """A command whose help ends with the list of document formats."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of formats."""
        from knowhalu.ingest.sources import FORMATS

        with formatter.section("Formats, recognised by file name or given with --format"):
            formatter.write_dl([(name, known.about) for name, known in FORMATS.items()])


def with_options(*groups: tuple[Any, ...]) -> "Callable[[F], F]":
    """Add the options of these groups to a command, in their order."""

    def decorate(command: F) -> F:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return decorate


def make_reader(sources: tuple[Path, ...], given: dict[str, Any]) -> "DocumentReader":
    """Make the reader of the options `READING_OPTIONS`, and remove them from `given`."""
    import os

    from knowhalu.ingest.records import FieldNames
    from knowhalu.ingest.sources import DocumentReader

    default = FieldNames()
    names = [given.pop(f"{name}_field") for name in ("text", "title", "id")]
    fields = FieldNames(names[0] or default.text, names[1] or default.title, names[2] or default.id)
    reader = DocumentReader(
        sources, fields=fields, on_error=given.pop("on_error"), quotes=not given.pop("no_quotes"), format=given.pop("form")
    )
    workers = given.pop("workers")
    reader.workers = workers or (min(os.cpu_count() or 1, MAX_WORKERS) if reader.total > MIN_PARALLEL_BYTES else 1)
    return reader


def make_chunking(given: dict[str, Any]) -> "Chunking":
    """Make the chunking of the options `CHUNKING_OPTIONS`, and remove them from `given`."""
    from knowhalu.index.chunking import check_chunk_limits
    from knowhalu.index.manifest import Chunking

    chunking = Chunking(**{name: given.pop(name) for name in ("words", "overlap", "sections", "titles")})
    check_chunk_limits(chunking.words, chunking.overlap)
    return chunking


def describe_chunking(chunking: "Chunking") -> str:
    """Describe how documents are split into passages."""
    if not chunking.words:
        return "whole documents" + (", titles embedded" if chunking.titles else "")
    text = f"at most {chunking.words} words" + (f", {chunking.overlap} of them shared" if chunking.overlap else "")
    return text + (", by sections" if chunking.sections else "") + (", titles embedded" if chunking.titles else "")


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
def progress_bar(reader: "DocumentReader | None" = None) -> "Iterator[Callable[[BuildProgress], None]]":
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
            unit = "documents" if state.stage == "reading" else "passages"
            words = [f"{state.done:,} {unit}", f"{state.rate:,.0f} per second", f"{decimal(state.memory)} memory"]
            words += [f"{_duration(left)} left"] if left is not None else []
            shown.update(task, description=state.stage, completed=done, total=total or None, done=", ".join(words))

        yield show


def _duration(seconds: float) -> str:
    minutes, hours = int(seconds) // 60, int(seconds) // 3600
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min" if minutes >= 2 else f"{seconds:.0f} s"


def index_summary(folder: Path, made: "Manifest") -> str:
    """Summarise an index in one line."""
    counts = made.counts
    return f"{folder}: {counts.passages:,} passages of {counts.documents:,} documents, generation {made.generation}"


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


def load_index_embedder(folder: Path, embedder: str | None, **model: Any) -> Any:
    """Load the embedder of an index; raises IndexFormatError if it is not the packaged one and --embedder is missing."""
    from knowhalu.encoder.embedder import DEFAULT_EMBEDDER, load_embedder
    from knowhalu.errors import IndexFormatError
    from knowhalu.index.manifest import read_index_info

    made = read_index_info(folder).embedder
    if embedder is None and made.name != DEFAULT_EMBEDDER:
        raise IndexFormatError(f"{folder}: the index was built with the embedder {made.name!r}. Give its folder with --embedder")
    return load_embedder(embedder or DEFAULT_EMBEDDER, **model)


def run_delete(folder: Path, ids: tuple[str, ...], file: Path | None, force: bool) -> None:
    """Delete documents by the given ids and those of a file, one on each line."""
    from knowhalu.errors import InputError
    from knowhalu.index.update import delete_documents

    names = list(ids)
    if file is not None:
        try:
            names += [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{file}: cannot be read ({error}). Give a UTF-8 file with one id on each line") from error
    if not names:
        raise InputError("no document is named. Give ids, or a file of ids with --file")
    click.echo(index_summary(folder, delete_documents(names, folder, force=force)))
    refresh_bm25(folder)


def run_compact(folder: Path, force: bool) -> None:
    """Compact an index."""
    from knowhalu.index.compact import compact_index

    with progress_bar() as progress:
        made = compact_index(folder, force=force, progress=progress)
    click.echo(index_summary(folder, made))
    refresh_bm25(folder)
