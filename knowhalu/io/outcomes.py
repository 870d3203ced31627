"""Outcomes: written to one line each, read back, and the columns of all outcomes of a file."""

import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from knowhalu.errors import InputError
from knowhalu.io.samples import InputHashes, hash_id
from knowhalu.results import Failure, Outcome, Revision, RevisionOutcome, Usage, Verdict
from knowhalu.types import InconclusiveReason, Relation, Sample

R = TypeVar("R", Verdict, Revision)
INPUT_FIELD = "input"
"""The field of an outcome's line that holds the hash of its sample."""
FAITHFUL, HALLUCINATED, INCONCLUSIVE, FAILED = 0, 1, 2, 3
"""What an outcome states, in the column `label`: a failed check states nothing."""
REASONS = ("", *map(str, (Relation.CONTRADICTION, Relation.NEUTRAL, *InconclusiveReason)))
"""Why an outcome is inconclusive, or the relation of the sources to a hallucinated text; empty where that is not known."""
OUTCOME_FILE_HINT = "Give an output of `knowhalu detect` or `knowhalu compare`."
_LABELS = {True: HALLUCINATED, False: FAITHFUL, None: INCONCLUSIVE}


def format_outcome(outcome: Outcome | Revision, content: str = "") -> str:
    """Return an outcome as one line of JSON without its line end; `content` is the hash of the sample it belongs to."""
    line = outcome.model_dump_json()
    return f'{line[:-1]},"{INPUT_FIELD}":"{content}"}}' if content else line


def parse_outcome(line: str | bytes) -> Outcome:
    """Parse the line of an outcome; raises InputError where the line is none."""
    return _parse_result(line, Verdict)


def parse_revision(line: str | bytes) -> RevisionOutcome:
    """Parse the line of a revision or a failure; raises InputError where the line is neither."""
    return _parse_result(line, Revision)


def _parse_result(line: str | bytes, kind: type[R]) -> R | Failure:
    try:
        fields = json.loads(line)
        fields.pop(INPUT_FIELD, None)
        return (Failure if "stage" in fields else kind).model_validate(fields)
    except (ValueError, TypeError, AttributeError, RecursionError, ValidationError) as error:
        raise InputError(f"not an outcome of KnowHalu: {line[:80]!r} ({type(error).__name__})") from error


class RowIndex:
    """The rows of a file by their ids, with the hashes by which outcomes identify them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.places: dict[bytes, int] = {}
        self.hashes = InputHashes()

    def add(self, sample: Sample) -> None:
        """Add the next row."""
        self.places[hash_id(sample.id)] = len(self.places)
        self.hashes.add(sample)

    def place(self, name: str, content: str, where: str) -> int:
        """Return the place of the row of an outcome at `where`; an empty `content` hash is not compared.

        Raises InputError where the row is missing, or differs from the one that was checked.
        """
        place = self.places.get(hash_id(name))
        if place is None:
            raise InputError(f"{where}: the sample {name!r} is not in {self.path}. Give the file of the rows that were checked.")
        if content and not self.hashes.is_same(place, content):
            raise InputError(f"{where}: the sample {name!r} has changed in {self.path} since it was checked. Check it again.")
        return place


class OutcomeTable(NamedTuple):
    """The outcomes of a file as columns: arrays of equal length, one entry for each row that has an outcome, and totals.

    `place` is that of the row, `offset` the first byte of the line. `label` is one of the four codes above, `why` an index into
    `REASONS`. `steps` counts the steps of the longest judgment by the base form of knowledge, `all_steps` those of all judgments.
    `agree` is 1 or 0 where both forms were judged by, else -1. Numbers that a failed check lacks are NaN, 0 or -1; a
    probability that was not measured is NaN. `torn` tells that the last line is incomplete, as after a kill.
    """

    path: Path
    run: dict[str, str]
    method: str
    place: NDArray[np.int64]
    label: NDArray[np.int8]
    probability: NDArray[np.float64]
    seconds: NDArray[np.float64]
    steps: NDArray[np.int64]
    all_steps: NDArray[np.int64]
    segments: NDArray[np.int64]
    agree: NDArray[np.int8]
    offset: NDArray[np.int64]
    why: NDArray[np.int8]
    failures: dict[str, int]
    usage: dict[str, int]
    torn: bool

    @property
    def has_verdict(self) -> NDArray[np.bool_]:
        """Return which entries are verdicts."""
        flags: NDArray[np.bool_] = self.label != FAILED
        return flags

    @property
    def settled(self) -> NDArray[np.bool_]:
        """Return which entries count as hallucinated, an inconclusive one by its probability (without one, it does not)."""
        flags: NDArray[np.bool_] = np.where(self.label == INCONCLUSIVE, self.probability > 0.5, self.label == HALLUCINATED)
        return flags

    @property
    def confidence(self) -> NDArray[np.float64]:
        """Return the distance of each probability from 0.5, NaN where there is none."""
        return np.abs(self.probability - 0.5)


class _Entry(NamedTuple):
    label: int
    probability: float = np.nan
    seconds: float = np.nan
    steps: int = 0
    all_steps: int = 0
    segments: int = 0
    agree: int = -1
    why: int = 0
    failure: str | None = None
    usage: tuple[int, ...] = ()


VisitOutcome = Callable[[int, dict[str, Any]], None]
"""Called with the place of a row and the fields of its outcome."""


def read_run_header(path: Path) -> dict[str, str]:
    """Return what decided the results of a stored run, from its first line; raises InputError where the file is no run."""
    with path.open("rb") as file:
        run = _parse_fields(file.readline()).get("run")
    if not isinstance(run, dict):
        raise InputError(f"{path}, line 1: does not say which run this is. {OUTCOME_FILE_HINT}")
    return {str(name): str(value) for name, value in run.items()}


def read_outcome_table(
    path: Path, rows: RowIndex | None, visit: VisitOutcome | None = None, *, allow_torn: bool = False
) -> OutcomeTable:
    """Read an outcome file line by line; of two outcomes of one row, the later counts.

    `visit` is called for every outcome in the order of the file, for columns that only one reader needs. Without `rows`, rows are
    numbered in the order of the file. Raises InputError for what is no outcome file, for outcomes of rows that are not in `rows`
    or have changed, and, unless `allow_torn`, for an incomplete last line.
    """
    run, slots, ids = read_run_header(path), dict[int, int](), dict[bytes, int]()
    entries: list[_Entry] = []
    places, offsets = array("q"), array("q")
    torn, method = False, ""
    for number, offset, line in _read_lines(path):
        fields, where = _parse_fields(line), f"{path}, line {number}"
        torn = not fields and not line.endswith(b"\n")
        if torn and not allow_torn:
            raise InputError(f"{where}: is incomplete, as after a kill. Run the same command again to finish the run.")
        if torn:
            break
        entry = _make_entry(fields, where)
        name, content = str(fields["id"]), fields.pop(INPUT_FIELD, "")
        place = rows.place(name, content, where) if rows else ids.setdefault(hash_id(name), len(ids))
        slot = slots.setdefault(place, len(entries))
        if slot == len(entries):
            entries.append(entry)
            places.append(place)
            offsets.append(offset)
        else:
            entries[slot], offsets[slot] = entry, offset
        method = method or str(fields.get("method", ""))
        if visit is not None:
            visit(place, fields)
    return _make_table(path, run, method, entries, np.array(places, dtype=np.int64), np.array(offsets, dtype=np.int64), torn)


def read_outcomes_at(path: Path, offsets: Iterable[int]) -> Iterator[tuple[int, bytes, Outcome]]:
    """Yield the outcomes whose lines begin at some offsets, with their lines."""
    with path.open("rb") as file:
        for offset in sorted(offsets):
            file.seek(offset)
            line = file.readline()
            yield offset, line, parse_outcome(line)


def _read_lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, offset and bytes of every line after the first."""
    with path.open("rb") as file:
        offset = len(file.readline())
        for number, line in enumerate(file, 2):
            yield number, offset, line
            offset += len(line)


