"""Figures of parts of the rows: by type of error, length, steps, and whether both forms of knowledge agreed.

The comparison's own breakdowns are shown where it has any; these stand in where it has none.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import InputError
from knowhalu.evaluation.metrics import metrics_from_counts, row_counts
from knowhalu.evaluation.slices import BREAKDOWN_TITLES, slice_names, slice_sort_key
from knowhalu.report.outcomes import OutcomeTable
from knowhalu.report.run_files import RowFacts

NameArray = NDArray[np.object_]
AGREEMENT_NAMES = np.array(["disagree", "agree", "only one was judged by"], dtype=object)
"""Names by 0 and 1 for whether both forms agree, and by -1 where there is only one."""


class SliceRates(NamedTuple):
    """The rows of a part that a method has a verdict of, and the shares of hallucinated found and of faithful passed."""

    rows: int
    tpr: float | None
    tnr: float | None


class BreakdownRates(NamedTuple):
    """What every method got in every part: `parts[part][method]`."""

    title: str
    parts: dict[str, dict[str, SliceRates]]


def compute_breakdowns(texts: RowFacts, outcomes: Mapping[str, OutcomeTable]) -> list[BreakdownRates]:
    """Part the rows in every way that gives two parts or more."""
    types, words = (
        np.array(slice_names(key, held), dtype=object) for key, held in (("type", texts.types), ("words", texts.words.tolist()))
    )
    ways: dict[str, Callable[[OutcomeTable], NameArray]] = {
        "type": lambda found: types[found.place],
        "words": lambda found: words[found.place],
        "steps": lambda found: _named("steps", found.steps.tolist()),
        "forms": lambda found: AGREEMENT_NAMES[found.agree],
    }
    found = (BreakdownRates(BREAKDOWN_TITLES[key], _parts(way, texts, outcomes)) for key, way in ways.items())
    return [b for b in found if len(b.parts) > 1]


def read_breakdowns(given: Sequence[Any], place: str) -> list[BreakdownRates]:
    """Take the breakdowns of a comparison's file; raises InputError where they are none."""
    try:
        return [_read(fields) for fields in given]
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{place}: its breakdowns cannot be read ({type(error).__name__}: {error}). Compare again.") from error


def _read(fields: Mapping[str, Any]) -> BreakdownRates:
    parts: dict[str, dict[str, SliceRates]] = {}
    for result in fields["results"]:
        for part in result["parts"]:
            shares = (part["figures"][name]["value"] for name in ("tpr", "tnr"))
            parts.setdefault(str(part["name"]), {})[str(result["method"])] = SliceRates(int(part["rows"]), *shares)
    return BreakdownRates(str(fields["title"]), parts)


def _parts(
    way: Callable[[OutcomeTable], NameArray], texts: RowFacts, outcomes: Mapping[str, OutcomeTable]
) -> dict[str, dict[str, SliceRates]]:
    parts: dict[str, dict[str, SliceRates]] = {}
    for method, found in outcomes.items():
        entries, said = found.against(texts.gold)
        names = way(found)[entries]
        members = {str(name) for name in names if name is not None}
        for name in members if len(members) > 1 else ():
            share = metrics_from_counts(row_counts(said.rows(names == name)).sum(axis=0))
            parts.setdefault(name, {})[method] = SliceRates(
                int((names == name).sum()), _number(share["tpr"]), _number(share["tnr"])
            )
    return dict(sorted(parts.items(), key=lambda part: slice_sort_key(part[0])))


def _named(key: str, values: Sequence[Hashable]) -> NameArray:
    return np.array(slice_names(key, values), dtype=object)


def _number(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)
