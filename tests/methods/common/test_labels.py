"""Judgments by an LLM: the source of the confidence, votes, and the second form of knowledge."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowhalu.requests import Completion
from knowhalu.types import KnowledgeForm, Label, Sample
from tests.support.thinking import Hop, Thinker, check, is_structured

PAGES = {"Vienna": "Vienna lies on the Danube. It is the capital of Austria."}
SAMPLE = Sample(id="1", response="Vienna lies on the Danube.")
HOP = Hop("Look.", "Does Vienna lie on the Danube?", "Where?", "Vienna lies on the Danube.", "(Vienna, lies on, the Danube)")
LABELS = ("CORRECT", "INCORRECT", "INCONCLUSIVE")


def test_the_probabilities_of_the_labels_are_normalised():
    thinker = Thinker([HOP], choices={"CORRECT": 0.3, "INCORRECT": 0.15, "INCONCLUSIVE": 0.15})
    base = check(thinker, SAMPLE, PAGES).segments[0].base
    assert (base.label, base.confidence, base.p_supported) == (Label.CORRECT, pytest.approx(0.5), pytest.approx(0.625))
    assert base.confidence_source == "probability"


def test_the_most_probable_label_counts_and_not_the_one_that_was_written_first():
    # a greedy choice by the shared first piece of INCORRECT and INCONCLUSIVE may end in a label that is not the best one
    shares = {"CORRECT": 0.4, "INCORRECT": 0.35, "INCONCLUSIVE": 0.25}
    thinker = Thinker([HOP], raw={("label", 0): Completion("INCORRECT", choices=shares)})
    assert check(thinker, SAMPLE, PAGES, second_opinion="never").segments[0].base.label is Label.CORRECT


@pytest.mark.parametrize(
    "choices", [{}, {"CORRECT": float("nan")}, {"CORRECT": -1.0, "INCORRECT": 2.0}, {"CORRECT": 0.0}, {"YES": 1.0}]
)
def test_without_usable_probabilities_the_other_form_is_judged_and_the_verdict_notes_it(choices):
    thinker = Thinker([HOP])
    thinker.raw = {("label", i): Completion("CORRECT", choices=choices) for i in range(2)}
    segment = check(thinker, SAMPLE, PAGES).segments[0]
    base = segment.base
    assert (base.label, base.confidence, base.p_supported, base.confidence_source) == (Label.CORRECT, None, None, "none")
    assert "no probability" in segment.base.rationale
    assert segment.supplement.form is KnowledgeForm.STRUCTURED and segment.forms_agree is True
    assert (segment.label, segment.probability) == (Label.CORRECT, None)


def test_an_unmeasured_supplement_does_not_override_a_base_that_decided():
    thinker = Thinker([HOP], raw={("label", 0): "CORRECT", ("label", 1): "INCORRECT"})
    segment = check(thinker, SAMPLE, PAGES).segments[0]
    assert (segment.label, segment.forms_agree) == (Label.CORRECT, False)


def test_an_unmeasured_supplement_overrides_an_inconclusive_base():
    thinker = Thinker([HOP], raw={("label", 0): "INCONCLUSIVE", ("label", 1): "INCORRECT"})
    segment = check(thinker, SAMPLE, PAGES).segments[0]
    assert (segment.label, segment.probability) == (Label.INCORRECT, None)


def test_evidence_of_an_unmeasured_label_agrees_with_it_and_has_no_probability():
    thinker = Thinker([HOP], raw={("label", i): "INCORRECT" for i in range(2)})
    verdict = check(thinker, SAMPLE, PAGES)
    assert verdict.evidence and {(e.relation, e.probability) for e in verdict.evidence} == {("contradicts", None)}
    assert verdict.best_evidence is not None


def votes(labels) -> tuple[Thinker, Iterator]:
    thinker = Thinker([HOP])
    thinker.raw = {("label", i): label for i, label in enumerate(labels)}
    thinker.raw |= {("judge", i): f" Reason {i}." for i in range(len(labels))}
    return thinker


def test_the_majority_of_votes_counts_with_its_share():
    thinker = votes(["INCORRECT", "CORRECT", "CORRECT", "INCONCLUSIVE", "CORRECT"])
    base = check(thinker, SAMPLE, PAGES, llm={"votes": 5, "seed": 3}, delta1=0.5).segments[0].base
    assert (base.label, base.confidence, base.p_supported) == (Label.CORRECT, 0.6, 0.7)
    assert (base.confidence_source, base.rationale) == ("votes", "Reason 1. (3 of 5 votes)")
    assert [(r.seed, r.temperature) for r in thinker.requests("judge")] == [(s, 1.0) for s in range(3, 8)]
    assert [(r.seed, r.temperature) for r in thinker.requests("label")] == [(s, 1.0) for s in range(3, 8)]
    assert {r.temperature for r in thinker.requests("query")} == {0.0}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [(["CORRECT", "INCORRECT"], Label.INCORRECT), (["CORRECT", "INCONCLUSIVE"], Label.INCONCLUSIVE)],
)
def test_a_tie_goes_to_inconclusive_then_incorrect(labels, expected):
    verdict = check(votes(labels), SAMPLE, PAGES, llm={"votes": 2}, second_opinion="never")
    assert verdict.segments[0].base.label is expected


shares = st.tuples(*[st.floats(0.001, 1.0)] * 3).map(lambda p: dict(zip(LABELS, p, strict=True)))
sample = st.sampled_from([
    SAMPLE,
    Sample(id="q", question="On which river does Vienna lie?", response="On the Danube."),
    Sample(id="s", response="Vienna lies on the Danube. It is the capital of Austria.", documents="Vienna lies on the Danube."),
])  # fmt: skip


@given(shares, shares, shares, sample, st.booleans(), st.floats(0, 1), st.floats(0, 1), st.sampled_from(list(KnowledgeForm)))
@settings(max_examples=150)
def test_the_second_form_computed_only_when_needed_gives_the_same_verdict(one, two, three, sample, known, d1, d2, base_form):
    def run(second_opinion):
        hop = HOP if known else Hop(HOP.thought, HOP.specific, HOP.general, HOP.knowledge)  # nothing in the structured form
        thinker = Thinker([hop])

        def label(request):
            given_ = one if is_structured_check(thinker, request) else two
            return Completion(max(given_, key=given_.get), choices=given_ if len(request.prompt) % 3 else three)

        thinker._label = lambda request, number: label(request)
        options = {"delta1": d1, "delta2": d2, "base_form": base_form, "segment_words": 6}
        return thinker, check(thinker, sample, PAGES, second_opinion=second_opinion, **options)

    (few, needed), (many, always) = run("needed"), run("always")
    for name in ("label", "hallucinated", "kind", "probability", "reason", "evidence"):
        assert getattr(needed, name) == getattr(always, name), name
    assert [s.label for s in needed.segments] == [s.label for s in always.segments]
    assert [s.base for s in needed.segments] == [s.base for s in always.segments]
    assert len(few.asked) <= len(many.asked)


def is_structured_check(thinker, request):
    """Tell the form of a judgment: that of the last knowledge request before it."""
    last = [r for stage, r in thinker.asked if stage == "knowledge"][-1]
    return is_structured(last)
