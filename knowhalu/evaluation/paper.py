"""The tables of the papers, with rows of our own from earlier comparisons below the published ones."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from knowhalu.evaluation.bootstrap import Estimate
from knowhalu.evaluation.dataset import LENGTH_RULE
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
from knowhalu.registry import method_card

PUBLISHED, OURS = "published", "ours"
FITTED_SETTINGS = ("delta1", "delta2", "theta")
"""Settings that may differ: the papers fit them on validation rows."""
FORM_SETTINGS = ("base_form", "second_opinion")
"""Settings of KnowHalu that choose the form of knowledge."""
NEEDED_MODEL = "a 7B model"
BOTH_FORMS = "knowhalu[second_opinion=always]"
"""A run with the results of each form of knowledge alone, and of both together."""


class PaperCell(NamedTuple):
    """A number, as printed or in percent, or the reason why it is missing; ours with interval, set and rows."""

    figure: Estimate = Estimate(None)
    missing: str = ""
    set: str = ""
    rows: int | None = None


class PaperRow(NamedTuple):
    """A row: its labels, its origin ("published", "encoder", "llm:MODEL", "rule"), and a cell for each column."""

    labels: tuple[str, ...]
    by: str
    cells: tuple[PaperCell, ...]


class FormResult(NamedTuple):
    """A result of ours with its metrics, or with those of one form of knowledge."""

    result: PastResult
    figures: Mapping[str, Estimate]


class PaperTable(NamedTuple):
    """A table with all its rows, and the commands that would produce the missing results."""

    table: PublishedTable
    rows: tuple[PaperRow, ...]
    commands: tuple[str, ...]


def make_paper_table(table: PublishedTable, runs: Path, data: str = "DATA") -> PaperTable:
    """Add our rows, from the comparisons `runs`/SET, below the published ones; `data` is the folder of the data sets.

    Raises InputError where a comparison cannot be read.
    """
    read = {name: _read_past_run(name, runs) for name in _sets(table)}
    is_compared = any(read.values()) and "seconds" not in {c.metric for c in table.columns}
    beside = [OwnRow(labels=(LENGTH_RULE,), method=LENGTH_RULE)] if is_compared else []
    ours = [row for wanted in (*table.ours, *beside) for row in _rows(table, wanted, read)]
    theirs = [PaperRow(table.labels_of(r), PUBLISHED, tuple(map(_printed, table.values_of(r)))) for r in table.rows]
    return PaperTable(table, (*theirs, *(row for row, _ in ours)), tuple(_commands([s for _, s in ours], read, runs, data)))


def _sets(table: PublishedTable) -> list[str]:
    return [name for name in dict.fromkeys([*(c.set for c in table.columns), *(o.set for o in table.ours)]) if name]


def _read_past_run(name: str, runs: Path) -> PastRun | None:
    """Read the comparison on a set, if there is one."""
    folders = [runs / folder for folder in read_published().sets[name].folders]
    return next((read_past_run(folder) for folder in folders if (folder / "comparison.json").exists()), None)


def _rows(table: PublishedTable, wanted: OwnRow, read: Mapping[str, PastRun | None]) -> list[tuple[PaperRow, list[OwnRow]]]:
    """Return one row for each origin of a result, or one row of reasons; each with the results that are missing."""
    own = [wanted.model_copy(update={"method": wanted.method or c.method, "set": wanted.set or c.set}) for c in table.columns]
    timed = any(column.metric in UNSCALED_METRICS for column in table.columns)
    results = {row: _form_results(row, read[row.set], timed=timed) for row in own}
    labels = (*[OURS] * (len(table.labels) - len(wanted.labels)), *wanted.labels)
    rows = []
    for maker in dict.fromkeys(r.result.maker for several in results.values() for r in several) or (DASH,):
        of_maker = {row: next((r for r in several if r.result.maker == maker), None) for row, several in results.items()}
        cells = tuple(_cell(c, row, of_maker[row], read[row.set]) for c, row in zip(table.columns, own, strict=True))
        rows.append((PaperRow(labels, maker, cells), [row for row, result in of_maker.items() if result is None]))
    return rows


def _form_results(wanted: OwnRow, run: PastRun | None, *, timed: bool) -> list[FormResult]:
    """Return the results of a run that match a row; a result that judged more than necessary has no valid time."""
    if run is None:
        return []
    exact = [r for r in _matching(wanted, run) if not timed or (r.whole and r.settings.get("second_opinion") != "always")]
    figures = [(r, _figures(run, r, wanted)) for r in exact]
    return [FormResult(result, metrics) for result, metrics in figures if metrics is not None]


def _matching(wanted: OwnRow, run: PastRun) -> list[PastResult]:
    """Return the results of a method with the settings of a row and defaults for all others."""
    (spec,) = parse_specs([wanted.method])
    results = [r for r in run.results if r.method == spec.method]
    if spec.method == LENGTH_RULE:
        return [r for r in results if r.name == min(results, key=lambda r: r.name != LENGTH_RULE).name]
    settings = spec._replace(reasoner="llm").settings(None, ())
    usual = settings.method_options(method_card(spec.method)).model_dump(mode="json")
    free = {*FITTED_SETTINGS, *(FORM_SETTINGS if spec.method == "knowhalu" else ())}
    return [r for r in results if all(r.settings.get(name, value) == value for name, value in usual.items() if name not in free)]


def _cell(column: PublishedColumn, wanted: OwnRow, given: FormResult | None, run: PastRun | None) -> PaperCell:
    if given is None:
        return PaperCell(missing=_why_not(wanted, run), set=wanted.set)
    rows = given.result.rows
    if column.metric in UNSCALED_METRICS:
        figure = Estimate(given.result.seconds)
    elif column.metric in given.figures:
        figure = _in_percent(given.figures[column.metric])
    else:
        return PaperCell(missing="the comparison is of an earlier version: make it again", set=wanted.set, rows=rows)
    return PaperCell(figure, "" if figure.value is not None else "cannot be given on these rows", wanted.set, rows)


def _figures(run: PastRun, result: PastResult, wanted: OwnRow) -> Mapping[str, Estimate] | None:
    """Return the metrics of a result, or of one form of knowledge in it; None where it has not judged that way."""
    base, second = (result.settings.get(name) for name in FORM_SETTINGS)
    if wanted.form is None:
        return None if second == "never" else result.figures
    if second == "never":
        return result.figures if base == wanted.form else None
    return metrics_by_form(run, result, wanted.form) if result.whole and (wanted.form == base or second == "always") else None


def _why_not(wanted: OwnRow, run: PastRun | None) -> str:
    known = read_published().sets[wanted.set]
    needs = [*([known.needs] if run is None and known.needs else []), *([NEEDED_MODEL] if _by_model(wanted) else [])]
    return f"needs {', and '.join(needs)}" if needs else "the encoder can, but has not been run"


def _by_model(wanted: OwnRow) -> bool:
    (spec,) = parse_specs([wanted.method])
    card = method_card(spec.method)
    return bool(card.reasoners) and (spec.reasoner == "llm" or "encoder" not in card.reasoners)


def _commands(missing: Iterable[Sequence[OwnRow]], read: Mapping[str, PastRun | None], runs: Path, data: str) -> Iterator[str]:
    """Yield for each set one command for the missing results of the encoder, and one for those of a language model."""
    todo: dict[tuple[str, bool], list[str]] = {}
    for wanted in (ours for several in missing for ours in several if ours.method != LENGTH_RULE):
        known = read_published().sets[wanted.set]
        if known.dataset and not (known.needs and read[wanted.set] is None):
            todo.setdefault((wanted.set, _by_model(wanted)), []).append(_spec(wanted))
    for (name, _), specs in sorted(todo.items()):
        run = read[name]
        past = [result.spec for result in run.results if result.spec] if run else []
        new = [spec for spec in specs if spec != "knowhalu" or BOTH_FORMS not in specs]
        methods = ",".join(dict.fromkeys([*past, *new]))
        yield f'knowhalu eval {read_published().sets[name].dataset} --data {data} -m "{methods}" -o {runs}'


def _spec(wanted: OwnRow) -> str:
    """Return the specification of a method for `knowhalu eval`."""
    (spec,) = parse_specs([wanted.method])
    pairs = [*(p.partition(".")[2] for p in spec.pairs), *(["second_opinion=always"] if wanted.form else [])]
    inside = f"[{','.join(pairs)}]" if pairs else ""
    return f"{spec.method}{':llm' if _by_model(wanted) else ''}{inside}"


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

    A cell of ours is {value, low, high, set, rows}, {missing: reason, set, rows} or {not_run: reason}.
    """
    table = laid.table
    return {
        "paper": table.paper, "title": read_published().papers[table.paper].title, "table": table.number, "about": table.about,
        "labels": list(table.labels), "columns": [c.model_dump(include={"name", "metric", "set"}) for c in table.columns],
        "rows": [{"labels": list(r.labels), "by": r.by, "cells": [_fields(c) for c in r.cells]} for r in laid.rows],
        "needs": table.needs, "note": table.note, "commands": list(laid.commands),
    }  # fmt: skip


