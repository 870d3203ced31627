"""A paper's table with rows of ours, as Markdown and as JSON."""

from collections.abc import Iterable, Sequence
from typing import Any

from knowhalu.evaluation.paper_tables import PUBLISHED, Cell, Laid, Row
from knowhalu.evaluation.published import DASH, ILLEGIBLE, NUMBERS, Table, published
from knowhalu.evaluation.report import cell as cell_of
from knowhalu.evaluation.report import number


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
