"""The published ways to revise with scripted replies: requests and resulting revisions."""

import pytest

from knowhalu.engine.engine import Backends, Engine
from knowhalu.methods.options import ReviseOptions
from knowhalu.methods.revise.rewrite import LLMRewriter, ResponseRevision
from knowhalu.requests import Completion
from knowhalu.results import Failure
from knowhalu.testing import ScriptedLLM
from knowhalu.types import Sample
from tests.support.revising import SOURCE, Detector

TEXT = "Mars is red. Mars has wrong moons. It is cold."
ENDS = {"### Corrected text:": "text", "### Critique:": "critique", "### Feedback:": "feedback"}


NO = "\n### Supported: No\n### Revised claim: NONE"


class Model:
    """Says in each stage what it is told to, one reply after the other; the last one again and again."""

    def __init__(self, **replies):
        self.replies = {name: [said] if isinstance(said, str) else list(said) for name, said in replies.items()}
        self.asked = []
        self.llm = ScriptedLLM(self._reply)

    def _reply(self, request):
        stage = ENDS[request.prompt.rpartition("\n")[2]]
        self.asked.append((stage, request.prompt[request.fixed :]))
        said = self.replies[stage]
        return said.pop(0) if len(said) > 1 else said[0]


def revise(how, model, text=TEXT):
    method = ResponseRevision(Detector(), LLMRewriter(), ReviseOptions(how=how))
    sample = Sample(id="1", response=text, knowledge=SOURCE)
    (found,) = Engine(method, Backends(generate=model.llm)).run([sample])
    return found


def test_conli_rewrites_the_whole_by_the_reasons_in_one_call():
    model = Model(text=" Mars is red. Mars has two moons. It is cold.")
    found = revise("conli", model)
    (stage, prompt) = model.asked[0]
    assert stage == "text" and len(model.asked) == 1
    assert "### Problem 1: “Mars has wrong moons.” it is INCORRECT" in prompt
    assert "### Passage 1: Mars is red. It has two moons." in prompt
    assert (found.status, found.revised) == ("revised", "Mars is red. Mars has two moons. It is cold.")
    assert [(c.how, c.text, c.new, c.why) for c in found.changes] == [
        ("rewritten", "Mars has wrong moons.", "Mars has two moons.", "it is INCORRECT")
    ]
    assert (found.unflagged_changed, found.before.hallucinated, found.after.hallucinated) == (0, True, False)


def test_unflagged_sentences_that_changed_are_counted_and_noted():
    found = revise("conli", Model(text="Mars is green. It is cold. It is far."))
    assert found.unflagged_changed == 1
    assert [(c.how, c.why) for c in found.changes] == [
        ("rewritten", "it is INCORRECT"),
        ("added", "changed although it was not flagged"),
    ]
    assert found.changes[0].text == "Mars is red. Mars has wrong moons."


def test_line_breaks_of_the_reply_are_kept():
    text = "Mars is red.\n\nMars has wrong moons.\nIt is cold."
    found = revise("conli", Model(text="Mars is red.\n\nMars has two moons.\nIt is cold."), text)
    assert found.revised == "Mars is red.\n\nMars has two moons.\nIt is cold."
    assert len(found.changes) == 1


def test_factored_joins_one_critique_for_each_unsupported_sentence():
    model = Model(critique=[f"It has two.{NO}", f"Nobody says so.{NO}"], text="Mars is red.")
    found = revise("factored", model, "Mars is red. Mars has wrong moons. This is unsure.")
    assert [stage for stage, _ in model.asked] == ["critique", "critique", "text"]
    assert "### Sentence: Mars has wrong moons." in model.asked[0][1]
    told = model.asked[2][1]
    assert "- The sentence “Mars has wrong moons.”: It has two." in told and "“This is unsure.”: Nobody says so." in told
    assert (found.revised, [c.how for c in found.changes]) == ("Mars is red.", ["dropped"])


def test_self_correction_gets_no_findings_of_the_detector():
    model = Model(feedback="It has two moons.", text="Mars is red. Mars has two moons.")
    found = revise("self-correction", model)
    assert [stage for stage, _ in model.asked] == ["feedback", "text"]
    assert not any("INCORRECT" in prompt for _, prompt in model.asked)
    assert "### Feedback: It has two moons." in model.asked[1][1]
    assert (found.status, found.unflagged_changed) == ("revised", 1)


def test_self_correction_that_finds_nothing_changes_nothing():
    found = revise("self-correction", Model(feedback="NONE"))
    assert (found.status, found.revised, found.changes) == ("unchanged", TEXT, ())
    assert found.after.hallucinated is True


@pytest.mark.parametrize("how", ["conli", "factored"])
def test_a_text_that_passes_the_detector_costs_no_request(how):
    model = Model()
    found = revise(how, model, "Mars is red.")
    assert (found.status, found.usage.calls) == ("unchanged", 0)


def test_a_rewrite_that_keeps_nothing_is_a_refused_revision():
    found = revise("conli", Model(text="NONE"))
    assert (found.status, found.revised) == ("refused", None)


@pytest.mark.parametrize("how", ["conli", "factored", "self-correction"])
def test_an_off_target_answer_is_a_refused_revision(how):
    assert revise(how, Model(), "It is beside the point.").status == "refused"


@pytest.mark.parametrize(("replies", "said"), [
    ([" ", "..."], "the reply is empty, also when asked again"),
    ([Completion("Mars is", finish_reason="length")], "the reply was cut off; it was cut off after"),
])  # fmt: skip
def test_a_reply_that_cannot_be_read_fails_with_the_raw_reply(replies, said):
    found = revise("conli", Model(text=replies))
    assert isinstance(found, Failure) and found.stage == "revise"
    assert said in found.reason and found.reply is not None


def test_a_second_reply_may_complete_the_first():
    model = Model(text=["", "Corrected text: Mars is red."])
    assert revise("conli", model).revised == "Mars is red."
    assert [r.temperature for r in model.llm.history] == [0.0, 0.7]


def test_a_long_response_gets_room_for_its_reply():
    model = Model(text="Mars is red.")
    revise("conli", model, "Mars is wrong here. " * 400)
    assert model.llm.history[0].max_tokens == 4800
