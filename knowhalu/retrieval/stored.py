"""An index folder as its parts see it: its passages by row, the stretches of rows that never change, and the deleted rows.

A part, lexical or late, has one sub-folder for each stretch, `lexical/<stretch>/`, so that what is added to an index needs a
part for the new rows alone.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from knowhalu.errors import IndexFormatError
from knowhalu.retrieval.manifest import check_sizes, read_manifest
from knowhalu.retrieval.part import Kind, Part, PartManifest, Passages
from knowhalu.retrieval.store import PassageStore
from knowhalu.types import Passage


class Stretch(NamedTuple):
    """Rows that belong together: a name for folders, the hash of what they hold, and how many there are."""

    name: str
    content: str
    rows: int


class Stored(NamedTuple):
    """The passages of an index; `stretches` cover all rows one after the other."""

    folder: Path
    passages: Passages
    stretches: tuple[Stretch, ...]
    deleted: tuple[int, ...] = ()


def open_stored(folder: Path) -> Stored:
    """Open the passages of an index without its vectors; raises IndexFormatError where it is missing or damaged."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    check_sizes(folder, manifest)
    counts = manifest.counts
    passages = PassageStore(folder, counts.passages, counts.documents)
    return Stored(folder, passages, (Stretch("all", manifest.seal, counts.passages),))


class View:
    """Some rows of an index, counted from 0."""

    def __init__(self, passages: Passages, first: int, rows: int) -> None:
        self._passages, self._first, self._rows = passages, first, rows

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._rows

    def get(self, i: int, score: float = 0.0) -> Passage:
        """Return the passage of row `i` of the view with a score."""
        return self._passages.get(self._first + i, score)


def open_parts(stored: Stored, kind: Kind) -> list[Part]:
    """Open one part for each stretch; raises IndexFormatError where one is missing, damaged or out of date."""
    return [Part(stored.folder / kind / s.name, kind, s.content) for s in stored.stretches]


def extend(
    stored: Stored,
    kind: Kind,
    build: Callable[[Passages, Path, str], PartManifest],
    fits: Callable[[Part], bool] = lambda part: True,
) -> int:
    """Build the parts that are missing, damaged, out of date or unfit, and return how many; those of gone rows are removed."""
    home, first, built = stored.folder / kind, 0, 0
    home.mkdir(exist_ok=True)
    for stretch in stored.stretches:
        try:
            done = fits(Part(home / stretch.name, kind, stretch.content))
        except IndexFormatError:
            done = False
        if not done:
            build(View(stored.passages, first, stretch.rows), home / stretch.name, stretch.content)
            built += 1
        first += stretch.rows
    known = {stretch.name for stretch in stored.stretches}
    for path in home.iterdir():
        if path.name not in known and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
    return built


def verify_parts(stored: Stored) -> list[str]:
    """Check every byte of the parts that an index has, and list what is wrong."""
    found: list[str] = []
    for kind in ("lexical", "late"):
        if not (stored.folder / kind).is_dir():
            continue
        try:
            found += [problem for part in open_parts(stored, kind) for problem in part.problems()]
        except IndexFormatError as error:
            found.append(str(error))
        known = {stretch.name for stretch in stored.stretches}
        extra = (path for path in sorted((stored.folder / kind).iterdir()) if path.name not in known)
        found += [f"{path}: does not belong to the index" for path in extra]
    return found
