"""Samples from rows in memory (dicts, data frames, data sets), and a data frame of outcomes."""

from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Any

from knowhalu.errors import InputError, MissingExtra
from knowhalu.io.samples import parse_sample
from knowhalu.results import Failure, Outcome, Revision
from knowhalu.types import Document, Sample


def read_rows(rows: Iterable[Any]) -> Iterator[Sample]:
    """Return the samples of rows: Samples, mappings of their fields, or a pandas DataFrame with a column for each field.

    The samples are made lazily. Rows of known length are all validated first, in a pass of their own. Raises InputError naming
    the row; for rows of unknown length, the iterator raises it at that row.
    """
    if isinstance(rows, str | bytes | Mapping | Sample) or not isinstance(rows, Iterable):
        raise InputError(f"check_all needs an iterable of rows, but got a {type(rows).__name__}. Give a list of rows")
    if isinstance(rows, Sized):
        for _ in _read(rows):
            pass
    return _read(rows)


def _read(rows: Iterable[Any]) -> Iterator[Sample]:
    for number, row in enumerate(_iterate(rows), 1):
        yield read_row(row, f"row {number}", str(number))


def _iterate(rows: Any) -> Iterable[Any]:
    if hasattr(rows, "itertuples") and hasattr(rows, "columns"):  # iterating over a DataFrame gives its columns
        names = [str(name) for name in rows.columns]
        return (dict(zip(names, values, strict=True)) for values in rows.itertuples(index=False, name=None))
    return rows if isinstance(rows, Iterable) else ()


def read_row(row: Any, place: str, default_id: str) -> Sample:
    """Return the sample of one row: a Sample, or a mapping of its fields; raises InputError naming `place` and the field."""
    if isinstance(row, Sample):
        return row if row.id else row.model_copy(update={"id": default_id})
    if isinstance(row, Mapping):
        row = {name: _plain(value) for name, value in row.items()}
    return parse_sample(row, place, default_id)


def _plain(value: Any) -> Any:
    """Return a value as JSON would hold it: arrays and iterables as lists, a document as its fields, missing values as None."""
    if isinstance(value, Document):
        return value.model_dump(exclude_defaults=True)
    if hasattr(value, "tolist"):  # a numpy scalar or array
        value = value.tolist()
    if type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        return value
    return [_plain(item) for item in value]


def outcome_row(outcome: Outcome | Revision) -> dict[str, Any]:
    """Return an outcome as one flat row; all verdicts and failures have the same columns, and all revisions."""
    if isinstance(outcome, Revision):
        after = outcome.after.probability if outcome.after is not None else None
        return {
            "id": outcome.id, "method": outcome.method, "how": outcome.how, "status": outcome.status, "reason": outcome.reason,
            "original": outcome.original, "revised": outcome.revised, "changes": len(outcome.changes),
            "probability_before": outcome.before.probability, "probability_after": after,
            "seconds": outcome.seconds.get("total"),
        }  # fmt: skip
    row: dict[str, Any] = dict.fromkeys((
        "id", "task", "method", "label", "hallucinated", "probability", "kind", "relation", "inconclusive_reason", "reason",
        "quote", "source", "segments", "failed_stage", "seconds",
    ))  # fmt: skip
    if isinstance(outcome, Failure):
        return {**row, "id": outcome.id, "reason": outcome.reason, "failed_stage": outcome.stage}
    texts = ("task", "label", "kind", "relation", "inconclusive_reason")
    row |= {name: str(value) if (value := getattr(outcome, name)) is not None else None for name in texts}
    row |= {name: getattr(outcome, name) for name in ("id", "method", "hallucinated", "probability", "reason")}
    if (best := outcome.best_evidence) is not None:
        row |= {"quote": best.quote, "source": best.title or best.document or best.passage}
    return {**row, "segments": len(outcome.segments), "seconds": outcome.seconds.get("total")}


def to_df(outcomes: Iterable[Outcome | Revision]) -> Any:
    """Return a pandas DataFrame with one row for each outcome; raises MissingExtra where pandas is not installed."""
    try:
        import pandas
    except ImportError as error:
        raise MissingExtra("pandas", "pandas") from error
    return pandas.DataFrame([outcome_row(outcome) for outcome in outcomes])
