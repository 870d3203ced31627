"""Read a text as people mean it: blocks, sentences and table rows without marks of layout and citation, with exact offsets.

Assistants write Markdown, number their sources and wrap what they say in courtesies. Every unit keeps the characters that it was
read from, so that whatever is found in it can be marked in the text as it was given.
"""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from knowhalu.text.sentences import MAX_CACHED_CHARS, sentences


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
_BULLET = re.compile(r"\s*(?:[-*+•‣◦–]|\(?\d{1,2}[.)]|\(?[a-z][.)](?=\s+\S{2}))\s+(?:\[[ xX]\]\s+)?")  # noqa: RUF001
_QUOTE = re.compile(r"\s*(?:>\s?)+")
_RULE = re.compile(r"\s*(?:[-*_=]\s*){3,}$")
_TABLE_RULE = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
_MARKS = re.compile(
    r"""
      \s?\[(?:\d{1,3}(?:\s?[,;–-]\s?\d{1,3})*|\^\w+|citation\ needed|source[s]?|(?:doc|document|passage|source|ref)\.?\s?\#?\d{1,3})\](?!\()
    | \s?【[^】\n]{1,40}】
    | (?<=[.,;:!?)\w])(?<![kcmd]m)(?<!\bm)[⁰¹²³⁴-⁹]+(?!\w)
    | \s?\((?:sources?|refs?|references?|see)[:\s]\s?(?:doc(?:ument)?|passage|context|source|\[?\d)[^()\n]{0,40}\)
    | !?\[(?=[^\[\]\n]+\]\([^()\s]+\)) | (?<=[^\[\]\n])\]\([^()\s]+\)
    | </?[a-zA-Z][^<>\n]{0,80}>
    | \*\*|__|~~|`+ | (?<![\w*])[*_](?=[^\s*_]) | (?<=[^\s*_])[*_](?![\w*])
    """,
    re.VERBOSE,
)  # noqa: RUF001


@lru_cache(maxsize=1024)
def _cached_units(text: str) -> tuple[Unit, ...]:
    return tuple(_read(text))


def read_units(text: str) -> tuple[Unit, ...]:
    """Read a text as units, in its order."""
    return _cached_units(text) if len(text) <= MAX_CACHED_CHARS else tuple(_read(text))


class _Line(NamedTuple):
    start: int
    text: str


def _lines(text: str) -> list[_Line]:
    lines, at = [], 0
    for line in text.split("\n"):
        lines.append(_Line(at, line))
        at += len(line) + 1
    return lines


def _read(text: str) -> Iterator[Unit]:
    lines, at, paragraph, heading, lead = _lines(text), 0, 0, "", ""
    while at < len(lines):
        line = lines[at].text
        end = at + 1
        units: list[Unit] = []
        if _FENCE.match(line):
            while end < len(lines) and not _FENCE.match(lines[end].text):
                end += 1
            units = [_plain(row, UnitKind.CODE) for row in lines[at + 1 : end] if row.text.strip()]
            end += 1
        elif "|" in line and end < len(lines) and _TABLE_RULE.match(lines[end].text) and "|" in lines[end].text:
            while end < len(lines) and "|" in lines[end].text:
                end += 1
            units = list(_table(lines[at], lines[at + 2 : end]))
        elif not line.strip() or _RULE.match(line):
            paragraph += 1
            if not line.strip() and units == [] and at and not _BULLET.match(lines[at - 1].text):
                lead = lead if lead.endswith(":") else ""
        elif m := _HEADING.match(line):
            units = list(_sentences(text, lines[at].start + m.end(), lines[at].start + len(line), UnitKind.HEADING))
            heading, lead = (units[0].text if units else ""), ""
            paragraph += 1
        else:
            m = _BULLET.match(line) or _QUOTE.match(line)
            kind = UnitKind.LIST_ITEM if _BULLET.match(line) else UnitKind.SENTENCE
            while end < len(lines) and _continues(lines[end].text, kind):
                end += 1
            start = lines[at].start + (m.end() if m else 0)
            units = list(_sentences(text, start, lines[end - 1].start + len(lines[end - 1].text), kind))
        for unit in units:
            above = heading if unit.kind is not UnitKind.HEADING else ""
            introduced = lead if unit.kind in (UnitKind.LIST_ITEM, UnitKind.TABLE_ROW, UnitKind.CODE) else ""
            yield unit._replace(heading=above, lead=introduced, paragraph=paragraph)
        if units and units[-1].kind is UnitKind.SENTENCE:
            lead = units[-1].text if units[-1].text.endswith(":") else ""
        at = end


def _continues(line: str, kind: UnitKind) -> bool:
    """Tell whether a line goes on with the paragraph or the list item before it."""
    if not line.strip() or _FENCE.match(line) or _HEADING.match(line) or _BULLET.match(line) or _RULE.match(line):
        return False
    return kind is not UnitKind.LIST_ITEM or line[:1].isspace()


def _plain(line: _Line, kind: UnitKind) -> Unit:
    text = line.text.strip()
    start = line.start + line.text.index(text)
    return Unit(start, start + len(text), text, kind, tuple(range(start, start + len(text))))


def strip_marks(text: str, start: int, end: int) -> tuple[str, list[int]]:
    """Return a stretch of a text without marks, white space as single spaces, and the place of every character left."""
    gone = {i for m in _MARKS.finditer(text, start, end) for i in range(m.start(), m.end())}
    kept: list[int] = []
    for i in range(start, end):
        if i not in gone and not (text[i].isspace() and (not kept or text[kept[-1]].isspace())):
            kept.append(i)
    while kept and text[kept[-1]].isspace():
        kept.pop()
    return "".join(" " if text[i].isspace() else text[i] for i in kept), kept


def _sentences(text: str, start: int, end: int, kind: UnitKind) -> Iterator[Unit]:
    clean, places = strip_marks(text, start, end)
    pieces = sentences(clean) if kind is not UnitKind.HEADING else []
    spans: Sequence[tuple[int, int]] = [(p.start, p.end) for p in pieces] or ([(0, len(clean))] if clean else [])
    for a, b in spans:
        yield Unit(places[a], places[b - 1] + 1, clean[a:b], kind, tuple(places[a:b]))


def _cells(line: _Line) -> list[tuple[str, list[int]]]:
    cells, at = [], line.start
    padded = " " * line.start + line.text
    for cell in line.text.split("|"):
        cells.append(strip_marks(padded, at, at + len(cell)))
        at += len(cell) + 1
    if cells and not cells[0][0] and line.text.lstrip().startswith("|"):
        cells = cells[1:]
    return cells[:-1] if cells and not cells[-1][0] and line.text.rstrip().endswith("|") else cells


def _table(header: _Line, rows: Sequence[_Line]) -> Iterator[Unit]:
    """Yield each row as "header: cell; header: cell", empty cells left out."""
    names = [name for name, _ in _cells(header)]
    for row in rows:
        pieces: list[str] = []
        places: list[int] = []
        for i, (cell, at) in enumerate(_cells(row)):
            if not cell:
                continue
            name = names[i] if i < len(names) else ""
            put = f"{'; ' if pieces else ''}{name}{': ' if name else ''}"
            pieces += [put, cell]
            places += [at[0]] * len(put) + at
        if pieces:
            yield Unit(places[0], places[-1] + 1, "".join(pieces), UnitKind.TABLE_ROW, tuple(places))