def _make_table(
    path: Path, run: dict[str, str], method: str, entries: list[_Entry], place: NDArray[np.int64], offset: NDArray[np.int64],
    torn: bool,
) -> OutcomeTable:  # fmt: skip
    failures = Counter(e.failure for e in entries if e.failure is not None)
    totals = [sum(column) for column in zip(*(e.usage for e in entries if e.usage), strict=True)]
    small, large = np.int8, np.int64
    return OutcomeTable(
        path=path, run=run, method=method, place=place, offset=offset, failures=dict(failures.most_common()), torn=torn,
        label=np.array([e.label for e in entries], dtype=small),
        probability=np.array([e.probability for e in entries], dtype=float),
        seconds=np.array([e.seconds for e in entries], dtype=float), steps=np.array([e.steps for e in entries], dtype=large),
        all_steps=np.array([e.all_steps for e in entries], dtype=large),
        segments=np.array([e.segments for e in entries], dtype=large), agree=np.array([e.agree for e in entries], dtype=small),
        why=np.array([e.why for e in entries], dtype=small), usage=dict(zip(Usage.model_fields, totals, strict=False)),
    )  # fmt: skip


def _make_entry(fields: dict[str, Any], where: str) -> _Entry:
    """Take the numbers of one outcome; raises InputError naming the line."""
    try:
        fields["id"].encode("utf-8")  # a lone surrogate cannot be the id of a row
        if "stage" in fields:
            return _Entry(FAILED, failure=f"{fields['stage']}: {fields['reason']}"[:160])
        judgments = [(segment["base"], segment["supplement"]) for segment in fields["segments"]]
        same_label = [base["label"] == other["label"] for base, other in judgments if other is not None]
        inconclusive = fields.get("inconclusive_reason", fields.get("open"))  # older versions wrote "open"
        steps = [[len(judgment["steps"]) for judgment in pair if judgment is not None] for pair in judgments]
        return _Entry(
            label=_LABELS[fields["hallucinated"]], probability=np.nan if (p := fields["probability"]) is None else float(p),
            seconds=float(fields["seconds"].get("total", np.nan)), steps=max((pair[0] for pair in steps), default=0),
            all_steps=sum(map(sum, steps)), segments=len(judgments), agree=int(all(same_label)) if same_label else -1,
            usage=tuple(int(fields["usage"].get(name, 0)) for name in Usage.model_fields),
            why=REASONS.index(inconclusive or fields.get("relation") or ""),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(f"{where}: not an outcome of a check ({type(error).__name__}: {error}). {OUTCOME_FILE_HINT}") from error


def _parse_fields(line: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}
