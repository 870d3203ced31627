"""A searchable part of an index next to its vectors: a sealed folder of arrays, opened as memory maps, and of posting lists.

Every array is a file of `index/container.py` with one section; its type, shape and sha256 are in the part's own `part.json` and
must fit the file before a byte of it is used. Parts of format 1 hold the same bytes without a head.
"""

import contextlib
import math
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from knowhalu.errors import IndexFormatError
from knowhalu.index.container import HEAD_BYTES, SectionFile, SectionWriter, hash_file
from knowhalu.index.manifest import Count, Digest, ManifestEntry, SealedManifest, check_file, read_sealed

PART_MANIFEST_FILE = "part.json"
PART_FORMAT: Literal[2] = 2
PartKind = Literal["lexical", "late"]
MAX_PART_MANIFEST_BYTES = 2**16
"""Size limit of `part.json`."""


class ArrayEntry(ManifestEntry):
    """Type, shape and sha256 of one array."""

    type: Literal["u1", "<i4", "<i8", "<u8", "<f4"]
    shape: tuple[Annotated[int, Field(ge=0)], ...] = Field(min_length=1, max_length=2, strict=False)
    sha256: Digest

    @property
    def size(self) -> int:
        """Return the bytes that the array takes."""
        return math.prod(self.shape) * np.dtype(self.type).itemsize


class PartManifest(SealedManifest):
    """The kind of a part, what it was made from, and its arrays.

    `content` is the hash of the shards whose passages it covers; `settings` decide how it is searched.
    """

    format: Literal[1, 2] = PART_FORMAT
    kind: PartKind
    content: str
    passages: Count
    settings: dict[str, str | int | float]
    arrays: dict[Annotated[str, Field(pattern=r"^[a-z]+$")], ArrayEntry]
    seal: str = ""

    @property
    def head_bytes(self) -> int:
        """Return the size of the head of each array file."""
        return HEAD_BYTES if self.format == PART_FORMAT else 0


class PartWriter:
    """Write a part to a temporary folder and rename it when it is complete; a killed build leaves no part."""

    def __init__(self, folder: Path, kind: PartKind) -> None:
        self.folder, self.kind = Path(folder), kind
        self.work = self.folder.with_name(f".{self.folder.name}.building-{uuid.uuid4().hex[:12]}")
        self.work.mkdir(parents=True)
        self._stack = contextlib.ExitStack()
        self._files: dict[str, SectionWriter] = {}
        self._forms: dict[str, tuple[str, tuple[int, ...]]] = {}

    def add(self, name: str, rows: NDArray[Any], kind: str) -> None:
        """Append rows to an array; every call for one name has the same type and row shape."""
        if name not in self._files:
            self._files[name] = self._stack.enter_context(SectionWriter(self.work / f"{name}.bin", kind))
            self._files[name].begin()
            self._forms[name] = kind, (0, *rows.shape[1:])
        self._files[name].write(np.ascontiguousarray(rows, dtype=kind))
        kind, (count, *rest) = self._forms[name]
        self._forms[name] = kind, (count + len(rows), *rest)

    def finish(self, content: str, passages: int, settings: dict[str, str | int | float]) -> PartManifest:
        """Sync all bytes to disk, seal them and rename the part, which replaces an older one."""
        self._stack.close()
        arrays = {
            name: ArrayEntry(type=kind, shape=shape, sha256=self._files[name].digest)  # type: ignore[arg-type]
            for name, (kind, shape) in sorted(self._forms.items())
        }
        manifest = PartManifest(kind=self.kind, content=content, passages=passages, settings=settings, arrays=arrays).sealed()
        manifest.write(self.work / PART_MANIFEST_FILE)
        if self.folder.exists():
            os.replace(self.folder, self.work.with_name(f"{self.work.name}-old"))
        os.replace(self.work, self.folder)
        for leftover in self.folder.parent.glob(f".{self.folder.name}.building-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        return manifest

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, trace)
        shutil.rmtree(self.work, ignore_errors=True)


