"""Read a text as people mean it: blocks, sentences and table rows without marks of layout and citation, with exact offsets.

Assistants write Markdown, number their sources and wrap what they say in courtesies. Every unit keeps the characters that it was
read from, so that whatever is found in it can be marked in the text as it was given.
"""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from knowhalu.text.marks import strip_marks
from knowhalu.text.sentences import MAX_CACHED_CHARS, sentences
from knowhalu.text.tables import Cell, Line, table_cells, table_end, table_rows


class UnitKind(StrEnum):
    """What a unit of a text is."""

    SENTENCE = "sentence"
    LIST_ITEM = "list item"
    TABLE_ROW = "table row"
    HEADING = "heading"
    CODE = "code"


class Unit(NamedTuple):
    """A sentence, list item, table row, heading or line of code; `heading` and `lead` are what stands above it.

    `text` is without marks; `offsets[i]` is the place of its character i in the whole text. The text of a table row is
    "header: cell; header: cell", of which all characters have the place of their cell.
    """

    start: int
    end: int
    text: str
    kind: UnitKind
    offsets: tuple[int, ...]
    heading: str = ""
    lead: str = ""
    paragraph: int = 0

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return where characters `start` to `end` of the unit's text are in the whole text."""
        return (self.offsets[start], self.offsets[end - 1] + 1) if end > start else (self.start, self.start)


_FENCE = re.compile(r"\s*(?:```|~~~)")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+")
_BULLET = re.compile(r"\s*(?:[-*+•‣◦–]|\(?\d{1,2}[.)]|\(?[a-z][.)](?=\s+\S{2}))\s+(?:\[[ xX]\]\s+)?|\s*\[\^?\w{1,4}\]:\s+")  # noqa: RUF001
_RULE = re.compile(r"\s*(?:[-*_=]\s*){3,}$")
_UNDERLINE = re.compile(r"\s{0,3}(?:=+|-{3,})\s*$")
_BOLD_LINE = re.compile(r"\s*(\*\*|__)(?P<text>(?:(?!\1).)+)\1:?\s*$")
_FIELD = re.compile(r"\s*[*_]{0,3}\w[\w ()/,.'’&-]{0,40}:[*_]{0,3}\s+\S")  # noqa: RUF001
_ONLY_ADDRESS = re.compile(r"\s*(?:[-*]\s+|\d{1,2}[.)]\s+|\[\^?\w{1,4}\]:?\s*)?<?https?://\S+\s*$")
MAX_TITLE_WORDS = 6


@lru_cache(maxsize=1024)
def _cached_units(text: str) -> tuple[Unit, ...]:
    return tuple(_read(text))


def read_units(text: str) -> tuple[Unit, ...]:
    """Read a text as units, in its order."""
    return _cached_units(text) if len(text) <= MAX_CACHED_CHARS else tuple(_read(text))


@lru_cache(maxsize=64)
def read_tables(text: str) -> tuple[tuple[tuple[Cell, ...], ...], ...]:
    """Return the tables of a text, each as its rows of cells."""
    found = (b for b in _blocks(_lines(text)) if b.kind is UnitKind.TABLE_ROW)
    return tuple(tuple(tuple(row) for row in table_cells(text, b.lines)) for b in found)


def _lines(text: str) -> list[Line]:
    lines, at = [], 0
    for line in text.split("\n"):
        lines.append(Line(at, line))
        at += len(line) + 1
    return lines


def _read(text: str) -> Iterator[Unit]:
    heading, lead, paragraph = "", "", 0
    for block in _blocks(_lines(text)):
        units = list(_units(text, block))
        if not units:
            paragraph += 1
            lead = lead if lead.endswith(":") else ""
            continue
        last = units[-1]
        if last.kind is UnitKind.HEADING:
            heading, lead, paragraph = last.text, "", paragraph + 1
            yield last._replace(paragraph=paragraph)
            continue
        for unit in units:
            introduced = unit.kind is not UnitKind.SENTENCE
            yield unit._replace(heading=heading, lead=lead if introduced else "", paragraph=paragraph)
        if last.kind is UnitKind.SENTENCE:
            lead = last.text if last.text.endswith(":") else ""


