"""Checks from settings to verdict, with a language model behind a local server and in this process."""

from types import SimpleNamespace

import pytest

from knowhalu.api import Checker
from knowhalu.batch import detect
from knowhalu.errors import BackendError, ResumeError
from knowhalu.io.outcomes import parse_outcome
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.knowhalu.options import KnowHaluOptions
from knowhalu.results import Failure, Verdict
from knowhalu.settings import Settings
from knowhalu.types import HallucinationKind, Label, Sample
from tests.support.chatting import open_heading
from tests.support.fake_server import FakeServer, running
from tests.support.tiny_llm import CHAT
from tests.support.tiny_model import TinyModel

QUESTION, ANSWER = "In which city was the director of Metropolis born?", "He was born in Berlin."
FILM = "Metropolis is a silent film of 1927. It was directed by Fritz Lang."
LANG = "Fritz Lang was a film director. He was born in Vienna in 1890."
STEPS = {
    1: "The director comes first.\n### Specific query 1: Did Lang direct Metropolis?\n### General query 1: Who directed it?",
    2: "Now his birth.\n### Specific query 2: Was Fritz Lang born in Berlin?\n### General query 2: Where was Fritz Lang born?",
    3: "All is settled.\n### Specific query 3: Done",
}
RATIONALE = "Knowledge 2 says that Fritz Lang was born in Vienna, while the answer says Berlin."


def thinks(prompt):
    """Say what a good model would say, by the heading of the reply."""
    last, opening = open_heading(prompt)
    if last == "Asked for":
        return f"{opening} a city\n### Reason: The answer names a city.\n### Entity: Berlin"
    if last == "Knowledge":
        asked_of_birth = "born" in prompt.rpartition("### Specific query:")[2]
        found = "Fritz Lang was born in Vienna in 1890." if asked_of_birth else "Metropolis was directed by Fritz Lang."
        return f"{opening} {found}"
    if last == "Judgment":
        return f"{opening} {RATIONALE}\n### Label:\nINCORRECT"
    return f"{opening} {STEPS[int(last.removeprefix('Thought '))]}"


def settings(tmp_path, **llm):
    never = KnowHaluOptions(second_opinion="never")
    return Settings(reasoner="llm", knowhalu=never, llm=LLMOptions(cache_folder=tmp_path / "replies", **llm))


SAMPLE = Sample(id="1", question=QUESTION, response=ANSWER, knowledge=(FILM, LANG))


@pytest.fixture
def server():
    fake = FakeServer(TinyModel(thinks))
    fake.context = 1_000_000
    with running(fake):
        yield fake


def test_a_served_model_checks_an_answer_step_by_step(server, tmp_path):
    verdict = Checker(settings(tmp_path, url=server.url)).check(SAMPLE)
    assert isinstance(verdict, Verdict), verdict
    assert (verdict.label, verdict.kind, verdict.reason) == (Label.INCORRECT, HallucinationKind.FACTUAL, RATIONALE)
    assert verdict.extraction.entity == "Berlin"
    judgment = verdict.segments[0].base
    assert [s.query.specific for s in judgment.steps] == ["Did Lang direct Metropolis?", "Was Fritz Lang born in Berlin?"]
    assert judgment.confidence_source == "probability" and judgment.confidence > 0.5
    assert "He was born in Vienna in 1890." in [e.quote for e in verdict.evidence]
    assert verdict.usage.cached_tokens > 0.8 * verdict.usage.prompt_tokens / 2


def test_a_confident_judgment_by_llama_cpp_needs_no_second_form(tmp_path):
    fake = FakeServer(TinyModel(thinks), kind="llamacpp")
    fake.context = 1_000_000
    with running(fake):
        verdict = Checker(settings(tmp_path, url=fake.url).model_copy(update={"knowhalu": KnowHaluOptions(delta1=0.5)})).check(
            SAMPLE
        )
    (segment,) = verdict.segments
    assert (segment.base.label, segment.base.confidence_source, segment.supplement) == (Label.INCORRECT, "probability", None)


