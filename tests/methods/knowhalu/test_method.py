"""KnowHalu's algorithm by scripted reasoners: every branch, with the requests it makes."""

from collections.abc import Sequence

import pytest

from knowhalu.errors import BackendError, ReplyError, StageError
from knowhalu.methods.common.combine import Thresholds
from knowhalu.methods.knowhalu.method import KnowHalu
from knowhalu.methods.knowhalu.options import KnowHaluOptions
from knowhalu.requests import Conversation, Search, UnsupportedSpan
from knowhalu.types import (
    Extraction,
    HallucinationKind,
    InconclusiveReason,
    Judgment,
    Knowledge,
    KnowledgeForm,
    Label,
    Passage,
    Query,
    Quote,
    Sample,
    Step,
)

SOURCE = "Ada Lovelace wrote the notes in 1843. She was born in London."


class Script:
    """A reasoner that asks `hops` queries and judges as told, by form and segment."""

    def __init__(
        self, judgments: dict[tuple[KnowledgeForm, str], tuple[Label, float]], hops: int = 1, extraction: Extraction | None = None
    ) -> None:
        self.judgments, self.hops, self.judged = judgments, hops, list[tuple[KnowledgeForm, str]]()
        self.answers = list[str]()
        self.asked = list[tuple[str, str | None]]()
        self.extraction = extraction or Extraction(entity="1843", asked_for="a time", reason="named", confidence=0.9)

    def thresholds(self, sample: Sample) -> Thresholds:
        return Thresholds(0.6, 0.8)

    def extract(self, question: str, answer: str) -> Conversation[Extraction]:
        yield from ()
        self.answers.append(answer)
        return self.extraction

    def next_query(self, part: Sample, steps: Sequence[Step], form: KnowledgeForm) -> Conversation[tuple[str, Query] | None]:
        yield from ()
        if len(steps) == self.hops:
            return None
        return f"thought {len(steps)}", Query(specific=f"specific {len(steps)}", general=f"general {len(steps)}")

    def distill(
        self, part: Sample, query: Query, passages: Sequence[Passage], steps: Sequence[Step], form: KnowledgeForm
    ) -> Conversation[Knowledge]:
        yield from ()
        quotes = tuple(Quote(passage=p.id, text=p.text[:36], start=0, end=36, supported=0.9, contradicted=0.05) for p in passages)
        return Knowledge(form=form, quotes=quotes, text="known" if quotes else "No specific information is available.")

    def judge(self, part: Sample, steps: Sequence[Step], form: KnowledgeForm) -> Conversation[Judgment]:
        yield from ()
        self.judged.append((form, part.response))
        label, confidence = (
            self.judgments[form, part.response] if (form, part.response) in self.judgments else self.judgments[form, "*"]
        )
        supported = confidence if label is Label.CORRECT else 1 - confidence
        return Judgment(
            form=form, label=label, confidence=confidence, p_supported=supported, rationale=f"by {form}", steps=tuple(steps)
        )

    def unsupported_spans(self, part: Sample, judgment: Judgment) -> Conversation[tuple[UnsupportedSpan, ...]]:
        yield from ()
        return (UnsupportedSpan(0, 3, 0.75),)


class Asking(Script):
    """A scripted reasoner that records which parts it judged, and with which question."""

    def judge(self, part: Sample, steps: Sequence[Step], form: KnowledgeForm) -> Conversation[Judgment]:
        self.asked.append((part.response, part.question))
        return super().judge(part, steps, form)


def drive(method: KnowHalu, sample: Sample, passages: list[list[Passage]] | None = None):
    """Answer every search with the same passages; return the verdict and the searches."""
    conversation, searches = method.check(sample), []
    try:
        request = next(conversation)
        while True:
            assert isinstance(request, Search)
            searches.append(request)
            request = conversation.send(passages or [[] for _ in request.queries])
    except StopIteration as end:
        return end.value, searches


BASE, OTHER = KnowledgeForm.UNSTRUCTURED, KnowledgeForm.STRUCTURED
QA = Sample(id="q", question="When were the notes written?", response="In 1843.", knowledge=SOURCE)


