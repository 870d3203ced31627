"""What labels rest on: the sentences cited as evidence, alone or together, in their places."""

import pytest

from knowhalu.methods.knowhalu.encoder import KnowHaluEncoder
from knowhalu.methods.knowhalu.grounds import Texts
from knowhalu.methods.knowhalu.method import KnowHalu
from knowhalu.types import Document, KnowledgeForm, Label, Passage, Sample, Step
from tests.methods.knowhalu.test_encoder import NO, OPEN, WEIGHTS, YES, drive, thinking_by


@pytest.fixture()
def reasoner(tmp_path) -> KnowHaluEncoder:
    return thinking_by(WEIGHTS, tmp_path)


def checked(reasoner, claim, knowledge, says, question=None):
    """Check a claim by given knowledge; return its only segment, whose evidence must be found where it says."""
    verdict, _ = drive(KnowHalu(reasoner), Sample(id="1", response=claim, question=question, knowledge=knowledge), says)
    (segment,) = verdict.segments
    passages = {p.id: p.text for s in segment.base.steps for p in s.passages}
    assert all(passages[e.passage][e.start : e.end] == e.quote for e in segment.evidence)
    return segment


FERRY = (
    "The Grey Heron is the ferry of Skerrow. Tea is sold on board. Its blade broke in June. "
    "The harbour of Skerrow is old. It sails again since July."
)


def test_what_only_the_window_supports_is_cited_by_the_sentences_that_have_its_words(reasoner):
    claim = "The Grey Heron ferry, whose blade broke, sails again."
    found = checked(reasoner, claim, FERRY, lambda p: YES if "Tea" in p.premise and "July" in p.premise else OPEN)
    assert found.label is Label.CORRECT
    assert {e.quote for e in found.evidence} == {
        "The Grey Heron is the ferry of Skerrow.", "Its blade broke in June.", "It sails again since July.",
    }  # fmt: skip
    assert {(e.relation, e.probability) for e in found.evidence} == {("supports", YES.supported)}
    assert found.base.rationale.startswith("supported by several sentences together: “") and "Tea" not in found.base.rationale


def test_what_sentences_of_two_sources_support_together_is_cited_by_both(reasoner):
    parts = ("Ilse Brand directed Blue Lamp.", "Ilse Brand was born in Oslo.")
    claim = "The man who directed Blue Lamp was born in Oslo."
    found = checked(reasoner, claim, parts, lambda p: YES if all(part in p.premise for part in parts) else OPEN)
    assert found.label is Label.CORRECT and {e.quote for e in found.evidence} == set(parts)


def test_both_steps_of_a_bridge_are_cited(reasoner):
    parts = ("Blue Lamp was written by Ilse Brand.", "Ilse Brand was born in Sandvik.")
    steps = {"Ilse Brand is the author of Blue Lamp.", "Ilse Brand was born in Sandvik."}
    claim = "The author of Blue Lamp was born in Sandvik."
    found = checked(reasoner, claim, parts, lambda p: YES if p.claim in steps else OPEN)
    assert {e.quote for e in found.evidence} == set(parts) and all(e.relation == "supports" for e in found.evidence)


def test_steps_that_refute_are_cited_and_named(reasoner):
    parts = ("Blue Lamp was written by Ilse Brand.", "Ilse Brand was born in Sandvik.")
    first = "Ilse Brand is the author of Blue Lamp."
    found = checked(reasoner, "The author of Blue Lamp was born in Ulm.", parts, lambda p: YES if p.claim == first else NO)
    assert {e.quote for e in found.evidence} == set(parts)
    assert found.base.rationale.startswith("contradicted in two steps by way of Ilse Brand: “Blue Lamp")


def test_nothing_is_cited_for_what_no_reading_supports(tmp_path):
    passing = {"bias": 9.0, "cut": 0.0, "weights": {"window_supported": 1.0}}
    reasoner = thinking_by({"claim": passing, "answer": passing}, tmp_path)
    found = checked(reasoner, "In 1889 the tower was built.", "The tower was built in 1889.", lambda p: OPEN)
    assert found.label is Label.CORRECT and found.evidence == ()


