"""The off-target check by an LLM, with scripted replies: what the answer gives, and how certain that is."""

import pytest

from knowhalu.errors import BackendError, ReplyError
from knowhalu.results import Failure
from knowhalu.types import HallucinationKind, Sample
from tests.support.multi_hop import HOPS, PAGES, QUESTION, SAID, WRONG, wrong_answer
from tests.support.thinking import Thinker, check


def test_an_off_target_answer_is_found_before_any_fact_is_checked():
    thinker = Thinker(entity="NONE", logprobs=(-2.2,), pieces={"NONE": 0.8, "REFUSAL": 0.05, "European": 0.15})
    sample = Sample(id="o", question=QUESTION, response="He was born in a European city.")
    verdict = check(thinker, sample, PAGES)
    assert (verdict.hallucinated, verdict.kind, verdict.probability) == (True, HallucinationKind.OFF_TARGET, 0.8)
    assert verdict.reason == "The answer gives a thing." and thinker.stages() == ["extract", "entity", "piece"]
    (entity,), (piece,) = thinker.requests("entity"), thinker.requests("piece")
    assert piece.prefill == entity.prefill
    assert piece.choices == ("NONE", "REFUSAL", "He", "was", "born", "in", "a", "European", "city")


@pytest.mark.parametrize("entity", ["NONE", "REFUSAL"])
@pytest.mark.parametrize("pieces", [{"NONE": 0.4, "REFUSAL": 0.4, "Berlin": 0.2}, {}])
def test_the_facts_of_an_answer_that_is_not_certainly_off_target_are_checked(entity, pieces):
    thinker = Thinker(HOPS, SAID, WRONG, entity=entity, logprobs=(-0.92,), pieces=pieces)
    verdict = check(thinker, wrong_answer(), PAGES)
    assert (verdict.hallucinated, verdict.kind, verdict.reason) == (True, HallucinationKind.FACTUAL, SAID)
    assert verdict.probability > 0.9 and verdict.extraction.confidence == pytest.approx(0.4, abs=0.01)
    assert verdict.extraction.reason == "The answer gives a thing. (this is not certain, so the facts were checked)"


def test_an_off_target_answer_whose_choice_cannot_be_measured_keeps_the_probability_of_the_reply():
    def fail(request):
        raise ReplyError("generate", "the model would write something else")

    thinker = Thinker(entity="NONE", logprobs=(-0.2,), raw={("piece", 0): fail})
    verdict = check(thinker, Sample(id="o", question=QUESTION, response="Somewhere."), PAGES)
    assert verdict.kind is HallucinationKind.OFF_TARGET and verdict.probability == pytest.approx(0.8187, abs=1e-4)


def test_a_server_that_does_not_answer_the_choice_fails_the_check():
    def fail(request):
        raise BackendError("generate", "down")

    thinker = Thinker(entity="NONE", raw={("piece", 0): fail})
    assert isinstance(check(thinker, Sample(id="o", question=QUESTION, response="Somewhere."), PAGES), Failure)


def test_of_a_long_answer_the_words_with_content_may_open_the_piece():
    thinker = Thinker(entity="NONE")
    response = " ".join(["that REFUSAL it is of the in a", *(f"word{i}" for i in range(30))])
    check(thinker, Sample(id="o", question=QUESTION, response=response))
    (piece,) = thinker.requests("piece")
    assert piece.choices == ("NONE", "REFUSAL", *(f"word{i}" for i in range(24)))


def test_a_refusal_in_other_words_is_seen_by_the_model_and_is_no_hallucination():
    sample = Sample(id="d", question=QUESTION, response="The pages leave that to others.")
    verdict = check(Thinker(entity="REFUSAL"), sample, PAGES)
    assert (verdict.hallucinated, verdict.extraction.refusal) == (False, True)


def test_a_plain_refusal_needs_no_model():
    thinker = Thinker()
    verdict = check(thinker, Sample(id="d", question=QUESTION, response="I do not know."), PAGES)
    assert (verdict.hallucinated, verdict.skipped[0].text) == (False, "I do not know.") and not thinker.asked


@pytest.mark.parametrize("logprobs", [(), (float("nan"),), (900.0,)])
def test_an_extraction_without_usable_probabilities_is_noted(logprobs):
    verdict = check(Thinker(entity="NONE", logprobs=logprobs), Sample(id="o", question=QUESTION, response="Somewhere."), PAGES)
    assert (verdict.hallucinated, verdict.probability, verdict.extraction.confidence) == (True, None, None)
    assert "no probability" in verdict.reason


def test_an_extraction_without_a_reason_is_retried_from_its_beginning():
    thinker = Thinker(entity="Berlin", raw={("extract", 0): "Berlin", ("extract", 1): " The answer names a city."}, hops=HOPS)
    verdict = check(thinker, wrong_answer(), PAGES)
    assert verdict.extraction.reason == "The answer names a city."
    assert thinker.requests("extract")[1].prefill == "what the question asks for\n### Reason:"
