"""Trivial rules fitted on labelled rows: on a validation split, or on the compared rows themselves as an upper bound."""

import json
from collections.abc import Iterable
from pathlib import Path

from knowhalu.build import BackendPool, build_engine
from knowhalu.errors import InputError
from knowhalu.evaluation.labelled_rows import LabelledRows, read_labelled_rows
from knowhalu.evaluation.scores import fit_threshold_rule
from knowhalu.io.records import hash_id, read_samples
from knowhalu.methods.baselines.options import TrivialOptions
from knowhalu.results import Verdict
from knowhalu.settings import Settings

RULES_FILE = "trivial.json"


def read_validation_rows(path: Path, rows: LabelledRows) -> LabelledRows:
    """Read the rows to fit on; raises InputError where a compared row is among them, or one of the labels is missing."""
    found = read_labelled_rows(path)
    shared = found.contents.keys() & rows.contents.keys()
    if shared:
        example = found.contents[min(shared)]
        raise InputError(
            f"{path}: {len(shared)} of its rows are compared too (sample {example!r} is one). Fit on rows that are not compared."
        )
    if found.missing:
        raise InputError(f"{path}: no row is {found.missing}, so nothing can be fitted on it. Give rows of both labels.")
    return found


def fit_rules(names: Iterable[str], rows: LabelledRows, settings: Settings, folder: Path, kept: BackendPool) -> Path:
    """Fit trivial rules on rows and write them to one file in `folder`; return its path."""
    rules = {}
    for name in names:
        values = _values(name, rows, settings, kept)
        border = fit_threshold_rule(values)
        if border is None:
            raise InputError(f"{rows.path}: {name} could not be computed for rows of both labels. Give the rows sources.")
        rules[name] = {
            "border": border.at, "direction": "over" if border.over else "under", "rows": len(values),
            "average": border.score.average,
        }  # fmt: skip
    path = folder / RULES_FILE
    path.write_text(json.dumps(rules, indent=1) + "\n", encoding="utf-8")
    return path


def _values(name: str, rows: LabelledRows, settings: Settings, kept: BackendPool) -> list[tuple[bool, float]]:
    """Compute what a rule looks at, for every row of which it can be computed."""
    engine = build_engine(settings.model_copy(update={"method": name, "trivial": TrivialOptions(border=0.0)}), kept)
    return [
        (bool(rows.gold[rows.places[hash_id(outcome.id)]]), outcome.segments[0].base.features[name])
        for outcome in engine.run(read_samples(rows.path)) if isinstance(outcome, Verdict)
    ]  # fmt: skip
