"""The tables of the papers with rows of ours below the published ones: from comparisons made before, never from a guess."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from knowhalu.evaluation.bootstrap import Estimate
from knowhalu.evaluation.paper_runs import PastResult, PastRun, figures_of_form, read_run
from knowhalu.evaluation.published import DASH, ILLEGIBLE, NUMBERS, Column, Ours, Table, published
from knowhalu.evaluation.specs import parse_specs
from knowhalu.evaluation.tables import cell as cell_of
from knowhalu.evaluation.tables import number
from knowhalu.registry import method_card

PUBLISHED, OURS = "published", "ours"
RULE = "trivial-length"
"""A rule that looks at nothing but the number of words: no row of ours stands without it."""
THRESHOLDS = ("delta1", "delta2", "theta")
"""Settings that may differ: the papers fit them on validation rows."""
CHOICES = ("base_form", "second_opinion")
"""Settings of KnowHalu that say which form of knowledge is looked at."""
MODEL = "a 7B model"
BOTH_FORMS = "knowhalu[second_opinion=always]"
"""A run that gives each form of knowledge alone, and what they give together."""


class Cell(NamedTuple):
    """A number, as printed or in percent, or why there is none; where it is ours, with its interval, its set and its rows."""

    figure: Estimate = Estimate(None)
    missing: str = ""
    set: str = ""
    rows: int | None = None


class Row(NamedTuple):
    """A row: its labels, who made it ("published", "encoder", "llm:MODEL", "rule"), and a cell for each column."""

    labels: tuple[str, ...]
    by: str
    cells: tuple[Cell, ...]


class Given(NamedTuple):
    """A result of ours, and its figures, or those of one form of knowledge in it."""

    result: PastResult
    figures: Mapping[str, Estimate]


class Laid(NamedTuple):
    """A table with all its rows, and the commands that would run what was not run and can be."""

    table: Table
    rows: tuple[Row, ...]
    commands: tuple[str, ...]


def lay_out(table: Table, runs: Path, data: str = "DATA") -> Laid:
    """Put our rows below the published ones, from the comparisons `runs`/SET; `data` is where the data sets lie.

    Raises InputError where a comparison cannot be read.
    """
    read = {name: _read(name, runs) for name in _sets(table)}
    is_compared = any(read.values()) and "seconds" not in {c.metric for c in table.columns}
    beside = [Ours(labels=(RULE,), method=RULE)] if is_compared else []
    ours = [row for wanted in (*table.ours, *beside) for row in _rows(table, wanted, read)]
    theirs = [Row(table.labels_of(r), PUBLISHED, tuple(map(_printed, table.values_of(r)))) for r in table.rows]
    return Laid(table, (*theirs, *(row for row, _ in ours)), tuple(_commands([s for _, s in ours], read, runs, data)))


def _sets(table: Table) -> list[str]:
    return [name for name in dict.fromkeys([*(c.set for c in table.columns), *(o.set for o in table.ours)]) if name]


def _read(name: str, runs: Path) -> PastRun | None:
    """Read the comparison on a set, if there is one."""
    folders = [runs / folder for folder in published().sets[name].folders]
    return next((read_run(folder) for folder in folders if (folder / "comparison.json").exists()), None)


def _rows(table: Table, wanted: Ours, read: Mapping[str, PastRun | None]) -> list[tuple[Row, list[Ours]]]:
    """Return one row for each who made a figure of it, or one row of reasons; with each, what of it could be run."""
    asked = [wanted.model_copy(update={"method": wanted.method or c.method, "set": wanted.set or c.set}) for c in table.columns]
    timed = any(column.metric in NUMBERS for column in table.columns)
    given = {ours: _given(ours, read[ours.set], timed=timed) for ours in asked}
    labels = (*[OURS] * (len(table.labels) - len(wanted.labels)), *wanted.labels)
    made = []
    for maker in dict.fromkeys([g.result.maker for found in given.values() for g in found]) or (DASH,):
        of_maker = {ours: next((g for g in found if g.result.maker == maker), None) for ours, found in given.items()}
        cells = tuple(_cell(c, o, of_maker[o], read[o.set]) for c, o in zip(table.columns, asked, strict=True))
        made.append((Row(labels, maker, cells), [ours for ours, found in of_maker.items() if found is None]))
    return made


def _given(wanted: Ours, run: PastRun | None, *, timed: bool) -> list[Given]:
    """Return the results of a run that are what is wanted; one that judged more than it had to says nothing of time."""
    matching = _matching(wanted, run) if run else []
    exact = [r for r in matching if not timed or (r.whole and r.settings.get("second_opinion") != "always")]
    figures = [(r, _figures(run, r, wanted)) for r in exact] if run else []
    return [Given(result, found) for result, found in figures if found is not None]


def _matching(wanted: Ours, run: PastRun) -> list[PastResult]:
    """Return the results of a method with the settings that are wanted, all others being the usual ones."""
    (spec,) = parse_specs([wanted.method])
    results = [r for r in run.results if r.method == spec.method]
    if spec.method == RULE:
        return [r for r in results if r.name == min(results, key=lambda r: r.name != RULE).name]
    made = spec._replace(reasoner="llm").settings(None, ())
    usual = getattr(made, method_card(spec.method).options).model_dump(mode="json")
    free = {*THRESHOLDS, *(CHOICES if spec.method == "knowhalu" else ())}
    return [r for r in results if all(r.settings.get(name, value) == value for name, value in usual.items() if name not in free)]


def _cell(column: Column, wanted: Ours, given: Given | None, run: PastRun | None) -> Cell:
    if given is None:
        return Cell(missing=_why_not(wanted, run), set=wanted.set)
    rows = given.result.rows
    if column.metric in NUMBERS:
        figure = Estimate(given.result.seconds)
    elif column.metric in given.figures:
        figure = _in_percent(given.figures[column.metric])
    else:
        return Cell(missing="the comparison is of an earlier version: make it again", set=wanted.set, rows=rows)
    return Cell(figure, "" if figure.value is not None else "cannot be given on these rows", wanted.set, rows)


def _figures(run: PastRun, result: PastResult, wanted: Ours) -> Mapping[str, Estimate] | None:
    """Return the figures of a result, or of one form of knowledge in it; None where it has not judged as is wanted."""
    base, second = (result.settings.get(name) for name in CHOICES)
    if wanted.form is None:
        return None if second == "never" else result.figures
    if second == "never":
        return result.figures if base == wanted.form else None
    return figures_of_form(run, result, wanted.form) if result.whole and (wanted.form == base or second == "always") else None


def _why_not(wanted: Ours, run: PastRun | None) -> str:
    known = published().sets[wanted.set]
    needs = [*([known.needs] if run is None and known.needs else []), *([MODEL] if _by_model(wanted) else [])]
    return f"needs {', and '.join(needs)}" if needs else "the encoder can, but has not been run"


def _by_model(wanted: Ours) -> bool:
    (spec,) = parse_specs([wanted.method])
    card = method_card(spec.method)
    return bool(card.reasoners) and (spec.reasoner == "llm" or "encoder" not in card.reasoners)


def _commands(missing: Iterable[Sequence[Ours]], read: Mapping[str, PastRun | None], runs: Path, data: str) -> Iterator[str]:
    """Write for each set one command that adds what the encoder can do, and one that adds what needs a model."""
    todo: dict[tuple[str, bool], list[str]] = {}
    for wanted in (ours for several in missing for ours in several if ours.method != RULE):
        known = published().sets[wanted.set]
        if known.dataset and not (known.needs and read[wanted.set] is None):
            todo.setdefault((wanted.set, _by_model(wanted)), []).append(_spec(wanted))
    for (name, _), specs in sorted(todo.items()):
        run = read[name]
        there = [result.spec for result in run.results if result.spec] if run else []
        new = [spec for spec in specs if spec != "knowhalu" or BOTH_FORMS not in specs]
        methods = ",".join(dict.fromkeys([*there, *new]))
        yield f'knowhalu eval {published().sets[name].dataset} --data {data} -m "{methods}" -o {runs}'


def _spec(wanted: Ours) -> str:
    """Write a method as `knowhalu eval` takes it."""
    (spec,) = parse_specs([wanted.method])
    pairs = [*(p.partition(".")[2] for p in spec.pairs), *(["second_opinion=always"] if wanted.form else [])]
    inside = f"[{','.join(pairs)}]" if pairs else ""
    return f"{spec.method}{':llm' if _by_model(wanted) else ''}{inside}"


def _in_percent(figure: Estimate) -> Estimate:
    return Estimate(*(None if v is None else 100 * v for v in figure))


def _printed(value: float | str) -> Cell:
    return Cell(missing=value) if isinstance(value, str) else Cell(Estimate(float(value)))


def markdown(laid: Laid) -> str:
    """Write a table as Markdown, with the reasons of what was not run below it."""
    table, reasons = laid.table, _reasons(laid)
    paper = published().papers[table.paper]
    title = f"**{paper.title}** ({paper.edition}), table {table.number}: {table.about}"
    head = [*table.labels, "by", *(c.name for c in table.columns)]
    rule = "|" + "---|" * (len(table.labels) + 1) + "---:|" * len(table.columns)
    lines = [_line(_texts(table, row, reasons)) for row in laid.rows]
    return "\n\n".join([title, "\n".join([_line(head), rule, *lines]), *_remarks(laid, reasons)]) + "\n"


def as_json(laid: Laid) -> dict[str, Any]:
    """Return a table as plain fields; a published cell is {value} or {missing: mark}.

    A cell of ours is {value, low, high, set, rows}, {missing: reason, set, rows} or {not_run: reason}.
    """
    table = laid.table
    return {
        "paper": table.paper, "title": published().papers[table.paper].title, "table": table.number, "about": table.about,
        "labels": list(table.labels), "columns": [c.model_dump(include={"name", "metric", "set"}) for c in table.columns],
        "rows": [{"labels": list(r.labels), "by": r.by, "cells": [_fields(c) for c in r.cells]} for r in laid.rows],
        "needs": table.needs, "note": table.note, "commands": list(laid.commands),
    }  # fmt: skip


def _reasons(laid: Laid) -> list[str]:
    found = (cell.missing for row in laid.rows if row.by != PUBLISHED for cell in row.cells)
    return list(dict.fromkeys(reason for reason in found if reason))


def _texts(table: Table, row: Row, reasons: Sequence[str]) -> list[str]:
    cells = zip(row.cells, table.columns, strict=True)
    return [*row.labels, row.by, *(_shown(cell, column.metric, row.by, reasons) for cell, column in cells)]


def _shown(cell: Cell, metric: str, by: str, reasons: Sequence[str]) -> str:
    if by == PUBLISHED:
        return cell.missing or f"{cell.figure.value:g}"
    if cell.missing:
        return f"{'not run' if cell.rows is None else DASH} ({reasons.index(cell.missing) + 1})"
    return number(cell.figure, digits=2 if metric in NUMBERS else 1)


def _remarks(laid: Laid, reasons: Sequence[str]) -> list[str]:
    """Say what a reader must know of the numbers: how ours came about, and why some are missing."""
    table = laid.table
    sizes = {(cell.set, cell.rows) for row in laid.rows for cell in row.cells if cell.rows is not None}
    counted = ", ".join(f"{name} {rows:,}" for name, rows in sorted(sizes))
    said = [f"Ours with 95 % bootstrap intervals, on so many rows: {counted}."] if counted else []
    if any(c.missing == ILLEGIBLE for r in laid.rows for c in r.cells):
        said.append("?: not legible in the edition of the paper that was read.")
    said += [table.note] if table.note else []
    said += [f"Ours are not run: they need {table.needs}."] if table.needs else []
    said += ["\n".join(f"- ({i}) {reason}" for i, reason in enumerate(reasons, 1))] if reasons else []
    return [*said, "\n".join(f"    {command}" for command in laid.commands)] if laid.commands else said


def _fields(cell: Cell) -> dict[str, Any]:
    made = {"set": cell.set, "rows": cell.rows} if cell.rows is not None else {}
    if cell.missing:
        return {"not_run" if cell.set and not made else "missing": cell.missing, **made}
    return {**cell.figure._asdict(), **made} if made else {"value": cell.figure.value}


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(cell_of, cells)) + " |"
