"""What an evaluation of a data set adds to a comparison: the facts of the set, its warnings, and figures of parts of its rows."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from knowhalu.errors import InputError
from knowhalu.evaluation.intervals import Figure
from knowhalu.evaluation.report import Sheet, percent

MATCHED = "length-matched"
"""The rows of which length tells nothing; they have a table of their own."""
SHOWN = {"average": "Avg Acc", "balanced": "balanced", "auc": "ROC-AUC"}


class DataSet(NamedTuple):
    """A data set in words, what a reader is warned of, and the tables of its parts; all empty for rows that are of none."""

    name: str = ""
    facts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    tables: tuple[Sheet, ...] = ()


def read_dataset(fields: Mapping[str, Any], place: str) -> DataSet:
    """Take what an evaluation wrote beside its comparison; raises InputError where it cannot be read."""
    try:
        about = fields.get("dataset") or {}
        warnings = tuple(str(line) for line in fields.get("warnings", ()))
        return DataSet(str(about.get("name", "")), tuple(_facts(about)), warnings, tuple(_tables(fields.get("subsets", ()))))
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(f"{place}: not an evaluation of KnowHalu ({type(error).__name__}: {error}). Run it again.") from error


def _facts(about: Mapping[str, Any]) -> list[str]:
    names = {"about": "", "labels": "Labels", "split": "Split", "licence": "Licence", "sha256": "SHA-256"}
    return [f"{title}: {about[name]}" if title else str(about[name]) for name, title in names.items() if about.get(name)]


def _tables(subsets: Sequence[Mapping[str, Any]]) -> list[Sheet]:
    matched = [_table(subset) for subset in subsets if subset["name"] == MATCHED]
    parts = [subset for subset in subsets if subset["name"] != MATCHED]
    return [*matched, *([_joined(parts)] if parts else [])]


def _table(subset: Mapping[str, Any]) -> Sheet:
    rows = [(str(r["name"]), f"{r['rows']:,}", *(_figure(r, name) for name in SHOWN)) for r in subset["results"]]
    return Sheet(f"{subset['name']}: {subset['about']}", ("", "rows", *SHOWN.values()), rows)


def _joined(parts: Sequence[Mapping[str, Any]]) -> Sheet:
    """Put the balanced accuracy of several parts side by side."""
    of = [{str(r["name"]): _figure(r, "balanced") for r in part["results"]} for part in parts]
    names = dict.fromkeys(name for found in of for name in found)
    head = ("", *(f"{part['name']} ({part['rows']:,})" for part in parts))
    return Sheet("Balanced accuracy by part", head, [(name, *(found.get(name, "-") for found in of)) for name in names])


def _figure(result: Mapping[str, Any], name: str) -> str:
    given = result["figures"].get(name)
    return "-" if given is None else percent(Figure(**given))
