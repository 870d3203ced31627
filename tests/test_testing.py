"""The doubles answer by their script and never make up a label; the contract tests reject what breaks a contract."""

from dataclasses import replace
from itertools import count

import pytest

from knowhalu.build import build_method
from knowhalu.engine.engine import Backends, Engine
from knowhalu.errors import StageError
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.server_backend import ServerBackend
from knowhalu.profiles import load_settings
from knowhalu.requests import Completion, Entail, EntailmentPair, Generate, Probabilities, ask
from knowhalu.results import Failure, Verdict
from knowhalu.retrieval.documents import MemoryRetriever
from knowhalu.testing import ScriptedEncoder, ScriptedLLM, check_llm, check_method, check_retriever
from knowhalu.types import Passage, Sample
from tests.support.fake_server import FakeServer, running
from tests.support.imitating import imitated
from tests.support.tiny_model import TinyModel, wants_a_number


def test_longest_matching_end_of_the_prompt_gets_the_reply():
    llm = ScriptedLLM({"A:": "short", "long A:": Completion("long", finish_reason="length")})
    first, second = llm.answer_many([Generate("B A:"), Generate("a long A:")])
    assert (first, second) == (Completion("short"), Completion("long", finish_reason="length"))
    assert [r.prompt for r in llm.history] == ["B A:", "a long A:"]


def test_script_may_be_a_function():
    llm = ScriptedLLM(lambda request: request.prompt[::-1])
    assert llm.answer_many([Generate("ab")])[0].text == "ba"
    encoder = ScriptedEncoder(lambda pair: (1.0, 0.0, 0.0) if pair.claim in pair.premise else (0.0, 0.0, 1.0))
    (found,) = encoder.answer_many([Entail((EntailmentPair("snow is white", "snow"), EntailmentPair("a", "b")))])
    assert found == [Probabilities(1.0, 0.0, 0.0), Probabilities(0.0, 0.0, 1.0)]


def test_unscripted_request_is_an_error_of_that_request_alone():
    llm = ScriptedLLM({"known": "yes"})
    known, unknown = llm.answer_many([Generate("known"), Generate("other")])
    assert known.text == "yes"
    assert isinstance(unknown, StageError) and "'other'" in unknown.reason
    encoder = ScriptedEncoder({("p", "c"): (0.2, 0.3, 0.5)})
    known, unknown = encoder.answer_many([Entail((EntailmentPair("p", "c"),)), Entail((EntailmentPair("p", "d"),))])
    assert known == [Probabilities(0.2, 0.3, 0.5)]
    assert isinstance(unknown, StageError) and "('p', 'd')" in unknown.reason


@pytest.mark.parametrize("wrong", [(0.5, 0.5, 0.5), (1.5, -0.5, 0.0)])
def test_scripted_probabilities_must_add_up_to_one(wrong):
    (reply,) = ScriptedEncoder(lambda pair: wrong).answer_many([Entail((EntailmentPair("p", "c"),))])
    assert isinstance(reply, StageError) and "add up" in reply.reason


def test_unscripted_request_becomes_a_failure():
    class Method:
        name = "one"

        def check(self, sample):
            yield Entail((EntailmentPair("p", sample.response),))

    (outcome,) = Engine(Method(), Backends(entail=ScriptedEncoder({}))).run([Sample(id="1", response="c")])
    assert isinstance(outcome, Failure) and outcome.stage == "entail"


class Answers:
    """A method for tests of `check_method`: its conversation is a function of the sample."""

    name = "answers"

    def __init__(self, check):
        self.check = check


def entail(sample):
    (p,) = yield from ask(Entail((EntailmentPair("source", sample.response),)))
    return Verdict.of(sample, "answers", p_supported=p.supported)


def swallow_failure(sample):
    try:
        return (yield from entail(sample))
    except StageError:
        return Verdict.of(sample, "answers", p_supported=1.0)


def count_calls():
    calls = count()

    def check(sample):
        yield from ()
        return Verdict.of(sample, "answers", p_supported=1 / (2 + next(calls)))

    return check


