"""The `index` commands: change, inspect, verify, search, extend and serve an index; those that build one are registered here."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from knowhalu.cli.index_build import (
    FormatsCommand,
    build,
    index_summary,
    load_index_embedder,
    make_reader,
    plan,
    progress_bar,
    refresh_bm25,
    report_skipped,
    with_model,
    with_reading,
    with_sources,
)
from knowhalu.cli.options import with_options
from knowhalu.errors import IndexFormatError, InputError, SettingsError, counted
from knowhalu.text.sentences import sanitize

if TYPE_CHECKING:
    from knowhalu.index.extension import PartState
    from knowhalu.index.manifest import Chunking, Manifest
    from knowhalu.index.protocols import Retriever
    from knowhalu.retrieval.options import RetrievalOptions

with_folder = click.argument("folder", type=click.Path(path_type=Path))
with_force = click.option("--force", is_flag=True, help="Discard unfinished work of another kind on this index.")
with_search = with_options(
    click.option("--mode", type=click.Choice(["dense", "lexical", "hybrid", "late"]), default="dense", show_default=True,
                 help="Vectors, words, both, or tokens."),
    click.option("--embedder", help="The model that built the index, if it is not the packaged one."),
    click.option("--query-prefix", help="Instruction before each query, which some models need."),
    click.option("--token-encoder", default="minilm-late", show_default=True, help="Model of --mode late."),
    click.option("--fusion", type=click.Choice(["scores", "ranks"]), default="scores", show_default=True,
                 help="In a hybrid search."),
    click.option("--lexical-weight", type=click.FloatRange(0), help="Weight of BM25 in a hybrid search; vectors have 1."),
    click.option("--search", "width", default="", metavar="NAME=NUMBER,...",
                 help="Search width, such as nprobe=64,refine=8; default: that of the index."),
    click.option("--reranker", help="Reranker: verifier, or the folder of a cross-encoder."),
    click.option("--rerank", default=20, show_default=True, type=click.IntRange(1), help="Passages to rerank."),
)  # fmt: skip


@click.group()
def index() -> None:
    """Build, change, inspect, search and verify indexes of documents."""


index.add_command(plan)
index.add_command(build)


@index.command(cls=FormatsCommand)
@with_folder
@with_sources
@click.option("--embedder", help="The model that built the index, if it is not the packaged one.")
@with_reading
@click.option("--replace", is_flag=True, help="Records without an id replace those of the same file name and line.")
@with_force
@with_model
def add(folder: Path, sources: tuple[Path, ...], embedder: str | None, replace: bool, force: bool, **given: Any) -> None:
    """Add or replace documents of an index.

    Adds the documents of SOURCES to the index in FOLDER, replacing documents of the same id. The same command resumes a stopped
    addition.
    """
    from knowhalu.index.update import add_documents

    model = load_index_embedder(folder, embedder, precision=given["precision"], device=given["device"])
    reader = make_reader(sources, given)
    replaced = list[int]()
    with progress_bar(reader) as progress:
        manifest = add_documents(
            reader, folder, model, force=force, replace=replace, progress=progress, on_replaced=replaced.append
        )
    report_skipped(reader)
    click.echo(index_summary(folder, manifest) + (f", {sum(replaced):,} of its documents replaced" if any(replaced) else ""))
    refresh_bm25(folder)


@index.command()
@with_folder
@click.argument("ids", nargs=-1)
@click.option("--file", type=click.Path(path_type=Path), help="File of ids, one on each line.")
@with_force
def delete(folder: Path, ids: tuple[str, ...], file: Path | None, force: bool) -> None:
    """Delete documents by their ids."""
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


@index.command()
@with_folder
@with_force
def compact(folder: Path, force: bool) -> None:
    """Rewrite an index with all its changes.

    The index in FOLDER becomes what a build of its documents would be; they are not embedded again.
    """
    from knowhalu.index.compact import compact_index

    with progress_bar() as progress:
        manifest = compact_index(folder, force=force, progress=progress)
    click.echo(index_summary(folder, manifest))
    refresh_bm25(folder)


@index.command()
@with_folder
@click.option("--json", "as_json", is_flag=True, help="Print the manifest and the parts as JSON.")
def info(folder: Path, as_json: bool) -> None:
    """Show the content of an index and its search modes."""
    from knowhalu.index.extension import open_stored_passages, part_states
    from knowhalu.index.manifest import read_index_info

    manifest, parts = read_index_info(folder), part_states(open_stored_passages(folder))
    if as_json:
        click.echo(json.dumps(manifest.model_dump(mode="json") | {"parts": [part._asdict() for part in parts]}, indent=1))
        return
    for name, value in (*_info_lines(manifest), *((part.kind, _part_state(part, manifest.rows, folder)) for part in parts)):
        click.echo(f"{name:<11}{value}")


def _info_lines(manifest: "Manifest") -> Iterator[tuple[str, str]]:
    from rich.filesize import decimal

    yield "passages", f"{manifest.counts.passages:,} of {counted(manifest.counts.documents, 'document')}"
    yield "duplicates", f"{manifest.counts.duplicates:,} dropped"
    yield "chunking", _describe_chunking(manifest.chunking)
    yield "embedder", f"{manifest.embedder.name}, {manifest.embedder.dimension} dimensions, {manifest.embedder.fingerprint[:12]}"
    yield "vectors", f"{manifest.storage} in {counted(len(manifest.shards), 'shard')}, {manifest.metric}"
    yield "search", _search_structure(manifest)
    yield "version", f"generation {manifest.generation}, content {manifest.content[:12]}, seal {manifest.seal[:16]}"
    yield "size", decimal(sum(entry.size for entry in manifest.files.values()))
    yield "made by", f"{manifest.created_by}, format {manifest.format}"


def _search_structure(manifest: "Manifest") -> str:
    if manifest.factory == "Flat":
        return "Flat: exact, compares all vectors"
    parameters, later = manifest.search.parameters, manifest.rows - manifest.search.rows
    width = f"nprobe {parameters.nprobe}" if "IVF" in manifest.factory else f"ef_search {parameters.ef_search}"
    added = f"; {later:,} passages added later are compared one by one until `index compact`" if later else ""
    return f"{manifest.factory}, {width}, refine {parameters.refine}{added}"


def _part_state(part: "PartState", rows: int, folder: Path) -> str:
    from rich.filesize import decimal

    if part.problem:
        return part.problem
    state = f"up to date, {decimal(part.size)}" + (f", {part.encoder}" if part.encoder else "")
    if part.covered == rows:
        return state
    remedy = f"`knowhalu index extend {folder} --{part.kind}` brings it up to date"
    return f"covers {part.covered:,} of {rows:,} stored passages and cannot be searched, {decimal(part.size)}; {remedy}"


def _describe_chunking(chunking: "Chunking") -> str:
    """Describe how documents are split into passages."""
    if not chunking.words:
        return "whole documents" + (", titles embedded" if chunking.titles else "")
    text = f"at most {chunking.words} words" + (f", {chunking.overlap} of them shared" if chunking.overlap else "")
    return text + (", by sections" if chunking.sections else "") + (", titles embedded" if chunking.titles else "")


@index.command()
@with_folder
def verify(folder: Path) -> None:
    """Verify the checksums of an index and of its parts."""
    from knowhalu.index.extension import verify_index

    if problems := verify_index(folder):
        for problem in problems:
            click.echo(problem)
        raise IndexFormatError(f"{folder}: {counted(len(problems), 'problem')} found. Copy the index again, or rebuild it")
    click.echo(f"{folder}: intact")


def _open(folder: Path, mode: str, embedder: str | None, query_prefix: str | None, **given: Any) -> "Retriever":
    """Open an index with the options; only the models of the mode are loaded."""
    from knowhalu.engine.search_backend import open_retriever

    chosen = {name: given[name] for name in ("token_encoder", "fusion", "lexical_weight", "reranker", "rerank")}
    options = _checked({"index": folder, "mode": mode, "search": given["width"], **chosen})
    model = None
    if mode in ("dense", "hybrid"):
        loading = {name: given[name] for name in ("precision", "device")}
        model = load_index_embedder(folder, embedder, query_prefix=query_prefix, **loading)
    return open_retriever(options, model)


def _checked(given: dict[str, Any]) -> "RetrievalOptions":
    from pydantic import ValidationError

    from knowhalu.retrieval.options import RetrievalOptions

    try:
        return RetrievalOptions.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).replace("_", "-")
        raise SettingsError(f"--{name} {first['input']}: {first['msg'].lower()}. Give another value") from error


@index.command()
@with_folder
@click.argument("queries", nargs=-1, required=True)
@click.option("-k", default=5, show_default=True, type=click.IntRange(1), help="Passages for each query.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each query.")
@with_options(with_search, with_model)
def search(folder: Path, queries: tuple[str, ...], k: int, as_json: bool, **given: Any) -> None:
    """Search an index for each of QUERIES."""
    rankings = _open(folder, **given).search(queries, k)
    for query, passages in zip(queries, rankings, strict=True):
        if as_json:
            row = {"query": query, "passages": [p.model_dump(mode="json") for p in passages]}
            click.echo(json.dumps(row, ensure_ascii=False))
            continue
        click.secho(sanitize(query), bold=True)
        for rank, p in enumerate(passages, 1):
            click.echo(sanitize(f"{rank:>3}. {p.score:.3f}  {p.title or p.document}  [{p.id}, characters {p.start}-{p.end}]"))
            click.echo(
                click.wrap_text(sanitize(p.text), initial_indent="     ", subsequent_indent="     ", preserve_paragraphs=True)
            )


@index.command()
@with_folder
@click.option("--lexical", is_flag=True, help="Add BM25 for the modes lexical and hybrid.")
@click.option("--late", is_flag=True, help="Add late interaction for the mode late.")
@click.option("--token-encoder", default="minilm-late", show_default=True, help="minilm-late, or a ColBERT or PyLate folder.")
@click.option(
    "--bits", type=click.Choice(["1", "2", "4", "8"]), default="4", show_default=True, help="Bits of a vector component."
)
@with_model
def extend(folder: Path, lexical: bool, late: bool, token_encoder: str, bits: str, **model: Any) -> None:
    """Add search modes to an index, or update them.

    Run it again after a change of the index in FOLDER; parts that are up to date stay unchanged.
    """
    from knowhalu.index.extension import extend_index, open_stored_passages

    if not lexical and not late:
        raise click.UsageError("give --lexical, --late, or both")
    stored = open_stored_passages(folder)
    if lexical:
        from knowhalu.retrieval.bm25 import build_lexical_part, is_lexical_part_current

        _report(folder / "lexical", extend_index(stored, "lexical", build_lexical_part, is_lexical_part_current))
    if late:
        from knowhalu.encoder.embedder import load_token_encoder
        from knowhalu.index.late_part import build_late_part, is_late_part_current

        encoder = load_token_encoder(token_encoder, **model)
        build_late = partial(build_late_part, encoder=encoder, bits=int(bits))
        fits = partial(is_late_part_current, encoder=encoder, bits=int(bits))
        _report(folder / "late", extend_index(stored, "late", build_late, fits))


def _report(folder: Path, built: int) -> None:
    from rich.filesize import decimal

    size = sum(path.stat().st_size for path in folder.rglob("*.bin"))
    click.echo(f"{folder}: {f'passages read: {built:,}, ' if built else ''}up to date, {decimal(size)}")


@index.command()
@with_folder
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; others than this machine's are open.")
@click.option("--port", default=8893, show_default=True, type=click.IntRange(0, 65535), help="0 chooses a free port.")
@with_options(with_search, with_model)
def serve(folder: Path, host: str, port: int, **given: Any) -> None:
    """Serve searches of an index over HTTP.

    GET /search?query=...&k=3 searches the index in FOLDER, with the interface of ColBERT's server. Changes of the index take
    effect when the server is restarted.

    There is no login: keep the server on this machine or in a trusted network. Stop it with Ctrl-C.
    """
    from knowhalu.index.manifest import read_index_info
    from knowhalu.retrieval.server import SearchServer

    manifest = read_index_info(folder)
    counts = manifest.counts
    info = {"mode": given["mode"], "passages": counts.passages, "documents": counts.documents, "seal": manifest.seal}
    with SearchServer(_open(folder, **given), host, port, info=info) as server:
        click.echo(f"{counted(counts.passages, 'passage')} ({given['mode']}) at {server.url}")
        if host not in ("127.0.0.1", "localhost", "::1"):
            click.echo("warning: anyone who can reach this address can search the index", err=True)
        server.serve_forever()
