"""Checks with external verifiers: by their own probability, by a fitted judgment, and by a judge at a server."""

import importlib.util
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from knowhalu.api import Checker
from knowhalu.build import fingerprint, llm_identity, verifier_hash
from knowhalu.cli.main import main
from knowhalu.errors import ModelError
from knowhalu.io.fitted_files import WEIGHTS_HASH_FIELD, weights_hash
from knowhalu.methods.common.judgment_model import JudgmentModel
from knowhalu.methods.knowhalu.encoder import UNFITTED_NOTE
from knowhalu.profiles import load_settings
from knowhalu.results import Verdict
from knowhalu.training.fit_rows import FitRow
from knowhalu.training.fitting import replace_fitted_file
from knowhalu.types import Sample
from tests.support.fake_server import FakeServer, running
from tests.support.tiny_model import TinyModel
from tests.support.tiny_verifiers import card, minicheck_t5, sequence_classifier

SAMPLE = Sample(id="1", response="Mars is a red planet.", knowledge=("Mars is red. It is a planet.",))


def settings(folder, *pairs):
    return load_settings(pairs=[f"encoder.folder={json.dumps(str(folder))}", "encoder.precision=fp32", *pairs])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return sequence_classifier(tmp_path_factory.mktemp("models") / "nli")


def test_unfitted_verifier_judges_by_its_probability_and_the_verdict_tells(model):
    verdict = Checker(settings(model)).check(SAMPLE)
    assert isinstance(verdict, Verdict)
    base = verdict.segments[0].base
    assert UNFITTED_NOTE in base.rationale
    log_odds = base.features["window_supported"]
    assert base.p_supported == pytest.approx(1 / (1 + 2.718281828**-log_odds), abs=1e-6)


def test_threshold_of_the_card_is_where_a_claim_becomes_supported(model, tmp_path):
    p = Checker(settings(model)).check(SAMPLE).segments[0].base.p_supported
    for threshold, supported in ((p / 2, True), ((1 + p) / 2, False)):
        folder = card(tmp_path, model=str(model), threshold=threshold)
        found = Checker(settings(folder)).check(SAMPLE).segments[0].base.p_supported
        assert (found > 0.5) is supported


@pytest.mark.parametrize("method", ["conli", "factored", "selfcheck"])
def test_other_methods_use_the_verifier_too(model, method):
    sample = SAMPLE.model_copy(update={"meta": {"samples": ["Mars is red.", "Mars is blue."]}})
    outcome = Checker(settings(model, f"method={method}")).check(sample)
    assert isinstance(outcome, Verdict), outcome


def test_selfcheck_refuses_a_verifier_that_cannot_see_contradictions(tmp_path):
    sample = SAMPLE.model_copy(update={"meta": {"samples": ["Mars is red.", "Mars is blue."]}})
    with pytest.raises(ModelError, match="selfcheck counts contradictions"):
        Checker(settings(sequence_classifier(tmp_path, labels=("entailment", "not_entailment")), "method=selfcheck")).check(
            sample
        )


def fit_script():
    path = Path(__file__).parents[1] / "scripts/fit_judgment.py"
    spec = importlib.util.spec_from_file_location("fit_judgment", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(question):
    colours = ("red", "blue", "green", "white", "black", "grey")
    for number in range(24):
        colour, other = colours[number % 6], colours[(number + 1 + number // 6) % 6]
        said = colour if number % 2 else other
        sample = Sample(id=str(number), knowledge=(f"Planet {number} is {colour}.",), question=question,
                        response=f"Planet {number} is {said}.")  # fmt: skip
        yield FitRow(sample, said == colour, "planets", 1.0)


def test_judgment_is_fitted_into_the_folder_that_the_card_names(tmp_path):
    script, folder = fit_script(), minicheck_t5(tmp_path / "model")
    card(folder, preset="minicheck-flan-t5", fitted="../fits")
    unfitted = verifier_hash(folder)
    tasks = {"claim": list(rows(None)), "answer": list(rows("Which colour has the planet?"))}
    with replace_fitted_file(folder, "judgment.json", start := script.beginning(tasks, load_settings())) as draft:
        script.fit_all(load_settings(), draft, start, tasks, [])
    data = json.loads((tmp_path / "fits" / "judgment.json").read_text())
    assert not (folder / "judgment.json").exists() and data[WEIGHTS_HASH_FIELD] == weights_hash(folder)
    judgment = JudgmentModel(folder)
    assert judgment.fitted and judgment.evades is None and verifier_hash(folder) != unfitted
    verdict = Checker(settings(folder)).check(SAMPLE)
    assert isinstance(verdict, Verdict) and UNFITTED_NOTE not in verdict.segments[0].base.rationale
    card(folder, preset="minicheck-flan-t5", fitted="../fits", template="{premise} {claim}")  # other probabilities than the fit's
    with pytest.raises(ModelError, match=r"judgment\.json: was fitted to other weights"):
        JudgmentModel(folder)


def yes_if_red(prompt):
    return "Yes" if "Claim: Mars is a red" in prompt else "No"


def test_judge_at_a_server_checks_a_text(tmp_path):
    folder = card(tmp_path, preset="minicheck-7b")
    with running(FakeServer(TinyModel(yes_if_red, sure=0.95))) as server:
        pairs = (f"llm.url={server.url}", "llm.cache=false")
        right = Checker(settings(folder, *pairs)).check(SAMPLE)
        wrong = Checker(settings(folder, *pairs)).check(SAMPLE.model_copy(update={"response": "Mars is a blue planet."}))
    assert right.hallucinated is False and wrong.hallucinated is True
    assert {x.path for x in server.requests} == {"/v1/models", "/tokenize", "/v1/chat/completions"}


def test_run_with_a_judge_depends_on_the_language_model(tmp_path, model):
    judge = card(tmp_path, preset="minicheck-7b")
    assert fingerprint(settings(judge, "llm.model=a")) != fingerprint(settings(judge, "llm.model=b"))
    assert fingerprint(settings(model, "llm.model=a")) == fingerprint(settings(model, "llm.model=b"))
    with running(FakeServer()) as server:
        assert "tiny" in llm_identity(settings(judge, f"llm.url={server.url}"))
    assert llm_identity(settings(model)) == ""


def test_commands_tell_that_nothing_is_fitted(model, tmp_path):
    def knowhalu(*args):
        return CliRunner().invoke(main, args)

    given = ("--set", f"encoder.folder={model}")
    result = knowhalu("check", "--claim", "Mars is red.", "--knowledge", "Mars is red.", *given)
    assert "no judgment is fitted to this verifier, so its probability is the judgment" in result.stderr
    assert "fit_judgment.py" in result.stderr and "fitted" in knowhalu("doctor", *given).stdout
    judge = knowhalu(
        "doctor", "--set", f"encoder.folder={card(tmp_path, preset='llm-judge')}", "--set", "llm.url=http://127.0.0.1:9/v1"
    )
    assert judge.exit_code == 1 and "llm.url" in judge.stdout  # nothing answers there
    broken = knowhalu("doctor", "--set", f"encoder.folder={card(tmp_path, preset='minichek')}")
    assert broken.exit_code == 1 and "unknown preset 'minichek'" in broken.stdout
