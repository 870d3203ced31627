"""Methods end to end by a real model: the stages of KnowHalu, the one-prompt judge, Factored, CoNLI and revision.

What so small a model thinks of a text is not tested.
"""

import pytest

from knowhalu.api import Checker, Reviser
from knowhalu.methods.knowhalu.options import KnowHaluOptions
from knowhalu.results import Revision, Verdict
from knowhalu.types import KnowledgeForm, Label

pytestmark = pytest.mark.real
SOURCE = "Ivanhoe is a novel by Walter Scott."
ANSWER = {"id": "1", "question": "Who wrote Ivanhoe?", "response": "Walter Scott", "knowledge": [SOURCE]}
WRONG = ANSWER | {"response": "Charles Dickens wrote Ivanhoe."}
TWO = {
    "id": "2",
    "response": "Walter Scott wrote Ivanhoe. Mark Twain wrote Roughing It.",
    "knowledge": [SOURCE, "Roughing It is a book by Mark Twain."],
}


def assert_measured(judgment):
    """A label has the probability that the model gave it, out of those of all labels."""
    assert judgment.confidence_source == "probability" and judgment.rationale
    assert 1 / 3 <= judgment.confidence <= 1 and 0 <= judgment.p_supported <= 1
    if judgment.label is Label.CORRECT:
        assert judgment.p_supported >= judgment.confidence
    elif judgment.label is Label.INCORRECT:
        assert judgment.p_supported <= 1 - judgment.confidence


@pytest.fixture(scope="module")
def checked(server, settings, tmp_path_factory):
    """One answer, checked in both forms, and once more by another checker with the same cache of replies."""
    always = KnowHaluOptions(second_opinion="always", max_steps=2)
    llm = {"cache": True, "cache_folder": tmp_path_factory.mktemp("replies")}
    return [Checker(settings(server.url, knowhalu=always, llm=llm)).check(**ANSWER) for _ in range(2)]


def test_every_stage_of_knowhalu_is_done_by_the_model(checked):
    verdict = checked[0]
    assert isinstance(verdict, Verdict), verdict
    assert verdict.extraction.entity == "Walter Scott" and verdict.extraction.reason
    assert 0 < verdict.extraction.confidence <= 1
    (segment,) = verdict.segments
    for judgment, form in ((segment.base, KnowledgeForm.UNSTRUCTURED), (segment.supplement, KnowledgeForm.STRUCTURED)):
        assert judgment.form is form
        assert_measured(judgment)
        for step in judgment.steps:
            assert step.thought and step.query.specific.endswith("?") and step.query.general.endswith("?")
        assert any(step.knowledge.quotes for step in judgment.steps)
        assert any(step.knowledge.triplets for step in judgment.steps) == (form is KnowledgeForm.STRUCTURED)
    assert segment.label in (segment.base.label, segment.supplement.label)
    assert verdict.usage.calls >= 8 and verdict.usage.completion_tokens > 0
    assert verdict.usage.prompt_tokens / 2 < verdict.usage.cached_tokens < verdict.usage.prompt_tokens


def test_a_second_check_takes_every_reply_from_the_cache(checked):
    first, again = checked
    assert again.model_dump(exclude={"usage", "seconds"}) == first.model_dump(exclude={"usage", "seconds"})
    assert (again.usage.calls, again.usage.reused) == (0, first.usage.calls)


@pytest.mark.parametrize("style", ["chat", "completion"])
def test_the_one_prompt_judge_has_a_probability_or_says_why_not(server, settings, style):
    outcome = Checker(settings(server.url, "halueval-knowledge", llm={"style": style})).check(**ANSWER)
    if isinstance(outcome, Verdict):
        assert_measured(outcome.segments[0].base)
    else:
        assert style == "chat" and "the model would write something else where a label belongs" in outcome.reason


def test_factored_judges_each_claim(server, settings):
    verdict = Checker(settings(server.url, "factored")).check(**TWO)
    assert isinstance(verdict, Verdict), verdict
    claims = [finding for segment in verdict.segments for finding in segment.findings]
    assert len(claims) >= 2 and all(0 <= claim.p_supported <= 1 and claim.reason for claim in claims)
    assert 0 <= verdict.probability <= 1


def test_conli_judges_each_sentence_out_of_three_relations(server, settings):
    verdict = Checker(settings(server.url, "conli")).check(**WRONG)
    assert isinstance(verdict, Verdict), verdict
    (segment,) = verdict.segments
    assert_measured(segment.base)


def test_a_revision_keeps_only_what_the_model_finds_supported(server, settings):
    revision = Reviser(settings(server.url, "conli")).revise(**WRONG)
    assert isinstance(revision, Revision), revision
    assert revision.before is not None and revision.original == WRONG["response"]
    assert revision.changes or not revision.before.hallucinated
