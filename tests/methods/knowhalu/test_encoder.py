"""The encoder as KnowHalu's reasoner: queries, evidence and judgments, with scripted probabilities."""

import json
from collections.abc import Callable

import pytest

from knowhalu.methods.common.judgment_model import BY_SMALL, FEATURES, REPORTED
from knowhalu.methods.knowhalu.encoder import KnowHaluEncoder
from knowhalu.methods.knowhalu.method import KnowHalu
from knowhalu.requests import Entail, EntailmentPair, Probabilities, Search, TagSpans, UnsupportedSpan
from knowhalu.results import Verdict
from knowhalu.types import HallucinationKind, InconclusiveReason, KnowledgeForm, Label, Passage, Sample

YES, NO, OPEN = Probabilities(0.95, 0.03, 0.02), Probabilities(0.02, 0.95, 0.03), Probabilities(0.1, 0.1, 0.8)
WEIGHTS = {
    "claim": {"bias": 0.0, "cut": 0.0, "weights": {"joined_supported": 1.0, "values_differ": -4.0}},
    "answer": {"bias": 0.0, "cut": 0.0, "weights": {"joined_supported": 1.0, "values_differ": -4.0}},
}


def thinking_by(weights, folder):
    data = {
        "weights": {f"{t}.{f}": weights[t] for t in weights for f in KnowledgeForm},
        "thresholds": {"claim": [0.0, 1.0], "answer": [0.0, 1.0]},
    }
    (folder / "judgment.json").write_text(json.dumps(data))
    return KnowHaluEncoder(folder)


@pytest.fixture()
def reasoner(tmp_path):
    return thinking_by(WEIGHTS, tmp_path)


def drive(
    method: KnowHalu,
    sample: Sample,
    says: Callable[[EntailmentPair], Probabilities],
    index: Callable[[str], list[Passage]] = lambda q: [],
    marks: Callable[[EntailmentPair], tuple[UnsupportedSpan, ...]] = lambda p: (),
):
    conversation, requests = method.check(sample), []
    try:
        request = next(conversation)
        while True:
            requests.append(request)
            match request:
                case Entail(pairs):
                    reply = [says(p) for p in pairs]
                case TagSpans(pairs):
                    reply = [marks(p) for p in pairs]
                case _:
                    reply = [index(q) for q in request.queries]
            request = conversation.send(reply)
    except StopIteration as end:
        verdict: Verdict = end.value
        return verdict, requests


@pytest.mark.parametrize(
    ("read", "said"), [(YES, "supported by “The tower"), (OPEN, "supported by the passage around “The tower")]
)
def test_a_reason_does_not_claim_support_that_the_verifier_does_not_see(tmp_path, read, said):
    passing = {"bias": 9.0, "cut": 0.0, "weights": {"window_supported": 1.0}}
    reasoner = thinking_by({"claim": passing, "answer": passing}, tmp_path)
    sample = Sample(id="1", response="In 1889 the tower was built.", knowledge="The tower was built in 1889.")
    verdict, _ = drive(KnowHalu(reasoner), sample, lambda p: read)
    assert verdict.label is Label.CORRECT and said in verdict.segments[0].base.rationale


def test_a_supported_answer_is_correct_and_quotes_its_sentence(reasoner):
    sample = Sample(
        id="1",
        question="When was the tower built?",
        response="It was built in 1889.",
        knowledge="Paris has a tower. The tower was built in 1889. It is tall.",
    )
    verdict, _ = drive(KnowHalu(reasoner), sample, lambda p: YES if "1889" in p.premise else OPEN)
    assert verdict.label is Label.CORRECT and verdict.probability < 0.1
    assert verdict.evidence[0].quote == "The tower was built in 1889."


def test_a_contradicted_answer_is_incorrect_and_says_by_what(reasoner):
    sample = Sample(
        id="1", question="When was the tower built?", response="It was built in 1899.", knowledge="The tower was built in 1889."
    )
    verdict, _ = drive(KnowHalu(reasoner), sample, lambda p: NO)
    assert verdict.hallucinated and "the source says 1889, the answer 1899" in verdict.reason
    assert verdict.evidence[0].relation == "contradicts"
    assert sample.response[verdict.evidence[0].response_start : verdict.evidence[0].response_end] == "1899"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [("The tower is tall.", HallucinationKind.OFF_TARGET), ("The tower is crooked.", HallucinationKind.FACTUAL)],
)
def test_a_supported_answer_that_misses_the_question_is_off_target(reasoner, answer, kind):
    sample = Sample(
        id="1", question="Who paid for the tower?", response=answer, knowledge="The tower is tall. The king paid for it."
    )
    verdict, _ = drive(KnowHalu(reasoner), sample, lambda p: OPEN if p.question else YES)
    assert verdict.hallucinated and verdict.kind is kind


