"""The tables of the papers, with rows of our own from earlier comparisons below the published ones."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from knowhalu.evaluation.bootstrap import Estimate
from knowhalu.evaluation.dataset import LENGTH_RULE
from knowhalu.evaluation.paper_commands import RunPlace, command_for, describe_missing, reasoners_of_row
from knowhalu.evaluation.past_runs import PastResult, PastRun, metrics_by_form, read_past_run
from knowhalu.evaluation.published import (
    DASH,
    ILLEGIBLE,
    UNSCALED_METRICS,
    OwnRow,
    PublishedColumn,
    PublishedTable,
    read_published,
)
from knowhalu.evaluation.runs import parse_specs
from knowhalu.evaluation.tables import format_number, rows_as_markdown
from knowhalu.registry import REASONERS, method_card

PUBLISHED, OURS = "published", "ours"
FITTED_SETTINGS = ("delta1", "delta2", "theta")
"""Settings that may differ: the papers fit them on validation rows."""
FORM_SETTINGS = ("base_form", "second_opinion")
"""Settings of KnowHalu that choose the form of knowledge."""


class PaperCell(NamedTuple):
    """A number, as printed or in percent, or the reason why it is missing; ours with interval, set and rows.

    `command` produces a missing number of ours; it is empty where nothing can.
    """

    figure: Estimate = Estimate(None)
    missing: str = ""
    set: str = ""
    rows: int | None = None
    command: str = ""


class PaperRow(NamedTuple):
    """A row: its labels, its origin ("published", "encoder", "llm:MODEL", "rule"), and a cell for each column.

    The origin of a row of ours that has no result is its reasoner, "encoder" or "llm".
    """

    labels: tuple[str, ...]
    by: str
    cells: tuple[PaperCell, ...]


class FormResult(NamedTuple):
    """A result of ours with its metrics and their rows, or with those of one form of knowledge."""

    result: PastResult
    figures: Mapping[str, Estimate]
    rows: int


class PaperTable(NamedTuple):
    """A table with all its rows."""

    table: PublishedTable
    rows: tuple[PaperRow, ...]

    @property
    def commands(self) -> tuple[str, ...]:
        """Return the commands that would produce the missing results."""
        return tuple(dict.fromkeys(cell.command for row in self.rows for cell in row.cells if cell.command))


def make_paper_table(table: PublishedTable, place: RunPlace) -> PaperTable:
    """Add our rows below the published ones, from the comparisons on each set in `place.runs`, or in a folder of it.

    Raises InputError where a comparison cannot be read.
    """
    read = {name: _read_past_runs(name, place.runs) for name in _sets(table)}
    beside = [OwnRow(labels=(LENGTH_RULE,), method=LENGTH_RULE)] if any(read.values()) and not _is_timed(table) else []
    ours = [row for wanted in (*table.ours, *beside) for row in _rows(table, wanted, read, place)]
    theirs = [PaperRow(table.labels_of(r), PUBLISHED, tuple(map(_printed, table.values_of(r)))) for r in table.rows]
    return PaperTable(table, (*theirs, *ours))


def _sets(table: PublishedTable) -> list[str]:
    return [name for name in dict.fromkeys([*(c.set for c in table.columns), *(o.set for o in table.ours)]) if name]


def _is_timed(table: PublishedTable) -> bool:
    return any(column.metric == "seconds" for column in table.columns)


def _read_past_runs(name: str, runs: Path) -> list[PastRun]:
    """Read the comparisons on a set: those directly in the folder of all runs first."""
    folders = read_published().sets[name].folders
    found = [*(runs / folder for folder in folders), *sorted(path for folder in folders for path in runs.glob(f"*/{folder}"))]
    return [read_past_run(folder) for folder in found if (folder / "comparison.json").exists()]


def _rows(table: PublishedTable, wanted: OwnRow, read: Mapping[str, Sequence[PastRun]], place: RunPlace) -> Iterator[PaperRow]:
    """Yield one row for each origin of a result; for a reasoner without any result, a row of reasons and commands."""
    timed = _is_timed(table)
    own = [_of_column(wanted, column) for column in table.columns]
    results = {row: _form_results(row, read[row.set], timed=timed) for row in own}
    labels = (*[OURS] * (len(table.labels) - len(wanted.labels)), *wanted.labels)
    makers = dict.fromkeys(r.result.maker for several in results.values() for r in several)
    for reasoner in [r for r in REASONERS if any(r in reasoners_of_row(row) for row in own)] or [""]:
        for maker in [m for m in makers if _reasoner_of(m) == reasoner] or [reasoner or DASH]:
            of_maker = {row: next((r for r in several if r.result.maker == maker), None) for row, several in results.items()}
            cells = (
                _cell(column, row.set, given) if (given := of_maker[row]) is not None
                else PaperCell(
                    missing=describe_missing(row, reasoner), set=row.set, command=command_for(row, reasoner, place, timed=timed)
                )
                for column, row in zip(table.columns, own, strict=True)
            )  # fmt: skip
            yield PaperRow(labels, maker, tuple(cells))


def _of_column(wanted: OwnRow, column: PublishedColumn) -> OwnRow:
    return wanted.model_copy(update={"method": wanted.method or column.method, "set": wanted.set or column.set})


def _reasoner_of(maker: str) -> str:
    return next((reasoner for reasoner in REASONERS if re.match(rf"{reasoner}\b", maker)), "")


def _form_results(wanted: OwnRow, runs: Iterable[PastRun], *, timed: bool) -> list[FormResult]:
    """Return the result of each origin that matches a row, of several that with the most rows."""
    found: dict[str, FormResult] = {}
    for run in runs:
        for maker, chosen in _results_of_run(wanted, run, timed=timed).items():
            if maker not in found or chosen.rows > found[maker].rows:
                found[maker] = chosen
    return list(found.values())


def _results_of_run(wanted: OwnRow, run: PastRun, *, timed: bool) -> dict[str, FormResult]:
    """Return the result of each origin in a run; of several methods the best by Avg Acc, where the run has all of them."""
    by_method: list[dict[str, FormResult]] = []
    for text in wanted.specs:
        of_method: dict[str, FormResult] = {}
        for result in _matching(text, run):
            figures = _figures(run, result, wanted) if not timed or _has_valid_time(result) else None
            if figures is not None:
                of_method.setdefault(result.maker, FormResult(result, *figures))
        by_method.append(of_method)
    shared = [maker for maker in by_method[0] if all(maker in of_method for of_method in by_method)]
    return {maker: max((of_method[maker] for of_method in by_method), key=_average) for maker in shared}


def _average(found: FormResult) -> float:
    average = found.figures.get("average", Estimate(None)).value
    return -1.0 if average is None else average


def _has_valid_time(result: PastResult) -> bool:
    """Tell whether the time of a result is that of one text after another; one that judged more than necessary has none."""
    return result.whole and result.sequential and result.settings.get("second_opinion") != "always"


def _matching(text: str, run: PastRun) -> list[PastResult]:
    """Return the results of a method with the settings of its specification and defaults for all others."""
    (spec,) = parse_specs([text])
    results = [r for r in run.results if r.method == spec.method]
    if spec.method == LENGTH_RULE:
        return [r for r in results if r.name == min(results, key=lambda r: r.name != LENGTH_RULE).name]
    settings = spec._replace(reasoner="llm").settings(None, ())
    usual = settings.method_options(method_card(spec.method)).model_dump(mode="json")
    free = {*FITTED_SETTINGS, *(FORM_SETTINGS if spec.method == "knowhalu" else ())}
    return [r for r in results if all(r.settings.get(name, value) == value for name, value in usual.items() if name not in free)]


def _cell(column: PublishedColumn, name: str, given: FormResult) -> PaperCell:
    rows = given.rows
    if column.metric in UNSCALED_METRICS:
        figure = Estimate(given.result.seconds)
    elif column.metric in given.figures:
        figure = _in_percent(given.figures[column.metric])
    else:
        return PaperCell(missing="the comparison is of an earlier version: make it again", set=name, rows=rows)
    return PaperCell(figure, "" if figure.value is not None else "cannot be given on these rows", name, rows)


def _figures(run: PastRun, result: PastResult, wanted: OwnRow) -> tuple[Mapping[str, Estimate], int] | None:
    """Return the metrics of a result and their rows, or those of one form of knowledge; None where it has not judged that way."""
    base, second = (result.settings.get(name) for name in FORM_SETTINGS)
    whole = result.figures, result.rows
    if wanted.form is None:
        return None if second == "never" else whole
    if second == "never":
        return whole if base == wanted.form else None
    return metrics_by_form(run, result, wanted.form) if result.whole and (wanted.form == base or second == "always") else None


def _in_percent(figure: Estimate) -> Estimate:
    return Estimate(*(None if v is None else 100 * v for v in figure))


def _printed(value: float | str) -> PaperCell:
    return PaperCell(missing=value) if isinstance(value, str) else PaperCell(Estimate(float(value)))


def as_markdown(laid: PaperTable) -> str:
    """Return a table in Markdown, with the reasons for missing results below."""
    table, reasons = laid.table, _reasons(laid)
    paper = read_published().papers[table.paper]
    title = f"**{paper.title}** ({paper.edition}), table {table.number}: {table.about}"
    head = [*table.labels, "by", *(c.name for c in table.columns)]
    rows = rows_as_markdown(head, [_texts(table, row, reasons) for row in laid.rows], names=len(table.labels) + 1)
    return "\n\n".join([title, rows, *_remarks(laid, reasons)]) + "\n"


def as_json(laid: PaperTable) -> dict[str, Any]:
    """Return a table as plain fields; a published cell is {value} or {missing: mark}.

    A cell of ours is {value, low, high, set, rows}, {missing: reason, set, rows} or {not_run: reason, command}.
    """
    table = laid.table
    return {
        "paper": table.paper, "title": read_published().papers[table.paper].title, "table": table.number, "about": table.about,
        "labels": list(table.labels), "columns": [c.model_dump(include={"name", "metric", "set"}) for c in table.columns],
        "rows": [{"labels": list(r.labels), "by": r.by, "cells": [_fields(c) for c in r.cells]} for r in laid.rows],
        "needs": table.needs, "note": table.note, "commands": list(laid.commands),
    }  # fmt: skip


def _reasons(laid: PaperTable) -> list[tuple[str, str]]:
    """Return each reason why a number of ours is missing, with the command that produces the number."""
    return list(dict.fromkeys((c.missing, c.command) for r in laid.rows if r.by != PUBLISHED for c in r.cells if c.missing))


def _texts(table: PublishedTable, row: PaperRow, reasons: Sequence[tuple[str, str]]) -> list[str]:
    cells = zip(row.cells, table.columns, strict=True)
    return [*row.labels, row.by, *(_cell_text(cell, column.metric, row.by, reasons) for cell, column in cells)]


def _cell_text(cell: PaperCell, metric: str, by: str, reasons: Sequence[tuple[str, str]]) -> str:
    if by == PUBLISHED:
        return cell.missing or f"{cell.figure.value:g}"
    if cell.missing:
        return f"{'not run' if cell.command else DASH} ({reasons.index((cell.missing, cell.command)) + 1})"
    return format_number(cell.figure, digits=2 if metric in UNSCALED_METRICS else 1)


def _remarks(laid: PaperTable, reasons: Sequence[tuple[str, str]]) -> list[str]:
    """Return the notes that a reader needs: how our numbers were obtained, and why some are missing."""
    table = laid.table
    sizes = {(cell.set, cell.rows) for row in laid.rows for cell in row.cells if cell.rows is not None}
    counted = ", ".join(f"{name} {rows:,}" for name, rows in sorted(sizes))
    remarks = [f"Ours with 95 % bootstrap intervals, on so many rows: {counted}."] if counted else []
    if any(c.missing == ILLEGIBLE for r in laid.rows for c in r.cells):
        remarks.append("?: not legible in the edition of the paper that was read.")
    remarks += [table.note] if table.note else []
    remarks += [f"Ours are not run: they need {table.needs}."] if table.needs else []
    lines = [f"- ({i}) {why}{f': `{command}`' if command else ''}" for i, (why, command) in enumerate(reasons, 1)]
    return [*remarks, "\n".join(lines)] if lines else remarks


def _fields(cell: PaperCell) -> dict[str, Any]:
    origin = {"set": cell.set, "rows": cell.rows} if cell.rows is not None else {}
    if cell.missing:
        command = {"command": cell.command} if cell.command else {}
        return {"not_run" if command else "missing": cell.missing, **command, **origin}
    return {**cell.figure._asdict(), **origin} if origin else {"value": cell.figure.value}