class IndexPart:
    """An opened part: its manifest, and its arrays as read-only memory maps.

    Raises IndexFormatError where it is missing, damaged, of another kind or made from other passages than `content` names.
    """

    def __init__(self, folder: Path, kind: PartKind, content: str | None = None) -> None:
        self.folder, self.remedy = Path(folder), f"Build it again with `knowhalu index extend FOLDER --{kind}`"
        path = self.folder / PART_MANIFEST_FILE
        if not path.is_file() or self.folder.is_symlink():
            raise IndexFormatError(f"{self.folder}: this index has no {kind} part. {self.remedy}")
        self.head = read_sealed(path, PartManifest, MAX_PART_MANIFEST_BYTES, self.remedy)
        if self.head.kind != kind:
            raise IndexFormatError(f"{path}: is a {self.head.kind} part, not a {kind} one. {self.remedy}")
        if content is not None and self.head.content != content:
            raise IndexFormatError(f"{self.folder}: was made from other passages than the index has now. {self.remedy}")
        for name, entry in self.head.arrays.items():
            check_file(self._path(name), entry.size + self.head.head_bytes, self.remedy)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.bin"

    def array(self, name: str, kind: str, *shape: int | None) -> NDArray[Any]:
        """Map an array; raises IndexFormatError unless it has this type and shape (None: any length)."""
        entry = self.head.arrays.get(name)
        fits = entry is not None and entry.type == kind and len(entry.shape) == len(shape)
        if entry is None or not fits or any(w not in (None, s) for w, s in zip(shape, entry.shape, strict=True)):
            raise IndexFormatError(f"{self.folder}: {name} does not have the type and shape that this part needs. {self.remedy}")
        return self._map(name, entry)

    def _map(self, name: str, entry: ArrayEntry) -> NDArray[Any]:
        if self.head.head_bytes:
            numbers = SectionFile(self._path(name), entry.type, entry.sha256, self.remedy).numbers(0, np.dtype(entry.type))
        elif entry.size:
            numbers = np.memmap(self._path(name), dtype=entry.type, mode="r").view(np.ndarray)
        else:
            numbers = np.zeros(0, dtype=entry.type)
        if numbers.size != math.prod(entry.shape):
            raise IndexFormatError(f"{self._path(name)}: does not hold an array of the shape {entry.shape}. {self.remedy}")
        return numbers.reshape(entry.shape)

    def problems(self) -> list[str]:
        """Hash every byte and name the files that have changed."""
        problems = []
        for name, entry in self.head.arrays.items():
            try:
                self._map(name, entry)
            except IndexFormatError as error:
                problems.append(str(error))
            path = self._path(name)
            if hash_file(path, self.head.head_bytes) != entry.sha256:
                problems.append(f"{path}: its bytes have changed since the index was built (sha256 differs). {self.remedy}")
        known = {PART_MANIFEST_FILE, *(f"{name}.bin" for name in self.head.arrays)}
        return problems + [f"{p}: does not belong to the index" for p in sorted(self.folder.iterdir()) if p.name not in known]


POSTING_TYPE = np.dtype([("key", "<u8"), ("row", "<i4"), ("count", "u1")])
POSTINGS_PER_RUN = 2**23
"""Postings held in memory before they are sorted and written as a run: 109 MB."""
_NO_POSTINGS = np.zeros(0, dtype=POSTING_TYPE)


class PostingRuns:
    """Sort more postings (key, row, count) than fit in memory: take them by row, give them back ordered by key, then row.

    Keys spread over all 64-bit numbers. Memory holds about one run of `size` postings, which does not change the result.
    """

    def __init__(self, folder: Path, size: int = POSTINGS_PER_RUN) -> None:
        self.folder, self._size = folder, size
        self._pending: list[NDArray[np.void]] = []
        self._count = 0
        self._files: list[Path] = []
        folder.mkdir()

    def add(self, keys: NDArray[np.uint64], rows: Any, counts: Any) -> None:
        """Add postings: a row and a count for each key, or one for all."""
        postings = np.empty(len(keys), dtype=POSTING_TYPE)
        postings["key"], postings["row"], postings["count"] = keys, rows, counts
        self._pending.append(postings)
        self._count += len(postings)
        if self._count >= self._size:
            self._flush()

    def _flush(self) -> None:
        run = np.concatenate(self._pending or [_NO_POSTINGS])
        self._pending, self._count = [], 0
        path = self.folder / f"{len(self._files)}.bin"
        run[np.argsort(run["key"], kind="stable")].tofile(path)
        self._files.append(path)

    def merged(self) -> Iterator[NDArray[np.void]]:
        """Yield all postings in slices of about a run; all postings of a key are in one slice."""
        if self._count or not self._files:
            self._flush()
        runs = [np.memmap(path, dtype=POSTING_TYPE, mode="r") if path.stat().st_size else _NO_POSTINGS for path in self._files]
        bounds = [np.uint64(i * 2**64 // len(runs)) for i in range(1, len(runs))]
        cuts = [[0, *(int(np.searchsorted(run["key"], b)) for b in bounds), len(run)] for run in runs]
        for i in range(len(runs)):
            postings = np.concatenate([run[cut[i] : cut[i + 1]] for run, cut in zip(runs, cuts, strict=True)])
            # the runs are in the order of their rows, so a stable sort by key alone keeps the rows of a key ascending
            yield postings[np.argsort(postings["key"], kind="stable")]


def write_posting_lists(out: PartWriter, runs: PostingRuns) -> None:
    """Write postings as arrays: ascending `keys`, `ends` of their lists, and `rows` and `counts` of all lists concatenated.

    The files of the runs are removed.
    """
    total = 0
    out.add("ends", np.zeros(1), "<i8")
    for postings in runs.merged():
        keys, starts = np.unique(postings["key"], return_index=True)
        out.add("keys", keys, "<u8")
        out.add("ends", total + np.append(starts, len(postings))[1:], "<i8")
        out.add("rows", postings["row"], "<i4")
        out.add("counts", postings["count"], "u1")
        total += len(postings)
    shutil.rmtree(runs.folder)
