"""A claim that names a row of a table, compared with its cells: values, names and superlatives.

A verifier that reads a whole table takes the cell of any row for the one that is asked for. The row is therefore found by its
name, and the cell by its header or by what it measures. Where the row is not certain, or a column of it is not, nothing is said.
"""

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from knowhalu.text.operations import Operation, blank_out, find_operations
from knowhalu.text.sentences import content_words, words
from knowhalu.text.tables import Cell
from knowhalu.text.values import Agreement, Value, ValueKind, compare_values, find_values

Row = tuple[Cell, ...]
Table = Sequence[Row]
MIN_SHARE = 0.5
"""Share of a claim's words that its row and question must have for the row alone to settle it."""
MAX_KEY_WORDS = 8
_NEGATED = re.compile(r"\b(?:not|never|no|none|neither|nor|without|except|cannot)\b|n['’]t\b", re.I)  # noqa: RUF001
_UNIT = re.compile(r"\s*[(\[](?P<unit>[^()\[\]]{1,12})[)\]]\s*$|(?:_(?P<tail>[a-z]{1,8})| (?P<code>[A-Z]{3}))$")
_ONE_OF_SEVERAL = re.compile(
    r"\b(?:one of|among|second|third|fourth|fifth|except|after|not|at (?:the )?(?:most|least|latest|earliest)|than)\b", re.I
)
_SIDES: dict[ValueKind | None, dict[str, int]] = {
    None: dict.fromkeys("highest most largest biggest greatest longest tallest heaviest maximum".split(), 1)
    | dict.fromkeys("lowest fewest least smallest shortest lightest minimum".split(), -1),
    ValueKind.MONEY: {"cheapest": -1, "dearest": 1, "most expensive": 1, "least expensive": -1, "highest": 1, "lowest": -1},
    ValueKind.DATE: {"oldest": -1, "earliest": -1, "newest": 1, "latest": 1, "most recent": 1},
    ValueKind.TIME: {"earliest": -1, "latest": 1},
}
"""Which end of a column a superlative speaks of, by what the column has; None for numbers and measurements."""


class CellCheck(NamedTuple):
    """The row that a claim names, as a sentence, and whether its cells agree with the claim; None where they leave it open.

    `cell` is what decides, as "price $69".
    """

    text: str
    agreement: Agreement | None
    cell: str = ""


def check_cells(claim: str, question: str, table: Table) -> CellCheck | None:
    """Compare a claim with the row of a table that it names; None where it names none, or several."""
    found = _named_row(table, claim, question)
    if found is None:
        return None
    row, key = found
    said = _without(f"{question} {claim}".strip(), key.text)
    text = row_text(row, key)
    if _NEGATED.search(claim):
        return CellCheck(text, None)
    checks = [
        *_values(table, row, key, said),
        *_names(table, row, key, said),
        *_superlatives(table, row, key, f"{question} {claim}"),
    ]
    decided = next((c for a in (Agreement.DIFFERENT, Agreement.EQUAL) for c in checks if c[1] is a), None)
    if decided is None:
        return CellCheck(text, None)
    cell, agreement = decided
    known = set(content_words(f"{text} {question}")) | {w for c in row for w in _header_words(c)}
    wanted = content_words(_without_values(claim))
    covered = sum(w in known for w in wanted) >= MIN_SHARE * len(wanted)
    if agreement is Agreement.EQUAL and not (covered and _explains(table, row, key, claim, question)):
        return CellCheck(text, None)
    return CellCheck(text, agreement, f"{_plain_header(cell)} {cell.text}".strip())


def _explains(table: Table, row: Row, key: Cell, claim: str, question: str) -> bool:
    """Tell whether a row, its headers, the question or the number of rows has every value of a claim."""
    values = find_values(_without(claim, key.text))
    given = [*find_values(question), *(h for c in row for h in find_values(_plain_header(c)))]
    rows = set(content_words(key.header.replace("_", " ")))
    explained = {
        v.start
        for v in values
        if any(compare_values(v, g) is Agreement.EQUAL for g in given)
        or any(_compare([v], c) is Agreement.EQUAL for c in row)
        or (v.nominal == len(table) and rows & set(v.unit.split()))
    }
    return all(v.start in explained for v in values)  # a number that may be a year is two values


