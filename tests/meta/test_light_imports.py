"""Models are imported where they are used: a run without a local model imports no torch."""

import json
import subprocess
import sys

from tests.support.fake_server import FakeServer, running
from tests.support.tiny_model import TinyModel

HEAVY = ("torch", "transformers", "sentence_transformers", "faiss", "sklearn", "scipy")
PROGRAM = """
import json, sys
from knowhalu.cli.main import main
try:
    main(sys.argv[1:], standalone_mode=False)
finally:
    print(json.dumps(sorted(set(sys.modules) & set({heavy}))), file=sys.stderr)
"""


def heavy_modules(folder, *arguments):
    """Run a command in a process of its own; return the heavy libraries that it imported."""
    row = {"response": "Mars is red.", "knowledge": ["Mars is a red planet."]}
    (folder / "rows.jsonl").write_text(json.dumps(row) + "\n")
    command = [sys.executable, "-c", PROGRAM.format(heavy=HEAVY), *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stderr.splitlines()[-1])


def test_detect_by_a_rule_imports_no_model_library(tmp_path):
    arguments = ["detect", "rows.jsonl", "-o", "out.jsonl", "-m", "trivial-length", "--set", "trivial.threshold=2"]
    assert heavy_modules(tmp_path, *arguments) == []
    assert (tmp_path / "out.jsonl").read_text().count("\n") == 2


def test_detect_with_a_served_llm_imports_no_model_library(tmp_path):
    with running(FakeServer(TinyModel(lambda prompt: "### Label:\nINCORRECT", 0.99))) as server:
        arguments = ["detect", "rows.jsonl", "-o", "out.jsonl", "-m", "halueval-knowledge", "--reasoner", "llm"]
        found = heavy_modules(tmp_path, *arguments, "--no-cache", "--set", f"llm.url={server.url}")
    assert found == []
    assert '"label"' in (tmp_path / "out.jsonl").read_text()


def test_settings_import_no_model_library(tmp_path):
    assert heavy_modules(tmp_path, "settings") == heavy_modules(tmp_path, "methods") == []


def test_a_single_check_imports_no_evaluation(tmp_path):
    program = "import sys, knowhalu.cli.check; print([m for m in sys.modules if m.startswith('knowhalu.evaluation')])"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_list_of_models_imports_no_model_library(tmp_path):
    assert heavy_modules(tmp_path, "models", "list") == heavy_modules(tmp_path, "models", "path", "small") == []
