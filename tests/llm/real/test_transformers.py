"""The same model in this process by transformers: a whole check, its probabilities, and what is computed only once."""

import pytest

from knowhalu.api import Checker
from knowhalu.llm.local.backend import TransformersBackend
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.server_backend import ServerBackend
from knowhalu.methods.knowhalu.options import KnowHaluOptions
from knowhalu.results import Verdict
from tests.support.llm_contract import asker, changed
from tests.support.real_llm import CHOICE

pytestmark = pytest.mark.real
SOURCE = "Ivanhoe is a novel by Walter Scott."
ANSWER = {"id": "1", "question": "Who wrote Ivanhoe?", "response": "Walter Scott", "knowledge": [SOURCE]}


def test_every_stage_of_a_check_is_done_in_this_process(settings, smollm_folder):
    llm = {"backend": "transformers", "model": str(smollm_folder), "precision": "fp32"}
    verdict = Checker(settings(knowhalu=KnowHaluOptions(second_opinion="never", max_steps=1), llm=llm)).check(**ANSWER)
    assert isinstance(verdict, Verdict), verdict
    assert verdict.extraction.entity == "Walter Scott" and 0 < verdict.extraction.confidence <= 1
    judgment = verdict.segments[0].base
    assert judgment.confidence_source == "probability" and 1 / 3 <= judgment.confidence <= 1
    assert any(step.knowledge.quotes for step in judgment.steps)
    assert 0 < verdict.usage.cached_tokens < verdict.usage.prompt_tokens


@pytest.mark.parametrize("style", ["chat", "completion"])
def test_both_backends_find_the_same_probabilities_of_labels(server, smollm_folder, style):
    """llama.cpp computes with quantised numbers, and a server's labels are counted in all ways to write them: near, not equal."""
    (served,) = asker(ServerBackend(LLMOptions(url=server.url, style=style)))([CHOICE])
    local = TransformersBackend(LLMOptions(model=str(smollm_folder), style=style, precision="fp32"))
    [scored] = local.answer_many([changed(CHOICE, choices=tuple(f" {label}" for label in CHOICE.choices))])
    assert served.choices == pytest.approx({label.strip(): p for label, p in scored.choices.items()}, abs=0.15)
