"""The same model in this process by transformers: a whole check, its probabilities, and what is computed only once."""

import pytest

from knowhalu.api import Checker
from knowhalu.methods.knowhalu.options import KnowHaluOptions
from knowhalu.results import Failure, Verdict

pytestmark = pytest.mark.real
ANSWER = {"id": "1", "question": "Who wrote Ivanhoe?", "response": "Walter Scott", "knowledge": ["Ivanhoe is a novel by Walter Scott."]}


@pytest.fixture(scope="module")
def checker(settings, smollm_folder):
    llm = {"backend": "transformers", "model": str(smollm_folder), "precision": "fp32"}
    return Checker(settings(knowhalu=KnowHaluOptions(second_opinion="never", max_steps=1), llm=llm))


def test_a_check_in_this_process_has_every_stage_and_computes_prefixes_once(checker):
    verdict = checker.check(**ANSWER)
    assert isinstance(verdict, Verdict), verdict
    assert verdict.extraction.entity == "Walter Scott" and 0 < verdict.extraction.confidence <= 1
    judgment = verdict.segments[0].base
    assert judgment.confidence_source == "probability" and 1 / 3 <= judgment.confidence <= 1
    assert any(step.knowledge.quotes for step in judgment.steps)
    again = checker.check(**ANSWER | {"id": "2", "response": "Charles Dickens"})
    assert again.usage.cached_tokens > 0.8 * again.usage.prompt_tokens


def test_a_prompt_that_exceeds_the_context_of_the_model_is_a_failure(checker):
    failure = checker.check(**ANSWER | {"knowledge": ["Ivanhoe is a novel by Walter Scott. " * 1200]})
    assert isinstance(failure, Failure) and "the model's context of 8192" in failure.reason