def _reasons(laid: PaperTable) -> list[str]:
    return list(dict.fromkeys(c.missing for row in laid.rows if row.by != PUBLISHED for c in row.cells if c.missing))


def _texts(table: PublishedTable, row: PaperRow, reasons: Sequence[str]) -> list[str]:
    cells = zip(row.cells, table.columns, strict=True)
    return [*row.labels, row.by, *(_cell_text(cell, column.metric, row.by, reasons) for cell, column in cells)]


def _cell_text(cell: PaperCell, metric: str, by: str, reasons: Sequence[str]) -> str:
    if by == PUBLISHED:
        return cell.missing or f"{cell.figure.value:g}"
    if cell.missing:
        return f"{'not run' if cell.rows is None else DASH} ({reasons.index(cell.missing) + 1})"
    return format_number(cell.figure, digits=2 if metric in UNSCALED_METRICS else 1)


def _remarks(laid: PaperTable, reasons: Sequence[str]) -> list[str]:
    """Return the notes that a reader needs: how our numbers were obtained, and why some are missing."""
    table = laid.table
    sizes = {(cell.set, cell.rows) for row in laid.rows for cell in row.cells if cell.rows is not None}
    counted = ", ".join(f"{name} {rows:,}" for name, rows in sorted(sizes))
    remarks = [f"Ours with 95 % bootstrap intervals, on so many rows: {counted}."] if counted else []
    if any(c.missing == ILLEGIBLE for r in laid.rows for c in r.cells):
        remarks.append("?: not legible in the edition of the paper that was read.")
    remarks += [table.note] if table.note else []
    remarks += [f"Ours are not run: they need {table.needs}."] if table.needs else []
    remarks += ["\n".join(f"- ({i}) {reason}" for i, reason in enumerate(reasons, 1))] if reasons else []
    return [*remarks, "\n".join(f"    {command}" for command in laid.commands)] if laid.commands else remarks


def _fields(cell: PaperCell) -> dict[str, Any]:
    origin = {"set": cell.set, "rows": cell.rows} if cell.rows is not None else {}
    if cell.missing:
        return {"not_run" if cell.set and not origin else "missing": cell.missing, **origin}
    return {**cell.figure._asdict(), **origin} if origin else {"value": cell.figure.value}
