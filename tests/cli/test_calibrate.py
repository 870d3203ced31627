"""`knowhalu calibrate`, and --profile in check, detect and compare."""

import json

import pytest
from click.testing import CliRunner

from knowhalu.cli.main import main

LENGTH = ("--method", "trivial-length", "--set", "trivial.threshold=1")


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name, start in (("in", 0), ("new", 100)):
        rows = [
            {"claim": f"w{start + i} " * (1 + i % 8), "knowledge": f"k{start + i}",
             "label": "hallucinated" if i % 8 > 3 else "faithful"}
            for i in range(40)
        ]  # fmt: skip
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return lambda *args: CliRunner().invoke(main, [str(a) for a in args])


def test_a_profile_is_written_and_applied(run, tmp_path):
    result = run("calibrate", "in.jsonl", "-o", "p.toml", *LENGTH, "--scaling", "platt")
    assert result.exit_code == 0, result.output
    for part in ("goal: the best average accuracy", "P(hallucinated) over", "platt scaling", "40 rows, 20 hallucinated",
                 "cross-validated", "100.0 [100.0, 100.0]", "written: p.toml, p.json; outcomes: p.outcomes.jsonl"):  # fmt: skip
        assert part in result.stdout
    assert (tmp_path / "p.toml").read_text().startswith("# What `knowhalu calibrate` chose.")
    used = run("detect", "new.jsonl", "-o", "out.jsonl", "--profile", "p.toml")
    assert used.exit_code == 0 and "100.0%" in used.stdout
    compared = run("compare", "new.jsonl", "-m", "trivial-length,trivial-overlap", "--profile", "p.toml")
    assert compared.exit_code == 0, compared.output
    shown = run("check", "--claim", "one two three four five", "--knowledge", "k", "--profile", "p.toml")
    assert (shown.exit_code, "by platt scaling of" in shown.stdout) == (1, True)
    assert 'method = "trivial-length"' in run("settings", "--set", "profile=p.toml").stdout


@pytest.mark.parametrize(
    ("output", "said"),
    [("in.jsonl", "Use the suffix .toml"), ("p.json", "Use the suffix .toml"), ("mine.toml", "exists and is not a profile"),
     ("data.toml", "data.json: exists and is not the figures of a profile"), ("rows.toml", "rows.json: is an input")],
)  # fmt: skip
def test_calibrate_overwrites_no_other_file(run, tmp_path, output, said):
    rows = [json.loads(line) for line in (tmp_path / "in.jsonl").read_text().splitlines()]
    for name, text in (("mine.toml", "[a]\n"), ("data.json", '{"a": 1}'), ("rows.json", json.dumps(rows))):
        (tmp_path / name).write_text(text)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    result = run("calibrate", "rows.json", "-o", output, *LENGTH)
    assert (result.exit_code, said in result.stderr) == (2, True), result.output
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_profile_can_be_replaced(run, tmp_path):
    assert all(
        run("calibrate", "in.jsonl", "-o", "p.toml", *LENGTH, *goal).exit_code == 0 for goal in ((), ("--scaling", "platt"))
    )
    assert "platt" in (tmp_path / "p.toml").read_text()


def test_rows_that_a_profile_was_fitted_on_need_allow_fitted(run):
    run("calibrate", "in.jsonl", "-o", "p.toml", *LENGTH)
    result = run("detect", "in.jsonl", "-o", "out.jsonl", "--profile", "p.toml")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "fitted on 40 rows of it" in result.stderr
    assert run("detect", "in.jsonl", "-o", "out.jsonl", "--profile", "p.toml", "--allow-fitted").exit_code == 0
    assert run("compare", "in.jsonl", "-m", "trivial-length", "--profile", "p.toml").exit_code == 2
    assert run("compare", "in.jsonl", "-m", "trivial-length", "--profile", "p.toml", "--allow-fitted").exit_code == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--goal", "average", "--max-abstain", "0.1"), "several goals are given"),
        (("--max-risk", "0.1"), "Add --method cascade"),
        (("--max-abstain", "1.5"), "1.5"),
    ],
)
def test_incompatible_goals_are_refused(run, options, said):
    result = run("calibrate", "in.jsonl", "-o", "p.toml", *LENGTH, *options)
    assert result.exit_code == 2 and said in result.stderr


def test_a_profile_of_another_method_is_refused(run):
    run("calibrate", "in.jsonl", "-o", "p.toml", *LENGTH)
    result = run("detect", "new.jsonl", "-o", "out.jsonl", "--profile", "p.toml", "--method", "conli")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert 'is for method = "trivial-length", but method is set to "conli"' in result.stderr
