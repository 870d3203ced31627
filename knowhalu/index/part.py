"""A searchable part of an index beside its vectors: a sealed sub-folder of plain number files, opened as memory maps.

Every file holds one array, little-endian, without a head: its type and shape stand in the part's own `part.json`, with its
size and sha256, and must fit the file before a byte of it is used. Nothing is unpickled and no name leads out of the folder.
"""

import hashlib
import math
import os
import shutil
import uuid
from pathlib import Path
from types import TracebackType
from typing import IO, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from knowhalu.errors import IndexFormatError

PART_MANIFEST_FILE = "part.json"
PartKind = Literal["lexical", "late"]
MAX_PART_MANIFEST_BYTES = 2**16
"""Bytes of the largest head that is read."""


class _PartEntry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ArrayEntry(_PartEntry):
    """Type, shape and sha256 of one array file."""

    type: Literal["u1", "<i4", "<i8", "<u8", "<f4"]
    shape: tuple[Annotated[int, Field(ge=0)], ...] = Field(min_length=1, max_length=2, strict=False)
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

    @property
    def size(self) -> int:
        """Return the bytes that the array takes."""
        return math.prod(self.shape) * np.dtype(self.type).itemsize


class PartManifest(_PartEntry):
    """What a part is, what it was made from, and its arrays.

    `content` is the hash of the shards whose passages it holds; `settings` is what decides how it is searched.
    """

    format: Literal[1] = 1
    kind: PartKind
    content: str
    passages: Annotated[int, Field(ge=0)]
    settings: dict[str, str | int | float]
    arrays: dict[Annotated[str, Field(pattern=r"^[a-z]+$")], ArrayEntry]
    seal: str = ""

    def digest(self) -> str:
        """Return the sha256 of all fields but the seal."""
        return hashlib.sha256(self.model_dump_json(exclude={"seal"}).encode()).hexdigest()


class PartWriter:
    """Write a part beside its place; it takes its name when it is complete, and a killed build leaves none."""

    def __init__(self, folder: Path, kind: PartKind) -> None:
        self.folder, self.kind = Path(folder), kind
        self.work = self.folder.with_name(f".{self.folder.name}.building-{uuid.uuid4().hex[:12]}")
        self.work.mkdir(parents=True)
        self._files: dict[str, IO[bytes]] = {}
        self._forms: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._hashes: dict[str, Any] = {}

    def add(self, name: str, rows: NDArray[Any], kind: str) -> None:
        """Append rows to an array; every call for one name has the same type and row shape."""
        if name not in self._files:
            self._files[name] = (self.work / f"{name}.bin").open("wb")
            self._forms[name], self._hashes[name] = (kind, (0, *rows.shape[1:])), hashlib.sha256()
        data = np.ascontiguousarray(rows, dtype=kind).tobytes()
        self._files[name].write(data)
        self._hashes[name].update(data)
        known, (count, *rest) = self._forms[name]
        self._forms[name] = known, (count + len(rows), *rest)

    def finish(self, content: str, passages: int, settings: dict[str, str | int | float]) -> PartManifest:
        """Bring all bytes to disk, seal them and put the part in its place, where it replaces an older one."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        arrays = {
            name: ArrayEntry(type=kind, shape=shape, sha256=self._hashes[name].hexdigest())  # type: ignore[arg-type]
            for name, (kind, shape) in sorted(self._forms.items())
        }
        head = PartManifest(kind=self.kind, content=content, passages=passages, settings=settings, arrays=arrays)
        head = head.model_copy(update={"seal": head.digest()})
        with (self.work / PART_MANIFEST_FILE).open("wb") as file:
            file.write(_serialize_manifest(head))
            file.flush()
            os.fsync(file.fileno())
        if self.folder.exists():
            os.replace(self.folder, self.work.with_name(f"{self.work.name}-old"))
        os.replace(self.work, self.folder)
        for left in self.folder.parent.glob(f".{self.folder.name}.building-*"):
            shutil.rmtree(left, ignore_errors=True)
        return head

    def __enter__(self) -> "PartWriter":
        """Return the writer."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close all files; what was not finished is removed."""
        for file in self._files.values():
            file.close()
        shutil.rmtree(self.work, ignore_errors=True)


def _serialize_manifest(head: PartManifest) -> bytes:
    return head.model_dump_json(indent=1).encode() + b"\n"


class IndexPart:
    """An opened part: its manifest, and its arrays as read-only memory maps.

    Raises IndexFormatError where it is missing, damaged, of another kind or made from another index than `content` says.
    """

    def __init__(self, folder: Path, kind: PartKind, content: str | None = None) -> None:
        self.folder, self.cure = Path(folder), f"Make it again with `knowhalu index extend FOLDER --{kind}`"
        self.head = self._read(kind)
        if content is not None and self.head.content != content:
            raise IndexFormatError(f"{self.folder}: was made from other passages than the index has now. {self.cure}")
        self._check_files()

    def _read(self, kind: PartKind) -> PartManifest:
        path = self.folder / PART_MANIFEST_FILE
        if not path.is_file() or self.folder.is_symlink():
            raise IndexFormatError(f"{self.folder}: this index has no {kind} part. {self.cure}")
        if path.stat().st_size > MAX_PART_MANIFEST_BYTES:
            raise IndexFormatError(f"{path}: over {MAX_PART_MANIFEST_BYTES} bytes, which no head of a part has. {self.cure}")
        data = path.read_bytes()
        try:
            head = PartManifest.model_validate_json(data)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            at = ".".join(map(str, first["loc"])) or "the file"
            raise IndexFormatError(f"{path}: {at}: {first['msg']}. It is damaged or of another version. {self.cure}") from error
        if head.seal != head.digest() or _serialize_manifest(head) != data:
            raise IndexFormatError(f"{path}: was changed after it was written. {self.cure}")
        if head.kind != kind:
            raise IndexFormatError(f"{path}: is a {head.kind} part, not a {kind} one. {self.cure}")
        return head

    def _check_files(self) -> None:
        for name, entry in self.head.arrays.items():
            path = self.folder / f"{name}.bin"
            if not path.is_file() or path.is_symlink():
                raise IndexFormatError(f"{path}: missing. {self.cure}")
            if (size := path.stat().st_size) != entry.size:
                raise IndexFormatError(f"{path}: has {size} bytes, not {entry.size}. {self.cure}")

    def array(self, name: str, kind: str, *shape: int | None) -> NDArray[Any]:
        """Map an array; raises IndexFormatError unless it has this type and shape (None: any length)."""
        entry = self.head.arrays.get(name)
        fits = entry is not None and entry.type == kind and len(entry.shape) == len(shape)
        if entry is None or not fits or any(w not in (None, s) for w, s in zip(shape, entry.shape, strict=True)):
            raise IndexFormatError(f"{self.folder}: {name} is not of the form that this part needs. {self.cure}")
        if not entry.size:
            return np.zeros(entry.shape, dtype=kind)
        mapped: NDArray[Any] = np.memmap(self.folder / f"{name}.bin", dtype=kind, mode="r", shape=entry.shape)
        return mapped.view(np.ndarray)

    def problems(self) -> list[str]:
        """Hash every byte and name the files that have changed."""
        found = []
        for name, entry in self.head.arrays.items():
            with (self.folder / f"{name}.bin").open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != entry.sha256:
                    found.append(f"{file.name}: its bytes have changed since the index was built (sha256 differs). {self.cure}")
        known = {PART_MANIFEST_FILE, *(f"{name}.bin" for name in self.head.arrays)}
        return found + [f"{p}: does not belong to the index" for p in sorted(self.folder.iterdir()) if p.name not in known]