def other_name(sample):
    yield from ()
    return Verdict.of(sample, "another", p_supported=1.0)


def shifted(sample):
    verdict = yield from entail(sample)
    segment = verdict.segments[0].model_copy(update={"start": 1})
    return verdict.model_copy(update={"segments": (segment,)})


def test_check_method_accepts_a_method_that_keeps_its_contract():
    check_method(Answers(entail))


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (swallow_failure, "a model failed, and the outcome is the label CORRECT"),
        (count_calls(), "depends on what else is checked"),
        (other_name, "names the method 'another'"),
        (shifted, "a segment has the text"),
        (lambda sample: iter(()), "is not a generator"),
    ],
)
def test_check_method_rejects(check, message):
    with pytest.raises(AssertionError, match=message):
        check_method(Answers(check))


@pytest.mark.parametrize("name", ["knowhalu", "conli", "factored", "cascade"])
def test_check_method_accepts_built_in_methods(name):
    check_method(build_method(load_settings(pairs=[f"method={name}"])), llm=imitated)


@pytest.mark.parametrize("name", ["conli", "factored", "halueval-cot", "wikichat"])
def test_check_method_accepts_built_in_methods_with_an_llm(name):
    check_method(build_method(load_settings(pairs=[f"method={name}", "reasoner=llm"])), llm=imitated)


def reply(request, **changes):
    """Answer as a model that keeps the contract, with some fields changed."""
    if request.choices:
        fields = {"text": request.choices[0], "choices": {c: float(c == request.choices[0]) for c in request.choices}}
    else:
        words = "The sea is deep and wide.".split()[: request.max_tokens]
        text = " ".join(words)
        fields = {"text": text.partition(request.stop[0])[0] if request.stop else text, "completion_tokens": len(words)}
    return Completion(**(fields | changes))


def test_check_llm_accepts_a_backend_that_keeps_its_contract():
    check_llm(ScriptedLLM(reply))


@pytest.mark.parametrize("kind", ["vllm", "llamacpp"])
def test_check_llm_accepts_a_server(kind):
    def wants(prompt):
        return "Judgment: CORRECT" if "Is the sea wet" in prompt else wants_a_number(prompt)

    with running(FakeServer(TinyModel(wants), kind=kind)) as server:
        check_llm(ServerBackend(LLMOptions(url=server.url)))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda r: reply(r, text="Maybe"), "none of them"),
        (lambda r: reply(r, finish_reason="done"), "finish_reason is 'done'"),
        (lambda r: reply(r, choices={"CORRECT": 1.0}), "probabilities of"),
        (lambda r: reply(replace(r, stop=())), "contains the stop string"),
        (lambda r: reply(replace(r, max_tokens=9)), "max_tokens = 2"),
        (lambda r: Completion(""), "empty reply"),
    ],
)
def test_check_llm_rejects(answer, message):
    with pytest.raises(AssertionError, match=message):
        check_llm(ScriptedLLM(answer))


PASSAGES = [Passage(id=str(i), text=text) for i, text in enumerate(["red granite", "granite", "basalt"])]


class Search:
    """A retriever that returns what a function of the queries and k returns."""

    def __init__(self, search):
        self.search = search


def test_check_retriever_accepts_a_retriever_that_keeps_its_contract():
    check_retriever(MemoryRetriever(PASSAGES), "granite")


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (lambda queries, k: [[] for _ in queries], "finds nothing"),
        (lambda queries, k: [PASSAGES * 2 for _ in queries], "k = 3"),
        (lambda queries, k: [PASSAGES[:1] * 2 for _ in queries], "comes twice"),
        (lambda queries, k: [PASSAGES[:k] for _ in queries], "a blank query finds something"),
        (lambda queries, k: [PASSAGES[:k] if q.strip() else [] for q in queries], "k = 0"),
    ],
)
def test_check_retriever_rejects(search, message):
    with pytest.raises(AssertionError, match=message):
        check_retriever(Search(search), "granite")
