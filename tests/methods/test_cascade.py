"""The cascade with scripted stages: which stage decides, which requests are made, and the reported reasons."""

import pytest

from knowhalu.build import build_method, fingerprint, reasoners_of
from knowhalu.engine.engine import Backends, Engine
from knowhalu.errors import SettingsError, StageError
from knowhalu.methods.baselines.rules import LexicalBaseline
from knowhalu.methods.cascade import Cascade
from knowhalu.methods.options import CascadeOptions, LexicalOptions
from knowhalu.profiles import load_settings
from knowhalu.requests import Entail, EntailmentPair, Generate
from knowhalu.results import Failure, Verdict
from knowhalu.types import Label, Sample, Task

LABELS = {True: Label.INCORRECT, False: Label.CORRECT, None: Label.INCONCLUSIVE}
SAMPLE = Sample(id="1", response="The mill burned down in 1871.", knowledge="The mill stood until 1902.")


class Stage:
    """A method that asks one thing and then says what it is told."""

    def __init__(self, name, p, hallucinated, ask=None):
        self.name, self.p, self.hallucinated, self.ask, self.asked = name, p, hallucinated, ask, 0

    def check(self, sample):
        self.asked += 1
        if self.ask is not None:
            yield self.ask
        return Verdict(
            id=sample.id, task=Task.CLAIM, method=self.name, label=LABELS[self.hallucinated], hallucinated=self.hallucinated,
            kind=None, probability=self.p, reason=f"{self.name} says so",
        )  # fmt: skip


ASKS = {"encoder": Entail((EntailmentPair("a", "b"),)), "llm": Generate("?")}


def cascade(rules=(0.5, None), encoder=(0.5, True), llm=None, **options):
    said = {"rules": rules, "encoder": encoder, "llm": llm}
    stages = {n: Stage(n, *v, ask=ASKS.get(n)) for n, v in said.items() if v is not None}
    return Cascade(stages, CascadeOptions(**options)), stages


def run(method, stages, fails=False):
    class Answers:
        def answer_many(self, requests):
            if fails:
                raise StageError("generate", "the server is down")
            return [reply for _ in requests]

    from knowhalu.requests import Completion, Probabilities

    reply = [Probabilities(0.2, 0.3, 0.5)]
    entail, reply_llm = Answers(), Completion("x", prompt_tokens=7)
    generate = type("Model", (Answers,), {"answer_many": lambda self, r: Answers.answer_many(self, r) and [reply_llm] * len(r)})()
    (outcome,) = Engine(method, Backends(entail=entail, generate=generate)).run([SAMPLE])
    return outcome


@pytest.mark.parametrize(
    ("rules", "encoder", "llm", "by", "hallucinated", "asked"),
    [
        ((0.95, True), (0.1, False), (0.1, False), "rules", True, "rules"),
        ((0.5, None), (0.9, True), (0.1, False), "encoder", True, "rules encoder"),
        ((0.5, None), (0.2, False), (0.9, True), "encoder", False, "rules encoder"),
        ((0.5, None), (0.6, True), (0.1, False), "llm", False, "rules encoder llm"),
        ((0.5, None), (0.9, None), (0.7, True), "llm", True, "rules encoder llm"),
        ((0.5, None), (0.5, False), (0.5, None), "llm", None, "rules encoder llm"),
        ((0.5, None), (0.6, True), None, None, None, "rules encoder"),
        ((0.5, None), (None, True), (None, False), "llm", False, "rules encoder llm"),
        ((0.5, None), (None, True), None, None, None, "rules encoder"),
    ],
)
def test_the_first_confident_stage_decides_and_no_later_one_runs(rules, encoder, llm, by, hallucinated, asked):
    method, stages = cascade(rules, encoder, llm)
    verdict = run(method, stages)
    assert [n for n, s in stages.items() if s.asked] == asked.split()
    assert [s.name for s in verdict.stages] == asked.split()
    assert [s.name for s in verdict.stages if s.decided] == [by] * (by is not None)
    assert (verdict.method, verdict.hallucinated, verdict.label) == ("cascade", hallucinated, LABELS[hallucinated])
    assert (f"decided by {by}" if by else "(--reasoner llm) could decide") in verdict.reason
    assert (verdict.usage.pairs, verdict.usage.calls) == ("encoder" in asked, "llm" in asked)


def test_the_thresholds_decide_by_the_encoders_probability_not_its_label():
    method, stages = cascade(encoder=(0.4, False), low=0.1, high=0.3)
    assert run(method, stages).hallucinated is True


def test_the_reason_of_an_undecided_stage_is_reported():
    method, stages = cascade(encoder=(0.6, True), llm=(0.1, False))
    assert "encoder before: encoder says so (P(hallucinated) is 0.600, between 0.200 and 0.800" in run(method, stages).reason


def test_all_stages_run_on_request_and_the_first_still_decides():
    method, stages = cascade((0.95, True), (0.6, True), (0.1, False), ask="always")
    verdict = run(method, stages)
    assert [(s.name, s.probability, s.decided) for s in verdict.stages] == [
        ("rules", 0.95, True), ("encoder", 0.6, False), ("llm", 0.1, False),
    ]  # fmt: skip
    assert verdict.probability == 0.95


