"""Sealed manifests, and the manifest of an index: its contents, its settings, and the size and sha256 of every file.

Files are named by their content, so the files of two states of an index never collide: a change writes new files and then
replaces the manifest, which is the moment at which the index changes.
"""

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from knowhalu.errors import IndexFormatError
from knowhalu.index.container import HEAD_BYTES, ShardVectors, hash_file, open_vectors
from knowhalu.index.protocols import Embedder
from knowhalu.index.shard_file import CONTENT_MODULUS

MANIFEST_FILE = "manifest.json"
MANIFEST_FORMAT: Literal[2] = 2
MAX_MANIFEST_BYTES = 8 * 2**20
"""Size limit of `manifest.json`."""
INDEX_FILE_NAME = re.compile(r"(passages|vectors|edits|search)-([0-9a-f]{16})\.(bin|faiss)")
FAISS_FILE_PREFIX = "search"
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, lt=2**48)]


COPY_HINT = "Copy the index again, or rebuild it"


class ManifestEntry(BaseModel):
    """Base of everything in a manifest: immutable, strict types, no unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SealedManifest(ManifestEntry):
    """Base of the manifests of an index and of its parts: JSON with the sha256 of all other fields in `seal`."""

    if TYPE_CHECKING:
        seal: str  # declared last by each manifest, which keeps the order of the fields in the file

    def sealed(self) -> Self:
        """Return the manifest with its seal."""
        digest = hashlib.sha256(self.model_dump_json(exclude={"seal"}).encode()).hexdigest()
        return self.model_copy(update={"seal": digest})

    def to_bytes(self) -> bytes:
        """Return the only serialization that is accepted when a manifest is read."""
        return self.model_dump_json(indent=1).encode() + b"\n"

    def write(self, path: Path) -> None:
        """Write the manifest and sync it to disk."""
        with path.open("wb") as file:
            file.write(self.to_bytes())
            file.flush()
            os.fsync(file.fileno())


SealedT = TypeVar("SealedT", bound=SealedManifest)


def read_sealed(path: Path, kind: type[SealedT], limit: int, remedy: str) -> SealedT:
    """Read a manifest; raises IndexFormatError, which ends with the `remedy`, where it is too long, invalid or was changed."""
    if path.stat().st_size > limit:
        raise IndexFormatError(f"{path}: is larger than {limit} bytes, the limit of a manifest. {remedy}")
    data = path.read_bytes()
    try:
        manifest = kind.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        raise IndexFormatError(f"{path}: {field}: {first['msg']}. It is damaged or of another version. {remedy}") from error
    if manifest.sealed() != manifest or manifest.to_bytes() != data:
        raise IndexFormatError(f"{path}: was changed after it was written. {remedy}")
    return manifest


def check_file(path: Path, size: int, remedy: str) -> None:
    """Raise IndexFormatError where a file is missing, links out of its folder or has another size."""
    if not path.is_file():
        raise IndexFormatError(f"{path}: missing. {remedy}")
    if path.is_symlink() and path.resolve().parent != path.parent.resolve():
        raise IndexFormatError(f"{path}: leads out of the index folder. Put the file itself there. {remedy}")
    if (actual := path.stat().st_size) != size:
        raise IndexFormatError(f"{path}: has {actual} bytes, not {size}. {remedy}")


class FileEntry(ManifestEntry):
    """Size in bytes and sha256 of one file; the hash of a section file covers what follows its head, which repeats it."""

    size: Count
    sha256: Digest


class EmbedderEntry(ManifestEntry):
    """The embedder that produced the vectors."""

    name: str
    fingerprint: str
    dimension: int = Field(ge=1, le=65536)


class Chunking(ManifestEntry):
    """How documents are split: passages of at most `words` words (0 keeps documents whole), with `overlap` words shared.

    With `sections`, passages end where a section does, and its path is part of their title. With `titles`, the title is
    embedded before the text. An embedder truncates long texts (MiniLM at 256 tokens, about 180 English words).
    """

    words: int = Field(default=100, ge=0)
    overlap: int = Field(default=0, ge=0)
    sections: bool = True
    titles: bool = True


class IndexCounts(ManifestEntry):
    """Numbers of documents, of passages, and of passages dropped as duplicates."""

    documents: Count
    passages: Count
    duplicates: Count


class ShardEntry(ManifestEntry):
    """A shard: the names of its two files, and their counts."""

    passages: str
    vectors: str
    rows: Count
    documents: Count
    echoes: Count


class SearchParameters(ManifestEntry):
    """Effort of an approximate search; larger values are slower and find more.

    `refine` times `k` candidates are reranked by their stored vectors, `nprobe` lists of an IVF are scanned, and a graph is
    searched with a queue of `ef_search`.
    """

    nprobe: int = Field(default=16, ge=1)
    ef_search: int = Field(default=64, ge=1)
    refine: int = Field(default=4, ge=1)


class SearchEntry(ManifestEntry):
    """The source of candidates: "Flat" compares all vectors; other FAISS factories have a file of the first `rows` rows."""

    factory: str = "Flat"
    rows: Count = 0
    parameters: SearchParameters = SearchParameters()


class Manifest(SealedManifest):
    """The manifest of an index folder.

    `generation` counts the states since the index was built as a whole; `content` hashes embedder, chunking and all passages
    with their documents: it is equal for an index that was changed and one that was rebuilt from the same documents.
    """

    format: Literal[2] = MANIFEST_FORMAT
    created_by: str
    generation: int = Field(default=1, ge=1)
    content: Digest
    embedder: EmbedderEntry
    metric: Literal["inner_product"] = "inner_product"
    normalised: Literal[True] = True
    storage: Literal["float32", "float16"] = "float32"
    counts: IndexCounts
    chunking: Chunking
    shard: int = Field(ge=1)
    wanted: str = "auto"
    search: SearchEntry
    shards: tuple[ShardEntry, ...] = Field(strict=False)
    edits: str | None = None
    total: Digest
    files: dict[str, FileEntry]
    seal: str = ""

    @property
    def factory(self) -> str:
        """Return the FAISS factory that finds candidates."""
        return self.search.factory

    @property
    def rows(self) -> int:
        """Return the number of stored passages, dead ones included."""
        return sum(shard.rows for shard in self.shards)

    def sealed(self) -> Self:
        """Return the manifest with its content hash and its seal."""
        inputs = self.embedder.fingerprint, self.chunking.model_dump_json(), self.total
        content = hashlib.sha256("\n".join(inputs).encode()).hexdigest()
        return SealedManifest.sealed(self.model_copy(update={"content": content}))

    def names(self) -> set[str]:
        """Return the names of the files that the entries of the manifest refer to."""
        names = {name for shard in self.shards for name in (shard.passages, shard.vectors)}
        names |= {self.edits} if self.edits else set()
        return names | {name for name in self.files if name.startswith(FAISS_FILE_PREFIX) and self.factory != "Flat"}


def format_content_sum(content: int) -> str:
    """Return a sum of content hashes in the format of the manifest."""
    return f"{content % CONTENT_MODULUS:064x}"


def describe_file(path: Path) -> FileEntry:
    """Return size and sha256 of a file of an index."""
    return FileEntry(size=path.stat().st_size, sha256=hash_file(path, 0 if path.suffix == ".faiss" else HEAD_BYTES))


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of an index folder; raises IndexFormatError with the remedy."""
    path = folder / MANIFEST_FILE
    if not path.is_file():
        raise IndexFormatError(f"{folder}: no index here ({MANIFEST_FILE} is missing). Build one with `knowhalu index build`")
    manifest = read_sealed(path, Manifest, MAX_MANIFEST_BYTES, f"This version reads format {MANIFEST_FORMAT}. {COPY_HINT}")
    named = {n for n, e in manifest.files.items() if (m := INDEX_FILE_NAME.fullmatch(n)) and m[2] == e.sha256[:16]}
    if manifest.names() != named or set(manifest.files) != named:
        raise IndexFormatError(f"{path}: lists other files than an index has ({', '.join(sorted(manifest.files))}). {COPY_HINT}")
    return manifest


def read_index_info(folder: Path) -> Manifest:
    """Read the manifest of an index; raises IndexFormatError where there is none or a file is missing or has another size.

    It is read once more where the index was changed meanwhile.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    try:
        _check_files(folder, manifest)
    except IndexFormatError:
        if (again := read_manifest(folder)) == manifest:
            raise
        _check_files(folder, again)
        return again
    return manifest


def _check_files(folder: Path, manifest: Manifest) -> None:
    for name, entry in manifest.files.items():
        check_file(folder / name, entry.size, COPY_HINT)


def open_shard_vectors(folder: Path, manifest: Manifest) -> ShardVectors:
    """Open the vectors of all shards."""
    dimension, storage = manifest.embedder.dimension, manifest.storage
    opened = [
        open_vectors(folder / s.vectors, dimension, s.rows, storage, manifest.files[s.vectors].sha256) for s in manifest.shards
    ]
    return ShardVectors(opened, dimension)


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
