"""Build an index in resumable steps: records to shards of passages, shards to vectors, vectors to an index."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from knowhalu.errors import IndexFormatError
from knowhalu.index.commit import IndexRecipe, describe_embedder, publish_index
from knowhalu.index.container import Storage
from knowhalu.index.embedding import EmbeddingStage, EmbeddingTask, embed_locally, has_vectors, make_embedding_tasks
from knowhalu.index.faiss_file import choose_factory
from knowhalu.index.manifest import INDEX_FILE_NAME, MANIFEST_FILE, MANIFEST_FORMAT, Chunking, Manifest
from knowhalu.index.progress import BuildStage, ProgressCallback, ProgressMeter
from knowhalu.index.protocols import Embedder
from knowhalu.index.shard_file import sum_counts
from knowhalu.index.sharding import FinishedShard, SeenInBuild, ShardBuilder, SourcesChanged
from knowhalu.index.transaction import FORMAT_1_FILES, IndexTransaction
from knowhalu.ingest.sources import SourceRecord


def build_index(
    records: Iterable[SourceRecord],
    out: Path,
    embedder: Embedder,
    *,
    chunking: Chunking | None = None,
    force: bool = False,
    progress: ProgressCallback | None = None,
    factory: str = "auto",
    storage: Storage = "float32",
    shard: int = 100_000,
    stage: EmbeddingStage = embed_locally,
) -> Manifest:
    """Build an index folder from documents and return its manifest.

    The build works in a hidden folder next to `out`. A build that was killed resumes from its last finished shard of `shard`
    passages when it is called again with the same arguments, and produces the same bytes as one that was not killed. `factory`
    is a FAISS factory, "Flat", or "auto", which chooses by size; `storage` "float16" takes half the disk. Raises
    IndexFormatError where `out` exists or holds unfinished work of another kind (`force` replaces the first and discards the
    second), InputError where there is no document, SettingsError for an invalid factory.
    """
    out, watch = Path(out).resolve(), progress or (lambda _: None)
    recipe = IndexRecipe(describe_embedder(embedder), chunking or Chunking(), factory, storage, shard)
    choose_factory(factory, 1, embedder.dimension)
    _check_target(out, force, unfinished=True)
    with IndexTransaction(out, lambda: _describe_build(recipe), restart=force) as work:
        if work.published:
            return work.published
        _check_target(out, force)
        shards = write_shards(records, work, recipe, watch)
        tasks = make_embedding_tasks(shards, recipe.chunking, storage)
        embed_shards(tasks, embedder, stage, watch)
        return publish_index(work, tasks, recipe, count_progress(tasks, watch))


def _describe_build(recipe: IndexRecipe) -> dict[str, Any]:
    return {
        "command": "build",
        "format": MANIFEST_FORMAT,
        **recipe.embedder.model_dump(),
        "chunking": recipe.chunking.model_dump(),
        "factory": recipe.factory,
        "storage": recipe.storage,
        "shard": recipe.shard,
    }


def _check_target(out: Path, force: bool, *, unfinished: bool = False) -> None:
    """Raise IndexFormatError unless an index may be written to `out`; an `unfinished` one may have files there already."""
    if not out.exists():
        return
    begun = out.is_dir() and not (out / MANIFEST_FILE).exists() and all(INDEX_FILE_NAME.fullmatch(p.name) for p in out.iterdir())
    if begun or (unfinished and out.with_name(f".{out.name}.building").exists()):
        return
    if not force:
        raise IndexFormatError(f"{out}: exists already. Choose another folder, or use --force to replace it")
    # the manifest may be damaged or of an older format, but an index always has files of passages
    is_index = out.is_dir() and any(INDEX_FILE_NAME.fullmatch(path.name) or path.name in FORMAT_1_FILES for path in out.iterdir())
    if not is_index or not (out / MANIFEST_FILE).is_file():
        raise IndexFormatError(f"{out}: is not an index, so it is not replaced. Choose another folder")


def write_shards(
    records: Iterable[SourceRecord],
    work: IndexTransaction,
    recipe: IndexRecipe,
    watch: ProgressCallback,
    *,
    seen: Callable[[], SeenInBuild] = SeenInBuild,
    first_document: int = 0,
) -> list[FinishedShard]:
    """Split all records into shards; start over where unfinished work is of other records and may be discarded."""

    def run() -> list[FinishedShard]:
        builder = ShardBuilder(work, recipe.chunking, limit=recipe.shard, seen=seen(), first_document=first_document)
        return builder.run(records, ProgressMeter(watch, "reading"))

    try:
        return run()
    except SourcesChanged:
        work.refuse("the sources have changed since")
        work.clear()
    if isinstance(records, Iterator):
        raise IndexFormatError(f"{work.out}: unfinished work of other sources was discarded. Run the command again")
    return run()


def embed_shards(tasks: Sequence[EmbeddingTask], embedder: Embedder, stage: EmbeddingStage, watch: ProgressCallback) -> None:
    """Embed the shards that have no vectors yet."""
    missing = [task for task in tasks if not has_vectors(task, embedder.dimension)]
    total = sum(t.shard.summary.passages for t in tasks)
    done = total - sum(t.shard.summary.passages for t in missing)
    stage(missing, embedder, count_progress(tasks, watch, "embedding", done))


def count_progress(
    tasks: Sequence[EmbeddingTask], watch: ProgressCallback, stage: BuildStage = "indexing", before: int = 0
) -> Callable[[int], None]:
    """Return a callback that adds up the finished passages and reports them; `before` were done by an earlier process."""
    passages, documents, echoes = sum_counts(task.shard.summary for task in tasks)
    meter, done = ProgressMeter(watch, stage, total=passages, before=before), before

    def report(count: int) -> None:
        nonlocal done
        done += count
        meter.show(documents, passages, echoes, done)

    return report
