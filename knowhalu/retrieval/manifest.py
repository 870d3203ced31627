"""The manifest of an index: what it holds, how it was made, and the size and sha256 of every file."""

import hashlib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from knowhalu.errors import IndexFormatError
from knowhalu.retrieval.store import FILES

MANIFEST = "manifest.json"
VECTORS = "vectors.faiss"
FORMAT: Literal[1] = 1
LARGEST = 2**20
"""Bytes of the largest manifest that is read."""
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class FileEntry(_Part):
    """Size in bytes and sha256 of one file."""

    size: int = Field(ge=0)
    sha256: Digest


class EmbedderEntry(_Part):
    """The embedder that made the vectors."""

    name: str
    fingerprint: str
    dimension: int = Field(ge=1, le=65536)


class Chunking(_Part):
    """How documents become passages: at most `words` words each (0 keeps documents whole), `overlap` shared by neighbours.

    With `sections`, passages end where a section does, and its path stands in their title. With `titles`, the title stands
    before the text when it is embedded. An embedder reads only so many tokens (MiniLM 256, about 180 English words); of a
    longer passage it embeds the beginning.
    """

    words: int = Field(default=100, ge=0)
    overlap: int = Field(default=0, ge=0)
    sections: bool = True
    titles: bool = True


class Counts(_Part):
    """How many documents and passages there are, and how many passages were dropped since they were there before."""

    documents: Count
    passages: Count
    duplicates: int = Field(ge=0)


class Manifest(_Part):
    """The head of an index folder."""

    format: Literal[1] = FORMAT
    created_by: str
    embedder: EmbedderEntry
    metric: Literal["inner_product"] = "inner_product"
    factory: Literal["Flat"] = "Flat"
    counts: Counts
    chunking: Chunking
    files: dict[str, FileEntry]
    seal: str = ""

    def sealed(self) -> "Manifest":
        """Return the manifest with the sha256 of all its other fields in `seal`."""
        return self.model_copy(update={"seal": self._digest()})

    def _digest(self) -> str:
        return hashlib.sha256(self.model_dump_json(exclude={"seal"}).encode()).hexdigest()

    def is_sealed(self) -> bool:
        """Tell whether nothing was changed since the manifest was sealed."""
        return self.seal == self._digest()

    def to_bytes(self) -> bytes:
        """Return the only spelling in which a manifest is written."""
        return self.model_dump_json(indent=1).encode() + b"\n"


def hash_file(path: Path) -> FileEntry:
    """Return size and sha256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return FileEntry(size=path.stat().st_size, sha256=digest)


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of an index folder; raises IndexFormatError with the cure."""
    path = folder / MANIFEST
    if not path.is_file():
        raise IndexFormatError(f"{folder}: no index here ({MANIFEST} is missing). Build one with `knowhalu index build`")
    if path.stat().st_size > LARGEST:
        raise IndexFormatError(f"{path}: over {LARGEST} bytes, which no manifest has. Rebuild the index")
    data = path.read_bytes()
    try:
        manifest = Manifest.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        at = ".".join(map(str, first["loc"])) or "the file"
        raise IndexFormatError(
            f"{path}: {at}: {first['msg']}. It is damaged or of another version (this one reads format {FORMAT}): "
            "copy the index again, or rebuild it"
        ) from error
    if not manifest.is_sealed() or manifest.to_bytes() != data:
        raise IndexFormatError(f"{path}: was changed after it was written. Copy the index again, or rebuild it")
    if set(manifest.files) != {*FILES, VECTORS}:
        raise IndexFormatError(f"{path}: lists other files than an index has ({', '.join(sorted(manifest.files))}). Rebuild it")
    return manifest


def check_sizes(folder: Path, manifest: Manifest) -> None:
    """Raise IndexFormatError where a file is missing, lies outside the folder or has another size."""
    for name, entry in manifest.files.items():
        path = folder / name
        if not path.is_file():
            raise IndexFormatError(f"{path}: missing. Copy the index again, or rebuild it")
        if path.resolve().parent != folder.resolve():
            raise IndexFormatError(f"{path}: leads out of the index folder. Put the file itself there")
        if (size := path.stat().st_size) != entry.size:
            raise IndexFormatError(f"{path}: has {size} bytes, not {entry.size}. Copy the index again, or rebuild it")
