"""Change an index without a rebuild: add, replace and delete documents, and join small shards."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import InputError
from knowhalu.index.build import (
    CREATED_BY,
    IndexRecipe,
    ProgressCallback,
    ShardFiles,
    embed_shards,
    name_shard_files,
    write_shards,
)
from knowhalu.index.container import Ints, SectionWriter, VectorWriter, open_vectors
from knowhalu.index.embedding import EmbeddingStage, EmbeddingTask, embed_locally, make_embedding_tasks
from knowhalu.index.manifest import (
    FAISS_FILE_PREFIX,
    FileEntry,
    IndexCounts,
    Manifest,
    ShardEntry,
    check_embedder,
    format_content_sum,
    open_shard_vectors,
    read_manifest,
)
from knowhalu.index.passages import PassageStore, is_in_sorted, open_store, resolve_deletions
from knowhalu.index.protocols import Embedder
from knowhalu.index.shard_file import PASSAGES_KIND, Section, Shard, ShardSummary, hash_occurrence
from knowhalu.index.sharding import FinishedShard
from knowhalu.index.transaction import IndexTransaction
from knowhalu.ingest.sources import SourceRecord
from knowhalu.io.keys import KEY_TYPE, find_keys, make_key


def manifest_recipe(manifest: Manifest) -> IndexRecipe:
    """Return the settings that an index was built with."""
    return IndexRecipe(manifest.embedder, manifest.chunking, manifest.wanted, manifest.storage, manifest.shard)


def describe_change(command: str, folder: Path) -> dict[str, Any]:
    """Describe a change of the present state of an index."""
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
    """Add documents to an index; a document replaces those with the same id.

    `on_replaced` gets the number of replaced documents. Records without an id of their own replace others only with `replace`;
    else this raises InputError. Work that was killed is resumed, as in a build. Raises IndexFormatError where the index was
    built with another embedder, is being changed by another process, or has unfinished work of another kind (`force` discards
    that), InputError where there is no document.
    """
    folder, watch = Path(folder).resolve(), progress or (lambda _: None)
    check_embedder(folder, read_manifest(folder), embedder)
    with IndexTransaction(folder, lambda: describe_change("add", folder), restart=force) as work:
        if work.published:
            return work.published
        manifest = read_manifest(folder)
        recipe, store = manifest_recipe(manifest), open_store(folder, manifest)
        old = store.shards
        check = None if replace else partial(_refuse_taken_ids, store)
        shards = write_shards(records, work, recipe, watch, old=old, check=check, first_document=store.documents)
        if not shards:
            raise InputError("the sources contain no document. Give a source with at least one text")
        tasks = make_embedding_tasks(shards, recipe.chunking, recipe.storage, store.documents)
        embed_shards(tasks, embedder, stage, watch)
        whole = PassageStore([*old, *(shard.open() for shard in shards)], store.tombstones)
        replaced = _find_replaced(whole, len(old))
        on_replaced(len(replaced))
        content = int(manifest.total, 16) + sum(shard.summary.content for shard in shards)
        joined = count_joinable_shards(manifest, shards[0].summary) if len(shards) == 1 else 0
        if joined:
            tasks = [join_shards(old[-joined:], open_shard_vectors(folder, manifest).shards[-joined:], tasks[0])]
        unchanged = manifest.shards[: len(manifest.shards) - joined]
        return _publish_change(work, manifest, whole, replaced, unchanged, name_shard_files(tasks), content)


def delete_documents(names: Sequence[str], folder: Path, *, force: bool = False) -> Manifest:
    """Delete documents from an index by their ids.

    Raises InputError, before any change, where the index lacks an id; IndexFormatError as `add_documents`.
    """
    folder = Path(folder).resolve()
    read_manifest(folder)
    try:
        ids = hashlib.sha256("\0".join(names).encode()).hexdigest()
    except UnicodeEncodeError as error:
        raise InputError(f"{folder}: has no document {error.object[error.start :]!r}. An id is UTF-8 text") from error
    with IndexTransaction(folder, lambda: {"command": "delete", "ids": ids}, restart=force) as work:
        if work.published:
            return work.published
        manifest = read_manifest(folder)
        store = open_store(folder, manifest)
        documents = find_documents(store, names)
        if missing := [name for name in dict.fromkeys(names) if not documents[name]]:
            raise InputError(f"{folder}: has no document {', '.join(map(repr, missing[:5]))}{' ...' * (len(missing) > 5)}")
        deleted = np.unique(np.array([n for numbers in documents.values() for n in numbers], np.int64))
        return _publish_change(work, manifest, store, deleted, manifest.shards, ShardFiles((), {}, {}), int(manifest.total, 16))


def _refuse_taken_ids(store: PassageStore, records: Sequence[SourceRecord]) -> None:
    """Raise InputError for a document without an id of its own whose file and line are the id of another in the index."""
    numbered = {record.id: record for record in records if record.numbered}
    existing = find_documents(store, list(numbered)) if numbered else {}
    if taken := next((name for name in existing if existing[name]), None):
        raise InputError(
            f"{numbered[taken].where}: has no id, and its file and line, {taken!r}, are the id of a document in the index. "
            "Name the field of the ids (--id-field), rename the file, or use --replace to replace such documents"
        )


def find_documents(store: PassageStore, names: Sequence[str]) -> dict[str, list[int]]:
    """Return the numbers of the documents of each id, without deleted ones."""
    known = {make_key(name): name for name in names}
    wanted = np.sort(np.array(list(known), KEY_TYPE))
    numbers: dict[str, list[int]] = {name: [] for name in names}
    first = 0
    for shard in store.shards:
        keys = shard.document_keys
        for i in find_keys(keys, wanted):
            if not is_in_sorted(np.array([first + i]), store.tombstones.documents)[0]:
                numbers[known[keys[i : i + 1].tobytes()]].append(first + int(i))
        first += len(keys)
    return numbers


def _find_replaced(store: PassageStore, old: int) -> Ints:
    """Return the documents that a document with the same id in the shards from `old` on replaces."""
    new = np.sort(np.concatenate([shard.document_keys for shard in store.shards[old:]]))
    repeated, replaced, last = np.unique(new[1:][new[1:] == new[:-1]]), list[int](), dict[bytes, int]()
    first = 0
    for number, shard in enumerate(store.shards):
        keys = shard.document_keys
        if number < old:
            existing = find_keys(keys, new) + first
            replaced += existing[~is_in_sorted(existing, store.tombstones.documents)].tolist()
        else:
            # of several new documents with one id, the last counts
            for i in find_keys(keys, repeated).tolist():
                key = keys[i : i + 1].tobytes()
                replaced += [last[key]] if key in last else []
                last[key] = first + i
        first += len(keys)
    return np.array(sorted(replaced), np.int64)


def _sum_content(store: PassageStore, documents: Ints) -> int:
    """Return the sum of the content hashes of some documents."""
    total = 0
    for shard in store.shards:
        for places, keys in ((shard.spans[:, :3], shard.keys), (shard.echo_places, shard.echo_keys)):
            for i in np.flatnonzero(is_in_sorted(places[:, 0], documents)):
                document, number, start = map(int, places[i])
                total += hash_occurrence(store.document(document)[0], number, start, keys[i : i + 1].tobytes())
    return total


def _publish_change(
    work: IndexTransaction,
    old: Manifest,
    store: PassageStore,
    deleted: Ints,
    unchanged: Sequence[ShardEntry],
    new: ShardFiles,
    content: int,
) -> Manifest:
    """Publish the next generation: the documents of `store` without those `deleted` now or before.

    Its shards are the `unchanged` and the `new` ones.
    """
    dead = np.union1d(store.tombstones.documents, deleted)
    edits = resolve_deletions(store.shards, dead)
    names = {name for shard in unchanged for name in (shard.passages, shard.vectors)}
    files = {n: e for n, e in old.files.items() if n in names or n.startswith(FAISS_FILE_PREFIX)} | new.files
    moves = dict(new.moves)
    name = None
    if len(dead):
        written = edits.write(work.folder / "edits")
        name = f"edits-{written.digest[:16]}.bin"
        files[name], moves["edits"] = FileEntry(size=written.size, sha256=written.digest), name
    places = sum(int(np.sum(~is_in_sorted(p[:, 0], dead))) for s in store.shards for p in (s.spans, s.echo_places))
    passages = len(store) - len(edits.rows)
    update = {
        "created_by": CREATED_BY,
        "generation": old.generation + 1,
        "counts": IndexCounts(documents=store.documents - len(dead), passages=passages, duplicates=places - passages),
        "shards": (*unchanged, *new.shards),
        "edits": name,
        "total": format_content_sum(content - _sum_content(store, deleted)),
        "files": dict(sorted(files.items())),
    }
    manifest = old.model_copy(update=update).sealed()
    work.publish(manifest, moves)
    return manifest


def count_joinable_shards(manifest: Manifest, summary: ShardSummary) -> int:
    """Return how many of the last shards are joined with a new one; never those that a FAISS file covers."""
    starts = list(accumulate((s.rows for s in manifest.shards), initial=0))
    size, count = summary.passages + summary.documents + summary.echoes, 0
    for entry, start in zip(reversed(manifest.shards), reversed(starts[:-1]), strict=True):
        other = entry.rows + entry.documents + entry.echoes
        if other > 2 * size or size + other > manifest.shard or start < manifest.search.rows:
            break
        size, count = size + other, count + 1
    return count


def join_shards(old: Sequence[Shard], vectors: Sequence[NDArray[np.generic]], task: EmbeddingTask) -> EmbeddingTask:
    """Write old shards and a new one as one shard next to the new one, and return its task."""
    new = task.shard.open()
    path = task.shard.path.with_name("joined.passages")
    joined = task._replace(shard=FinishedShard(path, _join_passages([*old, new], path)))
    dimension = int(vectors[0].shape[1])
    with VectorWriter(joined.out, task.storage) as file:
        for rows in (*vectors, open_vectors(task.out, dimension, len(new), task.storage)):
            file.add(rows.astype(np.float32))
    return joined


def _join_passages(shards: Sequence[Shard], path: Path) -> ShardSummary:
    columns = list(zip(*(shard.sections() for shard in shards), strict=True))
    for number in (Section.TEXT_ENDS, Section.NAME_ENDS):  # offsets, each list of which begins at 0
        shifts = accumulate((int(ends[-1]) for ends in columns[number][:-1]), initial=0)
        first, *others = (ends + shift for ends, shift in zip(columns[number], shifts, strict=True))
        columns[number] = (first, *(ends[1:] for ends in others))
    with SectionWriter(path, PASSAGES_KIND) as file:
        for sections in columns:
            file.begin()
            file.write(np.concatenate(sections))
    passages, documents, echoes = (sum(map(len, columns[i])) for i in (Section.KEYS, Section.DOCUMENT_KEYS, Section.ECHOES))
    return ShardSummary(passages, documents, echoes, 0, file.size, file.digest)
