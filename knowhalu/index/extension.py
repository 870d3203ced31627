"""The parts of an index folder beside its vectors: made where they are missing, kept where they fit, checked with the index.

A part is about a run of shards and lies in `lexical/<hash>/` or `late/<hash>/`, named by the hash of these shards. Shards never
change, so neither do their parts: what is added needs a part for the new rows alone, what is deleted needs none, since its rows
are known from the manifest and never shown. A part of other shards is not so much as looked at.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, get_args

from knowhalu.errors import IndexFormatError
from knowhalu.index.container import Ints
from knowhalu.index.manifest import read_stable_manifest
from knowhalu.index.part import IndexPart, PartKind, PartManifest
from knowhalu.index.passages import PassageRows, Passages, PassageSlice, open_store
from knowhalu.index.transaction import lock_index

PART_KINDS: tuple[PartKind, ...] = get_args(PartKind)


class ShardRows(NamedTuple):
    """A shard as its parts see it: the hash of its passages, and how many there are."""

    content: str
    rows: int


class ShardRun(NamedTuple):
    """Neighbouring shards, from row `first` of the index on: the hash of them all, and how many shards and rows they are."""

    content: str
    shards: int
    first: int
    rows: int

    @property
    def name(self) -> str:
        """Return the name of the folder of a part about these shards."""
        return self.content[:16]


class StoredPassages(NamedTuple):
    """The passages of an index, and the shards that they lie in; `deleted` rows are sorted, `seal` names its state."""

    folder: Path
    passages: Passages
    shards: tuple[ShardRows, ...]
    deleted: Ints
    seal: str = ""


class PartState(NamedTuple):
    """What an index folder has of a kind of parts: the rows they cover, their bytes, their encoder, and what is wrong."""

    kind: PartKind
    covered: int
    size: int
    encoder: str = ""
    problem: str = ""


def open_stored_passages(folder: Path) -> StoredPassages:
    """Open the passages of an index without its vectors; raises IndexFormatError where it is missing or damaged."""
    folder = Path(folder)
    manifest = read_stable_manifest(folder)
    store = open_store(folder, manifest)
    shards = (ShardRows(manifest.files[s.passages].sha256, s.rows) for s in manifest.shards)
    return StoredPassages(folder, store, tuple(s for s in shards if s.rows), store.edits.rows, manifest.seal)


def _runs(stored: StoredPassages, shard: int, first: int) -> Iterator[ShardRun]:
    """Yield the runs that begin at a shard, each longer than the one before."""
    digest, rows = hashlib.sha256(), 0
    for count, (content, more) in enumerate(stored.shards[shard:], 1):
        digest.update(content.encode())
        rows += more
        yield ShardRun(digest.hexdigest(), count, first, rows)


def _part_folder(stored: StoredPassages, kind: PartKind) -> Path:
    home = stored.folder / kind
    if home.is_symlink():
        raise IndexFormatError(f"{home}: leads out of the index folder. Put the folder itself there")
    return home


def covered_runs(stored: StoredPassages, kind: PartKind) -> list[ShardRun]:
    """Return the runs that have a part, from the first row on without a gap; of two that begin together, the longer."""
    home, found, shard, first = _part_folder(stored, kind), list[ShardRun](), 0, 0
    there = {path.name for path in home.iterdir()} if home.is_dir() else set()
    while there and (fitting := [run for run in _runs(stored, shard, first) if run.name in there]):
        found.append(fitting[-1])
        shard, first = shard + fitting[-1].shards, first + fitting[-1].rows
    return found


def open_parts(stored: StoredPassages, kind: PartKind) -> list[IndexPart]:
    """Open the parts of all rows; raises IndexFormatError where one is missing, damaged or out of date."""
    runs = covered_runs(stored, kind)
    rows, total = sum(run.rows for run in runs), len(stored.passages)
    if rows < total:
        made = (stored.folder / kind).is_dir()
        why = f"was changed since its {kind} part was made, which covers {rows:,} of {total:,}" if made else f"has no {kind} part"
        cure = f"{'Bring it up to date' if made else 'Make it'} with `knowhalu index extend {stored.folder} --{kind}`"
        raise IndexFormatError(f"{stored.folder}: this index {why}. {cure}")
    return [IndexPart(stored.folder / kind / run.name, kind, run.content) for run in runs]


def extend_index(
    stored: StoredPassages,
    kind: PartKind,
    build: Callable[[PassageRows, Path, str], PartManifest],
    fits: Callable[[IndexPart], bool] = lambda part: True,
) -> int:
    """Build what is missing, damaged, out of date or unfit of a kind of parts, and return how many passages were read for it.

    Small parts are joined with what comes after them, so that many small additions leave few. Parts of other rows are removed.
    An index that was changed since it was opened is opened again. Raises IndexFormatError where another process is changing
    the index.
    """
    with lock_index(stored.folder):
        if stored.seal and stored.seal != read_stable_manifest(stored.folder).seal:
            stored = open_stored_passages(stored.folder)
        home = _part_folder(stored, kind)
        home.mkdir(exist_ok=True)
        kept, built = _reusable_runs(stored, kind, fits), 0
        last = kept[-1] if kept else ShardRun("", 0, 0, 0)
        first = last.first + last.rows
        if first < len(stored.passages):
            *_, rest = _runs(stored, sum(run.shards for run in kept), first)
            build(PassageSlice(stored.passages, first, rest.rows), home / rest.name, rest.content)
            kept, built = [*kept, rest], rest.rows
        known = {run.name for run in kept}
        for path in home.iterdir():
            if path.name not in known and path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
        return built


def _reusable_runs(stored: StoredPassages, kind: PartKind, fits: Callable[[IndexPart], bool]) -> list[ShardRun]:
    """Return the runs whose parts stay as they are."""
    kept = list[ShardRun]()
    for run in covered_runs(stored, kind):
        try:
            if not fits(IndexPart(stored.folder / kind / run.name, kind, run.content)):
                break
        except IndexFormatError:
            break
        kept.append(run)
    left = len(stored.passages) - sum(run.rows for run in kept)
    while kept and left and kept[-1].rows <= left:
        left += kept.pop().rows
    return kept


def part_states(stored: StoredPassages) -> list[PartState]:
    """Tell what the index has of each kind of parts; none of a kind that it was never extended by."""
    return [_part_state(stored, kind) for kind in PART_KINDS if (stored.folder / kind).is_dir()]


def _part_state(stored: StoredPassages, kind: PartKind) -> PartState:
    size = sum(path.stat().st_size for path in (stored.folder / kind).rglob("*.bin"))
    try:
        runs = covered_runs(stored, kind)
        heads = [IndexPart(stored.folder / kind / run.name, kind, run.content).head for run in runs]
    except IndexFormatError as error:
        return PartState(kind, 0, size, problem=str(error))
    encoders = sorted({str(head.settings["encoder"]) for head in heads if "encoder" in head.settings})
    return PartState(kind, sum(run.rows for run in runs), size, ", ".join(encoders))


def verify_parts(folder: Path) -> list[str]:
    """Check every byte of the parts in an index folder, those that are out of date too, and list what is wrong."""
    found: list[str] = []
    for kind in PART_KINDS:
        home = folder / kind
        for path in sorted(home.iterdir()) if home.is_dir() and not home.is_symlink() else ():
            try:
                part = IndexPart(path, kind)
                if part.head.content[:16] != path.name:
                    raise IndexFormatError(f"{path}: is a part under a wrong name. {part.remedy}")
                found += part.problems()
            except IndexFormatError as error:
                found.append(str(error))
    return found