@pytest.mark.parametrize(
    ("given", "label", "reason"),
    [((), Label.INCONCLUSIVE, InconclusiveReason.OFF_TOPIC), (("Bees make honey from nectar.",), Label.INCORRECT, None)],
)
def test_off_topic_sources_make_a_text_inconclusive_unless_they_were_given(reasoner, given, label, reason):
    page = Passage(id="a", text="Bees make honey from nectar.", end=28)
    sample = Sample(id="1", question="When was the cathedral of Ulm finished?", response="In 1890.", knowledge=given)
    verdict, _ = drive(KnowHalu(reasoner), sample, lambda p: OPEN, lambda q: [page])
    assert (verdict.label, verdict.inconclusive_reason) == (label, reason)
    assert verdict.reason.startswith("the sources do not mention “Ulm”")


@pytest.mark.parametrize("said", ["N/A", "-", "...", "None.", "\u200b", "null"])
def test_a_source_without_information_is_no_evidence(reasoner, said):
    sample = Sample(id="1", response="The tower was finished in March 1889.", knowledge=said)
    verdict, requests = drive(KnowHalu(reasoner), sample, lambda p: NO)
    assert (verdict.label, verdict.inconclusive_reason) == (Label.INCONCLUSIVE, InconclusiveReason.OFF_TOPIC)
    assert not requests


def test_the_second_hop_is_built_on_a_name_found_in_the_first(reasoner):
    pages = {
        "film": Passage(id="a", title="Blue Lamp", text="The film Blue Lamp was directed by Ilse Brand.", end=45),
        "director": Passage(id="b", title="Ilse Brand", text="Ilse Brand was born in Oslo.", end=28),
    }
    sample = Sample(id="1", question="Where was the director of the film Blue Lamp born?", response="Oslo")
    verdict, requests = drive(
        KnowHalu(reasoner),
        sample,
        lambda p: YES if "Oslo" in p.premise else OPEN,
        lambda q: [pages["director" if "Ilse" in q else "film"]],
    )
    searches = [r for r in requests if isinstance(r, Search)]
    assert "Oslo" in searches[0].queries[0] and "Oslo" not in searches[0].queries[1]
    assert "Ilse Brand" in searches[1].queries[1]
    assert verdict.label is Label.CORRECT
    assert [e.passage for e in verdict.evidence] == ["b"]


@pytest.mark.parametrize(("documents", "searches"), [((), 0), (("Its pages are not asked: the search is scripted.",), 2)])
def test_given_knowledge_ends_the_chain_only_where_no_documents_can_be_searched(reasoner, documents, searches):
    page = Passage(id="a", text="The film Blue Lamp was directed by Ilse Brand.", end=45)
    sample = Sample(
        id="1", question="Where was the director of Blue Lamp born?", response="Oslo", knowledge="Bees make honey.",
        documents=documents,
    )  # fmt: skip
    _, requests = drive(KnowHalu(reasoner), sample, lambda p: OPEN, lambda q: [page])
    assert sum(isinstance(r, Search) for r in requests) == searches


def test_the_chain_ends_when_nothing_new_is_found(reasoner):
    page = Passage(id="a", text="The film Blue Lamp was directed by Ilse Brand.", end=45)
    sample = Sample(id="1", question="Where was the director of Blue Lamp born?", response="Oslo")
    _, requests = drive(KnowHalu(reasoner), sample, lambda p: OPEN, lambda q: [page])
    assert sum(isinstance(r, Search) for r in requests) == 2