def test_a_confident_base_judgment_is_kept_without_the_other_form():
    script = Script({(BASE, "*"): (Label.CORRECT, 0.9)})
    verdict, _ = drive(KnowHalu(script), QA)
    assert (verdict.label, verdict.hallucinated, verdict.kind) == (Label.CORRECT, False, None)
    assert verdict.probability == pytest.approx(0.1)
    assert script.judged == [(BASE, "In 1843.")]


@pytest.mark.parametrize(
    ("base", "other", "expected"),
    [
        ((Label.CORRECT, 0.55), (Label.INCORRECT, 0.9), Label.INCORRECT),  # doubted, and the supplement is sure
        ((Label.CORRECT, 0.55), (Label.INCORRECT, 0.7), Label.CORRECT),  # doubted, but the supplement is no surer
        ((Label.INCONCLUSIVE, 0.99), (Label.INCORRECT, 0.51), Label.INCORRECT),  # left open: the supplement decides
        ((Label.INCONCLUSIVE, 0.99), (Label.INCONCLUSIVE, 0.9), Label.INCONCLUSIVE),
    ],
)
def test_second_opinion_follows_algorithm_1(base, other, expected):
    verdict, _ = drive(KnowHalu(Script({(BASE, "*"): base, (OTHER, "*"): other})), QA)
    assert verdict.label is expected
    assert verdict.segments[0].supplement is not None
    assert verdict.hallucinated is {Label.INCORRECT: True, Label.CORRECT: False, Label.INCONCLUSIVE: None}[expected]


class WithoutOtherForm(Script):
    """A reasoner that fails in the other form of knowledge."""

    def __init__(self, base: tuple[Label, float], error: StageError) -> None:
        super().__init__({(BASE, "*"): base})
        self.error = error

    def judge(self, part, steps, form):
        if form is OTHER:
            raise self.error
        return super().judge(part, steps, form)


@pytest.mark.parametrize("error", [ReplyError("knowledge", "no readable triplet"), BackendError("judge", "timed out")])
def test_a_failure_in_the_other_form_keeps_the_judgment_of_the_first_and_is_noted(error):
    verdict, _ = drive(KnowHalu(WithoutOtherForm((Label.CORRECT, 0.55), error)), QA)
    segment = verdict.segments[0]
    assert (verdict.label, verdict.probability, segment.supplement) == (Label.CORRECT, pytest.approx(0.45), None)
    assert str(error) in segment.base.rationale


def test_a_backend_that_fails_where_the_first_form_left_the_text_open_is_a_failure_so_that_it_is_asked_again():
    with pytest.raises(BackendError):
        drive(KnowHalu(WithoutOtherForm((Label.INCONCLUSIVE, 0.9), BackendError("judge", "timed out"))), QA)
    verdict, _ = drive(KnowHalu(WithoutOtherForm((Label.INCONCLUSIVE, 0.9), ReplyError("judge", "no label"))), QA)
    assert verdict.hallucinated is None


@pytest.mark.parametrize("response", ["...", "?!", "\u200b\u200b", "\U0001f642"])
def test_a_response_without_a_word_states_nothing_that_could_be_checked(response):
    verdict, searches = drive(KnowHalu(Script({})), Sample(id="s", response=response, knowledge=SOURCE))
    assert (verdict.label, verdict.hallucinated, verdict.inconclusive_reason) == (
        Label.INCONCLUSIVE,
        None,
        InconclusiveReason.NOTHING_TO_CHECK,
    )
    assert not searches


def test_an_off_target_answer_needs_no_fact_check():
    none = Extraction(entity=None, asked_for="a time", reason="no time in it", confidence=0.8)
    script = Script({}, extraction=none)
    verdict, searches = drive(KnowHalu(script), QA)
    assert (verdict.hallucinated, verdict.kind, verdict.reason) == (True, HallucinationKind.OFF_TARGET, "no time in it")
    assert not searches and not script.judged


def test_a_refusal_is_no_hallucination():
    refusal = Extraction(entity=None, asked_for="a time", reason="declines", confidence=0.95, refusal=True)
    verdict, _ = drive(KnowHalu(Script({}, extraction=refusal)), QA)
    assert (verdict.hallucinated, verdict.label) == (False, Label.CORRECT)


