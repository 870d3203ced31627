"""The index commands, as a user types them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from knowhalu.cli.index import index
from knowhalu.errors import IndexFormatError, InputError
from tests.support.indexing import FACTS, same_paths


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Give a JSONL file of the facts."""
    path = tmp_path / "facts.jsonl"
    path.write_text("".join(json.dumps({"id": t, "title": t, "text": x}) + "\n" for t, x in FACTS.items()))
    return path


def run(*arguments: object) -> str:
    """Run a command and return what it printed; errors of the library come through."""
    done = CliRunner().invoke(index, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_build_info_search_and_verify(source: Path, tmp_path: Path) -> None:
    """An index is built, described, searched in words and JSON, and found intact."""
    out = tmp_path / "index"
    assert "12 passages of 12 documents" in run("build", source, "--out", out, "--precision", "fp32")
    assert "12 of 12 documents" in run("info", out) and json.loads(run("info", out, "--json"))["counts"]["passages"] == 12
    shown = run("search", out, "Which ship hit an iceberg?", "-k", 1)
    assert "Titanic" in shown and FACTS["Titanic"] in shown
    lines = run("search", out, "Who wrote Hamlet?", "How do bees talk?", "-k", 2, "--json").splitlines()
    assert [json.loads(line)["passages"][0]["document"] for line in lines] == ["Hamlet", "Honey bee"]
    assert "intact" in run("verify", out)


def test_a_broken_record_stops_the_build_or_is_skipped_and_listed(source: Path, tmp_path: Path) -> None:
    """The error is raised for the top level to show; with skip the record is named."""
    with source.open("a") as file:
        file.write("broken\n")
    with pytest.raises(InputError, match=r"facts\.jsonl:13: not JSON"):
        run("build", source, "--out", tmp_path / "index")
    shown = run("build", source, "--out", tmp_path / "index", "--on-error", "skip")
    assert "facts.jsonl:13: not JSON" in shown and "1 skipped in all" in shown and "12 passages" in shown


def test_add_delete_and_compact(source: Path, tmp_path: Path) -> None:
    """Documents come, are replaced and go, by ids given or from a file; info tells the version."""
    out, more = tmp_path / "index", tmp_path / "more.jsonl"
    run("build", source, "--out", out, "--precision", "fp32", "--factory", "Flat", "--storage", "float16", "--shard", 5)
    row = {"id": "Titanic", "title": "Titanic", "text": "The wreck lies at 3,800 metres."}
    more.write_text(json.dumps(row) + "\n" + json.dumps({"id": "Snow", "text": "Snow is white."}) + "\n")
    said = run("add", out, more, "--precision", "fp32")
    assert "13 passages of 13 documents, generation 2, 1 of its documents replaced" in said
    (tmp_path / "ids.txt").write_text("Hamlet\nSnow\n")
    assert "10 passages of 10 documents, generation 3" in run("delete", out, "Python", "--file", tmp_path / "ids.txt")
    shown = run("search", out, "Where is the wreck of the ship?", "-k", 1)
    assert "3,800 metres" in shown and "generation 3" in run("info", out) and "float16 in" in run("info", out)
    assert "10 documents, generation 1" in run("compact", out) and "intact" in run("verify", out)
    with pytest.raises(InputError, match="no document 'Hamlet'"):
        run("delete", out, "Hamlet")
    with pytest.raises(InputError, match="no document is named"):
        run("delete", out)


def test_verify_lists_the_problems_and_fails(folder: Path) -> None:
    """Every problem is a line; the command ends in an error."""
    path = next(folder.glob("passages-*"))
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    done = CliRunner().invoke(index, ["verify", str(folder)])
    assert path.name in done.output and isinstance(done.exception, IndexFormatError)


def test_search_requires_an_embedder_that_is_not_packaged(folder: Path) -> None:
    """An index of another model says which, instead of searching with the wrong one."""
    with pytest.raises(IndexFormatError, match="built with the embedder 'words'.*--embedder"):
        run("search", folder, "bees")


def test_index_help_imports_no_heavy_library() -> None:
    """The commands are listed without torch, FAISS, numpy or pydantic."""
    code = "import sys, knowhalu.cli.index; print([m for m in ('torch','faiss','numpy','pydantic','rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=same_paths(), check=True)
    assert done.stdout.strip() == "[]"


def test_the_build_script_reports_errors_in_one_line(source: Path, tmp_path: Path) -> None:
    """`scripts/build_index.py` turns errors into one line and exit code 2."""
    script = Path(__file__).parents[2] / "scripts/build_index.py"
    command = [sys.executable, script, "gone", "--out", tmp_path / "i"]
    done = subprocess.run(command, capture_output=True, text=True, env=same_paths(), check=False)
    assert (done.returncode, done.stderr) == (2, "Error: gone: no such file or folder\n")