def row_text(row: Row, key: Cell) -> str:
    """Write a row as a sentence about its key: "Family: storage 50 GB, price $69."."""
    cells = ", ".join(f"{_plain_header(c)} {_with_unit(c)}".strip() for c in row if c is not key)
    return f"{key.text}: {cells}."


def _plain_header(cell: Cell) -> str:
    header = _UNIT.sub("", cell.header) if _unit_of(cell) else cell.header
    return " ".join(w if w.isupper() else w.lower() for w in header.replace("_", " ").split())


def _header_words(cell: Cell) -> frozenset[str]:
    return frozenset(content_words(_plain_header(cell)))


@lru_cache(maxsize=2048)
def _unit_in(header: str) -> str:
    """Return the unit that a header gives for its cells, as "kcal" in "Calories (kcal)" and "EUR" in "price_eur"."""
    m = _UNIT.search(header)
    unit = (m["unit"] or m["tail"] or m["code"]).strip() if m else ""
    unit = {"millions": "million", "thousands": "thousand", "billions": "billion", "eur": "EUR", "usd": "USD"}.get(unit, unit)
    plain = find_values(f"7 {unit}") if unit else ()
    known = len(plain) == 1 and (plain[0].kind not in (ValueKind.COUNT, ValueKind.DATE) or plain[0].nominal != 7)
    return unit if known else ""


def _unit_of(cell: Cell) -> str:
    return _unit_in(cell.header) if re.fullmatch(r"[-+]?[\d.,]+", cell.text) else ""


def _with_unit(cell: Cell) -> str:
    return f"{cell.text} {_unit_of(cell)}".strip()


def _is_name(cell: Cell) -> bool:
    return any(c.isalpha() for c in cell.text) and not any(v.text == cell.text.strip() for v in find_values(cell.text))


def _column(table: Table, header: str) -> list[Cell]:
    return [c for row in table for c in row if c.header == header]


def _named_row(table: Table, claim: str, question: str) -> tuple[Row, Cell] | None:
    """Return the only row that claim or question name, and its cell that is named, in the first column of distinct names."""
    for header in dict.fromkeys(c.header for row in table for c in row):
        cells = _column(table, header)
        if len({c.text.lower() for c in cells}) < len(table) or not all(map(_is_name, cells)):
            continue
        for said in (claim, question):
            given = set(content_words(said))
            named = [c for c in cells if 0 < len(w := content_words(c.text)) <= MAX_KEY_WORDS and set(w) <= given]
            # "Gold" is no second row beside "Gold Plus"
            named = [c for c in named if not any(set(content_words(c.text)) < set(content_words(o.text)) for o in named)]
            if len(named) > 1:
                return None
            if named:
                return next((row, named[0]) for row in table if any(c is named[0] for c in row))
    return None


def _without(said: str, key: str) -> str:
    """Return what is said with the words of the key left out, so that the number of "Route 7" is no value."""
    gone = set(content_words(key))
    for word in reversed(words(said)):
        if set(content_words(word.text)) & gone:
            said = said[: word.start] + " " * (word.end - word.start) + said[word.end :]
    return said


def _without_values(text: str) -> str:
    return blank_out(text, find_values(text))


def _compare(values: Sequence[Value], cell: Cell) -> Agreement | None:
    """Return the best agreement of values with a cell, which is read with the unit of its header, with the header, and alone."""
    header = _plain_header(cell)
    ranked = () if find_values(header) else (f"{header} {cell.text}",)
    forms = dict.fromkeys((_with_unit(cell), *ranked, cell.text))
    found = [_limited(v, c, compare_values(v, c)) for text in forms for c in find_values(text) for v in values]
    return next((a for a in (Agreement.EQUAL, Agreement.OPEN, Agreement.DIFFERENT) if a in found), None)


def _limited(value: Value, cell: Value, agreement: Agreement | None) -> Agreement | None:
    """Return whether a cell confirms or contradicts a value; where the table has 5 kg, "up to 10 kg" is not confirmed."""
    other = math.isinf(value.low) and not math.isclose(value.nominal, cell.nominal, rel_tol=1e-6)
    return Agreement.OPEN if other and agreement is Agreement.EQUAL else agreement


