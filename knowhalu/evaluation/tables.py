"""Tables of results, written in one way: cells, Markdown, plain fields for JSON, and the files of a result."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from knowhalu.evaluation.bootstrap import Estimate


class ResultTable(NamedTuple):
    """A table: its title, its column heads and its rows, of which the first column is a name.

    `extra` marks a table with more detail than most readers need, `parts` one whose rows are slices of the compared rows.
    """

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    extra: bool = False
    parts: bool = False


def format_percent(figure: Estimate) -> str:
    """Return a share in percent with its interval; a dash where it is not known."""
    return format_number(Estimate(*(None if v is None else 100 * v for v in figure)), digits=1)


def format_number(figure: Estimate, digits: int = 2) -> str:
    """Return a figure with its interval; a dash where it is not known."""
    if figure.value is None:
        return "-"
    interval = "" if figure.low is None or figure.high is None else f" [{figure.low:.{digits}f}, {figure.high:.{digits}f}]"
    return f"{figure.value:.{digits}f}{interval}"


def format_p_value(p: float) -> str:
    """Return a p-value with three digits."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def format_cost(name: str, value: float | None) -> str:
    """Return a cost per row, seconds with four digits; a dash where it is not known."""
    return "-" if value is None else f"{value:,.4f}" if name == "seconds" else f"{value:,.1f}"


def escape_cell(text: str) -> str:
    """Return a text for a cell in Markdown: on one line, its bars escaped."""
    return " ".join(text.split()).replace("|", "\\|")


def table_as_markdown(table: ResultTable, escape: Callable[[str], str] = escape_cell) -> str:
    """Return a table in Markdown, with its title above."""
    return f"**{escape(table.title)}**\n\n{rows_as_markdown(table.head, table.rows, escape)}"


def rows_as_markdown(
    head: Sequence[str], rows: Iterable[Sequence[str]], escape: Callable[[str], str] = escape_cell, names: int = 1
) -> str:
    """Return a head and rows in Markdown; the first columns, so many as there are `names`, are aligned left."""
    lines = ["| " + " | ".join(map(escape, cells)) + " |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * names + "---:|" * (len(head) - names), *lines[1:]])


def table_as_fields(table: ResultTable) -> dict[str, Any]:
    """Return a table as plain fields."""
    return {"title": table.title, "head": list(table.head), "rows": [list(row) for row in table.rows]}


def as_plain(value: Any) -> Any:
    """Return a value as JSON holds it: records as objects, arrays as lists, and null for what is not a finite number."""
    if isinstance(value, np.ndarray):
        return as_plain(value.tolist())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if hasattr(value, "_asdict"):
        return as_plain(value._asdict())
    if is_dataclass(value):
        return {field.name: as_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): as_plain(item) for key, item in value.items()}
    return [as_plain(item) for item in value] if isinstance(value, list | tuple) else value


def as_json_text(content: Any, *, ascii_only: bool = False) -> str:
    """Return plain fields as the text of a JSON file."""
    return json.dumps(content, indent=1, ensure_ascii=ascii_only, allow_nan=False) + "\n"