def test_the_off_target_check_can_be_left_out():
    none = Extraction(entity=None, asked_for="a time", reason="", confidence=0.8)
    verdict, _ = drive(
        KnowHalu(Script({(BASE, "*"): (Label.CORRECT, 0.9)}, extraction=none), KnowHaluOptions(off_target=False)), QA
    )
    assert verdict.hallucinated is False and verdict.extraction is None


def test_one_incorrect_segment_makes_a_summary_hallucinated_and_inconclusive_counts_as_incorrect():
    first, second = (
        "The notes were written in 1843 by Ada Lovelace, a woman of London, who had learned her mathematics young.",
        "Babbage burned them all in the very cold winter of 1850, as his friends said afterwards.",
    )
    sample = Sample(id="s", response=f"{first} {second}", documents=SOURCE)
    script = Script(
        {(BASE, first): (Label.CORRECT, 0.9), (BASE, second): (Label.INCONCLUSIVE, 0.9), (OTHER, "*"): (Label.INCONCLUSIVE, 0.9)}
    )
    verdict, searches = drive(KnowHalu(script), sample)
    assert [s.label for s in verdict.segments] == [Label.CORRECT, Label.INCORRECT]
    assert verdict.hallucinated is True and verdict.kind is HallucinationKind.FACTUAL
    assert all(sample.response[s.start : s.end] == s.text for s in verdict.segments)
    assert 0.5 < verdict.probability < verdict.segments[1].probability
    assert {s.k for s in searches} == {3} and all(s.documents for s in searches)


POLITE = "Great question! The plant employs **1,240** people [1]. Would you like to know more?"


def test_what_claims_nothing_is_skipped_with_its_place_and_the_reason():
    script = Script({(BASE, "*"): (Label.CORRECT, 0.9)})
    verdict, _ = drive(KnowHalu(script), Sample(id="s", response=POLITE, knowledge=SOURCE))
    assert script.judged == [(BASE, "The plant employs 1,240 people.")]
    assert [s.text for s in verdict.segments] == ["The plant employs **1,240** people [1]."]
    assert [(s.text, s.reason) for s in verdict.skipped] == [
        ("Great question!", "a courtesy"), ("Would you like to know more?", "a courtesy"),
    ]  # fmt: skip
    assert all(POLITE[s.start : s.end] == s.text for s in (*verdict.segments, *verdict.skipped))


@pytest.mark.parametrize("refusal", [False, True])
def test_an_answer_decided_by_its_question_alone_keeps_what_was_skipped(refusal):
    extraction = Extraction(entity=None, asked_for="a time", reason="", confidence=0.8, refusal=refusal)
    verdict, _ = drive(KnowHalu(Script({}, extraction=extraction)), QA.model_copy(update={"response": f"Sure! {QA.response}"}))
    assert [s.text for s in verdict.skipped] == ["Sure!"] and verdict.hallucinated is not refusal


def test_a_text_that_claims_nothing_leaves_nothing_to_check_also_in_a_summary():
    verdict, searches = drive(KnowHalu(Script({})), Sample(id="s", response="Good morning! How are you?", documents=SOURCE))
    assert verdict.inconclusive_reason is InconclusiveReason.NOTHING_TO_CHECK and verdict.hallucinated is None
    assert len(verdict.skipped) == 2 and not searches


def test_a_response_that_only_declines_is_no_hallucination_and_asks_nobody():
    declined = Sample(id="s", response="I'm sorry, but I don't have that information. Anything else?", question="Who?")
    verdict, searches = drive(KnowHalu(Script({})), declined)
    assert (verdict.label, verdict.hallucinated) == (Label.CORRECT, False) and "declines" in verdict.reason
    assert not searches and verdict.extraction is None


@pytest.mark.parametrize(
    ("rest", "checked"),
    [
        ("The notes do say that she was born in Paris.", ["The notes do say that she was born in Paris."]),
        ("The text doesn't mention the year.", []),
        ("You may want to ask the library.", []),
    ],
)
def test_what_is_stated_beside_a_refusal_is_checked_as_a_claim_and_need_not_answer_the_question(rest, checked):
    refusal = Extraction(entity=None, asked_for="a time", reason="declines", confidence=0.9, refusal=True)
    script = Asking({(BASE, "*"): (Label.INCORRECT, 0.9)}, extraction=refusal)
    verdict, _ = drive(KnowHalu(script), QA.model_copy(update={"response": f"Sorry, I can't tell you when that was. {rest}"}))
    assert script.asked == [(text, None) for text in checked]
    assert verdict.hallucinated is bool(checked)


