"""Outcome files: of every line a few numbers and where it begins; lines that are shown are read once more."""

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import InputError
from knowhalu.evaluation.metrics import Flags, Floats, Predictions
from knowhalu.io.records import hash_id, parse_outcome
from knowhalu.report.run_files import HALLUCINATED, NO_LABEL, RowFacts
from knowhalu.results import Outcome, Usage
from knowhalu.types import InconclusiveReason, Relation

OUTCOME_FAITHFUL, OUTCOME_HALLUCINATED, OUTCOME_INCONCLUSIVE, OUTCOME_FAILED = 0, 1, 2, 3
"""What an outcome says: faithful, hallucinated, left open, or nothing because the check failed."""
REASONS = ("", *map(str, (Relation.CONTRADICTION, Relation.NEUTRAL, *InconclusiveReason)))
"""Why an outcome is open, or how the sources stand to a wrong one; nothing where that was not told."""
OUTCOME_FILE_HINT = "Give an output of `knowhalu detect` or `knowhalu compare`."


class OutcomeTable(NamedTuple):
    """All outcomes of a file: arrays of equal length, one entry for each row that has an outcome, and counts of all.

    `place` is the row's, `agree` 1 or 0 where both forms of knowledge were judged by, else -1, `offset` the line's first byte,
    `why` a place in `REASONS`. `torn` tells that the last line broke off, as a kill leaves it.
    """

    path: Path
    run: dict[str, str]
    method: str
    place: NDArray[np.int64]
    said: NDArray[np.int8]
    probability: Floats
    seconds: Floats
    steps: NDArray[np.int64]
    agree: NDArray[np.int8]
    offset: NDArray[np.int64]
    why: NDArray[np.int8]
    failures: dict[str, int]
    usage: dict[str, int]
    torn: bool

    @property
    def verdicts(self) -> Flags:
        """Tell which entries have a verdict."""
        found: Flags = self.said != OUTCOME_FAILED
        return found

    @property
    def settled(self) -> Flags:
        """Tell which count as hallucinated where an abstention is settled by its probability."""
        settled: Flags = np.where(self.said == OUTCOME_INCONCLUSIVE, self.probability > 0.5, self.said == OUTCOME_HALLUCINATED)
        return settled

    @property
    def sureness(self) -> Floats:
        """Return how far each probability is from 0.5."""
        return np.abs(self.probability - 0.5)

    def against(self, gold: NDArray[np.int8]) -> tuple[NDArray[np.intp], Predictions]:
        """Return the entries that have a verdict and a gold label, and what was said of them."""
        known = np.flatnonzero(self.verdicts & (gold[self.place] != NO_LABEL))
        return known, Predictions(
            gold[self.place][known] == HALLUCINATED,
            self.settled[known],
            self.said[known] == OUTCOME_INCONCLUSIVE,
            self.probability[known],
        )


class _OutcomeRow(NamedTuple):
    said: int
    probability: float
    seconds: float
    steps: int
    agree: int
    failure: str | None
    usage: tuple[int, ...]
    why: int = 0


def read_outcome_table(path: Path, texts: RowFacts | None) -> OutcomeTable:
    """Read an outcome file line by line; of two outcomes of a row, the later holds.

    Without `texts`, rows are counted in the order of the file. Raises InputError for what is no outcome file, and for outcomes
    of rows that are not in `texts` or have changed.
    """
    with path.open("rb") as file:
        head = file.readline()
        run = _fields(head).get("run")
        if not isinstance(run, dict):
            raise InputError(f"{path}, line 1: does not say which run this is. {OUTCOME_FILE_HINT}")
        slots: dict[int, int] = {}
        seen: dict[bytes, int] = {}
        entries: list[_OutcomeRow] = []
        places, offsets = array("q"), array("q")
        at, torn, method = len(head), False, ""
        for number, line in enumerate(file, 2):
            fields = _fields(line)
            torn = not fields and not line.endswith(b"\n")
            if torn:
                break
            where = f"{path}, line {number}"
            entry, name = _outcome_row(fields, where), str(fields["id"])
            place = texts.place(name, fields.get("input", ""), where) if texts else seen.setdefault(hash_id(name), len(seen))
            slot = slots.setdefault(place, len(entries))
            if slot == len(entries):
                entries.append(entry)
                places.append(place)
                offsets.append(at)
            else:
                entries[slot], offsets[slot] = entry, at
            method = method or str(fields.get("method", ""))
            at += len(line)
    return _as_table(path, {str(k): str(v) for k, v in run.items()}, method, entries, places, offsets, torn)


def read_outcomes_at(path: Path, offsets: Iterable[int]) -> Iterator[tuple[int, bytes, Outcome]]:
    """Yield the outcomes whose lines begin at some offsets, with their lines."""
    with path.open("rb") as file:
        for offset in sorted(offsets):
            file.seek(offset)
            line = file.readline()
            yield offset, line, parse_outcome(line)


def _as_table(
    path: Path,
    run: dict[str, str],
    method: str,
    entries: list[_OutcomeRow],
    places: Sequence[int],
    offsets: Sequence[int],
    torn: bool,
) -> OutcomeTable:
    failures = Counter(e.failure for e in entries if e.failure is not None)
    totals = [sum(column) for column in zip(*(e.usage for e in entries if e.usage), strict=True)]
    return OutcomeTable(
        path=path, run=run, method=method, place=np.array(places, dtype=np.int64), offset=np.array(offsets, dtype=np.int64),
        said=np.array([e.said for e in entries], dtype=np.int8), probability=np.array([e.probability for e in entries]),
        seconds=np.array([e.seconds for e in entries]), steps=np.array([e.steps for e in entries], dtype=np.int64),
        agree=np.array([e.agree for e in entries], dtype=np.int8), failures=dict(failures.most_common()),
        usage=dict(zip(Usage.model_fields, totals, strict=False)), torn=torn,
        why=np.array([e.why for e in entries], dtype=np.int8),
    )  # fmt: skip


def _outcome_row(fields: dict[str, Any], where: str) -> _OutcomeRow:
    """Take the numbers of one outcome; raises InputError naming the line."""
    try:
        fields["id"].encode("utf-8")  # half a character is no id of a row
        if "stage" in fields:
            reason = f"{fields['stage']}: {fields['reason']}"[:160]
            return _OutcomeRow(OUTCOME_FAILED, np.nan, np.nan, 0, -1, reason, ())
        said = {True: OUTCOME_HALLUCINATED, False: OUTCOME_FAITHFUL, None: OUTCOME_INCONCLUSIVE}[fields["hallucinated"]]
        pairs = [(s["base"], s["supplement"]) for s in fields["segments"]]
        steps = max((len(base["steps"]) for base, _ in pairs), default=0)
        both = [base["label"] == other["label"] for base, other in pairs if other is not None]
        usage = tuple(int(fields["usage"].get(name, 0)) for name in Usage.model_fields)
        seconds = float(fields["seconds"].get("total", np.nan))
        inconclusive = fields.get("inconclusive_reason", fields.get("open"))  # older versions wrote "open"
        why = REASONS.index(inconclusive or fields.get("relation") or "")
        return _OutcomeRow(said, float(fields["probability"]), seconds, steps, int(all(both)) if both else -1, None, usage, why)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{where}: not an outcome of a check ({type(error).__name__}: {error}). {OUTCOME_FILE_HINT}") from error


def _fields(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
