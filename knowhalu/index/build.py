"""Build an index in resumable steps: records to shards of passages, shards to vectors, vectors to an index."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import knowhalu
from knowhalu.errors import IndexFormatError, InputError
from knowhalu.index.container import HEAD_BYTES, SectionFile, Storage
from knowhalu.index.embedding import EmbeddingStage, EmbeddingTask, embed_locally, has_vectors, make_embedding_tasks
from knowhalu.index.faiss_file import FLAT, VectorFiles, choose_factory, default_parameters, make_faiss_file
from knowhalu.index.manifest import (
    INDEX_FILE_NAME,
    MANIFEST_FILE,
    MANIFEST_FORMAT,
    Chunking,
    EmbedderEntry,
    FileEntry,
    IndexCounts,
    Manifest,
    SearchEntry,
    ShardEntry,
    describe_file,
    format_content_sum,
)
from knowhalu.index.protocols import Embedder
from knowhalu.index.shard_file import Shard, sum_counts
from knowhalu.index.sharding import FinishedShard, RecordsCheck, ShardBuilder, SourcesChanged
from knowhalu.index.transaction import FORMAT_1_FILES, IndexTransaction
from knowhalu.ingest.sources import SourceRecord

CREATED_BY = f"knowhalu {knowhalu.__version__}"
BuildStage = Literal["reading", "embedding", "indexing"]


class BuildProgress(NamedTuple):
    """Documents, passages and duplicates so far, and the progress of the current stage.

    While reading, `done` counts documents and `total` is unknown (0); after that, both count passages. `rate` is per second in
    this process, `left` the remaining seconds at that rate (None where unknown), `memory` the peak memory of the process in
    bytes.
    """

    documents: int
    passages: int
    duplicates: int
    stage: BuildStage = "reading"
    done: int = 0
    total: int = 0
    rate: float = 0.0
    left: float | None = None
    memory: int = 0


ProgressCallback = Callable[[BuildProgress], None]


class IndexRecipe(NamedTuple):
    """The settings that, with the documents, determine every byte of an index."""

    embedder: EmbedderEntry
    chunking: Chunking
    factory: str = "auto"
    storage: Storage = "float32"
    shard: int = 100_000


class ShardFiles(NamedTuple):
    """Finished shards under their final names; `moves` maps names in the work folder to these."""

    shards: tuple[ShardEntry, ...]
    files: dict[str, FileEntry]
    moves: dict[str, str]


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
    entry = EmbedderEntry(name=embedder.name, fingerprint=embedder.fingerprint, dimension=embedder.dimension)
    recipe = IndexRecipe(entry, chunking or Chunking(), factory, storage, shard)
    job = {
        "command": "build",
        "format": MANIFEST_FORMAT,
        **entry.model_dump(),
        "chunking": recipe.chunking.model_dump(),
        "factory": factory,
        "storage": storage,
        "shard": shard,
    }
    choose_factory(factory, 1, embedder.dimension)
    _check_target(out, force, unfinished=True)
    with IndexTransaction(out, lambda: job, restart=force) as work:
        if work.published:
            return work.published
        _check_target(out, force)
        shards = write_shards(records, work, recipe, watch)
        tasks = make_embedding_tasks(shards, recipe.chunking, storage)
        embed_shards(tasks, embedder, stage, watch)
        return publish_index(work, tasks, recipe, watch)


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
    old: Sequence[Shard] = (),
    check: RecordsCheck | None = None,
    first_document: int = 0,
) -> list[FinishedShard]:
    """Split all records into shards; start over where unfinished work is of other records and may be discarded."""

    def run() -> list[FinishedShard]:
        builder = ShardBuilder(work, recipe.chunking, recipe.shard, old=old, check=check, first_document=first_document)
        return builder.run(records, _ProgressMeter(watch, "reading").show)

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
    done = sum(t.shard.summary.passages for t in tasks) - sum(t.shard.summary.passages for t in missing)
    stage(missing, embedder, _count_progress(tasks, watch, "embedding", done))


def publish_index(
    work: IndexTransaction, tasks: Sequence[EmbeddingTask], recipe: IndexRecipe, watch: ProgressCallback
) -> Manifest:
    """Write the FAISS file, unless the search is exact, and the manifest of an index of these shards alone, and publish it."""
    summaries = [task.shard.summary for task in tasks]
    passages, documents, duplicates = sum_counts(summaries)
    if not passages:
        raise InputError("the sources contain no document. Give a source with at least one text")
    shard_files, dimension, search = name_shard_files(tasks), recipe.embedder.dimension, SearchEntry()
    factory = choose_factory(recipe.factory, passages, dimension)
    if factory != FLAT:
        path = work.folder / "search.faiss"
        vectors = VectorFiles([task.out for task in tasks], dimension, recipe.storage, passages)
        make_faiss_file(vectors, factory, path, _count_progress(tasks, watch, "indexing"))
        with path.open("rb+") as file:
            os.fsync(file.fileno())
        entry = describe_file(path)
        name = f"search-{entry.sha256[:16]}.faiss"
        shard_files.files[name], shard_files.moves[path.name] = entry, name
        search = SearchEntry(factory=factory, rows=passages, parameters=default_parameters(factory))
    manifest = Manifest(
        created_by=CREATED_BY,
        content="0" * 64,
        embedder=recipe.embedder,
        storage=recipe.storage,
        counts=IndexCounts(documents=documents, passages=passages, duplicates=duplicates),
        chunking=recipe.chunking,
        shard=recipe.shard,
        wanted=recipe.factory,
        search=search,
        shards=shard_files.shards,
        total=format_content_sum(sum(s.content for s in summaries)),
        files=dict(sorted(shard_files.files.items())),
    ).sealed()
    work.publish(manifest, shard_files.moves)
    return manifest


def name_shard_files(tasks: Sequence[EmbeddingTask]) -> ShardFiles:
    """Name the finished shards of a work folder by their content."""
    shards, files, moves = list[ShardEntry](), dict[str, FileEntry](), dict[str, str]()
    for task in tasks:
        summary, vectors = task.shard.summary, SectionFile(task.out, task.storage)
        names = f"passages-{summary.sha256[:16]}.bin", f"vectors-{vectors.digest[:16]}.bin"
        files[names[0]] = FileEntry(size=summary.size, sha256=summary.sha256)
        files[names[1]] = FileEntry(size=HEAD_BYTES + vectors.lengths[0], sha256=vectors.digest)
        moves |= {task.shard.path.name: names[0], task.out.name: names[1]}
        counts = {"rows": summary.passages, "documents": summary.documents, "echoes": summary.echoes}
        shards.append(ShardEntry(passages=names[0], vectors=names[1], **counts))
    return ShardFiles(tuple(shards), files, moves)


def _count_progress(
    tasks: Sequence[EmbeddingTask], watch: ProgressCallback, stage: BuildStage, before: int = 0
) -> Callable[[int], None]:
    """Return a callback that adds up the finished passages and reports them; `before` were done by an earlier process."""
    passages, documents, echoes = sum_counts(task.shard.summary for task in tasks)
    meter, done = _ProgressMeter(watch, stage, total=passages, before=before), before

    def report(count: int) -> None:
        nonlocal done
        done += count
        meter.show(documents, passages, echoes, done)

    return report


class _ProgressMeter:
    def __init__(self, watch: ProgressCallback, stage: BuildStage, *, total: int = 0, before: int = 0) -> None:
        self._watch, self._stage, self._total, self._before = watch, stage, total, before
        self._started = time.perf_counter()

    def show(self, documents: int, passages: int, duplicates: int, done: int) -> None:
        """Report the counts and the progress of the stage."""
        rate = (done - self._before) / max(time.perf_counter() - self._started, 1e-9)
        left = (self._total - done) / rate if self._total and rate > 0 else None
        self._watch(BuildProgress(documents, passages, duplicates, self._stage, done, self._total, rate, left, peak_memory()))


def peak_memory() -> int:
    """Return the peak memory of this process in bytes; 0 where the system does not report it."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