def test_a_stage_that_fails_is_a_failure_and_not_the_stage_befores_label():
    method, stages = cascade(encoder=(0.6, True), llm=(0.1, False))
    outcome = run(method, stages, fails=True)
    assert isinstance(outcome, Failure) and outcome.reason == "the server is down"


def test_a_terminal_shows_every_stage_and_which_one_decides(capsys):
    from knowhalu.cli.show import make_console, show_outcome

    method, stages = cascade(encoder=(0.6, True), llm=(0.1, False))
    show_outcome(make_console(), SAMPLE, run(method, stages))
    lines = capsys.readouterr().out.split("Stages\n")[1].splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [
        ["rules", "INCONCLUSIVE"],
        ["encoder", "INCONCLUSIVE"],
        ["llm", "CORRECT"],
    ]
    assert [line.endswith("decides") for line in lines[:3]] == [False, False, True]


def test_stages_follow_from_the_reasoner_and_thresholds_are_in_the_fingerprint():
    encoder, both = load_settings(pairs=["method=cascade"]), load_settings(pairs=["method=cascade", "reasoner=llm"])
    assert (reasoners_of(encoder), reasoners_of(both)) == ({"", "encoder"}, {"", "encoder", "llm"})
    assert list(build_method(both).stages) == ["rules", "encoder", "llm"]
    assert list(build_method(load_settings(pairs=["method=cascade", "cascade.rules="])).stages) == ["encoder"]
    first = fingerprint(both)
    assert {"verifier", "prompts"} <= set(first) and "prompts" not in fingerprint(encoder)
    for pair in ("cascade.low=0.1", "cascade.llm=few-shot", "llm.model=m", "lexical.rules=['dates']", "knowhalu.max_steps=3"):
        assert fingerprint(load_settings(pairs=["method=cascade", "reasoner=llm", pair])) != first, pair
    assert fingerprint(load_settings(pairs=["method=cascade", "reasoner=llm", "conli.batched=true"])) == first


@pytest.mark.parametrize(
    ("pair", "said"),
    [("cascade.rules=knowhalu", "Name a method without a reasoner"), ("cascade.encoder=cascade", "Name a method of one stage"),
     ("cascade.encoder=halueval", "halueval does not support the reasoner 'encoder'"), ("cascade.llm=nothing", "unknown method"),
     ("cascade.low=0.9", "cascade.low is above cascade.high")],
)  # fmt: skip
def test_missing_stages_are_refused_with_the_remedy(pair, said):
    with pytest.raises(SettingsError, match=said):
        build_method(load_settings(pairs=["method=cascade", "reasoner=llm", pair]))


ALL = ("copied", "dates", "numbers", "names")
MILL = "The mill at Penmor stood until 3 May 1902. Mara Quill owned it for 12 years."


@pytest.mark.parametrize(
    ("response", "rules", "found"),
    [
        ("The mill at Penmor stood until 3 May 1902.", ALL, {(Label.CORRECT, "claim")}),
        ("The mill at Penmor stood until 3 May 1902.", ("dates",), set()),
        ("The mill stood for long.", ALL, set()),
        ("It stood until 1903.", ALL, {(Label.INCORRECT, "date")}),
        ("It stood until 1903.", ("names", "numbers"), set()),
        ("She owned it for 14 years.", ALL, {(Label.INCORRECT, "quantity")}),
        ("She owned it for twelve years.", ALL, set()),
        ("It belonged to Tom Arden.", ("names",), {(Label.INCORRECT, "name")}),
    ],
)
def test_rules_decide_by_words_alone(response, rules, found):
    method = LexicalBaseline(LexicalOptions(rules=rules))
    (verdict,) = Engine(method, Backends()).run([Sample(id="1", response=response, knowledge=MILL)])
    told = {(f.label, f.type or f.unit) for f in verdict.segments[0].findings}
    assert told == found
    assert verdict.label is (next(iter(found))[0] if found else Label.INCONCLUSIVE)
    assert all(response[f.start : f.end] == f.text for f in verdict.segments[0].findings)


def test_copied_answers_and_passages_of_an_index_decide_nothing():
    method = LexicalBaseline(LexicalOptions(rules=ALL))
    samples = [Sample(id="1", question="Until when?", response="Mara Quill owned it for 12 years.", knowledge=MILL),
               Sample(id="2", response="It stood until 1903.")]  # fmt: skip
    found = list(Engine(method, Backends()).run(samples))
    assert [v.label for v in found] == [Label.INCONCLUSIVE] * 2 and "given with the text" in found[1].reason


def test_an_unmeasured_stage_is_decided_by_its_label_where_the_band_is_one_threshold():
    verdict = run(cascade((0.5, None), (None, True), (0.1, False), low=0.5, high=0.5)[0], {})
    assert (verdict.hallucinated, verdict.probability, [s.name for s in verdict.stages if s.decided]) == (True, None, ["encoder"])
    assert verdict.stages[-1].probability is None
