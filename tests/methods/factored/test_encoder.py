"""Factored Verification by the encoder: claims by rules, P(supported) by scripted scores and by the packaged verifier."""

import json

import pytest

from knowhalu.api import Checker
from knowhalu.build import fingerprint
from knowhalu.encoder.options import PACKAGED_VERIFIER
from knowhalu.engine.engine import Backends, Engine
from knowhalu.errors import ModelError
from knowhalu.methods.common.combine import COMBINATION_RULES
from knowhalu.methods.factored.encoder import FactoredEncoder, load_combination_calibration
from knowhalu.methods.factored.method import Factored
from knowhalu.methods.options import FactoredOptions
from knowhalu.settings import Settings
from knowhalu.testing import ScriptedEncoder
from knowhalu.types import Document, Label, Sample

SOURCE = "The bridge was built in 1932. It is 503 metres long. The mayor cut the ribbon in May."
STANDARD = {"thetas": dict.fromkeys(COMBINATION_RULES, 0.5), "typical": 0.9, "reference": 3}


def check(response, wrong, **fields):
    encoder = ScriptedEncoder(lambda pair: (0.02, 0.96, 0.02) if wrong in pair.claim else (0.97, 0.01, 0.02))
    method = Factored(FactoredEncoder(PACKAGED_VERIFIER), FactoredOptions())
    sample = Sample.model_validate({"id": "s", "response": response, "documents": SOURCE, **fields})
    (outcome,) = Engine(method, Backends(entail=encoder)).run([sample])
    return outcome, [pair for request in encoder.history for pair in request.pairs]


def test_each_clause_is_judged_alone():
    verdict, pairs = check("The bridge was built in 1932 and closed in 1941.", "1941")
    findings = verdict.segments[0].findings
    assert [f.text for f in findings] == ["The bridge was built in 1932.", "The bridge closed in 1941."]
    assert [f.label for f in findings] == [Label.CORRECT, Label.INCORRECT] and verdict.hallucinated is True
    assert {p.claim for p in pairs} == {f.text for f in findings}


def test_evidence_is_verbatim_in_the_source():
    verdict, _ = check("The bridge was built in 1932.", "nothing")
    assert verdict.hallucinated is False and verdict.evidence
    for e in verdict.evidence:
        assert SOURCE[e.document_start : e.document_start + len(e.quote)] == e.quote


def test_only_an_answer_of_one_claim_is_judged_with_its_question():
    _, alone = check("In 1932.", "x", question="When was the bridge built?")
    _, more = check("It was built in 1932. It is 503 metres long.", "x", question="When was the bridge built?")
    assert any(p.question for p in alone) and not any(p.question for p in more)


def test_refusals_and_questions_have_nothing_to_check():
    verdict, pairs = check("I do not know. Who can tell?", "x", question="Who paid?")
    assert verdict.label is Label.INCONCLUSIVE and not pairs


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"thetas": {"product": 0.5}, "typical": 1, "reference": 1}', json.dumps(STANDARD | {"typical": 0}),
             json.dumps(STANDARD | {"thetas": dict.fromkeys(COMBINATION_RULES, 2)}), json.dumps(STANDARD | {"reference": "many"})]
)  # fmt: skip
def test_a_damaged_file_of_thetas_is_named_with_the_remedy(tmp_path, text):
    (tmp_path / "factored.json").write_text(text)
    with pytest.raises(ModelError, match=r"factored\.json: .*fit them with scripts/fit_theta\.py"):
        load_combination_calibration(tmp_path)


def test_a_verifier_without_thetas_says_how_to_get_them(tmp_path):
    with pytest.raises(ModelError, match=r"scripts/fit_theta\.py"):
        load_combination_calibration(tmp_path)


def test_the_packaged_thetas_can_be_used_and_say_what_they_were_fitted_on():
    standard = load_combination_calibration(PACKAGED_VERIFIER)
    assert set(standard.thetas) == set(COMBINATION_RULES) and standard.thetas["product"] < standard.thetas["geometric"]
    told = json.loads((PACKAGED_VERIFIER / "factored.json").read_text())
    assert sum(told["fitted_on"].values()) == told["rows"] and "held-out sources of the training files" in told["split"]


@pytest.fixture(scope="module")
def checker():
    return Checker(Settings(method="factored"))


@pytest.mark.parametrize(
    ("summary", "hallucinated"),
    [
        ("The bridge was built in 1932 and is 503 metres long.", False),
        ("The bridge was built in 1932. It is 603 metres long.", True),
        ("The bridge is 503 metres long. It was painted green by the queen of Sweden.", True),
    ],
)
def test_obvious_summaries_are_decided_rightly(checker, summary, hallucinated):
    verdict = checker.check(Sample(id="s", response=summary, documents=(Document(id="d", text=SOURCE),)))
    assert verdict.hallucinated is hallucinated


def test_academic_text_is_checked_by_what_it_cites():
    papers = (
        Document(id="ling2009", text="Creatine improved memory in 34 healthy adults."),
        Document(id="benton2010", text="Caffeine had no effect on the sleep of 80 students."),
    )
    checker = Checker(Settings(method="factored-academic"))
    right = checker.check(Sample(response="Ling (2009) found that creatine improved memory in healthy adults.", documents=papers))
    wrong = checker.check(Sample(response="Benton (2010) found that creatine improved memory in 34 adults.", documents=papers))
    made_up = checker.check(Sample(response="Creatine improved memory in healthy adults (Smith, 2011).", documents=papers))
    assert [v.hallucinated for v in (right, wrong, made_up)] == [False, True, True]


def test_the_thetas_and_the_options_are_part_of_the_fingerprint():
    one = fingerprint(Settings(method="factored"))
    assert one != fingerprint(Settings(method="factored", factored=FactoredOptions(rule="minimum")))
    assert one != fingerprint(Settings(method="factored-academic"))
    assert fingerprint(Settings()) == fingerprint(Settings(factored=FactoredOptions(rule="minimum")))
