"""Outcomes: written to one line each, and read back."""

import json
from typing import TypeVar

from pydantic import ValidationError

from knowhalu.errors import InputError
from knowhalu.results import Failure, Outcome, Revision, RevisionOutcome, Verdict

R = TypeVar("R", Verdict, Revision)


def format_outcome(outcome: Outcome | Revision, content: str = "") -> str:
    """Return an outcome as one line of JSON without its line end; `content` is the hash of the sample it belongs to."""
    line = outcome.model_dump_json()
    return f'{line[:-1]},"input":"{content}"}}' if content else line


def parse_outcome(line: str | bytes) -> Outcome:
    """Read an outcome back from its line; raises InputError where the line is none."""
    return _parse_result(line, Verdict)


def parse_revision(line: str | bytes) -> RevisionOutcome:
    """Read a revision, or a failure, back from its line; raises InputError where the line is none."""
    return _parse_result(line, Revision)


def _parse_result(line: str | bytes, kind: type[R]) -> R | Failure:
    try:
        fields = json.loads(line)
        fields.pop("input", None)
        return (Failure if "stage" in fields else kind).model_validate(fields)
    except (ValueError, TypeError, AttributeError, RecursionError, ValidationError) as error:
        raise InputError(f"not an outcome of KnowHalu: {line[:80]!r} ({type(error).__name__})") from error
