"""Stored outcomes of labelled rows: what every kind of calibration reads, without a model."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import InputError
from knowhalu.evaluation.labelled_rows import LabelledRows
from knowhalu.evaluation.metrics import Flags, Floats, Predictions
from knowhalu.io.records import hash_id, read_samples
from knowhalu.types import META_SET

RowIndices = NDArray[np.intp]
VerdictLines = list[tuple[int, dict[str, Any]]]
"""Verdicts as the fields of their lines, each with the place of its row."""


VERDICT_FIELDS, FORM_FIELDS = ("id", "task", "label", "hallucinated", "probability"), ("base", "supplement")
JUDGMENT_FIELDS, FINDING_FIELDS = ("form", "label", "confidence", "features"), ("unit", "type", "label")


class Tunable(Protocol):
    """Stored verdicts of a method, and what can be chosen of it without asking anybody again; arrays in their order."""

    def fit(self, rows: RowIndices) -> dict[str, Any]:
        """Choose settings on some of the rows; raises InputError where they do not suffice."""

    def said(self, settings: dict[str, Any]) -> Predictions:
        """Return what the method says of all rows under such settings."""


class FixedPredictions(NamedTuple):
    """Verdicts of a method in which nothing is chosen."""

    all: Predictions

    def fit(self, rows: RowIndices) -> dict[str, Any]:
        """Choose nothing."""
        return {}

    def said(self, settings: dict[str, Any]) -> Predictions:
        """Return what the method said."""
        return self.all


def read_run_header(path: Path) -> dict[str, str]:
    """Return what decided the results of a stored run; raises InputError where the file is none."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        try:
            head = json.loads(next(lines))["run"]
            return {str(name): str(value) for name, value in head.items()}
        except (StopIteration, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{path}: not outcomes of `knowhalu detect`. Make them by it, or leave out --outcomes.") from error


def read_verdict_lines(path: Path, rows: LabelledRows) -> VerdictLines:
    """Return the last verdict of every row that has one, in the order of the rows.

    Raises InputError where an outcome is of no row, or of a row that has changed, and where a row has no outcome at all.
    """
    found: dict[int, dict[str, Any]] = {}
    for number, fields in _outcomes(path):
        place = rows.places.get(hash_id(str(fields.get("id"))))
        if place is None or not rows.inputs.is_same(place, fields.get("input", rows.inputs[place])):
            what = "is not in" if place is None else "has changed in"
            raise InputError(
                f"{path}, line {number}: the sample {fields.get('id')!r} {what} {rows.path}. Give the rows of this run."
            )
        found[place] = _keep_tuning_fields(fields)
    if missing := len(rows.gold) - len(found):
        cure = f"Finish the run: knowhalu detect {rows.path} -o {path}"
        raise InputError(f"{path}: {missing:,} rows of {rows.path} have no outcome. {cure}.")
    return [(place, fields) for place, fields in sorted(found.items()) if "stage" not in fields]


def _keep_tuning_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Drop what nothing is chosen by: the evidence and the steps, which are nearly all of a line."""
    if "segments" not in fields:
        return fields
    slim = [
        {
            **{name: segment[name] and _keep_judgment_fields(segment[name]) for name in FORM_FIELDS},
            "findings": [{k: finding[k] for k in FINDING_FIELDS} for finding in segment["findings"]],
        }
        for segment in fields["segments"]
    ]
    return {**{k: fields[k] for k in VERDICT_FIELDS}, "stages": fields.get("stages", ()), "segments": slim}


def _keep_judgment_fields(judgment: dict[str, Any]) -> dict[str, Any]:
    supported = judgment["p_supported" if "p_supported" in judgment else "supported"]  # older versions wrote "supported"
    return {**{k: judgment[k] for k in JUDGMENT_FIELDS}, "p_supported": supported}


def _outcomes(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open(encoding="utf-8") as lines:
        next(lines)
        for number, line in enumerate(lines, 2):
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise InputError(f"{path}, line {number}: not an outcome ({error}). Run the same command of it again.") from error


def read_fixed_predictions(lines: VerdictLines, gold: Flags) -> FixedPredictions:
    """Return what a method said as it is; `gold` is that of the same verdicts."""
    p = np.array([float(fields["probability"]) for _, fields in lines])
    open_ = np.array([fields["hallucinated"] is None for _, fields in lines], dtype=np.bool_)
    said = np.array([bool(fields["hallucinated"]) for _, fields in lines], dtype=np.bool_)
    return FixedPredictions(make_predictions(gold, said, open_, p))


def make_predictions(gold: Flags, hallucinated: Flags, open_: Flags, probability: Floats) -> Predictions:
    """Put what was said together; what is left open is settled by its probability."""
    return Predictions(gold, np.where(open_, probability > 0.5, hallucinated), open_, probability)


def read_set_names(path: Path) -> list[str]:
    """Return the set (`meta.set`) of every row; "" where it names none."""
    return [str(sample.meta.get(META_SET, "")) for sample in read_samples(path)]
