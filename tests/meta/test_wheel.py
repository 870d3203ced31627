"""The wheel contains prompts, model and command."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ASK = """
import sys
from pathlib import Path
sys.path.insert(0, {site!r})
import knowhalu
from knowhalu.prompts.template import load_prompt, packaged_folder, prompt_names
here = Path({site!r})
assert here in Path(knowhalu.__file__).parents, knowhalu.__file__
assert here in packaged_folder().parents, packaged_folder()
print(knowhalu.__version__, *prompt_names(), load_prompt("knowhalu/extract").hash)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        str(folder),
        str(ROOT),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = folder.glob("knowhalu-*.whl")
    return found


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory):
    """A folder with the wheel's content, as site-packages would have it."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run(code, site, cwd):
    """Run code in a fresh interpreter that knows the wheel and its dependencies, but not this checkout."""
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    packages = sysconfig.get_paths()["purelib"]
    start = f"import sys\nsys.path[:] = [p for p in sys.path if p != {packages!r}] + [{packages!r}]\n"
    done = subprocess.run(
        [sys.executable, "-S", "-c", start + code], capture_output=True, text=True, cwd=cwd, env=environ, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_finds_its_prompts(site, tmp_path):
    from knowhalu import __version__
    from knowhalu.prompts.template import load_prompt, prompt_names

    said = run(ASK.format(site=str(site)), site, tmp_path).split()
    assert said == [__version__, *prompt_names(), load_prompt("knowhalu/extract").hash]


def test_the_wheel_contains_every_file_of_the_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    kept = [p for p in (ROOT / "knowhalu").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    missing = {p.relative_to(ROOT).as_posix() for p in kept} - names
    assert not missing
    assert "knowhalu/py.typed" in names
    assert {n.split("/")[0] for n in names} == {"knowhalu", next(n for n in names if n.endswith("METADATA")).split("/")[0]}


def test_the_wheel_contains_its_licence(site):
    (licences,) = site.glob("*.dist-info/licenses")
    assert {p.name for p in licences.iterdir()} == {"LICENSE", "NOTICE"}
    text = (licences / "LICENSE").read_text()
    assert "Version 2.0, January 2004" in text and "END OF TERMS AND CONDITIONS" in text


def test_the_wheel_declares_the_command(site):
    (entry,) = site.glob("*.dist-info/entry_points.txt")
    line = next(x for x in entry.read_text().splitlines() if x.startswith("knowhalu"))
    point = EntryPoint("knowhalu", line.split("=")[1].strip(), "console_scripts")
    assert (point.module, point.attr) == ("knowhalu.cli.main", "main")
    if (ROOT / "knowhalu/cli/main.py").exists():
        assert callable(point.load())


@pytest.mark.skipif(not list((ROOT / "knowhalu/weights").glob("*/model.safetensors")), reason="no model is packaged yet")
def test_the_wheel_loads_its_model(site, tmp_path):
    ask = f"""
sys.path.insert(0, {str(site)!r})
from pathlib import Path
from knowhalu.encoder.verifier import PairTokenizer, Verifier
import knowhalu
for folder in (Path(knowhalu.__file__).parent / "weights").glob("*/model.safetensors"):
    Verifier.load(folder.parent), PairTokenizer.load(folder.parent)
    print(folder.parent.name)
"""
    assert run(ask, site, tmp_path).split()