@pytest.mark.parametrize(
    ("claim", "sentence", "said"),
    [
        ("The Carn tower is 38 metres high.", "The Carn tower is 41 metres high.", "says 41 metres, the claim 38 metres"),
        ("The Carn mill ran for 12 years.", "The Carn mill ran from 1890 to 1912.", "1912 - 1890 = 22 years"),
        ("Brandt Tools sued Keller Motors.", "Keller Motors sued Brandt Tools.", "the other way round"),
    ],
)
def test_the_sentence_that_a_reason_names_is_cited_also_where_the_verifier_sees_no_contradiction(reasoner, claim, sentence, said):
    found = checked(reasoner, claim, f"Bees make honey. {sentence} Tea is served.", lambda p: OPEN)
    assert found.label is Label.INCORRECT and said in found.base.rationale and f"“{sentence}”" in found.base.rationale
    assert [(e.relation, e.quote) for e in found.evidence] == [("contradicts", sentence)]
    assert found.relation == "contradiction"


def test_a_sentence_about_another_thing_neither_contradicts_nor_supports(reasoner):
    lamp, tower = "Mara Quill drew the first lamp in 1903.", "Otto Kern drew the first tower in 1961."
    found = checked(reasoner, "Otto Kern drew the first tower alone.", (lamp, tower), lambda p: NO)
    assert [e.quote for e in found.evidence] == [tower]
    found = checked(reasoner, "Otto Kern drew the first tower alone.", (lamp, tower), lambda p: YES)
    assert [e.quote for e in found.evidence] == [tower]
    found = checked(reasoner, "Otto Kern drew the first tower alone.", (lamp, tower), lambda p: NO if p.premise == lamp else OPEN)
    assert found.evidence == () and "Mara Quill" not in found.base.rationale


def test_a_sentence_may_lack_the_name_that_it_contradicts(reasoner):
    born, stay = "Otto Kern was born in Oslo.", "Otto Kern later lived in Vienna."
    found = checked(reasoner, "Otto Kern was born in Vienna.", (born, stay), lambda p: NO if p.premise == born else OPEN)
    assert [(e.relation, e.quote) for e in found.evidence] == [("contradicts", born)]


def test_a_sentence_on_a_work_is_cited_where_another_names_it_beside_its_author(reasoner):
    painted, shown = "Otto Kern painted Grey Harbour for a school.", "Grey Harbour was first shown in Paris in 1937."
    claim = "The picture by Otto Kern was first shown in Brussels in 1937."
    found = checked(reasoner, claim, (painted, shown), lambda p: NO if p.premise == shown else OPEN)
    assert [(e.relation, e.quote) for e in found.evidence] == [("contradicts", shown)]


def test_a_word_that_only_begins_sentences_is_no_name_that_others_lack(reasoner):
    free, half = "Small dogs in a carrier travel free.", "For a large dog in a carrier, a ticket is at half fare."
    claim = "Small dogs in a carrier need a ticket at half fare."
    found = checked(reasoner, claim, f"{free} {half}", lambda p: NO if p.premise == half else OPEN)
    assert [e.quote for e in found.evidence] == [half]


def test_a_sentence_of_a_window_beyond_the_retrieved_passages_is_cited_in_its_document():
    text = "The Carn tower is old. The Carn tower is 41 metres high."
    part = Sample(response="The Carn tower is 38 metres high.", documents=(Document(id="d", text=text),))
    page = Passage(id="d#1", document="d", text=text[:22], end=22)
    step = Step.model_validate({"thought": "", "query": {"specific": "", "general": ""}, "passages": [page],
                                "knowledge": {"form": "unstructured"}})  # fmt: skip
    (place,) = Texts(part, (step,), KnowledgeForm.UNSTRUCTURED, text, []).locate(["The Carn tower is 41 metres high."])
    assert text[place.passage.start : place.passage.end] == place.text == place.passage.text[place.start : place.end]
    assert place.passage.document == "d"
