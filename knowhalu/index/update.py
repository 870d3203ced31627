"""Changes to an index without a rebuild: documents added, replaced and deleted, and small shards joined."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import InputError
from knowhalu.index.build import embed_shards, write_shards
from knowhalu.index.commit import CREATED_BY, IndexRecipe, ShardFiles, name_shard_files
from knowhalu.index.container import Ints, SectionWriter, VectorWriter, open_vectors
from knowhalu.index.embedding import EmbeddingStage, EmbeddingTask, embed_locally, make_embedding_tasks
from knowhalu.index.manifest import (
    FAISS_FILE_PREFIX,
    FileEntry,
    IndexCounts,
    Manifest,
    ShardEntry,
    format_content_sum,
    read_manifest,
)
from knowhalu.index.open import check_embedder, open_shard_vectors
from knowhalu.index.passages import PassageStore, open_store
from knowhalu.index.progress import ProgressCallback
from knowhalu.index.protocols import Embedder
from knowhalu.index.shard_file import PASSAGES_KIND, Shard, ShardSummary, hash_occurrence
from knowhalu.index.sharding import FinishedShard, SeenInShards
from knowhalu.index.tombstones import is_in_sorted, resolve_deletions
from knowhalu.index.transaction import IndexTransaction
from knowhalu.ingest.sources import SourceRecord
from knowhalu.io.keys import KEY_TYPE, find_keys, make_key


class SeenInStore(SeenInShards):
    """The texts of an index, and its documents, which none may replace that has no id of its own."""

    def __init__(self, store: PassageStore) -> None:
        super().__init__(store.shards)
        self._store = store

    def check(self, records: Sequence[SourceRecord]) -> None:
        """Raise InputError for a document whose file and line are the id of one that is there."""
        numbered = {record.id: record for record in records if record.numbered}
        there = find_documents(self._store, list(numbered)) if numbered else {}
        if taken := next((name for name in there if there[name]), None):
            raise InputError(
                f"{numbered[taken].where}: has no id, and {taken!r}, which stands for one, is a document of the index already. "
                "Name the field of the ids (--id-field), rename the file, or give --replace to replace such documents"
            )


def manifest_recipe(manifest: Manifest) -> IndexRecipe:
    """Return how an index was made."""
    return IndexRecipe(manifest.embedder, manifest.chunking, manifest.wanted, manifest.storage, manifest.shard)


def describe_change(command: str, folder: Path) -> dict[str, Any]:
    """Describe a change of the index as it is now."""
    return {"command": command, "index": read_manifest(folder).seal}


def add_documents(
    records: Iterable[SourceRecord],
    folder: Path,
    embedder: Embedder,
    *,
    force: bool = False,
    replace: bool = False,
    progress: ProgressCallback | None = None,
    stage: EmbeddingStage = embed_locally,
    on_replaced: Callable[[int], None] = lambda count: None,
) -> Manifest:
    """Add documents to an index; one whose id is there already is replaced by the new one, which comes last.

    `on_replaced` is told how many are. Records that have no id of their own replace others only with `replace`, else they are
    an InputError. Killed, it goes on like a build. Raises IndexFormatError where the index was built by another embedder, is
    being changed by another process, or has unfinished work of another kind (`force` drops that), InputError where there is no
    document.
    """
    folder, watch = Path(folder).resolve(), progress or (lambda _: None)
    check_embedder(folder, read_manifest(folder), embedder)
    with IndexTransaction(folder, lambda: describe_change("add", folder), restart=force) as work:
        if work.published:
            return work.published
        manifest = read_manifest(folder)
        recipe, store = manifest_recipe(manifest), open_store(folder, manifest)
        old = store.shards
        cuts = write_shards(
            records,
            work,
            recipe,
            watch,
            seen=lambda: SeenInShards(old) if replace else SeenInStore(store),
            first_document=store.documents,
        )
        if not cuts:
            raise InputError("there is no document to add. Give a source with at least one text")
        tasks = make_embedding_tasks(cuts, recipe.chunking, recipe.storage, store.documents)
        embed_shards(tasks, embedder, stage, watch)
        whole = PassageStore([*old, *(cut.open() for cut in cuts)], store.edits)
        gone = _find_replaced(whole, len(old))
        on_replaced(len(gone))
        content = int(manifest.total, 16) + sum(cut.made.content for cut in cuts)
        taken = count_joinable_shards(manifest, cuts[0].made) if len(cuts) == 1 else 0
        if taken:
            tasks = [join_shards(old[-taken:], open_shard_vectors(folder, manifest).shards[-taken:], tasks[0])]
        kept = manifest.shards[: len(manifest.shards) - taken]
        return _publish_change(work, manifest, whole, gone, kept, name_shard_files(tasks), content)


def delete_documents(names: Sequence[str], folder: Path, *, force: bool = False) -> Manifest:
    """Take documents out of an index by their ids.

    Raises InputError, before anything is changed, where an id is not there; IndexFormatError as `add_documents`.
    """
    folder = Path(folder).resolve()
    read_manifest(folder)
    try:
        ids = hashlib.sha256("\0".join(names).encode()).hexdigest()
    except UnicodeEncodeError as error:
        raise InputError(f"{folder}: has no document {error.object[error.start :]!r}: an id is UTF-8 text") from error
    with IndexTransaction(folder, lambda: {"command": "delete", "ids": ids}, restart=force) as work:
        if work.published:
            return work.published
        manifest = read_manifest(folder)
        store = open_store(folder, manifest)
        there = find_documents(store, names)
        if missing := [name for name in dict.fromkeys(names) if not there[name]]:
            raise InputError(f"{folder}: has no document {', '.join(map(repr, missing[:5]))}{' ...' * (len(missing) > 5)}")
        gone = np.unique(np.array([n for numbers in there.values() for n in numbers], np.int64))
        return _publish_change(work, manifest, store, gone, manifest.shards, ShardFiles((), {}, {}), int(manifest.total, 16))


def find_documents(store: PassageStore, names: Sequence[str]) -> dict[str, list[int]]:
    """Return the numbers of the living documents of each id."""
    known = {make_key(name): name for name in names}
    wanted = np.sort(np.array(list(known), KEY_TYPE))
    found: dict[str, list[int]] = {name: [] for name in names}
    first = 0
    for shard in store.shards:
        keys = shard.document_keys
        for i in find_keys(keys, wanted):
            if not is_in_sorted(np.array([first + i]), store.edits.documents)[0]:
                found[known[keys[i : i + 1].tobytes()]].append(first + int(i))
        first += len(keys)
    return found


def _find_replaced(store: PassageStore, old: int) -> Ints:
    """Return the living documents whose id a later document of the shards from `old` on has."""
    new = np.sort(np.concatenate([shard.document_keys for shard in store.shards[old:]]))
    repeated, gone, last = np.unique(new[1:][new[1:] == new[:-1]]), list[int](), dict[bytes, int]()
    first = 0
    for number, shard in enumerate(store.shards):
        keys = shard.document_keys
        if number < old:
            here = find_keys(keys, new) + first
            gone += here[~is_in_sorted(here, store.edits.documents)].tolist()
        else:
            # an id that was given twice: the last document counts
            for i in find_keys(keys, repeated).tolist():
                key = keys[i : i + 1].tobytes()
                gone += [last[key]] if key in last else []
                last[key] = first + i
        first += len(keys)
    return np.array(sorted(gone), np.int64)


def _sum_content(store: PassageStore, documents: Ints) -> int:
    """Sum up the places and texts of some documents."""
    total = 0
    for shard in store.shards:
        for places, keys in ((shard.spans[:, :3], shard.keys), (shard.echo_places, shard.echo_keys)):
            for i in np.flatnonzero(is_in_sorted(np.ascontiguousarray(places[:, 0]), documents)):
                document, number, start = map(int, places[i])
                total += hash_occurrence(store.document(document)[0], number, start, keys[i : i + 1].tobytes())
    return total


def _publish_change(
    work: IndexTransaction,
    old: Manifest,
    store: PassageStore,
    gone: Ints,
    kept: Sequence[ShardEntry],
    new: ShardFiles,
    content: int,
) -> Manifest:
    """Publish the next generation: what is in `store` without the documents that are `gone` now or were before.

    Its files are the `kept` shards and the `new` ones.
    """
    dead = np.union1d(store.edits.documents, gone)
    edits = resolve_deletions(store.shards, dead)
    needed = {name for shard in kept for name in (shard.passages, shard.vectors)}
    files = {n: e for n, e in old.files.items() if n in needed or n.startswith(FAISS_FILE_PREFIX)} | new.files
    moves = dict(new.moves)
    name = None
    if len(dead):
        written = edits.write(work.folder / "edits")
        name = f"edits-{written.digest[:16]}.bin"
        files[name], moves["edits"] = FileEntry(size=written.size, sha256=written.digest), name
    places = sum(
        int(np.sum(~is_in_sorted(np.ascontiguousarray(p[:, 0]), dead))) for s in store.shards for p in (s.spans, s.echo_places)
    )
    passages = len(store) - len(edits.rows)
    update = {
        "created_by": CREATED_BY,
        "generation": old.generation + 1,
        "counts": IndexCounts(documents=store.documents - len(dead), passages=passages, duplicates=places - passages),
        "shards": (*kept, *new.shards),
        "edits": name,
        "total": format_content_sum(content - _sum_content(store, gone)),
        "files": dict(sorted(files.items())),
    }
    manifest = old.model_copy(update=update).sealed()
    work.publish(manifest, moves)
    return manifest


def count_joinable_shards(manifest: Manifest, made: ShardSummary) -> int:
    """Return how many of the last shards of an index a new one takes in; never those that a FAISS file is about."""
    starts = list(accumulate((s.rows for s in manifest.shards), initial=0))
    size, count = made.passages + made.documents + made.echoes, 0
    for entry, start in zip(reversed(manifest.shards), reversed(starts[:-1]), strict=True):
        other = _shard_size(entry)
        if other > 2 * size or size + other > manifest.shard or start < manifest.search.rows:
            break
        size, count = size + other, count + 1
    return count


def _shard_size(entry: ShardEntry) -> int:
    return entry.rows + entry.documents + entry.echoes


def join_shards(old: Sequence[Shard], vectors: Sequence[NDArray[np.generic]], task: EmbeddingTask) -> EmbeddingTask:
    """Write old shards and a new one as one shard beside the new one, and return it."""
    new = task.cut.open()
    path = task.cut.path.with_name("joined.passages")
    joined = task._replace(cut=FinishedShard(path, _join_passages([*old, new], path)))
    dimension = int(vectors[0].shape[1])
    with VectorWriter(joined.out, task.storage) as file:
        for rows in (*vectors, open_vectors(task.out, dimension, len(new), task.storage)):
            file.add(rows.astype(np.float32))
    return joined


def _join_passages(shards: Sequence[Shard], path: Path) -> ShardSummary:
    columns = list(zip(*(shard.sections() for shard in shards), strict=True))
    with SectionWriter(path, PASSAGES_KIND) as file:
        for number, parts in enumerate(columns):
            file.begin()
            file.write(_join_ends(parts) if number in (2, 4) else np.concatenate(parts))
    passages, documents, echoes = (sum(map(len, columns[i])) for i in (0, 3, 5))
    return ShardSummary(passages, documents, echoes, 0, file.size, file.digest)


def _join_ends(parts: Sequence[Ints]) -> Ints:
    """Join lists of ends, each of which begins at 0."""
    found, last = [np.zeros(1, np.int64)], 0
    for ends in parts:
        found.append(ends[1:] + last)
        last += int(ends[-1])
    return np.concatenate(found)
