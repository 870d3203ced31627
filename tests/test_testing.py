"""The doubles answer what the script says, note what was asked and never make up a label."""

import pytest

from knowhalu.engine.engine import Backends, Engine
from knowhalu.errors import StageError
from knowhalu.requests import Completion, Entail, EntailmentPair, Generate, Probabilities
from knowhalu.results import Failure
from knowhalu.testing import ScriptedEncoder, ScriptedLLM
from knowhalu.types import Sample


def test_the_longest_fitting_end_of_the_prompt_wins():
    llm = ScriptedLLM({"A:": "short", "long A:": Completion("long", finish_reason="length")})
    first, second = llm.answer_many([Generate("B A:"), Generate("a long A:")])
    assert (first, second) == (Completion("short"), Completion("long", finish_reason="length"))
    assert [r.prompt for r in llm.history] == ["B A:", "a long A:"]


def test_a_script_may_be_a_function():
    llm = ScriptedLLM(lambda request: request.prompt[::-1])
    assert llm.answer_many([Generate("ab")])[0].text == "ba"
    encoder = ScriptedEncoder(lambda pair: (1.0, 0.0, 0.0) if pair.claim in pair.premise else (0.0, 0.0, 1.0))
    (found,) = encoder.answer_many([Entail((EntailmentPair("snow is white", "snow"), EntailmentPair("a", "b")))])
    assert found == [Probabilities(1.0, 0.0, 0.0), Probabilities(0.0, 0.0, 1.0)]


def test_what_is_not_scripted_is_an_error_of_that_request_alone():
    llm = ScriptedLLM({"known": "yes"})
    known, unknown = llm.answer_many([Generate("known"), Generate("other")])
    assert known.text == "yes"
    assert isinstance(unknown, StageError) and "'other'" in unknown.reason
    encoder = ScriptedEncoder({("p", "c"): (0.2, 0.3, 0.5)})
    known, unknown = encoder.answer_many([Entail((EntailmentPair("p", "c"),)), Entail((EntailmentPair("p", "d"),))])
    assert known == [Probabilities(0.2, 0.3, 0.5)]
    assert isinstance(unknown, StageError) and "('p', 'd')" in unknown.reason


@pytest.mark.parametrize("wrong", [(0.5, 0.5, 0.5), (1.5, -0.5, 0.0)])
def test_probabilities_must_add_up(wrong):
    (reply,) = ScriptedEncoder(lambda pair: wrong).answer_many([Entail((EntailmentPair("p", "c"),))])
    assert isinstance(reply, StageError) and "add up" in reply.reason


def test_an_unscripted_request_becomes_a_failure():
    class Method:
        name = "one"

        def check(self, sample):
            yield Entail((EntailmentPair("p", sample.response),))

    (outcome,) = Engine(Method(), Backends(entail=ScriptedEncoder({}))).run([Sample(id="1", response="c")])
    assert isinstance(outcome, Failure) and outcome.stage == "entail"
