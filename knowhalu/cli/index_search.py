"""The `index` commands that inspect, verify, search, extend and serve an index."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from knowhalu.cli.index_options import FOLDER_ARGUMENT, MODEL_OPTIONS, describe_chunking, with_options
from knowhalu.text.sentences import sanitize

if TYPE_CHECKING:
    from knowhalu.index.extension import PartState
    from knowhalu.index.manifest import Manifest
    from knowhalu.index.protocols import Retriever
    from knowhalu.retrieval.options import RetrievalOptions


@click.command()
@FOLDER_ARGUMENT
@click.option("--json", "as_json", is_flag=True, help="Print the manifest and the parts as JSON.")
def info(folder: Path, as_json: bool) -> None:
    """Show the content of an index and its search modes."""
    import json

    from knowhalu.index.extension import open_stored_passages, part_states
    from knowhalu.index.manifest import read_index_info

    made, parts = read_index_info(folder), part_states(open_stored_passages(folder))
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
    yield "chunking", describe_chunking(made.chunking)
    yield "embedder", f"{made.embedder.name}, {made.embedder.dimension} dimensions, {made.embedder.fingerprint[:12]}"
    yield "vectors", f"{made.storage} in {len(made.shards)} shard{'s' * (len(made.shards) != 1)}, {made.metric}"
    yield "search", _search_words(made)
    yield "version", f"generation {made.generation}, content {made.content[:12]}, seal {made.seal[:16]}"
    yield "size", decimal(size)
    yield "made by", f"{made.created_by}, format {made.format}"


def _search_words(made: "Manifest") -> str:
    if made.factory == "Flat":
        return "Flat: exact, compares all vectors"
    parameters, later = made.search.parameters, made.rows - made.search.rows
    width = f"nprobe {parameters.nprobe}" if "IVF" in made.factory else f"ef_search {parameters.ef_search}"
    added = f"; {later:,} passages added later are compared one by one until `index compact`" if later else ""
    return f"{made.factory}, {width}, refine {parameters.refine}{added}"


def _part_words(part: "PartState", made: "Manifest", folder: Path) -> str:
    from rich.filesize import decimal

    if part.problem:
        return part.problem
    state = f"up to date, {decimal(part.size)}" + (f", {part.encoder}" if part.encoder else "")
    if part.covered == made.rows:
        return state
    remedy = f"`knowhalu index extend {folder} --{part.kind}` brings it up to date"
    return f"covers {part.covered:,} of {made.rows:,} stored passages and cannot be searched, {decimal(part.size)}; {remedy}"


@click.command()
@FOLDER_ARGUMENT
def verify(folder: Path) -> None:
    """Verify the checksums of an index and of its parts."""
    from knowhalu.errors import IndexFormatError
    from knowhalu.index.extension import verify_index as problems_of

    if problems := problems_of(folder):
        for problem in problems:
            click.echo(problem)
        count = f"{len(problems)} problem{'s' * (len(problems) != 1)} found"
        raise IndexFormatError(f"{folder}: {count}. Copy the index again, or rebuild it")
    click.echo(f"{folder}: intact")


SEARCH_MODES = ("dense", "lexical", "hybrid", "late")
SEARCH_OPTIONS = (
    click.option(
        "--mode",
        type=click.Choice(SEARCH_MODES),
        default="dense",
        show_default=True,
        help="Vectors, words, both, or tokens.",
    ),
    click.option("--embedder", help="The model that built the index, if it is not the packaged one."),
    click.option("--query-prefix", help="Instruction before each query, which some models need."),
    click.option("--token-encoder", default="minilm-late", show_default=True, help="Model of --mode late."),
    click.option(
        "--fusion", type=click.Choice(["scores", "ranks"]), default="scores", show_default=True, help="In a hybrid search."
    ),
    click.option("--lexical-weight", type=click.FloatRange(0), help="Weight of BM25 in a hybrid search; vectors have 1."),
    click.option(
        "--search",
        "width",
        default="",
        metavar="NAME=NUMBER,...",
        help="Search width, such as nprobe=64,refine=8; default: that of the index.",
    ),
    click.option("--reranker", help="Reranker: verifier, or the folder of a cross-encoder."),
    click.option("--rerank", default=20, show_default=True, type=click.IntRange(1), help="Passages to rerank."),
)


def _open(folder: Path, mode: str, embedder: str | None, query_prefix: str | None, **given: Any) -> "Retriever":
    """Open an index with the options; only the models of the mode are loaded."""
    from knowhalu.engine.search_backend import open_retriever

    chosen = {name: given[name] for name in ("token_encoder", "fusion", "lexical_weight", "reranker", "rerank")}
    options = _checked({"index": folder, "mode": mode, "search": given["width"], **chosen})
    model = None
    if mode in ("dense", "hybrid"):
        from knowhalu.cli.index_options import load_index_embedder

        loading = {name: given[name] for name in ("precision", "device")}
        model = load_index_embedder(folder, embedder, query_prefix=query_prefix, **loading)
    return open_retriever(options, model)


def _checked(given: dict[str, Any]) -> "RetrievalOptions":
    from pydantic import ValidationError

    from knowhalu.errors import SettingsError
    from knowhalu.retrieval.options import RetrievalOptions

    try:
        return RetrievalOptions.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).replace("_", "-")
        raise SettingsError(f"--{name} {first['input']}: {first['msg'].lower()}. Give another value") from error


@click.command()
@FOLDER_ARGUMENT
@click.argument("queries", nargs=-1, required=True)
@click.option("-k", default=5, show_default=True, type=click.IntRange(1), help="Passages for each query.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each query.")
@with_options(SEARCH_OPTIONS, MODEL_OPTIONS)
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


@click.command()
@FOLDER_ARGUMENT
@click.option("--lexical", is_flag=True, help="Add BM25 for the modes lexical and hybrid.")
@click.option("--late", is_flag=True, help="Add late interaction for the mode late.")
@click.option("--token-encoder", default="minilm-late", show_default=True, help="minilm-late, or a ColBERT or PyLate folder.")
@click.option(
    "--bits",
    type=click.Choice(["1", "2", "4", "8"]),
    default="4",
    show_default=True,
    help="Bits of a vector component.",
)
@with_options(MODEL_OPTIONS)
def extend(folder: Path, lexical: bool, late: bool, token_encoder: str, bits: str, **model: Any) -> None:
    """Add search modes to an index, or update them.

    Run it again after a change of the index in FOLDER; parts that are up to date stay unchanged.
    """
    from functools import partial

    from knowhalu.index.extension import extend_index as extended
    from knowhalu.index.extension import open_stored_passages

    if not lexical and not late:
        raise click.UsageError("give --lexical, --late, or both")
    stored = open_stored_passages(folder)
    if lexical:
        from knowhalu.retrieval.bm25 import build_lexical_part, is_lexical_part_current

        _report(folder / "lexical", extended(stored, "lexical", build_lexical_part, is_lexical_part_current))
    if late:
        from knowhalu.encoder.late_encoder import load_token_encoder
        from knowhalu.index.late_part import build_late_part
        from knowhalu.index.late_part import is_late_part_current as is_late_current

        encoder = load_token_encoder(token_encoder, **model)
        build = partial(build_late_part, encoder=encoder, bits=int(bits))
        fits = partial(is_late_current, encoder=encoder, bits=int(bits))
        _report(folder / "late", extended(stored, "late", build, fits))


def _report(folder: Path, built: int) -> None:
    from rich.filesize import decimal

    size = sum(path.stat().st_size for path in folder.rglob("*.bin"))
    click.echo(f"{folder}: {f'passages read: {built:,}, ' if built else ''}up to date, {decimal(size)}")


@click.command()
@FOLDER_ARGUMENT
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; others than this machine's are open.",
)
@click.option("--port", default=8893, show_default=True, type=click.IntRange(0, 65535), help="0 chooses a free port.")
@with_options(SEARCH_OPTIONS, MODEL_OPTIONS)
def serve(folder: Path, host: str, port: int, **given: Any) -> None:
    """Serve searches of an index over HTTP.

    GET /search?query=...&k=3 searches the index in FOLDER, with the interface of ColBERT's server. Changes of the index take
    effect when the server is restarted.

    There is no login: keep the server on this machine or in a trusted network. Stop it with Ctrl-C.
    """
    from knowhalu.index.manifest import read_index_info
    from knowhalu.server.search import SearchServer

    made = read_index_info(folder)
    counts = made.counts
    info = {"mode": given["mode"], "passages": counts.passages, "documents": counts.documents, "seal": made.seal}
    with SearchServer(_open(folder, **given), host, port, info=info) as server:
        click.echo(f"{counts.passages:,} passages ({given['mode']}) at {server.url}")
        if host not in ("127.0.0.1", "localhost", "::1"):
            click.echo("warning: anyone who can reach this address can search the index", err=True)
        server.serve_forever()
