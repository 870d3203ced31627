"""Imports go down only: no module imports from a higher floor, and there is no circle."""

import ast
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "knowhalu"
FLOORS = {
    "types": 1, "critiques": 1, "results": 1, "errors": 1, "text": 1, "io": 1,
    "requests": 2, "registry": 2, "prompts": 2, "datasets": 2,
    "llm": 3, "encoder": 3, "retrieval": 3, "index": 3, "ingest": 3,
    "methods": 4,
    "settings": 5, "profiles": 5, "engine": 5, "build": 5, "api": 5, "extend": 5, "testing": 5,
    "batch": 6, "summarize": 6, "evaluation": 6, "calibration": 6, "training": 6,
    "report": 7,
    "cli": 8,
}  # fmt: skip
"""The floor of every module and folder directly in the package."""
OPTIONS = {"encoder.options", "llm.options", "retrieval.options"}
"""Options of the backends, without code of them: prompts and methods read these, so they are on the floor of the registry."""
DATA = {"weights"}
BACKENDS = {"llm", "encoder", "retrieval", "index", "ingest"}
BELOW_A_BACKEND = {"retrieval": {"index", "ingest"}, "index": {"ingest"}}
"""Searching reads indexes, and an index is built of documents; apart from that, no backend imports another."""
ON_TOP = {"knowhalu", "knowhalu.__main__"}
"""The package itself imports names when they are first used, and `python -m knowhalu` is a door to the commands."""


def name_of(file):
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules():
    return {name_of(f): f for f in sorted(PACKAGE.rglob("*.py"))}


MODULES = modules()
BELOW = sorted(set(MODULES) - ON_TOP)


def room(module):
    """Name the file or folder directly in the package that a module belongs to."""
    return module.split(".")[1]


@cache
def imports(module):
    """List the package's modules that a module imports, at its top or in its functions."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: write absolute imports"
            whole = {f"{node.module}.{a.name}" for a in node.names}
            found |= {n if n in MODULES else node.module for n in whole}
            names = {a.name for a in node.names if f"{node.module}.{a.name}" not in MODULES}
            assert node.module != "knowhalu" or names <= {"__version__"}, f"{module}: import {names} from its own module"
    return {n for n in found if n.split(".")[0] == "knowhalu"} - {module}


def offending(found):
    """Fail with all that breaks a rule, one a line."""
    lines = list(found)
    assert not lines, "\n".join(["", *lines])


def test_every_module_has_a_floor():
    rooms = {room(m) for m in BELOW} - set(FLOORS) - DATA
    assert not rooms, f"{sorted(rooms)}: add each to FLOORS, on the lowest floor that is not under anything it imports"


def floor_of(module):
    return FLOORS["registry"] if module.removeprefix("knowhalu.") in OPTIONS else FLOORS.get(room(module), 1)


def upward():
    for module in BELOW:
        floor = floor_of(module)
        for other in imports(module) - {"knowhalu"}:
            if (above := floor_of(other)) > floor:
                yield f"{module} (floor {floor}) imports {other} (floor {above}) from above it"


def test_imports_go_down():
    offending(upward())


def sideways():
    for module in BELOW:
        others = {room(o) for o in imports(module) if o.removeprefix("knowhalu.") not in {"knowhalu", *OPTIONS}} - {room(module)}
        if room(module) in BACKENDS and others & (BACKENDS | {"methods"}) - BELOW_A_BACKEND.get(room(module), set()):
            yield f"{module}: a backend imports no sibling and no method"
        if room(module) == "methods" and others & BACKENDS:
            yield f"{module}: a method imports no backend; it yields requests"
        if room(module) in DATA and others:
            yield f"{module}: a folder of data imports nothing"


def test_backends_and_methods_do_not_import_each_other():
    offending(sideways())


def test_a_data_folder_holds_no_code():
    for name in DATA:
        code = [n for n, f in MODULES.items() if n not in ON_TOP and room(n) == name and f.name != "__init__.py"]
        assert not code


def test_imports_have_no_circle():
    graph = {m: imports(m) & set(MODULES) - ON_TOP for m in MODULES}
    done, path = set(), []

    def visit(module):
        assert module not in path, f"a circle: {' -> '.join([*path[path.index(module) :], module])}"
        if module not in done:
            path.append(module)
            for other in sorted(graph[module]):
                visit(other)
            done.add(path.pop())

    for module in BELOW:
        visit(module)


def test_the_package_imports_its_names_lazily():
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    at_once = [n.module for n in tree.body if isinstance(n, ast.ImportFrom)]
    assert set(at_once) <= {"importlib", "typing"}


def lines(file):
    return file.read_text(encoding="utf-8").count("\n")


def large():
    for module, file in MODULES.items():
        if lines(file) > 320:
            yield f"{module} is over 320 lines: give a part of it a name and a file"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno - node.lineno >= 50:
                yield f"{module}.{node.name} has 50 lines or more"


def test_files_and_functions_stay_small():
    offending(large())


def test_no_module_is_called_utils():
    assert not [n for n in MODULES if n.rpartition(".")[2] in {"utils", "helpers", "misc"}]
