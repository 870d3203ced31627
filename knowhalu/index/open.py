"""Open the vectors, the FAISS file and the manifest of an index, and verify every byte."""

from pathlib import Path

import numpy as np

from knowhalu.errors import IndexFormatError
from knowhalu.index.container import ShardVectors, open_vectors
from knowhalu.index.extension import PART_KINDS, verify_parts
from knowhalu.index.faiss_file import FLAT, FaissFile
from knowhalu.index.manifest import (
    FAISS_FILE_PREFIX,
    INDEX_FILE_NAME,
    MANIFEST_FILE,
    Manifest,
    describe_file,
    read_stable_manifest,
)
from knowhalu.index.passages import PassageStore, open_store
from knowhalu.index.protocols import Embedder


def open_shard_vectors(folder: Path, manifest: Manifest) -> ShardVectors:
    """Open the vectors of all shards."""
    dimension, storage = manifest.embedder.dimension, manifest.storage
    opened = [
        open_vectors(folder / s.vectors, dimension, s.rows, storage, manifest.files[s.vectors].sha256) for s in manifest.shards
    ]
    return ShardVectors(opened, dimension)


def open_faiss(folder: Path, manifest: Manifest, store: PassageStore) -> FaissFile | None:
    """Open the FAISS file of an index; None where search is exact."""
    if manifest.factory == FLAT:
        return None
    name, rows = next((n for n in manifest.files if n.startswith(FAISS_FILE_PREFIX)), None), manifest.search.rows
    if name is None or not 0 < rows <= manifest.rows:
        raise IndexFormatError(
            f"{folder / MANIFEST_FILE}: lists no FAISS file for its factory {manifest.factory}. Rebuild the index"
        )
    dead = store.tombstones.rows
    return FaissFile(folder / name, rows, manifest.embedder.dimension, dead[: np.searchsorted(dead, rows)])


def check_embedder(folder: Path, manifest: Manifest, embedder: Embedder) -> None:
    """Raise IndexFormatError unless the embedder is the one that produced the vectors."""
    entry = manifest.embedder
    same = (entry.fingerprint, entry.dimension) == (embedder.fingerprint, embedder.dimension)
    if not same:
        raise IndexFormatError(
            f"{folder}: was built with the embedder {entry.name!r} ({entry.dimension} dimensions, {entry.fingerprint[:12]}), not "
            f"with {embedder.name!r} ({embedder.dimension} dimensions, {embedder.fingerprint[:12]}). "
            f"Open it with {entry.name!r}, or rebuild it with {embedder.name!r}"
        )


def read_index_info(folder: Path) -> Manifest:
    """Read the manifest of an index; raises IndexFormatError where there is none or a file has another size."""
    return read_stable_manifest(Path(folder))


def verify_index(folder: Path) -> list[str]:
    """Check every byte and count of an index folder and of its parts, and list the problems; none means intact."""
    folder = Path(folder)
    try:
        manifest = read_index_info(folder)
    except IndexFormatError as error:
        return [str(error)]
    problems = [
        f"{folder / name}: its bytes have changed since the index was built (sha256 differs)"
        for name, entry in manifest.files.items()
        if describe_file(folder / name) != entry
    ]
    for path in sorted(folder.iterdir()):
        if path.name not in {MANIFEST_FILE, *manifest.files, *PART_KINDS} or (path.name in PART_KINDS and path.is_symlink()):
            rest = "; the next change of the index removes it" if INDEX_FILE_NAME.fullmatch(path.name) else ""
            problems.append(f"{path}: does not belong to the index{rest}")
    problems += verify_parts(folder)
    try:
        store = open_store(folder, manifest)
        problems += store.problems()
        open_shard_vectors(folder, manifest)
        if not problems:
            open_faiss(folder, manifest, store)
    except IndexFormatError as error:
        problems.append(str(error))
    return problems
