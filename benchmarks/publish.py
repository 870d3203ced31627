#!/usr/bin/env python
"""Write the measured tables into the pages that show them.

A page marks the place of a table. The first form takes the second table of a file of `benchmarks/results` as it is; the other
one takes some of its columns, by their titles, and keeps the header that the page has (`#2` names the second column of a title,
`-` one without a title):

    <!-- table quality.md 2 -->                              <!-- table quality.md 1: set | rows | trivial#2 -->
    ... the table ...                                        ... the header, and the rows ...
    <!-- end -->                                             <!-- end -->

A table without a mark (in the model card) is exchanged for the one with the same header that has the most row names in common.
Text beside a table is left alone: read it again where a table has changed.
"""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "knowhalu/weights/verifier/README.md",
)
_TABLE = re.compile(r"(?:^\|.*\|[ ]*\n){3,}", re.MULTILINE)
_REGION = re.compile(r"(<!-- table (\S+) (\d+)(?:: (.+?))? -->\n)(.*?)(<!-- end -->)", re.DOTALL)

Tables = dict[str, list[str]]


def tables(text: str) -> Iterator[re.Match[str]]:
    """Find the Markdown tables of a text."""
    return _TABLE.finditer(text)


def measured(results: Path) -> Tables:
    """Return the tables of every file of results."""
    return {path.name: [match[0] for match in tables(path.read_text(encoding="utf-8"))] for path in sorted(results.glob("*.md"))}


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _columns(table: str, titles: str) -> str:
    """Return the rows of a table, with the columns of these titles; raises ValueError where one is not there."""
    header, _, *rows = (_cells(line) for line in table.splitlines())
    header = [title or "-" for title in header]
    named = [f"{title}#{header[:i].count(title) + 1}" if title in header[:i] else title for i, title in enumerate(header)]
    chosen = [named.index(title.strip()) for title in titles.split("|")]
    return "".join(f"| {' | '.join(row[i] for i in chosen)} |\n" for row in rows)


def _alike(table: str, known: Tables) -> str:
    """Return the measured table with the header of this one and the most of its row names, or this one where there is none."""

    def names(text: str) -> set[str]:
        return {line.split("|")[1].strip(" *") for line in text.splitlines()[2:]}

    header, mine = table.splitlines()[0], names(table)
    candidates = [c for file in known.values() for c in file if c.splitlines()[0] == header]
    shared = {c: len(names(c) & mine) / len(names(c) | mine) for c in candidates}
    return max((c for c in shared if shared[c]), key=shared.__getitem__, default=table)


def published(text: str, known: Tables) -> str:
    """Return a page's text with the measured tables; raises KeyError, IndexError or ValueError where a mark names no table."""

    def region(match: re.Match[str]) -> str:
        begin, file, number, titles, shown, end = match.groups()
        table = known[file][int(number) - 1]
        if titles is not None:
            table = "".join(shown.splitlines(keepends=True)[:2]) + _columns(table, titles)
        return begin + table + end

    marked = _REGION.sub(region, text)
    regions = [match.span() for match in _REGION.finditer(marked)]

    def loose(match: re.Match[str]) -> str:
        return match[0] if any(start <= match.start() < stop for start, stop in regions) else _alike(match[0], known)

    return _TABLE.sub(loose, marked)


def main() -> None:
    """Write the pages that change."""
    known = measured(ROOT / "benchmarks/results")
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        if (after := published(before, known)) != before:
            page.write_text(after, encoding="utf-8")
            print(f"changed: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
