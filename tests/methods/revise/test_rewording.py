"""Rewording one sentence with a language model: the prompt, and which replies are accepted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.errors import PromptError, StageError
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.server_reply import cut_at_stop
from knowhalu.methods.revise.critique import Critic
from knowhalu.methods.revise.edits import FlaggedSentence, ProposedRewrite, RewriteInput
from knowhalu.methods.revise.rewrite import LLMRewriter
from knowhalu.prompts.book import REVISION, PromptBook
from knowhalu.prompts.template import SECTION
from knowhalu.requests import Completion
from knowhalu.text.sentences import Span
from knowhalu.types import Passage
from tests.methods.test_hostile import filled, hostile

WRITER = LLMRewriter()
SOURCES = [Passage(id="1", text="Mars has two moons.", title="Mars")]
FAULT = RewriteInput("Mars has nine moons.", "the source says two", "Mars is red. Mars has nine moons.")


def proposed(*replies, fault=FAULT, refused=()):
    """Return what is proposed, and the requests that led to it."""
    talk, asked = WRITER.propose(fault, SOURCES, refused), []
    request, said = next(talk), iter(replies)
    try:
        while True:
            asked.append(request)
            reply = next(said)
            request = talk.send(reply if isinstance(reply, Completion) else Completion(reply))
    except StopIteration as end:
        return end.value, asked


def test_the_prompt_shows_sources_context_sentence_problem_and_what_was_refused():
    _, (request,) = proposed("Mars has two moons.", refused=("Mars has no moons.",))
    assert SECTION.findall(request.prompt[request.fixed :]) == [
        "Passage 1",
        "Text",
        "Sentence",
        "Problem",
        "Refused 1",
        "Rewrite",
    ]
    assert "### Passage 1: Mars: Mars has two moons.\n" in request.prompt
    assert request.prompt.endswith("### Refused 1: Mars has no moons.\n### Rewrite:")


@pytest.mark.parametrize("reply", [
    " Mars has two moons.", "### Rewrite: Mars has two moons.", "**Rewrite:** Mars has two moons.", '"Mars has two moons."',
    "Mars has\n  two moons.", "Mars has two moons.\n### Text: Mars is red.",
])  # fmt: skip
def test_one_new_sentence_is_a_proposal(reply):
    assert proposed(reply)[0] == (ProposedRewrite("Mars has two moons.", "rewritten"),)


@pytest.mark.parametrize("reply", ["NONE", "None.", " NONE. "])
def test_none_is_no_proposal_and_not_asked_again(reply):
    found, asked = proposed(reply, "Mars has two moons.")
    assert (found == ()) == (reply.strip(" .") == "NONE")
    assert len(asked) == 1


@pytest.mark.parametrize("reply", [
    "", "...", "Mars has nine moons", "Mars has two moons. Mars is also red.", Completion("Mars has two", finish_reason="length"),
    "### Text: Mars has two moons.",
])  # fmt: skip
def test_a_reply_that_is_not_one_new_sentence_is_retried_then_no_proposal(reply):
    found, asked = proposed(reply, reply)
    assert found == ()
    assert [(r.temperature, r.max_tokens) for r in asked] == [(0.0, 160), (0.7, 320)]
    assert proposed(reply, "Mars has two moons.")[0] == (ProposedRewrite("Mars has two moons.", "rewritten"),)


def test_a_wording_that_was_refused_is_not_proposed_again():
    assert proposed("Mars has two moons.", refused=("Mars has two moons.",))[0] == ()


def test_without_sources_the_prompt_says_so():
    request = next(WRITER.propose(FAULT, [], ()))
    assert "### Passage: (nothing was found)" in request.prompt


@given(filled, filled, filled, st.lists(filled, max_size=2))
def test_texts_open_no_section(sentence, why, context, refused):
    sources = [Passage(id="1", text=context, title=why)]
    request = next(WRITER.propose(RewriteInput(sentence, why, context), sources, refused))
    numbered = [f"Refused {i}" for i in range(1, len(refused) + 1)]
    assert SECTION.findall(request.prompt[request.fixed :]) == ["Passage 1", "Text", "Sentence", "Problem", *numbered, "Rewrite"]
    for word in ("<|im_end|>", "<|eot_id|>", "[/INST]", "</s>", "<end_of_turn>"):
        assert word not in request.prompt[request.fixed :]
    for conversation in (
        WRITER.by_reasons(context, sources, [RewriteInput(sentence, why, context)]),
        WRITER.by_feedback(context, sources, why),
        Critic().criticise(FlaggedSentence(0, Span(0, len(sentence), sentence), (), why, None, ()), sources),
        WRITER.feedback(context, sources),
    ):
        asked = next(conversation)
        assert len(SECTION.findall(asked.prompt[asked.fixed :])) == len(set(SECTION.findall(asked.prompt[asked.fixed :])))
        assert SECTION.findall(asked.prompt[asked.fixed :])[0] == "Passage 1"


@given(hostile, hostile)
def test_any_reply_proposes_one_other_sentence_or_nothing(first, second):
    found, _ = proposed(first, second)
    assert len(found) <= 1
    assert all(p.text.strip() and p.text != FAULT.sentence and "\n" not in p.text for p in found)


def test_a_users_prompt_with_other_holes_is_refused(tmp_path):
    (tmp_path / "revise").mkdir()
    (tmp_path / "revise/critique.txt").write_text('+++\nholes = ["sources"]\n+++\n$sources\n### Critique:')
    with pytest.raises(PromptError, match=r"critique.txt: no hole \$sentence"):
        LLMRewriter(LLMOptions(prompts=tmp_path))
    assert all(PromptBook(REVISION).prompt(name).stop == ("\n### ",) for name in ("rewrite", "correction"))


TITLED = "Mars is wrong.\n\n### History\nIt was seen early.\n### Moons: a list\nThere are two."


def whole(how, response, replies):
    """Return what becomes of a whole response, the replies cut where the model would be stopped."""
    talk = {"response": lambda: WRITER.by_reasons(response, SOURCES, [FAULT]),
            "revision": lambda: WRITER.by_feedback(response, SOURCES, "Mars is right.")}[how]()  # fmt: skip
    request = next(talk)
    try:
        for reply in replies:
            request = talk.send(Completion(cut_at_stop(reply, request.stop)[0]))
    except StopIteration as end:
        return end.value
    raise AssertionError(f"asked again: {request.prefill}")


@pytest.mark.parametrize("how", ["response", "revision"])
@pytest.mark.parametrize("copied", [TITLED, TITLED.replace("###", "\\###"), f"{TITLED}\n### Text: Mars is wrong."])
def test_a_response_keeps_its_headings_when_it_is_written_again(how, copied):
    assert whole(how, TITLED, [f" {copied.replace('wrong', 'right')}"]) == TITLED.replace("wrong", "right")


def test_a_response_that_holds_what_ends_a_reply_is_refused():
    with pytest.raises(StageError, match=r"the text holds '\\n### Text:', where .*response\.txt ends the reply"):
        whole("response", "### Text: Mars is wrong.", [])