class _Block(NamedTuple):
    """Lines that belong together; `kind` is None for an empty line or a rule."""

    kind: UnitKind | None
    lines: Sequence[Line]


def _blocks(lines: Sequence[Line]) -> Iterator[_Block]:
    at = 0
    while at < len(lines):
        kind, end = _kind_at(lines, at), at + 1
        if kind is UnitKind.CODE:
            while end < len(lines) and not _FENCE.match(lines[end].text):
                end += 1
            yield _Block(kind, lines[at + 1 : end])
            end += 1
        elif kind is UnitKind.TABLE_ROW:
            end = table_end(lines, at)
            yield _Block(kind, lines[at:end])
        else:
            while kind in (UnitKind.SENTENCE, UnitKind.LIST_ITEM) and end < len(lines) and _continues(lines, end, kind):
                end += 1
            yield _Block(kind, lines[at:end])
        at = end


def _kind_at(lines: Sequence[Line], at: int) -> UnitKind | None:
    line = lines[at].text
    if _FENCE.match(line):
        return UnitKind.CODE
    if table_end(lines, at) > at:
        return UnitKind.TABLE_ROW
    if not line.strip(" \t>") or _RULE.match(line) or (_ONLY_ADDRESS.match(line) and len(lines) > 1):
        return None
    if _HEADING.match(line) or _is_title(lines, at):
        return UnitKind.HEADING
    return UnitKind.LIST_ITEM if _BULLET.match(line) or _is_field(lines, at) else UnitKind.SENTENCE


def _is_title(lines: Sequence[Line], at: int) -> bool:
    """Tell whether a short line is a heading: underlined, or all of it bold with something below."""
    line, below = lines[at].text, lines[at + 1 :]
    bold = _BOLD_LINE.match(line)
    text = bold["text"] if bold else line
    if len(text.split()) > MAX_TITLE_WORDS or text.rstrip()[-1:] in (".", "!", "?"):
        return False
    if below and _UNDERLINE.match(below[0].text):
        return True
    return bold is not None and any(c.text.strip() for c in below)


def _is_field(lines: Sequence[Line], at: int) -> bool:
    """Tell whether a line is one of several like "Owner: Tom"."""
    beside = (i for i in (at - 1, at + 1) if 0 <= i < len(lines))
    return bool(_FIELD.match(lines[at].text)) and any(_FIELD.match(lines[i].text) for i in beside)


def _units(text: str, block: _Block) -> Iterator[Unit]:
    """Yield the units of a block; an empty line has none."""
    if block.kind is UnitKind.CODE:
        yield from (_plain(row, UnitKind.CODE) for row in block.lines if row.text.strip())
    elif block.kind is UnitKind.TABLE_ROW:
        for row, places in table_rows(text, block.lines):
            yield Unit(places[0], places[-1] + 1, row, UnitKind.TABLE_ROW, tuple(places))
    elif block.kind is not None:
        first, last = block.lines[0], block.lines[-1]
        m = _HEADING.match(first.text) or _BULLET.match(first.text)
        yield from _sentences(text, first.start + (m.end() if m else 0), last.start + len(last.text), block.kind)


def _continues(lines: Sequence[Line], at: int, kind: UnitKind | None) -> bool:
    """Tell whether a line goes on with the paragraph or the list item before it."""
    line = lines[at].text
    if _FENCE.match(line) or _kind_at(lines, at) is not UnitKind.SENTENCE:
        return False
    return kind is not UnitKind.LIST_ITEM or line[:1].isspace()


def _plain(line: Line, kind: UnitKind) -> Unit:
    text = line.text.strip()
    start = line.start + line.text.index(text)
    return Unit(start, start + len(text), text, kind, tuple(range(start, start + len(text))))


def _sentences(text: str, start: int, end: int, kind: UnitKind) -> Iterator[Unit]:
    clean, places = strip_marks(text, start, end)
    pieces = sentences(clean) if kind is not UnitKind.HEADING else []
    spans: Sequence[tuple[int, int]] = [(p.start, p.end) for p in pieces] or ([(0, len(clean))] if clean else [])
    for a, b in spans:
        yield Unit(places[a], places[b - 1] + 1, clean[a:b], kind, tuple(places[a:b]))
