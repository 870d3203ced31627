"""The locks name versions that the ranges of pyproject.toml allow."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pins(name):
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    found = [re.match(r"([\w.-]+)==([\w.+!-]+)", line) for line in lines]
    return {canonicalize_name(m[1]): m[2] for m in found if m}


@pytest.mark.parametrize(("lock", "extras"), [("requirements.lock", ["dev"]), ("requirements-gpu.lock", ["dev", "vllm"])])
def test_a_lock_has_a_version_in_range_for_every_requirement(lock, extras):
    pinned = pins(lock)
    wanted = [*PROJECT["dependencies"], *(r for extra in extras for r in PROJECT["optional-dependencies"][extra])]
    for requirement in map(Requirement, wanted):
        if requirement.marker is None or requirement.marker.evaluate({"python_version": "3.11"}):
            assert pinned[canonicalize_name(requirement.name)] in requirement.specifier
