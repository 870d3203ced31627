"""The last stage of a build: write the FAISS file and the manifest of finished shards, and publish them."""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

import knowhalu
from knowhalu.errors import InputError
from knowhalu.index.container import HEAD_BYTES, Storage
from knowhalu.index.embedding import EmbeddingTask, open_vector_file
from knowhalu.index.faiss_file import FLAT, VectorFiles, choose_factory, default_parameters, make_faiss_file
from knowhalu.index.manifest import (
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
from knowhalu.index.shard_file import sum_counts
from knowhalu.index.transaction import IndexTransaction

CREATED_BY = f"knowhalu {knowhalu.__version__}"


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


def describe_embedder(embedder: Embedder) -> EmbedderEntry:
    """Return the manifest entry of an embedder."""
    return EmbedderEntry(name=embedder.name, fingerprint=embedder.fingerprint, dimension=embedder.dimension)


def name_shard_files(tasks: Sequence[EmbeddingTask]) -> ShardFiles:
    """Name the finished shards of a work folder by their content."""
    shards, files, moves = list[ShardEntry](), dict[str, FileEntry](), dict[str, str]()
    for task in tasks:
        summary, vectors = task.shard.summary, open_vector_file(task)
        names = f"passages-{summary.sha256[:16]}.bin", f"vectors-{vectors.digest[:16]}.bin"
        files[names[0]] = FileEntry(size=summary.size, sha256=summary.sha256)
        files[names[1]] = FileEntry(size=HEAD_BYTES + vectors.lengths[0], sha256=vectors.digest)
        moves |= {task.shard.path.name: names[0], task.out.name: names[1]}
        entry = ShardEntry(
            passages=names[0], vectors=names[1], rows=summary.passages, documents=summary.documents, echoes=summary.echoes
        )
        shards.append(entry)
    return ShardFiles(tuple(shards), files, moves)


def publish_index(
    work: IndexTransaction, tasks: Sequence[EmbeddingTask], recipe: IndexRecipe, report: Callable[[int], None]
) -> Manifest:
    """Write the FAISS file and the manifest of an index of these shards alone, and publish it."""
    summaries = [task.shard.summary for task in tasks]
    passages, documents, duplicates = sum_counts(summaries)
    counts = IndexCounts(documents=documents, passages=passages, duplicates=duplicates)
    if not counts.passages:
        raise InputError("the sources contain no document. Give a source with at least one text")
    shard_files = name_shard_files(tasks)
    search = _make_search_entry(work, tasks, recipe, counts.passages, shard_files, report)
    manifest = Manifest(
        created_by=CREATED_BY,
        content="0" * 64,
        embedder=recipe.embedder,
        storage=recipe.storage,
        counts=counts,
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


def _make_search_entry(
    work: IndexTransaction,
    tasks: Sequence[EmbeddingTask],
    recipe: IndexRecipe,
    count: int,
    shard_files: ShardFiles,
    report: Callable[[int], None],
) -> SearchEntry:
    """Write the FAISS file, unless the search is exact, and add it to the files."""
    factory = choose_factory(recipe.factory, count, recipe.embedder.dimension)
    if factory == FLAT:
        return SearchEntry()
    path = work.folder / "search.faiss"
    make_faiss_file(VectorFiles([t.out for t in tasks], recipe.embedder.dimension, recipe.storage, count), factory, path, report)
    with path.open("rb+") as file:
        os.fsync(file.fileno())
    entry = describe_file(path)
    name = f"search-{entry.sha256[:16]}.faiss"
    shard_files.files[name], shard_files.moves[path.name] = entry, name
    return SearchEntry(factory=factory, rows=count, parameters=default_parameters(factory))
