"""The commands that produce results of ours for the tables of papers: one for each method, reasoner and data set.

Each writes into a folder of its own below that of all runs, so that they can be run in any order, and none replaces another.
"""

import shlex
from pathlib import Path
from typing import NamedTuple

from knowhalu.evaluation.published import OwnRow, PaperDataset, read_published
from knowhalu.evaluation.runs import MethodSpec, parse_specs
from knowhalu.registry import REASONERS, method_card

NEEDED_MODEL = "a language model"
NOT_RUN = "has not been run"
ALL_FORMS = "second_opinion=always"
"""The setting of KnowHalu with which one run has the results of each form of knowledge alone, and of both together."""
ONE_BY_ONE = "--set engine.in_flight=1 --no-cache"
"""The options of a run whose time is that of one text after another."""


class RunPlace(NamedTuple):
    """What the commands name: the folder of all runs, the place of the data sets, and the folder of an index."""

    runs: Path
    data: str = "DATA"
    index_folder: str = "INDEX"


def reasoners_of_row(wanted: OwnRow) -> tuple[str, ...]:
    """Return the reasoners by which a row can be made; empty for a rule."""
    specs = parse_specs(wanted.specs)
    named = {spec.reasoner for spec in specs if spec.reasoner}
    cards = [method_card(spec.method) for spec in specs]
    return tuple(r for r in REASONERS if all(r in card.reasoners for card in cards) and named <= {r})


def describe_missing(wanted: OwnRow, reasoner: str) -> str:
    """Return what a result that has not been made needs."""
    if reasoner not in reasoners_of_row(wanted):
        return f"this method has no {reasoner}" if reasoner else NOT_RUN
    known = read_published().sets[wanted.set]
    needs = [*([known.needs] if known.needs else []), *([NEEDED_MODEL] if reasoner == "llm" else [])]
    return f"needs {' and '.join(needs)}" if needs else NOT_RUN


def command_for(wanted: OwnRow, reasoner: str, place: RunPlace, *, timed: bool) -> str:
    """Return the command that makes the result of a row by a reasoner on its set; empty where there can be none."""
    if reasoner not in reasoners_of_row(wanted):
        return ""
    known = read_published().sets[wanted.set]
    specs = [_with_reasoner(spec, reasoner, all_forms=not timed) for spec in parse_specs(wanted.specs)]
    folder = place.runs / f"{_folder_name(specs)}{'-one-by-one' if timed else ''}"
    methods, out = ",".join(specs), _target(known, folder)
    options = [f"--index {shlex.quote(place.index_folder)}" if known.index else "", ONE_BY_ONE if timed else ""]
    return " ".join([*_source(known, place.data), f'-m "{methods}"', *filter(None, options), f"-o {out}"])


def _source(known: PaperDataset, data: str) -> tuple[str, str]:
    path = shlex.quote(data)
    return (f"knowhalu eval {known.dataset}", f"--data {path}") if known.dataset else ("knowhalu compare", path)


def _target(known: PaperDataset, folder: Path) -> str:
    """Return the folder that a command names: `knowhalu eval` adds the name of the set itself."""
    return shlex.quote(str(folder if known.dataset else folder / known.folders[0]))


def _with_reasoner(spec: MethodSpec, reasoner: str, *, all_forms: bool) -> str:
    pairs = [*(pair.partition(".")[2] for pair in spec.pairs), *([ALL_FORMS] if all_forms and spec.method == "knowhalu" else [])]
    inside = ",".join(pairs)
    return f"{spec.method}:{reasoner}[{inside}]" if inside else f"{spec.method}:{reasoner}"


def _folder_name(specs: list[str]) -> str:
    first, *others = parse_specs(specs)
    return f"{first.method}-{first.reasoner}-best" if others else first.name
