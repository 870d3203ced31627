"""`knowhalu check`: sources of the text, display of outcomes, and messages."""

import json

import pytest
from click.testing import CliRunner

from knowhalu.api import Checker
from knowhalu.cli.main import main
from knowhalu.cli.show import highlight_response, make_console, show_outcome
from knowhalu.io.outcomes import parse_outcome
from knowhalu.methods.common.verdict import span_finding
from knowhalu.requests import UnsupportedSpan
from knowhalu.results import Finding, Segment, SkippedSpan, Verdict
from knowhalu.text.sentences import sanitize
from knowhalu.types import Extraction, Judgment, KnowledgeForm, Label, Sample
from tests.support import scripted_checks
from tests.support.scripted_checks import segment_of


@pytest.mark.parametrize(("word", "code", "line"), [
    ("right", 0, "✓ FAITHFUL"), ("wrong", 1, "✗ HALLUCINATED  factual error  P(hallucinated) = 0.97"),
    ("unsure", 3, "? INCONCLUSIVE"), ("broken", 2, "! NO VERDICT  judge: the reply has no label"),
])  # fmt: skip
def test_first_line_and_exit_code_give_the_verdict(knowhalu, word, code, line):
    result = knowhalu("check", "-q", "Which planet?", "-a", f"{word} Mars", "--knowledge", "Mars is red.")
    assert result.exit_code == code
    assert result.stdout.split("\n")[0].startswith(line)


def test_an_inconclusive_verdict_shows_its_reason_and_the_next_step(knowhalu):
    given = ("check", "--claim", "unsure", "--knowledge", "Mars is red.")
    lines = knowhalu(*given).stdout.splitlines()
    assert lines[1].strip() == "the model is not certain" and lines[3].startswith("  Next: Use a stronger model")
    assert json.loads(knowhalu(*given, "--json").stdout)["inconclusive_reason"] == "unsure"


def test_outcome_is_shown_without_colours_in_a_pipe(knowhalu):
    output = knowhalu("check", "-q", "Which planet?", "-a", "wrong Mars", "--knowledge", "Mars is red.").stdout
    assert "\x1b" not in output
    for part in (
        "[✗ wrong Mars]",
        "[0:10] “wrong Mars”",
        "contradicted by Planets (characters 0-12, 0.97)",
        "“Mars is red.”",
        "asked for: a planet; the answer gives: “Mars” (0.90)",
        "unstructured INCORRECT    0.90  the source says so",
    ):
        assert part in output
    assert "Which planet is it?" not in output


@pytest.mark.parametrize(("refusal", "checked", "hallucinated", "given"), [
    (True, False, False, "a refusal, which is no hallucination (0.40)"), (True, False, True, "a refusal (0.40)"),
    (True, True, True, "perhaps a refusal (0.40)"), (False, True, False, "perhaps nothing (0.40)"),
    (False, False, True, "nothing (0.40)"),
])  # fmt: skip
def test_an_extraction_is_uncertain_where_the_facts_were_checked_in_spite_of_it(capsys, refusal, checked, hallucinated, given):
    judgment = Judgment(form=None, label="CORRECT", confidence=0.9, rationale="", confidence_source="probability")
    segment = Segment(start=0, end=3, text="No.", label="CORRECT", probability=0.1, base=judgment)
    verdict = Verdict(
        id="1", task="qa", method="m", label="INCORRECT" if hallucinated else "CORRECT", hallucinated=hallucinated, kind=None,
        probability=0.4, reason="", segments=(segment,) if checked else (),
        extraction=Extraction(entity=None, asked_for="a date", reason="", confidence=0.4, refusal=refusal),
    )  # fmt: skip
    show_outcome(make_console(), Sample(question="When?", response="No."), verdict)
    assert f"asked for: a date; the answer gives: {given}" in capsys.readouterr().out


def test_steps_show_queries_passages_and_knowledge(knowhalu):
    output = knowhalu("check", "--claim", "wrong", "--knowledge", "Mars is red.", "--steps").stdout
    for part in ("look for the planet", "Is it Mars?", "Which planet is it?", "passage 0.80 Planets", "knowledge: Mars is red."):
        assert part in output


def test_a_failure_shows_the_raw_reply(knowhalu):
    assert "gibberish" in knowhalu("check", "--claim", "broken", "--knowledge", "k").stdout


def test_json_is_one_line_that_reads_back(knowhalu):
    result = knowhalu("check", "--claim", "wrong ü\u2028", "--knowledge", "k", "--json")
    assert result.stdout.count("\n") == 1
    assert parse_outcome(result.stdout).segments[0].text == "wrong ü\u2028"


