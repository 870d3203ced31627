"""Tables in a text: Markdown, bare pipes, tabs, commas and flat JSON, each row as "header: cell; header: cell"."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from knowhalu.text.marks import strip_marks


class Line(NamedTuple):
    """A line of a text and its place."""

    start: int
    text: str


class Cell(NamedTuple):
    """A cell with its header, and the place of every character."""

    header: str
    text: str
    places: tuple[int, ...]


_RULE = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
_SEPARATORS = {"|": 1, "\t": 1, ",": 2}
"""What separates the cells of a row, and how many of them a row without a rule below its header must have."""
_OBJECT = re.compile(r"\{[^{}]*\}")
_MEMBER = re.compile(r'"(?P<name>(?:[^"\\]|\\.)*)"\s*:\s*(?P<value>"(?:[^"\\]|\\.)*"|-?[\d.eE+-]+|true|false)')
_JSON_OPENING = re.compile(r"\s*(?:\[\s*(?:\{|$)|\{\s*(?:\"|$))")
MIN_ROWS, MAX_JSON_LINES, MAX_JSON_ENDS = 3, 400, 8
"""Rows, with the header, of a table that only its separators show; lines that are read as JSON, and ends tried, at most."""


def table_end(lines: Sequence[Line], at: int) -> int:
    """Return the line after the table that begins at a line; the line itself where none does."""
    line, below = lines[at].text, lines[at + 1].text if at + 1 < len(lines) else ""
    if "|" in line and "|" in below and _RULE.match(below):
        return next((i for i in range(at, len(lines)) if "|" not in lines[i].text), len(lines))
    if _JSON_OPENING.match(line):
        return _json_end(lines, at)
    separator = _separator(line)
    if separator is None:
        return at
    count = line.count(separator)
    end = next((i for i in range(at, len(lines)) if not _is_row(lines[i].text, separator, count)), len(lines))
    return end if end - at >= MIN_ROWS else at


def _separator(line: str) -> str | None:
    return next((mark for mark, least in _SEPARATORS.items() if _is_row(line, mark, max(least, line.count(mark)))), None)


def _is_row(line: str, separator: str, count: int) -> bool:
    """Tell whether a line is a row: so many separators, which no prose has, and cells between them."""
    if line.count(separator) != count or line.rstrip().endswith((".", "?", "!", ":", separator if separator == "," else ".")):
        return False
    return any(c.strip() for c in line.split(separator)) and not (separator == "," and ", " in line)


def _json_end(lines: Sequence[Line], at: int) -> int:
    opening = lines[at].text.lstrip()[0]
    closing = "]" if opening == "[" else "}"
    within = range(at, min(len(lines), at + MAX_JSON_LINES))
    for end in [i for i in within if lines[i].text.rstrip().endswith(closing)][:MAX_JSON_ENDS]:
        try:
            found = json.loads("\n".join(line.text for line in lines[at : end + 1]))
        except (ValueError, RecursionError):
            continue
        objects = found if isinstance(found, list) else [found]
        flat = all(isinstance(o, dict) and o and not any(isinstance(v, dict | list) for v in o.values()) for o in objects)
        return end + 1 if objects and flat else at
    return at


def table_rows(text: str, lines: Sequence[Line]) -> Iterator[tuple[str, list[int]]]:
    """Yield each row as "header: cell; header: cell", empty cells left out, and the place of each character.

    The characters of a header have the place of their cell.
    """
    for row in table_cells(text, lines):
        pieces: list[str] = []
        places: list[int] = []
        for cell in row:
            put = f"{'; ' if pieces else ''}{cell.header}{': ' if cell.header else ''}"
            pieces += [put, cell.text]
            places += [cell.places[0]] * len(put) + list(cell.places)
        yield "".join(pieces), places


def table_cells(text: str, lines: Sequence[Line]) -> Iterator[list[Cell]]:
    """Yield the cells of each row, without the empty ones; a row without any is left out."""
    rows = _rows(text, lines)
    yield from (row for cells in rows if (row := [c for c in cells if c.text]))


def _rows(text: str, lines: Sequence[Line]) -> Iterator[list[Cell]]:
    if _JSON_OPENING.match(lines[0].text):
        yield from _objects(text, lines[0].start, lines[-1].start + len(lines[-1].text))
        return
    ruled = len(lines) > 1 and _RULE.match(lines[1].text) is not None
    separator = "|" if ruled else _separator(lines[0].text) or "|"
    names = [name for name, _ in _cells(lines[0], separator)]
    for line in lines[2:] if ruled else lines[1:]:
        cells = _cells(line, separator)
        yield [Cell(names[i] if i < len(names) else "", cell, tuple(places)) for i, (cell, places) in enumerate(cells)]


def _objects(text: str, start: int, end: int) -> Iterator[list[Cell]]:
    for found in _OBJECT.finditer(text, start, end):
        cells = []
        for m in _MEMBER.finditer(text, found.start(), found.end()):
            quoted = m["value"].startswith('"')
            a, b = m.start("value") + quoted, m.end("value") - quoted
            cells.append(Cell(m["name"], text[a:b], tuple(range(a, b))))
        yield cells


def _cells(line: Line, separator: str) -> list[tuple[str, list[int]]]:
    cells, at = [], line.start
    padded = " " * line.start + line.text
    for cell in line.text.split(separator):
        cells.append(strip_marks(padded, at, at + len(cell)))
        at += len(cell) + 1
    outer = separator == "|"
    if outer and cells and not cells[0][0] and line.text.lstrip().startswith("|"):
        cells = cells[1:]
    return cells[:-1] if outer and cells and not cells[-1][0] and line.text.rstrip().endswith("|") else cells
