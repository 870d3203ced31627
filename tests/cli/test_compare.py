"""`knowhalu compare` and `knowhalu methods`, and the options --method and --reasoner."""

import json
from io import StringIO

import pytest
from rich.console import Console

from knowhalu.api import Checker
from knowhalu.cli.compare import show_comparison
from knowhalu.cli.main import main
from knowhalu.evaluation.compare import compare
from knowhalu.evaluation.runs import parse_specs
from knowhalu.registry import METHODS

SHORT = "a=trivial-length[threshold=3],b=trivial-length[threshold=5]"


@pytest.fixture
def run(monkeypatch, tmp_path):
    from click.testing import CliRunner

    monkeypatch.chdir(tmp_path)
    rows = [
        {"claim": "word " * (2 + i % 5), "knowledge": f"k{i}", "label": ["faithful", "hallucinated"][i % 5 > 1]}
        for i in range(10)
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return lambda *args: CliRunner().invoke(main, [str(a) for a in args])


def test_the_table_is_printed_and_written_next_to_the_outcomes(run, tmp_path):
    result = run("compare", "in.jsonl", "-m", SHORT)
    assert result.exit_code == 0, result.output
    for part in ("10 rows, 6 hallucinated", "Against a", "McNemar", "trivial-novelty (upper bound)", "seconds",
                 "100.0 [100.0, 100.0]", "2,000 resamples of 10 groups"):  # fmt: skip
        assert part in result.stdout
    folder = tmp_path / "in.compare"
    assert {"a.jsonl", "b.jsonl", "comparison.json", "comparison.md"} <= {p.name for p in folder.iterdir()}
    assert "b: 10 of 10" in result.stderr


def test_extra_tables_are_printed_where_they_fit_or_with_all_figures(run, tmp_path):
    def shown(width, **options):
        found = compare(tmp_path / "in.jsonl", parse_specs([SHORT]), tmp_path / "out")
        console = Console(file=StringIO(), width=width)
        show_comparison(console, found, **options)
        return console.file.getvalue()

    assert "Probabilities" not in shown(80) and "4 more tables: use --all-figures" in shown(80)
    assert "accuracy over coverage" in shown(250) and "Words of the text" not in shown(250)
    assert "Words of the text" in shown(80, all_figures=True)
    assert "Words of the text" in run("compare", "in.jsonl", "-m", SHORT, "--all-figures").stdout


def test_refusals_are_one_line(run):
    for args, said in (
        (("-m", "nosuch"), "unknown method 'nosuch'"), (("-m", "knowhalu", "--reasoner", "me"), "unknown reasoner 'me'"),
        (("-m", SHORT, "--fit", "in.jsonl"), "are compared too"),
    ):  # fmt: skip
        result = run("compare", "in.jsonl", *args)
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
        assert said in result.stderr


def test_an_interruption_says_what_is_kept(run, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("knowhalu.evaluation.runs.detect", interrupted)
    result = run("compare", "in.jsonl", "-m", SHORT)
    assert result.exit_code == 130
    assert "kept in in.compare" in result.stderr


def test_every_method_is_listed_and_has_a_card_with_its_options(run):
    table = run("methods").stdout
    for name, card in METHODS.items():
        assert f"\n{name} " in table and card.about in table
        text = run("methods", name).stdout
        assert f"knowhalu check --method {name}" in text and f"[{card.options}]" in text and card.cost in text
        assert json.loads(run("methods", name, "--json").stdout)["reasoners"] == list(card.reasoners)
    assert list(json.loads(run("methods", "--json").stdout)) == list(METHODS)


def test_an_unknown_method_gets_the_nearest_name(run):
    assert "Did you mean 'knowhalu'?" in run("methods", "knowhallu").stderr


@pytest.mark.parametrize(("args", "method", "reasoner"), [
    ((), "knowhalu", "encoder"), (("--reasoner", "llm"), "knowhalu", "llm"),
    (("--method", "trivial-length", "--set", "method=trivial-length"), "trivial-length", "encoder"),
    (("--method", "trivial-length", "--settings", "s.toml"), "trivial-length", "llm"),
])  # fmt: skip
def test_method_and_reasoner_options_override_the_settings_file(knowhalu, monkeypatch, tmp_path, args, method, reasoner):
    (tmp_path / "s.toml").write_text('method = "knowhalu"\nreasoner = "llm"\n')
    seen, usual = [], Checker.check
    monkeypatch.setattr(Checker, "check", lambda self, sample: seen.append(self.settings) or usual(self, sample))
    knowhalu("check", "--claim", "x", "--knowledge", "k", *args)
    assert [(s.method, s.reasoner) for s in seen] == [(method, reasoner)]


def test_a_contradiction_with_set_is_refused(knowhalu, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"claim": "x", "knowledge": "k"}\n')
    for command in (("check", "--claim", "x", "--knowledge", "k"), ("detect", "in.jsonl", "-o", "out.jsonl")):
        result = knowhalu(*command, "--method", "knowhalu", "--set", "method='conli'")
        assert result.exit_code == 2
        assert "--method knowhalu and --set method='conli' contradict each other. Keep one of them" in result.stderr
