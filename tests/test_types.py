"""The data types: valid and invalid samples, and JSON there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import knowhalu
from knowhalu import types
from knowhalu.api import Checker
from knowhalu.errors import InputError
from knowhalu.results import Failure, Segment, Verdict
from knowhalu.types import (
    NO_INFORMATION,
    Document,
    Extraction,
    Judgment,
    Knowledge,
    KnowledgeForm,
    Label,
    Passage,
    Quote,
    Record,
    Sample,
    Task,
    Triplet,
)


@pytest.mark.parametrize(
    ("fields", "task"),
    [
        ({"question": "q"}, Task.QA),
        ({"question": "q", "knowledge": "k"}, Task.QA),
        ({"question": "q", "documents": ["d"]}, Task.RAG),
        ({"documents": ["d"]}, Task.SUMMARY),
        ({}, Task.CLAIM),
        ({"knowledge": ["k"]}, Task.CLAIM),
    ],
)
def test_task_follows_from_the_fields(fields, task):
    assert Sample(response="r", **fields).task is task


def test_sources_may_be_plain_texts():
    sample = Sample(response="r", documents="one", knowledge="k")
    assert sample.documents == (Document(text="one", id="document-1"),)
    assert sample.knowledge == ("k",)
    mixed = Sample(
        response="r", documents=["one", {"text": "two", "id": "x"}, {"text": "three", "title": "t"}, Document(text="four")]
    )
    assert [d.id for d in mixed.documents] == ["document-1", "x", "document-3", "document-4"]
    taken = Sample(response="r", documents=[Document(text="one"), {"text": "two", "id": "document-1"}, Document(text="three")])
    assert [d.id for d in taken.documents] == ["document-2", "document-1", "document-3"]


@pytest.mark.parametrize("documents", ["text", {"text": "text"}, Document(text="text"), ["text"], (d for d in ["text"])])
def test_a_single_source_is_one_document_in_every_form(monkeypatch, documents):
    monkeypatch.setattr(Checker, "stream", lambda self, samples: iter(samples))
    assert [d.text for d in knowhalu.check(summary="r", documents=documents).documents] == ["text"]


@pytest.mark.parametrize("given", [{"documents": {"t": "text"}}, {"knowledge": {"text": "text"}}])
def test_an_object_in_place_of_texts_is_refused(given):
    for ask in (knowhalu.check, knowhalu.revise):
        with pytest.raises(InputError, match=next(iter(given))):
            ask(summary="r", **given)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"response": " \n"}, "response is empty"),
        ({"response": "r", "question": " "}, "question is empty"),
        ({"response": "r", "anwser": "x"}, "anwser"),
        ({"response": "r", "documents": [""]}, "documents"),
        ({"response": "r", "documents": [3]}, "documents"),
        ({"response": "r", "knowledge": [""]}, "knowledge"),
        ({"response": "r", "label": "true"}, "label"),
        ({"question": "q"}, "response"),
        ({"response": None}, "response"),
        ({"response": "a \ud800"}, "response\n.*character 3 is half a character"),
        ({"response": "r", "question": "\udc00"}, "question\n.*half a character"),
        ({"response": "r", "knowledge": "\ud800"}, "knowledge.0\n.*half a character"),
        ({"response": "r", "documents": ["\ud800"]}, "documents.0.text\n.*half a character"),
        ({"response": "r", "documents": [{"text": "t", "title": "\ud800"}]}, "documents.0.title\n.*half a character"),
        ({"response": "r", "id": "\ud800"}, "id\n.*half a character"),
    ],
)
def test_invalid_samples_are_refused(fields, said):
    with pytest.raises(ValidationError, match=said):
        Sample(**fields)


def records():
    return [c for c in vars(types).values() if isinstance(c, type) and issubclass(c, Record)]


@pytest.mark.parametrize("record", records())
def test_every_type_is_frozen_and_strict(record):
    assert record.model_config["frozen"] is True
    assert record.model_config["extra"] == "forbid"
    assert record.__doc__


QUOTE = Quote(passage="p", text="is", start=5, end=7, supported=0.9, contradicted=0.1)
KNOWN = Knowledge(
    form=KnowledgeForm.STRUCTURED, quotes=(QUOTE,), triplets=(Triplet(subject="Snow", predicate="is", object="white"),), text="x"
)
BASE = Judgment(
    form=KnowledgeForm.STRUCTURED, label=Label.CORRECT, confidence=0.5, rationale="é\u2028", features={"coverage": 0.25}
)
VERDICT = Verdict(
    id="1", task=Task.QA, method="knowhalu", label=Label.CORRECT, hallucinated=False, kind=None, probability=0.25, reason="",
    extraction=Extraction(entity="snow", asked_for="what", reason="", confidence=1.0),
    segments=(Segment(start=0, end=4, text="Snow", label=Label.CORRECT, probability=0.25, base=BASE),),
)  # fmt: skip


@pytest.mark.parametrize(
    "word", [VERDICT, KNOWN, Failure(id="1", stage="judge", reason="x", reply=None), Sample(response="r", documents=["d"])]
)
def test_records_survive_json(word):
    assert type(word).model_validate_json(word.model_dump_json()) == word


@given(st.text(min_size=1).filter(str.strip), st.text())
def test_any_text_survives_json(response, title):
    sample = Sample(response=response, documents=[{"text": response, "title": title}], meta={"title": title})
    assert Sample.model_validate_json(sample.model_dump_json()) == sample


def test_passages_and_triplets_are_written_as_in_prompts():
    assert str(Passage(id="1", text="Snow is white.")) == "Snow is white."
    assert str(Passage(id="1", title="Snow", text="It is white.")) == "Snow: It is white."
    assert str(KNOWN.triplets[0]) == "(Snow, is, white)"


def test_knowledge_without_information_is_empty():
    empty = Knowledge(form=KnowledgeForm.UNSTRUCTURED)
    assert (empty.is_empty, empty.text) == (True, NO_INFORMATION)
    assert not KNOWN.is_empty


@pytest.mark.parametrize(("entity", "refusal", "none"), [("x", False, False), (None, False, True), (None, True, False)])
def test_a_refusal_is_not_off_target(entity, refusal, none):
    assert Extraction(entity=entity, asked_for="", reason="", confidence=1.0, refusal=refusal).is_none is none


@pytest.mark.parametrize("confidence", [-0.1, 1.1, float("nan")])
def test_a_confidence_is_a_probability(confidence):
    with pytest.raises(ValidationError):
        Judgment(form=KnowledgeForm.STRUCTURED, label=Label.CORRECT, confidence=confidence, rationale="")
