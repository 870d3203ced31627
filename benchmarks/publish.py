#!/usr/bin/env python
"""Put the measured tables into the pages that show them.

A table of a page is exchanged for the one of `benchmarks/results` that has the same first line and, where several have, the
most row names in common. Text beside a table is left alone: read it again where a table has changed.
"""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
_OTHERS = ("README.md", "indexes/README.md", "knowhalu/models/verifier/README.md")
PAGES = (*sorted((ROOT / "docs").glob("*.md")), *(ROOT / page for page in _OTHERS))
_TABLE = re.compile(r"(?:^\|.*\|[ ]*\n){3,}", re.MULTILINE)


def tables(text: str) -> Iterator[re.Match[str]]:
    """Find the Markdown tables of a text."""
    return _TABLE.finditer(text)


def _names(table: str) -> set[str]:
    return {line.split("|")[1].strip(" *") for line in table.splitlines()[2:]}


def measured(results: Path) -> dict[str, list[str]]:
    """Return the tables of the results by their first lines."""
    found: dict[str, list[str]] = {}
    for path in sorted(results.glob("*.md")):
        for match in tables(path.read_text(encoding="utf-8")):
            found.setdefault(match[0].splitlines()[0], []).append(match[0])
    return found


def published(text: str, known: dict[str, list[str]]) -> str:
    """Return a page's text with the measured tables."""

    def table(match: re.Match[str]) -> str:
        mine, candidates = _names(match[0]), known.get(match[0].splitlines()[0], ())
        alike = {c: len(_names(c) & mine) / len(_names(c) | mine) for c in candidates}
        return max((c for c in alike if alike[c]), key=alike.__getitem__, default=match[0])

    return _TABLE.sub(table, text)


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
