#!/usr/bin/env python
"""The structure of the package in figures, for one checkout or for several side by side: size, floors, imports, extension points.

`python benchmarks/structure.py before=../old now=.` compares two checkouts. The floors of a checkout are
those that its own floors test declares.
"""

import argparse
import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
TEST_FILES = ("tests/meta/test_floors.py", "tests/test_floors.py")
TOUCHED = {
    "a method": ("the method, names.py, options.py", "the method, in a package of its own"),
    "an LLM backend": ("the backend, names.py, options.py", "the backend, in a package of its own"),
    "a retriever": ("the retriever, options.py, retrievers.py, searching.py, parts.py", "the retriever, in a package of its own"),
    "a data set": ("a catalogue file, often a loader", "one TOML file"),
}
"""Files that are touched to add a part, counted by hand: in version 10fb0aa, and with the entry points of another package."""


class Import(NamedTuple):
    """An import of one module of the package by another, at its top or in a function."""

    source: str
    target: str


def modules(package: Path) -> dict[str, ast.Module]:
    """Return the syntax trees of a package's modules by dotted name."""
    trees = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        trees[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text(encoding="utf-8"))
    return trees


def imports(trees: Mapping[str, ast.Module]) -> Iterator[Import]:
    """Yield every import between the modules of the package."""
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("knowhalu"):
                continue
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield Import(name, whole if whole in trees else str(node.module))


def circles(edges: list[Import]) -> list[list[str]]:
    """Return the strongly connected groups of modules with more than one member."""
    targets: dict[str, set[str]] = {}
    for edge in edges:
        if edge.source != edge.target and edge.source.count("."):
            targets.setdefault(edge.source, set()).add(edge.target)

    def reached(start: str) -> set[str]:
        seen, stack = set[str](), [start]
        while stack:
            for target in targets.get(stack.pop(), ()):
                if target not in seen:
                    seen.add(target)
                    stack.append(target)
        return seen

    within = {name: reached(name) for name in targets}
    groups = {frozenset(m for m in within[name] if name in within.get(m, ())) for name in targets if name in within[name]}
    return [sorted(group) for group in groups]


def declared(root: Path, name: str) -> Any:
    """Return a constant of a checkout's own test of the floors; None where it has none of this name."""
    path = next(root / file for file in TEST_FILES if (root / file).exists())
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name:
            return ast.literal_eval(node.value)
    return None


def room_of(module: str) -> str:
    """Return the file or folder directly in the package that a module belongs to."""
    return module.split(".")[1] if "." in module else ""


def measure(root: Path) -> dict[str, str]:
    """Return the figures of a checkout by name."""
    package = root / "knowhalu"
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in sorted(package.rglob("*.py"))}
    trees = modules(package)
    functions = [
        (node.end_lineno - node.lineno + 1, f"{name}.{node.name}")
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None
    ]
    largest = max(lines, key=lines.__getitem__)
    length, function = max(functions)
    edges = list(imports(trees))
    rooms: dict[str, int] = declared(root, "FLOORS")
    options = declared(root, "OPTIONS") or set()  # modules without code of their room, which stand two floors up from the words

    def floor(module: str) -> int:
        return rooms["registry"] if module.partition(".")[2] in options else rooms[room_of(module)]

    between = [
        (floor(e.source), floor(e.target), e)
        for e in edges
        if room_of(e.source) != room_of(e.target) and {room_of(e.source), room_of(e.target)} <= set(rooms)
    ]
    return {
        "files": f"{len(lines)}",
        "lines": f"{sum(lines.values()):,}",
        "median file": f"{median(n for n in lines.values() if n):.0f} lines",
        "largest file": f"{lines[largest]} ({largest.relative_to(package)})",
        "functions": f"{len(functions):,}",
        "median function": f"{median(n for n, _ in functions):.0f} lines",
        "largest function": f"{length} ({function.removeprefix('knowhalu.')})",
        "functions over 50 lines": f"{sum(n > 50 for n, _ in functions)}",
        "files at the package's top": f"{len(list(package.glob('*.py')))}",
        "floors": f"{len(set(rooms.values()))}",
        "circles of imports": f"{len(circles(edges))}",
        "upward imports": f"{sum(source < target for source, target, _ in between)}",
        "imports of another room on the same floor": f"{sum(source == target for source, target, _ in between)}",
        "pairs of rooms that do so": f"{len({(room_of(e.source), room_of(e.target)) for a, b, e in between if a == b})}",
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="*", default=[f"now={ROOT}"], metavar="NAME=FOLDER")
    args = parser.parse_args()
    checkouts = {name: Path(folder) for name, _, folder in (text.partition("=") for text in args.checkouts)}
    figures = {name: measure(folder) for name, folder in checkouts.items()}
    print(f"| | {' | '.join(figures)} |\n|---|{'---:|' * len(figures)}")
    for row in next(iter(figures.values())):
        print(f"| {row} | {' | '.join(column[row] for column in figures.values())} |")
    print("\n| files touched to add | before | now |\n|---|---|---|")
    for what, (before, now) in TOUCHED.items():
        print(f"| {what} | {before} | {now} |")


if __name__ == "__main__":
    main()
