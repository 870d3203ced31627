"""`knowhalu revise`: one text shown or as JSON, a file with resume, exit codes and messages."""

import json

import pytest

from knowhalu.api import Reviser
from knowhalu.engine.engine import Backends, Engine
from knowhalu.io.outcomes import parse_revision
from knowhalu.methods.options import ReviseOptions
from knowhalu.methods.revise.guarded import GuardedRevision
from tests.support.revising import Detector, Writer

WRITER = Writer({"Mars is wrong.": ["Mars is far."]})


@pytest.fixture(autouse=True)
def scripted(monkeypatch):
    made = property(lambda self: Engine(GuardedRevision(Detector(), WRITER, ReviseOptions()), Backends()))
    monkeypatch.setattr(Reviser, "engine", made)
    monkeypatch.setattr(Reviser, "fingerprint", property(lambda self: {"version": "1"}))


@pytest.mark.parametrize(("claim", "code", "line"), [
    ("Mars is red.", 0, "= UNCHANGED  the detector finds nothing to change"),
    ("Mars is red. Mars is wrong.", 0, "✓ REVISED  flagged sentences: 1 rewritten"),
    ("All wrong here.", 1, "✗ REFUSED  the sources support none of it: it is INCORRECT"),
    ("There first was wrong ice. It came later.", 1, "= UNCHANGED  flagged sentences: 1 kept"),
    ("Mars is broken.", 2, "! NO VERDICT  judge: the reply has no label"),
])  # fmt: skip
def test_first_line_and_exit_code_give_the_result(knowhalu, claim, code, line):
    result = knowhalu("revise", "--claim", claim, "--knowledge", "k")
    assert (result.exit_code, result.stdout.split("\n")[0]) == (code, line), result.output


def test_text_difference_reasons_and_evidence_are_shown(knowhalu):
    output = knowhalu("revise", "--claim", "Mars is red. Mars is wrong. All wrong here.", "--knowledge", "k").stdout
    for part in (
        "P(hallucinated) was 1.00, is 0.00", "  Mars is red. Mars is far.\n",
        "  -Mars is wrong.\n  -All wrong here.\n  +Mars is far.",
        "rewritten   “Mars is wrong.” → “Mars is far.”  P 1.00 → 0.00", "contradicted by k (characters 0-12, 0.90)",
        "supported by k", "dropped     “All wrong here.”", "no wording was found that the sources support",
        "guarded by scripted",
    ):  # fmt: skip
        assert part in output, part
    assert "\x1b" not in output


def test_a_text_that_is_still_flagged_is_reported(knowhalu):
    output = knowhalu("revise", "--claim", "There first was wrong ice. It came later.", "--knowledge", "k").stdout
    assert "the detector still flags the revised text" in output and "would flag “It came later.”" in output


def test_json_is_one_line_that_reads_back(knowhalu):
    result = knowhalu("revise", "--claim", "Mars is red. Mars is wrong.\u2028", "--knowledge", "k", "--json")
    assert result.stdout.count("\n") == 1
    assert parse_revision(result.stdout).revised == "Mars is red. Mars is far.\u2028"


def test_control_characters_of_texts_are_inert(knowhalu):
    output = knowhalu("revise", "--claim", "Mars is red. So \x1b[2J [bold]wrong\u202e [/bold].", "--knowledge", "k\x07").stdout
    assert not {"\x1b", "\u202e", "\x07"} & set(output)
    assert "[bold]wrong" in output


def test_a_file_is_revised_row_by_row_and_continued(knowhalu, tmp_path):
    rows = ["Mars is red. Mars is wrong.", "All wrong here.", "Mars is broken."]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"claim": c, "knowledge": "k"}) + "\n" for c in rows))
    result = knowhalu("revise", "in.jsonl", "-o", "out.jsonl")
    assert result.exit_code == 0, result.output
    for part in ("3 samples", "revised", "refused", "sentences rewritten", "1 x judge", "3 revised in", "revisions: out.jsonl"):
        assert part in result.stdout
    assert "1 revised in" in knowhalu("revise", "in.jsonl", "-o", "out.jsonl").stdout
    assert "0 revised in" in knowhalu("revise", "in.jsonl", "-o", "out.jsonl", "--keep-failures").stdout
    assert [type(parse_revision(x)).__name__ for x in (tmp_path / "out.jsonl").read_text().splitlines()[1:]] == [
        "Revision", "Revision", "Failure",
    ]  # fmt: skip


@pytest.mark.parametrize(("arguments", "said"), [
    (("--claim", "x"), "no source to check the text against. Give --knowledge TEXT"),
    (("--claim", "x", "--knowledge", "k", "-o", "out.jsonl"), "-o needs a file of rows"),
    (("-o", "out.jsonl"), "knowhalu revise IN -o OUT"),
    (("none.jsonl", "-o", "out.jsonl"), "none.jsonl: this file does not exist"),
    (("--claim", "x", "--knowledge", "k", "--restart"), "--restart and --keep-failures need -o OUT"),
    (("--claim", "x", "--knowledge", "k", "--how", "magic"), "revise.how=magic: revise.how: Input should be 'guarded', 'conli'"),
])  # fmt: skip
def test_bad_arguments_get_a_message_of_one_line(knowhalu, arguments, said):
    result = knowhalu("revise", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr and result.stderr.count("\n") == 1
