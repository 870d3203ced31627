"""Merging a change into its base in one pass over the base's file, one weight in memory at a time.

The hashes are computed from the bytes that are merged. The result has the bytes that `Verifier.save` writes for the merged
model, so that files fitted to the one fit the other.
"""

import hashlib
import json
import math
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import torch
from torch import Tensor

from knowhalu.encoder.bases import TOKENIZER_FILE, WEIGHTS_FILE, Base, BaseFiles
from knowhalu.encoder.change import Change, read_change, refuse_other_base
from knowhalu.errors import ModelError

CHANGE_FILE = "change.safetensors"
PREFIX = "encoder.model."
"""What the verifier puts before the names of its encoder's weights."""
MAX_HEADER, MAX_TOKENIZER = 100_000_000, 100_000_000
"""Largest header of weights and largest tokenizer that are read, in bytes."""
_DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}

Progress = Callable[[int, int], None]
"""Called with the number of bytes that were read, and their total."""


class _Entry(NamedTuple):
    """A weight in a file of weights, with its place among the data."""

    name: str
    dtype: str
    shape: list[int]
    start: int
    end: int


class _HashingReader:
    """Read a file forwards, hash what is read, and report progress."""

    def __init__(self, file: IO[bytes], name: str, progress: Progress | None = None) -> None:
        self._file, self._name, self._progress = file, name, progress
        self._digest = hashlib.sha256()
        self.position, self.total = 0, 0

    def read(self, size: int) -> bytearray:
        """Read exactly `size` bytes; raises ModelError where the file ends before."""
        data = bytearray(size)
        view, done = memoryview(data), 0
        while done < size:
            block = self._file.read(min(size - done, 1 << 20))
            if not block:
                raise ModelError(f"{self._name}: is cut off after {self.position:,} bytes. Copy it again")
            view[done : done + len(block)] = block
            done += len(block)
            self._took(block)
        return data

    def hash_all(self) -> str:
        """Read the rest of the file, and return the sha256 of the whole."""
        while block := self._file.read(1 << 20):
            self._took(block)
        return self._digest.hexdigest()

    def _took(self, block: bytes) -> None:
        self._digest.update(block)
        self.position += len(block)
        if self._progress is not None:
            self._progress(self.position, max(self.total, self.position))


def merge_files(base: BaseFiles, path: Path, out: Path, progress: Progress | None = None) -> None:
    """Write the weights and the tokenizer of a verifier into the folder `out`: the change `path` applied to a base.

    Raises ModelError where the base or the change cannot be read or do not belong together.
    """
    change = read_change(path)
    try:
        with base.open(TOKENIZER_FILE) as file:
            tokenizer = file.read(MAX_TOKENIZER)
        refuse_other_base(path, change, Base(change.base.weights, hashlib.sha256(tokenizer).hexdigest()), base.place)
        (out / TOKENIZER_FILE).write_bytes(tokenizer)
        with base.open(WEIGHTS_FILE) as file, (out / WEIGHTS_FILE).open("wb") as target:
            reader, problem = _HashingReader(file, f"{base.place}, {WEIGHTS_FILE}", progress), None
            try:
                _merge_weights(reader, change, target)
            except (KeyError, RuntimeError, ValueError, TypeError, ModelError) as error:
                problem = error
            # a wrong hash is the better explanation of whatever went wrong
            refuse_other_base(path, change, Base(reader.hash_all(), change.base.tokenizer), base.place)
    except (zipfile.BadZipFile, zlib.error, EOFError, FileNotFoundError) as error:
        raise ModelError(f"{base.place}: cannot read the base ({error}). Fetch it again") from error
    if problem is not None:
        raise ModelError(f"{path}: its weights do not fit those of {base.place} ({problem!r})") from problem


def _merge_weights(reader: _HashingReader, change: Change, target: IO[bytes]) -> None:
    """Read the weights of the base, and write each where it belongs in the merged file."""
    stored = _read_entries(reader)
    heads = change.heads
    shapes = {name: entry.shape for entry in stored if (name := _merged_name(entry)) is not None}
    if missing := change.names - shapes.keys() - heads.keys():
        raise KeyError(min(missing))
    places = _write_header(target, shapes | {name: list(value.shape) for name, value in heads.items()})
    for entry in stored:
        data, name = reader.read(entry.end - entry.start), _merged_name(entry)
        if name is not None:
            weight = torch.frombuffer(data, dtype=_DTYPES[entry.dtype]).view(entry.shape)
            _write(target, places[name], change.applied(name, weight))
    for name, value in heads.items():
        _write(target, places[name], value)
    target.flush()
    os.fsync(target.fileno())  # the folder is renamed into place afterwards


def _read_entries(reader: _HashingReader) -> list[_Entry]:
    """Read the header of a file of weights: its entries in the order of their data; raises ValueError where it is damaged."""
    size = int.from_bytes(reader.read(8), "little")
    if size > MAX_HEADER:
        raise ValueError(f"a header of {size:,} bytes")
    header: Mapping[str, Any] = json.loads(reader.read(size))
    entries = [
        _Entry(name, about["dtype"], about["shape"], *about["data_offsets"])
        for name, about in header.items()
        if name != "__metadata__"
    ]
    entries.sort(key=lambda entry: entry.start)
    if [entry.start for entry in entries] != [0, *(entry.end for entry in entries)][: len(entries)]:
        raise ValueError("its weights overlap or leave gaps")
    reader.total = 8 + size + entries[-1].end
    return entries


def _merged_name(entry: _Entry) -> str | None:
    """Return the name that the verifier has for a weight of its base; None for weights that it does not use."""
    if entry.name.startswith("pooler.") or entry.name.endswith("position_ids"):
        return None
    return PREFIX + entry.name


def _write_header(target: IO[bytes], shapes: Mapping[str, list[int]]) -> dict[str, int]:
    """Write the header of a file of weights in fp16; return the position of each weight."""
    header: dict[str, Any] = {}
    end = 0
    for name in sorted(shapes):
        start, end = end, end + 2 * math.prod(shapes[name])
        header[name] = {"dtype": "F16", "shape": shapes[name], "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    target.write(len(text).to_bytes(8, "little") + text)
    return {name: 8 + len(text) + about["data_offsets"][0] for name, about in header.items()}


def _write(target: IO[bytes], position: int, weight: Tensor) -> None:
    target.seek(position)
    target.write(weight.half().contiguous().numpy().tobytes())