def test_texts_come_from_files_and_standard_input(knowhalu, tmp_path):
    (tmp_path / "source.txt").write_bytes(b"\xef\xbb\xbfMars is red.")
    (tmp_path / "known.txt").write_text("It is a planet.")
    output = knowhalu("check", "--summary", "right", "--document", "source.txt").stdout
    assert "“Mars is red.”" in output
    assert "“It is a planet.”" in knowhalu("check", "--claim", "right", "--knowledge", "@known.txt").stdout
    assert "“From a pipe.”" in knowhalu("check", "--claim", "right", "--document", "-", input="From a pipe.").stdout


@pytest.mark.parametrize("arguments", [("check",), ("check", "-"), ("check", "item.json")])
def test_text_is_read_from_json(knowhalu, tmp_path, arguments):
    item = json.dumps({"id": "mine", "answer": "wrong", "question": "Which?", "knowledge": ["k"]})
    (tmp_path / "item.json").write_text(item)
    assert parse_outcome(knowhalu(*arguments, "--json", input=item).stdout).id == "mine"


@pytest.mark.parametrize(("arguments", "said"), [
    (("--claim", "x"), "no source to check the text against. Give --knowledge TEXT, --document FILE or --index FOLDER"),
    (("-q", "Who?"), "exactly one of --answer, --summary, --claim (got none)"),
    (("-a", "x", "--claim", "y"), "got --answer and --claim"),
    (("item.json", "--claim", "y"), "either as a file or by options"),
    (("no.json",), "no.json: cannot be read (No such file or directory)"),
    (("--claim", " ", "--knowledge", "k"), "the command line, field 'claim': is empty"),
    (("--claim", "x", "--knowledge", ""), "field 'knowledge[0]': is empty"),
    (("--summary", "x", "--document", "no.txt"), "no.txt: cannot be read"),
    (("--summary", "x", "--document", "latin.txt"), "latin.txt: not UTF-8 at byte 3"),
    (("--summary", "x", "--document", "-", "--knowledge", "@-"), "standard input can be read only once"),
    (("--claim", "x", "--settings", "bad.toml"), "bad.toml: cannot read the settings"),
])  # fmt: skip
def test_bad_arguments_get_a_message_of_one_line(knowhalu, tmp_path, arguments, said):
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "bad.toml").write_text("a = = b")
    result = knowhalu("check", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_empty_standard_input_is_refused(knowhalu):
    assert "standard input: holds nothing" in knowhalu("check", input="").stderr


def test_an_index_folder_reaches_the_settings_whatever_its_name(monkeypatch, knowhalu):
    seen = []
    usual = Checker.check

    def check(self, sample):
        seen.append(self.settings.retrieval.index)
        return usual(self, sample)

    monkeypatch.setattr(Checker, "check", check)
    for name in ("indexes/demo", '1 "quoted" ü = 3'):
        knowhalu("check", "--claim", "x", "--index", name)
        assert str(seen.pop()) == name


def test_the_reply_cache_can_be_skipped(monkeypatch, knowhalu):
    seen = []
    usual = Checker.check

    def check(self, sample):
        seen.append(self.settings.llm.cache)
        return usual(self, sample)

    monkeypatch.setattr(Checker, "check", check)
    for options in ((), ("--no-cache",), ("--no-cache", "--set", "llm.cache=true")):
        knowhalu("check", "--claim", "x", "--knowledge", "k", *options)
    assert seen == [True, False, False]


def test_control_characters_and_markup_of_texts_are_inert(knowhalu):
    output = knowhalu("check", "--claim", "wrong [bold]\x1b[2Jx\u202ey[/bold]", "--knowledge", "k\x07").stdout
    assert "[✗ wrong [bold]�[2Jx�y[/bold]]" in output
    assert not {"\x1b", "\u202e", "\x07"} & set(output)
    assert sanitize("a\tb\nc") == "a\tb\nc"


def test_only_flagged_segments_are_marked():
    text = "Mars is red. It has nine moons. It may rain."
    sample = Sample(response=text)
    spans = [(0, 12, Label.CORRECT), (13, 31, Label.INCORRECT), (32, 44, Label.INCONCLUSIVE)]
    segments = [segment_of(sample, s).model_copy(update={"start": a, "end": b, "text": text[a:b]}) for a, b, s in spans]
    assert highlight_response(text, segments, coloured=False).plain == "Mars is red. [✗ It has nine moons.] [? It may rain.]"
    coloured = highlight_response(text, segments, coloured=True)
    assert coloured.plain == text
    assert [(s.start, s.end) for s in coloured.spans] == [(13, 31), (32, 44)]


def test_unsupported_words_are_set_apart():
    text = "Mars is red. It has nine moons."
    segment = segment_of(Sample(response=text), Label.INCORRECT).model_copy(update={"start": 13, "end": 31, "text": text[13:]})
    found = span_finding(text, range(13, 31), UnsupportedSpan(7, 11, 0.9))
    segment = segment.model_copy(update={"findings": (found,)})
    assert highlight_response(text, [segment], coloured=False).plain == "Mars is red. [✗ It has «nine» moons.]"
    coloured = highlight_response(text, [segment], coloured=True)
    assert coloured.plain == text
    assert [(s.start, s.end) for s in coloured.spans if "reverse" in str(s.style)] == [(20, 24)]


def test_lines_are_not_wrapped_in_a_pipe(capsys):
    make_console().print("word " * 200)
    assert capsys.readouterr().out.count("\n") == 1


def test_agreement_of_forms_and_unsupported_knowledge_are_shown(knowhalu, monkeypatch):
    def both(sample, label):
        one = segment_of(sample, label)
        step = one.base.steps[0]
        knowledge = step.knowledge.model_copy(update={"unsupported": "It has rings."})
        other = one.base.model_copy(
            update={"form": KnowledgeForm.STRUCTURED, "label": Label.INCORRECT, "confidence_source": "none", "confidence": 0.0,
                    "steps": (step.model_copy(update={"knowledge": knowledge}),)}
        )  # fmt: skip
        return one.model_copy(update={"supplement": other})

    monkeypatch.setattr(scripted_checks, "segment_of", both)
    output = knowhalu("check", "--claim", "right", "--knowledge", "k", "--steps").stdout
    assert "the two forms of knowledge DISAGREE" in output
    assert "structured   INCORRECT       -  the source says so" in output
    assert "not supported by any passage, ignored: It has rings." in output
    assert "the two forms of knowledge agree" in knowhalu("check", "--claim", "wrong", "--knowledge", "k").stdout


def test_skipped_spans_are_shown_with_their_reason(capsys):
    sample = Sample(id="x", response="Hello! Mars is red.", knowledge="Mars is red.")
    skipped = (SkippedSpan(start=0, end=6, text="Hello!", reason="a courtesy"),)
    verdict = Verdict(id="x", task="claim", method="m", label="CORRECT", hallucinated=False, kind=None, probability=0.1,
                      reason="", skipped=skipped)  # fmt: skip
    show_outcome(make_console(), sample, verdict)
    assert "Not checked (1)\n  “Hello!”: a courtesy\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answer", "code", "first", "shown"),
    [
        ("Good morning! How are you?", 3, "? INCONCLUSIVE", ["“Good morning!”: a courtesy", "“How are you?”: a question"]),
        ("I'm sorry, but I don't know.", 0, "✓ FAITHFUL", ["“I'm sorry, but I don't know.”: a refusal to answer"]),
    ],
)
def test_a_text_that_claims_nothing_is_shown_as_that_and_asks_no_model(answer, code, first, shown):
    given = ["check", "-q", "Who drew the bridge?", "-a", answer, "--knowledge", "Tom Arden drew it."]
    result = CliRunner().invoke(main, given)
    assert result.exit_code == code and result.stdout.startswith(first)
    assert all(line in result.stdout for line in (f"Not checked ({len(shown)})", *shown)) and "pairs" not in result.stdout
    told = json.loads(CliRunner().invoke(main, [*given, "--json"]).stdout)["skipped"]
    assert all(answer[s["start"] : s["end"]] == s["text"] for s in told) and len(told) == len(shown)


def test_a_rationale_that_repeats_a_finding_is_shown_once(capsys):
    text = "It is green."
    claim = Finding(unit="claim", start=0, end=12, text=text, label="INCORRECT", p_supported=0.1, reason="it is red")
    base = Judgment(label="INCORRECT", confidence=0.9, p_supported=0.1, rationale="“It is green.”: it is red")
    segment = Segment(start=0, end=12, text=text, label="INCORRECT", probability=0.9, base=base, findings=(claim,))
    verdict = Verdict(id="x", task="claim", method="m", label="INCORRECT", hallucinated=True, kind="factual", probability=0.9,
                      reason="", segments=(segment,))  # fmt: skip
    show_outcome(make_console(), Sample(id="x", response=text, knowledge="It is red."), verdict)
    assert capsys.readouterr().out.count("“It is green.”: it is red") == 1