def test_both_forms_are_read_when_asked_for(reasoner):
    from knowhalu.methods.knowhalu.options import KnowHaluOptions

    sample = Sample(
        id="1", question="When was she born?", response="She was born in 1815.", knowledge="She (born 1815) wrote notes."
    )
    verdict, requests = drive(KnowHalu(reasoner, KnowHaluOptions(second_opinion="always")), sample, lambda p: YES)
    premises = [p.premise for r in requests if isinstance(r, Entail) for p in r.pairs]
    assert verdict.segments[0].supplement is not None and verdict.segments[0].supplement.steps[0].knowledge.triplets
    assert any("is described as born 1815" in p for p in premises)


def test_a_judgment_weighs_just_the_features_that_are_computed(reasoner):
    sample = Sample(id="1", question="When was the tower built?", response="1889", knowledge="The tower was built in 1889.")
    verdict, _ = drive(KnowHalu(reasoner), sample, lambda p: YES)
    assert set(verdict.segments[0].base.features) == FEATURES - set(BY_SMALL) | set(REPORTED)


def test_small_reads_the_windows_too_where_the_judgment_weighs_that(tmp_path):
    weights = {"joined_supported": 1.0, "small_joined_supported": 1.0}
    reasoner = thinking_by({task: {"bias": 0.0, "cut": 0.0, "weights": weights} for task in WEIGHTS}, tmp_path)
    sample = Sample(id="1", question="When was the tower built?", response="1889", knowledge="The tower was built in 1889.")
    verdict, requests = drive(KnowHalu(reasoner), sample, lambda p: YES)
    assert set(verdict.segments[0].base.features) == FEATURES | set(REPORTED)
    read, again = (
        next(r.pairs for r in reversed(requests) if isinstance(r, Entail) and r.light is light) for light in (False, True)
    )
    assert again and again == read[: len(again)]


def test_unsupported_words_of_a_claim_are_marked_in_the_response(reasoner):
    response = "Sure! It is tall. It was built in **1789** [1]."
    sample = Sample(id="1", response=response, knowledge="The tower is tall. It was built in 1889.")
    verdict, requests = drive(
        KnowHalu(reasoner),
        sample,
        lambda p: NO if "built" in p.claim else YES,
        marks=lambda p: (UnsupportedSpan(p.claim.index("1789"), p.claim.index("1789") + 4, 0.9),),
    )
    (finding,) = verdict.segments[1].findings
    assert finding.unit == "words" and response[finding.start : finding.end] == finding.text == "1789"
    assert finding.p_supported == pytest.approx(0.1)
    (asked,) = [r for r in requests if isinstance(r, TagSpans)]
    assert asked.pairs == (EntailmentPair("The tower is tall. It was built in 1889.", "It was built in 1789.", "It is tall."),)


def test_no_words_are_marked_where_nothing_is_wrong(reasoner):
    sample = Sample(id="1", response="The tower is tall.", knowledge="The tower is tall.")
    verdict, requests = drive(KnowHalu(reasoner), sample, lambda p: YES, marks=lambda p: (UnsupportedSpan(0, 3, 0.9),))
    assert verdict.segments[0].findings == () and not any(isinstance(r, TagSpans) for r in requests)


@pytest.mark.parametrize(("evading", "kind"), [(0.95, HallucinationKind.OFF_TARGET), (0.05, None)])
def test_an_answer_that_misses_the_question_is_off_target_without_any_source(tmp_path, reasoner, evading, kind):
    data = json.loads((tmp_path / "judgment.json").read_text())
    (tmp_path / "judgment.json").write_text(json.dumps({**data, "evades": 0.8}))
    sample = Sample(
        id="1", question="Who built the tower?", response="Gustave of Lyon", knowledge="Gustave of Lyon built the tower."
    )

    def says(pair):
        return Probabilities(1 - evading, 0.0, evading) if not pair.premise else YES

    verdict, requests = drive(KnowHalu(KnowHaluEncoder(tmp_path)), sample, says)
    assert requests[0] == Entail((EntailmentPair("", "Gustave of Lyon", "Who built the tower?"),))
    assert verdict.kind is kind and verdict.hallucinated is (kind is not None)
    assert (verdict.extraction.entity is None) is (kind is not None)


