"""The names of the package, and what importing them loads."""

import subprocess
import sys

import pytest

import knowhalu

NAMES = [
    "CheckFailed", "Checker", "Document", "Failure", "KnowHaluError", "Label", "Outcome", "Reviser", "Revision", "Sample",
    "Settings", "Verdict", "check", "check_all", "revise", "to_df",
]  # fmt: skip


def test_exported_names():
    assert sorted(knowhalu.__all__) == NAMES
    public = {n for n in vars(knowhalu) if not n.startswith("_")}
    assert public - set(NAMES) <= {"TYPE_CHECKING", "Any", "import_module"} | submodules()


def submodules():
    return {m.split(".")[1] for m in sys.modules if m.startswith("knowhalu.")}


@pytest.mark.parametrize("name", NAMES)
def test_every_exported_name_exists(name):
    assert getattr(knowhalu, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'chekc'"):
        _ = knowhalu.chekc


def loaded_by(code):
    """Run code in a fresh interpreter and list the heavy libraries that it loaded."""
    heavy = ("torch", "pydantic", "numpy", "faiss", "sentence_transformers", "transformers", "anyio", "rich")
    ask = f"{code}\nimport sys\nprint([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_the_package_loads_no_dependency():
    assert loaded_by("import knowhalu; knowhalu.__version__") == "[]"


def test_importing_the_api_loads_no_heavy_dependency():
    assert loaded_by("from knowhalu import Sample, Verdict, check, Checker") == "['pydantic']"