def test_an_answer_of_several_claims_is_checked_claim_by_claim_and_only_a_fragment_with_the_question():
    none = Extraction(entity=None, asked_for="a time", reason="", confidence=0.9)
    script = Asking({(BASE, "*"): (Label.CORRECT, 0.9)}, extraction=none)
    sample = QA.model_copy(update={"response": "In 1843. Ada Lovelace had written them in London."})
    verdict, _ = drive(KnowHalu(script), sample)
    assert script.asked == [("In 1843.", QA.question), ("Ada Lovelace had written them in London.", None)]
    assert verdict.hallucinated is False and verdict.extraction is None


def test_segments_of_words_are_an_option_and_skip_nothing():
    script = Script({(BASE, "*"): (Label.CORRECT, 0.9)})
    options = KnowHaluOptions(segmentation="words", segment_words=10)
    verdict, _ = drive(KnowHalu(script, options), Sample(id="s", response=f"{POLITE} Certainly!", knowledge=SOURCE))
    assert " ".join(s.text for s in verdict.segments) == f"{POLITE} Certainly!" and not verdict.skipped
    assert all(len(s.text.split()) <= 10 for s in verdict.segments)


@pytest.mark.parametrize(("formulation", "asked"), [("specific", 1), ("general", 1), ("combined", 2)])
def test_each_hop_searches_the_index_in_the_chosen_formulation(formulation, asked):
    sample = Sample(id="c", response="Ada wrote notes.")
    script = Script({(BASE, "*"): (Label.CORRECT, 0.9)}, hops=3)
    verdict, searches = drive(KnowHalu(script, KnowHaluOptions(formulation=formulation)), sample)
    assert [len(s.queries) for s in searches] == [asked] * 3
    assert {s.k for s in searches} == {2} and not any(s.documents for s in searches)
    assert [s.thought for s in verdict.segments[0].base.steps] == ["thought 0", "thought 1", "thought 2"]


def test_the_step_cap_keeps_the_evidence_found_so_far():
    passages = [[Passage(id="p", text=SOURCE, end=len(SOURCE))]] * 2
    script = Script({(BASE, "*"): (Label.CORRECT, 0.9)}, hops=99)
    verdict, searches = drive(KnowHalu(script, KnowHaluOptions(max_steps=4)), Sample(id="c", response="Ada wrote."), passages)
    assert len(searches) == 4 and len(verdict.segments[0].base.steps) == 4
    assert verdict.evidence


def test_passages_of_both_formulations_are_merged_and_put_in_document_order():
    a, b, c = (
        Passage(id=f"document-1#{i}", document="document-1", text=SOURCE, start=100 * i, end=100 * i + len(SOURCE))
        for i in range(3)
    )
    verdict, _ = drive(
        KnowHalu(Script({(BASE, "*"): (Label.CORRECT, 0.9)})), Sample(id="s", response="Ada.", documents=SOURCE), [[c, a], [b, a]]
    )
    assert [p.start for p in verdict.segments[0].base.steps[0].passages] == [0, 100, 200]


def test_evidence_is_verbatim_in_the_source_and_in_the_response():
    verdict, _ = drive(KnowHalu(Script({(BASE, "*"): (Label.CORRECT, 0.9)})), QA)
    (evidence,) = verdict.evidence
    assert (
        evidence.quote == SOURCE[evidence.start : evidence.end] == SOURCE[evidence.document_start : evidence.document_start + 36]
    )
    assert "1843" in QA.response[evidence.response_start : evidence.response_end]


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("Oh no, sorry to hear that! She wrote them in 1843. Take care!", "She wrote them in 1843."),
        ("Sure! She wrote them in 1843.", "Sure! She wrote them in 1843."),
    ],
)
def test_what_is_asked_for_is_taken_from_the_answer_without_courtesies(response, answer):
    reasoner = Script({(BASE, "*"): (Label.CORRECT, 0.9)})
    drive(KnowHalu(reasoner), Sample(response=response, question="Did she write them in 1843?", knowledge=(SOURCE,)))
    assert reasoner.answers == [answer]
