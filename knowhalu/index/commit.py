"""The last stage of a build: the FAISS file and the manifest over finished shards, and the switch to them."""

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
from knowhalu.index.transaction import IndexTransaction

CREATED_BY = f"knowhalu {knowhalu.__version__}"


class IndexRecipe(NamedTuple):
    """What decides how an index is made, and with the documents every byte of it."""

    embedder: EmbedderEntry
    chunking: Chunking
    factory: str = "auto"
    storage: Storage = "float32"
    shard: int = 100_000


class ShardFiles(NamedTuple):
    """Finished shards under the names that they will have."""

    shards: tuple[ShardEntry, ...]
    files: dict[str, FileEntry]
    moves: dict[str, str]


def describe_embedder(embedder: Embedder) -> EmbedderEntry:
    """Describe an embedder."""
    return EmbedderEntry(name=embedder.name, fingerprint=embedder.fingerprint, dimension=embedder.dimension)


def name_shard_files(tasks: Sequence[EmbeddingTask]) -> ShardFiles:
    """Name the finished shards of a work folder."""
    shards, files, moves = list[ShardEntry](), dict[str, FileEntry](), dict[str, str]()
    for task in tasks:
        made, vectors = task.cut.made, open_vector_file(task)
        names = f"passages-{made.sha256[:16]}.bin", f"vectors-{vectors.digest[:16]}.bin"
        files[names[0]] = FileEntry(size=made.size, sha256=made.sha256)
        files[names[1]] = FileEntry(size=HEAD_BYTES + vectors.lengths[0], sha256=vectors.digest)
        moves |= {task.cut.path.name: names[0], task.out.name: names[1]}
        entry = ShardEntry(passages=names[0], vectors=names[1], rows=made.passages, documents=made.documents, echoes=made.echoes)
        shards.append(entry)
    return ShardFiles(tuple(shards), files, moves)


def publish_index(
    work: IndexTransaction, tasks: Sequence[EmbeddingTask], recipe: IndexRecipe, report: Callable[[int], None]
) -> Manifest:
    """Make the FAISS file and the manifest of an index that consists of these shards alone, and put all in place."""
    made = [task.cut.made for task in tasks]
    counts = IndexCounts(
        documents=sum(m.documents for m in made), passages=sum(m.passages for m in made), duplicates=sum(m.echoes for m in made)
    )
    if not counts.passages:
        raise InputError("there is no document to build an index from. Give a source with at least one text")
    found = name_shard_files(tasks)
    search = _make_search_entry(work, tasks, recipe, counts.passages, found, report)
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
        shards=found.shards,
        total=format_content_sum(sum(m.content for m in made)),
        files=dict(sorted(found.files.items())),
    ).sealed()
    work.publish(manifest, found.moves)
    return manifest


def _make_search_entry(
    work: IndexTransaction,
    tasks: Sequence[EmbeddingTask],
    recipe: IndexRecipe,
    count: int,
    found: ShardFiles,
    report: Callable[[int], None],
) -> SearchEntry:
    """Make the FAISS file, unless all vectors are compared, and add it to the files."""
    factory = choose_factory(recipe.factory, count, recipe.embedder.dimension)
    if factory == FLAT:
        return SearchEntry()
    path = work.folder / "search.faiss"
    make_faiss_file(VectorFiles([t.out for t in tasks], recipe.embedder.dimension, recipe.storage, count), factory, path, report)
    with path.open("rb+") as file:
        os.fsync(file.fileno())
    entry = describe_file(path)
    name = f"search-{entry.sha256[:16]}.faiss"
    found.files[name], found.moves[path.name] = entry, name
    return SearchEntry(factory=factory, rows=count, parameters=default_parameters(factory))
