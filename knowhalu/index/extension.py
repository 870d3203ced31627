"""The lexical and late-interaction parts of an index folder: which rows they cover, building the missing ones, verification.

A part covers a run of shards and is the folder `lexical/<hash>/` or `late/<hash>/`, named by the hash of these shards. Shards
never change, so neither do their parts: added documents need a part for the new rows alone, deleted ones need none, since the
manifest names their rows. Parts of other shards are ignored.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, get_args

from knowhalu.errors import IndexFormatError
from knowhalu.index.container import Ints
from knowhalu.index.faiss_file import open_faiss
from knowhalu.index.manifest import INDEX_FILE_NAME, MANIFEST_FILE, describe_file, open_shard_vectors, read_index_info
from knowhalu.index.part import IndexPart, PartKind, PartManifest
from knowhalu.index.passages import PassageRows, Passages, PassageSlice, open_store
from knowhalu.index.transaction import lock_index

PART_KINDS: tuple[PartKind, ...] = get_args(PartKind)


class ShardRows(NamedTuple):
    """The hash of the passages of a shard, and their number."""

    content: str
    rows: int


class ShardRun(NamedTuple):
    """Consecutive shards, from row `first` of the index on: the hash of all of them, and their numbers of shards and rows."""

    content: str
    shards: int
    first: int
    rows: int

    @property
    def name(self) -> str:
        """Return the name of the folder of a part of these shards."""
        return self.content[:16]

    def open(self, stored: "StoredPassages", kind: PartKind) -> IndexPart:
        """Open the part of these shards."""
        return IndexPart(stored.folder / kind / self.name, kind, self.content)


class StoredPassages(NamedTuple):
    """The passages of an index and their shards; `deleted` rows are sorted, `seal` is that of the manifest."""

    folder: Path
    passages: Passages
    shards: tuple[ShardRows, ...]
    deleted: Ints
    seal: str = ""


class PartState(NamedTuple):
    """The state of one kind of parts: the rows they cover, their bytes, their encoder, and a problem, if any."""

    kind: PartKind
    covered: int
    size: int
    encoder: str = ""
    problem: str = ""


def open_stored_passages(folder: Path) -> StoredPassages:
    """Open the passages of an index without its vectors; raises IndexFormatError where it is missing or damaged."""
    folder = Path(folder)
    manifest = read_index_info(folder)
    store = open_store(folder, manifest)
    shards = (ShardRows(manifest.files[s.passages].sha256, s.rows) for s in manifest.shards)
    return StoredPassages(folder, store, tuple(s for s in shards if s.rows), store.tombstones.rows, manifest.seal)


def _runs(stored: StoredPassages, shard: int, first: int) -> Iterator[ShardRun]:
    """Yield the runs that begin at a shard, each one shard longer than the one before."""
    digest, rows = hashlib.sha256(), 0
    for count, (content, more) in enumerate(stored.shards[shard:], 1):
        digest.update(content.encode())
        rows += more
        yield ShardRun(digest.hexdigest(), count, first, rows)


def _part_folder(stored: StoredPassages, kind: PartKind) -> Path:
    folder = stored.folder / kind
    if folder.is_symlink():
        raise IndexFormatError(f"{folder}: leads out of the index folder. Replace the link by the folder itself")
    return folder


def covered_runs(stored: StoredPassages, kind: PartKind) -> list[ShardRun]:
    """Return the runs that have a part, from the first row on without a gap; of two with the same start, the longer."""
    folder, runs, shard, first = _part_folder(stored, kind), list[ShardRun](), 0, 0
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    while names and (fitting := [run for run in _runs(stored, shard, first) if run.name in names]):
        runs.append(fitting[-1])
        shard, first = shard + fitting[-1].shards, first + fitting[-1].rows
    return runs


def open_parts(stored: StoredPassages, kind: PartKind) -> list[IndexPart]:
    """Open the parts of all rows; raises IndexFormatError where one is missing, damaged or out of date."""
    runs = covered_runs(stored, kind)
    rows, total = sum(run.rows for run in runs), len(stored.passages)
    if rows < total:
        exists = (stored.folder / kind).is_dir()
        why = f"has an outdated {kind} part (up to date for {rows:,} of {total:,} passages)" if exists else f"has no {kind} part"
        remedy = f"{'Update' if exists else 'Build'} it with `knowhalu index extend {stored.folder} --{kind}`"
        raise IndexFormatError(f"{stored.folder}: the index {why}. {remedy}")
    return [run.open(stored, kind) for run in runs]


def first_rows(parts: Sequence[IndexPart], kind: PartKind, rows: int) -> list[int]:
    """Return the first row of each part in an index of `rows` rows; raises IndexFormatError unless they cover it exactly."""
    *firsts, covered = accumulate((part.head.passages for part in parts), initial=0)
    if covered != rows:
        where = parts[0].folder if parts else f"the {kind} part"
        raise IndexFormatError(f"{where}: covers {covered} of {rows} passages. Run `knowhalu index extend FOLDER --{kind}`")
    return firsts


def extend_index(
    stored: StoredPassages,
    kind: PartKind,
    build: Callable[[PassageRows, Path, str], PartManifest],
    fits: Callable[[IndexPart], bool] = lambda part: True,
) -> int:
    """Build the parts of a kind that are missing, damaged or outdated, and return the number of passages read for them.

    Small parts are merged with the rows after them, so many small additions leave few parts. Parts of other rows are removed.
    An index that was changed since it was opened is opened again. Raises IndexFormatError where another process is changing
    the index.
    """
    with lock_index(stored.folder):
        if stored.seal and stored.seal != read_index_info(stored.folder).seal:
            stored = open_stored_passages(stored.folder)
        parent = _part_folder(stored, kind)
        parent.mkdir(exist_ok=True)
        reusable, built = _reusable_runs(stored, kind, fits), 0
        last = reusable[-1] if reusable else ShardRun("", 0, 0, 0)
        first = last.first + last.rows
        if first < len(stored.passages):
            *_, rest = _runs(stored, sum(run.shards for run in reusable), first)
            build(PassageSlice(stored.passages, first, rest.rows), parent / rest.name, rest.content)
            reusable, built = [*reusable, rest], rest.rows
        names = {run.name for run in reusable}
        for path in parent.iterdir():
            if path.name not in names and path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
        return built


def _reusable_runs(stored: StoredPassages, kind: PartKind, fits: Callable[[IndexPart], bool]) -> list[ShardRun]:
    """Return the runs whose parts can be kept."""
    reusable = list[ShardRun]()
    for run in covered_runs(stored, kind):
        try:
            if not fits(run.open(stored, kind)):
                break
        except IndexFormatError:
            break
        reusable.append(run)
    remaining = len(stored.passages) - sum(run.rows for run in reusable)
    while reusable and remaining and reusable[-1].rows <= remaining:
        remaining += reusable.pop().rows
    return reusable


def part_states(stored: StoredPassages) -> list[PartState]:
    """Return the state of each kind of parts that the index was extended by."""
    states = []
    for kind in PART_KINDS:
        if not (stored.folder / kind).is_dir():
            continue
        size = sum(path.stat().st_size for path in (stored.folder / kind).rglob("*.bin"))
        try:
            runs = covered_runs(stored, kind)
            settings = [run.open(stored, kind).head.settings for run in runs]
        except IndexFormatError as error:
            states.append(PartState(kind, 0, size, problem=str(error)))
            continue
        encoders = sorted({str(s["encoder"]) for s in settings if "encoder" in s})
        states.append(PartState(kind, sum(run.rows for run in runs), size, ", ".join(encoders)))
    return states


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
            consequence = "; the next change of the index removes it" if INDEX_FILE_NAME.fullmatch(path.name) else ""
            problems.append(f"{path}: does not belong to the index{consequence}")
    problems += _verify_parts(folder)
    try:
        store = open_store(folder, manifest)
        problems += store.problems()
        open_shard_vectors(folder, manifest)
        if not problems:
            open_faiss(folder, manifest, store.tombstones.rows)
    except IndexFormatError as error:
        problems.append(str(error))
    return problems


def _verify_parts(folder: Path) -> list[str]:
    """Check every byte of the parts of an index folder, including outdated ones, and list the problems."""
    problems: list[str] = []
    for kind in PART_KINDS:
        parent = folder / kind
        for path in sorted(parent.iterdir()) if parent.is_dir() and not parent.is_symlink() else ():
            try:
                part = IndexPart(path, kind)
                if part.head.content[:16] != path.name:
                    raise IndexFormatError(f"{path}: is a part under a wrong name. {part.remedy}")
                problems += part.problems()
            except IndexFormatError as error:
                problems.append(str(error))
    return problems