def test_a_claim_that_refers_back_is_searched_and_read_with_the_sentence_before(reasoner):
    sample = Sample(id="1", response="The twins drew the tower. They died in 1902.", documents="Mara Quill died in 1902.")
    page = Passage(id="a", text="Mara Quill died in 1902.", end=24)
    verdict, requests = drive(KnowHalu(reasoner), sample, lambda p: YES, lambda q: [page])
    assert [s.text for s in verdict.segments] == ["The twins drew the tower.", "They died in 1902."]
    searches = [r.queries[0] for r in requests if isinstance(r, Search)]
    assert searches == ["The twins drew the tower.", "The twins drew the tower. They died in 1902."]
    asked = {(p.claim, p.question) for r in requests if isinstance(r, Entail) for p in r.pairs}
    assert asked == {
        ("The twins drew the tower.", None),
        ("They died in 1902.", "The twins drew the tower."),
        ("They died in 1902.", None),
    }


def test_a_claim_that_surely_refers_back_is_read_with_its_subject_and_quoted_as_it_is(reasoner):
    sample = Sample(id="1", response="Mara Quill drew the tower. She died in 1902.", knowledge="Mara Quill died in 1902.")
    verdict, requests = drive(KnowHalu(reasoner), sample, lambda p: YES)
    assert [s.text for s in verdict.segments] == ["Mara Quill drew the tower.", "She died in 1902."]
    assert {(p.claim, p.question) for r in requests if isinstance(r, Entail) for p in r.pairs} == {
        ("Mara Quill drew the tower.", None),
        ("Mara Quill died in 1902.", None),
    }


def test_every_source_is_read_alone_and_several_together_only_where_none_has_all_words(reasoner):
    parts = ("Ilse Brand directed Blue Lamp.", "Ilse Brand was born in Oslo.")

    def premises(claim):
        _, requests = drive(KnowHalu(reasoner), Sample(id="1", response=claim, knowledge=parts), lambda p: YES)
        return {p.premise for r in requests if isinstance(r, Entail) for p in r.pairs}

    assert premises("Ilse Brand was born in Oslo.") == set(parts)
    assert premises("The director of Blue Lamp was born in Oslo.") == {*parts, " ".join(parts)}


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Der Leuchtturm wurde 1871 von einer Ingenieurin aus Schottland gebaut.", "The lighthouse was built in 1871."),
        ("The lighthouse was built in 1871.", "Der Leuchtturm wurde 1871 von einer Ingenieurin aus Schottland gebaut."),
    ],
)
@pytest.mark.parametrize("field", ["knowledge", "documents"])
def test_another_language_is_left_open_with_that_reason_also_in_a_summary(reasoner, claim, source, field):
    sample = Sample.model_validate({"id": "1", "response": claim, field: source})
    page = Passage(id="a", text=source, document="document-1", end=len(source))
    verdict, _ = drive(KnowHalu(reasoner), sample, lambda p: NO, lambda q: [page])
    assert (verdict.label, verdict.inconclusive_reason) == (Label.INCONCLUSIVE, InconclusiveReason.LANGUAGE)
    assert verdict.hallucinated is None


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is blanching?", "Blanching is cooking food in hot water for a short time."),
        ("How should I store potatoes?", "Keep potatoes in a dark and cool place."),
        ("Tell me about the tower.", "The tower is tall."),
    ],
)
def test_definitions_advice_and_open_questions_are_never_off_target(tmp_path, reasoner, question, answer):
    data = json.loads((tmp_path / "judgment.json").read_text())
    (tmp_path / "judgment.json").write_text(json.dumps({**data, "evades": 0.8}))
    sample = Sample(id="1", question=question, response=answer, knowledge=answer)
    verdict, _ = drive(KnowHalu(KnowHaluEncoder(tmp_path)), sample, lambda p: YES if p.premise else OPEN)
    assert verdict.label is Label.CORRECT and verdict.extraction.entity == answer


BRIDGED = ("Blue Lamp was written by Ilse Brand.", "Ilse Brand was born in Sandvik.")


@pytest.mark.parametrize("supported", [True, False])
def test_two_sure_steps_support_what_no_source_states_alone(reasoner, supported):
    steps = {"Ilse Brand is the author of Blue Lamp.", *(["Ilse Brand was born in Sandvik."] if supported else [])}
    sample = Sample(id="1", response="The author of Blue Lamp was born in Sandvik.", knowledge=BRIDGED)
    verdict, _ = drive(KnowHalu(reasoner), sample, lambda p: YES if p.claim in steps else NO)
    assert verdict.hallucinated is not supported
    assert ("supported in two steps by way of Ilse Brand" in verdict.segments[0].base.rationale) is supported
