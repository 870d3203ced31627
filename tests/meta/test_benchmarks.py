"""Benchmarks and scripts use names that the package has."""

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from knowhalu.methods.common.judgment_model import FEATURES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("file", sorted([*ROOT.glob("benchmarks/*.py"), *ROOT.glob("scripts/*.py")]), ids=lambda p: p.stem)
def test_what_is_imported_from_the_package_is_there(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "knowhalu":
            module = import_module(node.module)
            assert not [a.name for a in node.names if not hasattr(module, a.name) and not _is_module(node.module, a.name)]


def _is_module(package, name):
    return find_spec(f"{package}.{name}") is not None


def test_the_groups_of_features_that_are_left_out_in_turn_hold_every_weighted_one():
    tree = ast.parse((ROOT / "benchmarks/judgment_parts.py").read_text(encoding="utf-8"))
    found = {n.targets[0].id: ast.literal_eval(n.value) for n in tree.body
             if isinstance(n, ast.Assign) and n.targets[0].id in ("GROUPS", "WINDOW")}  # fmt: skip
    names = {name for group in found["GROUPS"].values() for name in group.split()}
    assert names | set(found["WINDOW"]) == FEATURES and not names & set(found["WINDOW"])
