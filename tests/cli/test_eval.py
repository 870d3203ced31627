"""`knowhalu eval`: one data set, a folder of them, and refusals."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from knowhalu.cli.eval import EXTRA_COMMANDS
from knowhalu.cli.eval_run import find_known_files
from knowhalu.cli.main import main
from knowhalu.datasets.catalog import dataset_cards
from knowhalu.io.outcomes import format_outcome
from tests.support.revising import make_revision

SHORT = ("-m", "a=trivial-length[threshold=3],b=trivial-length[threshold=5]")
HELP = """
import sys
from click.testing import CliRunner
from knowhalu.cli.main import main
result = CliRunner().invoke(main, ["eval", "--help"])
assert result.exit_code == 0, result.output
print(sorted({"rich", "pydantic", "torch", "numpy", "anyio", "faiss", "sklearn", "pyarrow"} & set(sys.modules)))
"""


def claim(i, words):
    label = "unsupported" if words > 3 else "supported"
    return {"id": f"c{i}", "source": f"source {i}", "claim": " ".join([f"w{i}"] * words), "label": label, "split": "test"}


def pair(i):
    return {"knowledge": f"k{i}", "question": f"Q{i}?", "right_answer": "one two", "hallucinated_answer": "three four five"}


CLAIMS = [claim(i, 2 + i % 4) for i in range(12)]


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def write(name, rows):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("".join(json.dumps(r) + "\n" for r in rows))

    write("d/wice.jsonl", CLAIMS)
    write("d/qa_data.json", [pair(i) for i in range(6)])
    write("d/unknown.jsonl", [{"what": 1}])
    write("d/broken.jsonl", [CLAIMS[0], {**CLAIMS[1], "label": "perhaps"}])
    (tmp_path / "d/torn.jsonl").write_text("{")
    return lambda *args: CliRunner().invoke(main, [str(a) for a in args])


def test_help_lists_every_data_set_and_imports_nothing_heavy(run):
    output = " ".join(run("eval", "--help").output.split())
    for name, card in dataset_cards().items():
        assert f"{name} " in output and card.about[:18] in output
    assert all(f"{name} {line[:20]}" in output for name, line in EXTRA_COMMANDS.items())
    found = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_help_of_a_data_set_is_its_card(run):
    output = " ".join(run("eval", "ragtruth", "--help").output.split())
    assert "no marked characters: faithful; any: hallucinated" in output
    assert "source_id, response, labels, model" in output and "Licence: MIT" in output


def test_a_data_set_is_evaluated_and_printed_with_its_warnings(run, tmp_path):
    result = run("eval", "wice", "--data", "d/wice.jsonl", *SHORT, "-o", "out")
    assert result.exit_code == 0, result.output
    for part in ("wice, split test: 12 rows, 6 hallucinated", "best rule", "length-matched", "Against a", "response-only",
                 "warning: Trivial rules solve this set: trivial-length (upper bound) 100.0 %"):  # fmt: skip
        assert part in result.stdout
    assert {"a.jsonl", "b.jsonl", "comparison.json", "comparison.md"} <= {p.name for p in (tmp_path / "out/wice").iterdir()}
    again = run("eval", "wice", "--data", "d/wice.jsonl", *SHORT, "-o", "out")
    assert again.stdout.split("Cost per row")[0] == result.stdout.split("Cost per row")[0]


def test_errors_are_one_line_with_the_place(run):
    for args, said in (
        (("ragtruh", "--data", "d"), "unknown data set 'ragtruh'. Did you mean 'ragtruth'?"),
        (("qags", "--data", "d/qa_data.json"), "This looks like halueval-qa: knowhalu eval halueval-qa."),
        (
            ("claims", "--data", "d/broken.jsonl", *SHORT),
            "broken.jsonl, line 2, field 'label': 'perhaps' is no label of this set",
        ),
        (("wice", "--data", "d/wice.jsonl", "-m", "nosuch"), "unknown method 'nosuch'"),
        (("wice", "--data", "d/wice.jsonl", "--split", "val"), "no row is of the split 'val'; there are 'test' (12)"),
        (("wice", "--data", "d/wice.jsonl", "--fit", "d/wice.jsonl", *SHORT), "are compared too"),
        (("all", "--data", "d/wice.jsonl"), "is not a folder. Name the data set of a file: knowhalu eval NAME"),
    ):
        result = run("eval", *args)
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.output
        assert said in result.stderr


def test_all_evaluates_a_folder_and_lists_skipped_files(run, tmp_path):
    result = run("eval", "all", "--data", "d", *SHORT, "-o", "out")
    assert result.exit_code == 2
    assert "not evaluated: claims: d/broken.jsonl, line 2" in result.stderr
    assert "not evaluated: d/torn.jsonl: d/torn.jsonl, line 1" in result.stderr
    assert "left out: d/unknown.jsonl: its format is not recognised" in result.stderr
    assert "wice: a: 12 of 12" in result.stderr
    table = (tmp_path / "out/overview.md").read_text()
    assert "| wice | 12 | a |" in table and "| halueval-qa | 12 | b |" in table and "trivial-length |" not in table
    assert "| mean | a |" in table and "Oracle thresholds: chosen on these very rows, so an upper bound" in table
    assert {p.name for p in (tmp_path / "out").iterdir() if (p / "comparison.json").exists()} == {"wice", "halueval-qa"}


def test_all_keeps_results_of_two_files_of_one_set_apart(run, tmp_path):
    for name in ("qags_a", "qags_b"):
        (tmp_path / "e").mkdir(exist_ok=True)
        (tmp_path / f"e/{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in CLAIMS))
    assert run("eval", "all", "--data", "e", *SHORT, "-o", "out").exit_code == 0
    assert {"qags-qags_a", "qags-qags_b"} <= {p.name for p in (tmp_path / "out").iterdir()}


def test_all_keeps_files_that_differ_in_suffix_only(tmp_path):
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(r) + "\n" for r in CLAIMS))
    (tmp_path / "mine.json").write_text(json.dumps(CLAIMS))
    sets, unknown, broken = find_known_files(tmp_path)
    assert {path.name: name.partition("-")[2] for name, (path, _) in sets.items()} == {n: n for n in ("mine.json", "mine.jsonl")}
    assert not unknown and not broken


def test_an_interruption_says_what_is_kept(run, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("knowhalu.evaluation.runs.detect", interrupted)
    result = run("eval", "wice", "--data", "d/wice.jsonl", *SHORT)
    assert result.exit_code == 130
    assert "kept in runs/wice. The same command resumes" in result.stderr


def test_revisions_are_evaluated_and_exported(knowhalu, tmp_path):
    revised = make_revision("a", "One wrong.", "One is red.")
    (tmp_path / "r.jsonl").write_text(f'{{"run":{{}}}}\n{format_outcome(revised)}\n')
    options = ("--precision", "0.5", "--recall", "1", "--pairs", "p.jsonl", "-o", "f.json")
    result = knowhalu("eval", "revisions", "r.jsonl", *options)
    assert result.exit_code == 0, result.output
    assert all(part in result.stdout for part in ("passed unchanged", "ROUGE-1", "written: p.jsonl (1 pairs)"))
    assert json.loads((tmp_path / "f.json").read_text())["before"]["adjusted"]["value"] == 0.5
    assert json.loads((tmp_path / "p.jsonl").read_text().splitlines()[1])["revised"] == "One is red."
    again = knowhalu("eval", "revisions", "r.jsonl", "--pairs", "p.jsonl")
    assert again.exit_code == 2 and "p.jsonl: the file exists" in again.stderr


@pytest.mark.parametrize(("options", "said"), [
    (("--precision", "0.5"), "Give both"), (("--layer", "2"), "Give --bertscore FOLDER too"), (("-o", "f.txt"), "end in .md"),
])  # fmt: skip
def test_options_of_revisions_that_need_another_are_refused(knowhalu, tmp_path, options, said):
    (tmp_path / "r.jsonl").write_text('{"run":{}}\n')
    result = knowhalu("eval", "revisions", "r.jsonl", *options)
    assert result.exit_code == 2 and said in result.stderr
