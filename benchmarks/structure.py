#!/usr/bin/env python
"""The structure of the package in figures: files, lines, the largest file and function, and what the floors test holds at 0."""

import ast
from pathlib import Path
from statistics import median

PACKAGE = Path(__file__).parent.parent / "knowhalu"


def main() -> None:
    """Print the table."""
    lines = {f: f.read_text(encoding="utf-8").count("\n") for f in sorted(PACKAGE.rglob("*.py"))}
    functions = [
        (node.end_lineno - node.lineno + 1, f"{file.relative_to(PACKAGE)}:{node.name}")
        for file in lines
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None
    ]
    largest = max(lines, key=lambda f: lines[f])
    print(f"files                {len(lines)}, {sum(lines.values())} lines, median {median(v for v in lines.values() if v):.0f}")
    print(f"largest file         {largest.relative_to(PACKAGE)}, {lines[largest]} lines")
    print(f"functions            {len(functions)}, median {median(n for n, _ in functions):.0f} lines")
    print("largest function     {1}, {0} lines".format(*max(functions)))
    print("circles, upward imports: 0, held by tests/meta/test_floors.py")


if __name__ == "__main__":
    main()