def test_a_source_that_is_too_long_as_knowledge_is_read_as_a_document(server, tmp_path):
    server.context = 60_000  # tokens of a few characters; the examples of a prompt have some 10,000
    long = "The harbour has a wall of stone and a crane. " * 4_000
    chosen, told = settings(tmp_path, url=server.url), {"id": "1", "question": QUESTION, "response": ANSWER}
    failure = Checker(chosen).check(Sample(**told, knowledge=(FILM, f"{LANG} {long}")))
    assert isinstance(failure, Failure) and "longer than the model's context" in failure.reason
    assert "give long sources as documents" in failure.reason and "--max-model-len" in failure.reason
    verdict = Checker(chosen).check(Sample(**told, documents=(FILM, f"{LANG} {long}")))
    assert isinstance(verdict, Verdict), verdict
    assert verdict.label is Label.INCORRECT


def test_a_second_run_sends_no_requests(server, tmp_path):
    chosen = settings(tmp_path, url=server.url)
    first = Checker(chosen).check(SAMPLE)
    asked = len(server.requests)
    again = Checker(chosen).check(SAMPLE)
    assert again.model_dump(exclude={"usage", "seconds"}) == first.model_dump(exclude={"usage", "seconds"})
    assert again.usage.calls == 0 and again.usage.reused == first.usage.calls
    assert all(r.path == "/v1/models" for r in server.requests[asked:])


@pytest.mark.parametrize("template", [None, CHAT])
def test_an_unusable_reply_is_a_failure_with_the_reply(model_folder, tmp_path, template):
    folder = model_folder(template=template, max_position_embeddings=8192)
    chosen = settings(tmp_path, backend="transformers", model=str(folder), precision="fp32")
    outcome = Checker(chosen).check(SAMPLE)
    assert isinstance(outcome, Failure) and outcome.stage in ("extract", "query"), outcome
    assert outcome.reason and outcome.reply


def job(tmp_path, server, *ids):
    """Check rows of these ids by whatever the server has; return what the output holds."""
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(SAMPLE.model_copy(update={"id": i}).model_dump_json(exclude_none=True) + "\n" for i in ids))
    detect(Checker(settings(tmp_path, url=server.url, retries=0)), source, output)
    return output.read_bytes()


def test_a_job_is_resumed_by_the_same_model_only(server, tmp_path):
    job(tmp_path, server, "1")
    server.names = ["other"]
    with pytest.raises(ResumeError, match="belongs to another run .llm was tiny [0-9a-f]{16}, is other [0-9a-f]{16}"):
        job(tmp_path, server, "1", "2")
    server.names = ["tiny"]
    head, *lines = job(tmp_path, server, "2", "1").splitlines()
    assert b'"llm":"tiny ' in head and [parse_outcome(line).id for line in lines] == ["2", "1"]


def test_a_job_is_continued_by_any_server_with_the_same_model(server, tmp_path):
    job(tmp_path, server, "1")
    other = FakeServer(TinyModel(thinks))
    other.context = server.context
    with running(other):
        several = SimpleNamespace(url=[other.url, server.url])
        head, *lines = job(tmp_path, several, "1", "2").splitlines()
    assert [parse_outcome(line).id for line in lines] == ["1", "2"]
    assert [parse_outcome(line).label for line in lines] == [Label.INCORRECT] * 2


def test_an_unreachable_server_ends_an_unfinished_job_at_once(server, tmp_path):
    done = job(tmp_path, server, "1")
    down = FakeServer()
    with running(down):
        pass
    assert job(tmp_path, down, "1") == done
    with pytest.raises(BackendError, match="knowhalu serve-model"):
        job(tmp_path, down, "1", "2")
    assert (tmp_path / "out.jsonl").read_bytes() == done


def test_a_local_model_is_identified_by_its_files_without_loading_it(tmp_path):
    (tmp_path / "Small").mkdir()
    weights = tmp_path / "Small" / "model.safetensors"
    weights.write_bytes(b"one")
    checker = Checker(settings(tmp_path, backend="transformers", model=str(weights.parent)))
    first = checker.llm_identity
    assert first.startswith("Small ") and first == checker.llm_identity
    weights.write_bytes(b"other")
    assert checker.llm_identity != first and Checker().llm_identity == ""
