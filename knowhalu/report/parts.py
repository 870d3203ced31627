"""Figures of parts of the rows: by type of error, length, steps, and whether both forms of knowledge agreed.

The comparison's own breakdowns are shown where it has any; these stand in where it has none.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import InputError
from knowhalu.evaluation.figures import counts, figures
from knowhalu.report.outcomes import Outcomes
from knowhalu.report.rows import Texts

Names = NDArray[np.str_]
MOST = 12
"""Types of error that are shown; the rarest beyond are put together."""
OTHERS = "others"


class Part(NamedTuple):
    """The rows of a part that a method has a verdict of, and the shares of hallucinated found and of faithful passed."""

    rows: int
    tpr: float | None
    tnr: float | None


class Breakdown(NamedTuple):
    """What every method got in every part: `parts[part][method]`."""

    title: str
    parts: dict[str, dict[str, Part]]


def breakdowns(texts: Texts, outcomes: Mapping[str, Outcomes]) -> list[Breakdown]:
    """Part the rows in every way that gives two parts or more."""
    types, thirds = _types(texts), _thirds(texts.words)
    ways: dict[str, Callable[[Outcomes, NDArray[np.int64]], Names]] = {
        "Type of error": lambda _, places: types[places],
        "Words of the response": lambda _, places: thirds[places],
        "Steps of the check": lambda found, _: np.array([_steps(n) for n in found.steps.tolist()]),
        "Forms of knowledge": lambda found, _: _forms(found.agree),
    }
    found = (Breakdown(title, _parts(way, texts, outcomes)) for title, way in ways.items())
    return [b for b in found if len(b.parts) > 1]


def read_breakdowns(given: Sequence[Any], place: str) -> list[Breakdown]:
    """Take the breakdowns of a comparison's file; raises InputError where they are none."""
    try:
        return [_read(fields) for fields in given]
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{place}: its breakdowns cannot be read ({type(error).__name__}: {error}). Compare again.") from error


def _read(fields: Mapping[str, Any]) -> Breakdown:
    parts: dict[str, dict[str, Part]] = {}
    for result in fields["results"]:
        for part in result["parts"]:
            shares = (part["figures"][name]["value"] for name in ("tpr", "tnr"))
            parts.setdefault(str(part["name"]), {})[str(result["method"])] = Part(int(part["rows"]), *shares)
    return Breakdown(str(fields["title"]), parts)


def _parts(
    way: Callable[[Outcomes, NDArray[np.int64]], Names], texts: Texts, outcomes: Mapping[str, Outcomes]
) -> dict[str, dict[str, Part]]:
    parts: dict[str, dict[str, Part]] = {}
    for method, found in outcomes.items():
        entries, said = found.against(texts.gold)
        names = way(found, found.place)[entries]
        members = set(names.tolist()) - {""}
        for name in members if len(members) > 1 else ():
            share = figures(counts(said.rows(names == name)).sum(axis=0))
            parts.setdefault(name, {})[method] = Part(int((names == name).sum()), _number(share["tpr"]), _number(share["tnr"]))
    return dict(sorted(parts.items(), key=lambda part: _order(part[0])))


def _types(texts: Texts) -> Names:
    given = np.array([t or "" for t in texts.types])
    names, sizes = np.unique(given[given != ""], return_counts=True)
    kept = names[np.argsort(-sizes, kind="stable")[:MOST]]
    found: Names = np.where((given == "") | np.isin(given, kept), given, OTHERS)
    return found


def _thirds(words: NDArray[np.int64]) -> Names:
    if not len(words):
        return np.array([], dtype=str)
    low, high = np.quantile(words, (1 / 3, 2 / 3), method="lower")
    third = np.where(words <= low, 0, np.where(words <= high, 1, 2))
    names = {i: f"{words[third == i].min()} to {words[third == i].max()}" for i in set(third.tolist())}
    return np.array([names[i] for i in third.tolist()])


def _steps(number: int) -> str:
    return str(number) if number <= 2 else "3 to 5" if number <= 5 else "6 and more"


def _forms(agree: NDArray[np.int8]) -> Names:
    return np.array(["disagree", "agree", "only one was judged by"])[np.where(agree < 0, 2, agree)]


def _order(name: str) -> tuple[bool, int, str]:
    first = name.split()[0] if name.split() else ""
    return name == OTHERS, int(first) if first.isdecimal() else -1, name


def _number(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)