def _values(table: Table, row: Row, key: Cell, said: str) -> Iterator[tuple[Cell, Agreement]]:
    """Compare the values of a claim with the cells of the columns that it names; without any, with those of the same measure."""
    results = {o.value.start for o in find_operations(said) if o.operation not in (Operation.DURATION, Operation.AGE)}
    values = [v for v in find_values(said) if v.start not in results]
    wanted = set(content_words(said))
    headers = [h for c in row for h in find_values(_plain_header(c))]
    values = [v for v in values if not any(compare_values(v, h) is Agreement.EQUAL for h in headers)]
    cells = [c for c in row if c is not key and not _is_name(c) and find_values(c.text)]
    named = [c for c in cells if _header_words(c) & wanted]
    same = [c for c in (named or cells) if _compare(values, c) is Agreement.EQUAL]
    yield from ((c, Agreement.EQUAL) for c in same)
    left = [v for v in values if all(_compare([v], c) is not Agreement.EQUAL for c in same)]
    for cell in named:
        beside = [*_column(table, cell.header), *row]
        about = [v for v in left if _may_be_of(v, cell) or any(_compare([v], c) is Agreement.EQUAL for c in beside)]
        if cell not in same and _compare(about, cell) is Agreement.DIFFERENT:
            yield cell, Agreement.DIFFERENT
    for value in left if not named else []:
        like = [c for c in cells if _compare([value], c) is not None]
        elsewhere = [c for c in like if any(_compare([value], o) is Agreement.EQUAL for o in _column(table, c.header))]
        if len(like) == 1 and (elsewhere or value.kind in (ValueKind.MONEY, ValueKind.SHARE)) and not same:
            yield like[0], Agreement.DIFFERENT


def _may_be_of(value: Value, cell: Cell) -> bool:
    """Tell whether a value may be that of a column: what it counts, if anything, is in the header."""
    return value.kind is not ValueKind.COUNT or not value.unit or bool(set(value.unit.split()) & _header_words(cell))


def _names(table: Table, row: Row, key: Cell, said: str) -> Iterator[tuple[Cell, Agreement]]:
    """Compare the words of a claim with the cells that are names: that of another row in the column contradicts its own."""
    wanted = set(content_words(said))
    for cell in row:
        own = set(content_words(cell.text))
        if cell is key or not _is_name(cell) or not own:
            continue
        if own <= wanted:
            yield cell, Agreement.EQUAL
            continue
        others = [set(content_words(c.text)) - own for c in _column(table, cell.header) if c.text != cell.text]
        in_row = {w for c in row for w in (*content_words(c.text), *_header_words(c))}
        if any(o and o <= wanted and not o & in_row for o in others):
            yield cell, Agreement.DIFFERENT


def _superlatives(table: Table, row: Row, key: Cell, said: str) -> Iterator[tuple[Cell, Agreement]]:
    """Compare the row with the one that has the largest or smallest value of the only column that a superlative can speak of."""
    if _ONE_OF_SEVERAL.search(said):
        return
    wanted = set(content_words(said))
    sides = {c: side for c in row if c is not key and not _is_name(c) and (side := _side(said, c))}
    named = {c: side for c, side in sides.items() if _header_words(c) & wanted} or {
        c: side for c, side in sides.items() if _kind(c) in _SIDES
    }
    if len(named) != 1:
        return
    cell, side = next(iter(named.items()))
    numbers = [n for c in _column(table, cell.header) if (n := _number(c)) is not None]
    own = _number(cell)
    if own is not None and len(numbers) == len(table) and numbers.count(own) == 1:
        yield cell, Agreement.EQUAL if own == (max if side > 0 else min)(numbers) else Agreement.DIFFERENT


def _side(said: str, cell: Cell) -> int:
    """Return 1 where a superlative of a claim means the largest value of a column, -1 the smallest, 0 where there is none."""
    kind = _kind(cell)
    known = _SIDES.get(kind, _SIDES[None]) if kind else {}
    phrases = {side for phrase, side in known.items() if re.search(rf"\b{phrase}\b", said, re.I)}
    return phrases.pop() if len(phrases) == 1 else 0


def _only_value(cell: Cell) -> Value | None:
    """Return the value of a cell that is one, a year as a date."""
    values = sorted(find_values(_with_unit(cell)), key=lambda v: v.kind is not ValueKind.DATE)
    return values[0] if len({v.start for v in values}) == 1 else None


def _number(cell: Cell) -> float | None:
    value = _only_value(cell)
    return value.nominal if value else None


def _kind(cell: Cell) -> ValueKind | None:
    value = _only_value(cell)
    return value.kind if value else None
