"""Reasons of inconclusive verdicts and relations of incorrect ones, by whole checks with scripted models."""

import pytest
from pydantic import ValidationError

from knowhalu.build import build_method
from knowhalu.engine.engine import Backends, Engine
from knowhalu.engine.search_backend import SearchBackend
from knowhalu.methods.common.calibrated import CalibratedMethod, DecisionRule
from knowhalu.methods.knowhalu.method import KnowHalu
from knowhalu.methods.knowhalu.options import KnowHaluOptions
from knowhalu.profiles import load_settings
from knowhalu.results import Verdict
from knowhalu.testing import ScriptedEncoder
from knowhalu.types import InconclusiveReason, KnowledgeForm, Label, Relation, Sample, Task
from tests.methods.knowhalu.test_method import Script
from tests.methods.knowhalu.test_method import drive as scripted
from tests.support.baseline_runs import Model
from tests.support.baseline_runs import check as asked_once
from tests.support.indexing import WordEmbedder
from tests.support.thinking import Hop, Thinker
from tests.support.thinking import check as thought

YES, NO, NEITHER = (0.95, 0.03, 0.02), (0.02, 0.95, 0.03), (0.1, 0.1, 0.8)
BUILT = "The tower of Ulm was built in 1890."
BAND = ("method=cascade", "cascade.rules=", "cascade.low=0", "cascade.high=1")
HOP = Hop("Look it up.", "Did Ilse Brand play the lute?", "What did Ilse Brand play?")
OPEN = {"CORRECT": 0.2, "INCORRECT": 0.2, "INCONCLUSIVE": 0.6}
WRONG = {"CORRECT": 0.1, "INCORRECT": 0.8, "INCONCLUSIVE": 0.1}


def read(sample, *pairs, says=lambda pair: NEITHER):
    """Check a sample with the packaged encoder's method, the encoder itself being scripted."""
    searcher = SearchBackend(load_settings().retrieval)
    vars(searcher)["embedder"] = WordEmbedder()
    backends = Backends(entail=ScriptedEncoder(says), search=searcher)
    (verdict,) = Engine(build_method(load_settings(pairs=list(pairs))), backends).run([sample])
    assert isinstance(verdict, Verdict), verdict
    return verdict


def claim(response, *knowledge):
    return Sample(id="c", response=response, knowledge=knowledge)


def test_nothing_retrieved_differs_from_off_topic_passages():
    said = Sample(id="m", response="Ilse Brand played the lute.")
    assert thought(Thinker([HOP]), said).inconclusive_reason is InconclusiveReason.NOTHING_RETRIEVED
    off = thought(Thinker([HOP]), said, {"a": "Ilse Brand was born in Oslo."})
    assert off.inconclusive_reason is off.segments[0].inconclusive_reason is InconclusiveReason.OFF_TOPIC


def test_what_given_sources_do_not_speak_of_is_not_supported_by_them():
    verdict = read(Sample(id="u", question="When was the tower of Ulm built?", response="In 1890.", knowledge="Bees make honey."))
    assert (verdict.label, verdict.relation) == (Label.INCORRECT, Relation.NEUTRAL) and "mention “Ulm”" in verdict.reason


@pytest.mark.parametrize(
    ("sources", "why"),
    [
        ((BUILT, "The tower of Ulm was built in 1377."), InconclusiveReason.CONFLICTING),
        ((BUILT, BUILT), InconclusiveReason.UNSURE),
    ],
)
def test_between_thresholds_opposing_quotes_are_a_conflict_and_else_the_judge_is_unsure(sources, why):
    verdict = read(claim(BUILT, *sources), *BAND, says=lambda pair: NO if "1377" in pair.premise else YES)
    assert (verdict.label, verdict.inconclusive_reason) == (Label.INCONCLUSIVE, why)


def test_a_language_model_that_says_inconclusive_is_unsure():
    sample = Sample(id="j", response=BUILT, knowledge=BUILT)
    assert asked_once("few-shot", sample, Model(label=OPEN)).inconclusive_reason is InconclusiveReason.UNSURE


def both_forms(base, other):
    return Script({(KnowledgeForm.UNSTRUCTURED, "*"): base, (KnowledgeForm.STRUCTURED, "*"): other})


def test_one_inconclusive_form_is_a_disagreement():
    script = both_forms((Label.CORRECT, 0.5), (Label.INCONCLUSIVE, 0.9))
    verdict, _ = scripted(KnowHalu(script), claim("Ada wrote.", "Ada Lovelace wrote the notes in 1843."))
    assert (verdict.label, verdict.inconclusive_reason) == (Label.INCONCLUSIVE, InconclusiveReason.FORMS_DISAGREE)


def test_a_probability_between_thresholds_is_explained_by_disagreeing_forms():
    script = both_forms((Label.CORRECT, 0.7), (Label.INCORRECT, 0.7))
    method = CalibratedMethod(KnowHalu(script, KnowHaluOptions(second_opinion="always")), DecisionRule(low=0.1, high=0.9))
    verdict, _ = scripted(method, claim("Ada wrote.", "Ada Lovelace wrote the notes in 1843."))
    assert (verdict.hallucinated, verdict.inconclusive_reason) == (None, InconclusiveReason.FORMS_DISAGREE)


@pytest.mark.parametrize("method", ["conli", "factored"])
def test_a_text_that_claims_nothing_has_nothing_to_check(method):
    verdict = read(Sample(id="q", question="Why?", response="Who knows?", knowledge=BUILT), f"method={method}")
    assert (verdict.label, verdict.inconclusive_reason) == (Label.INCONCLUSIVE, InconclusiveReason.NOTHING_TO_CHECK)


@pytest.mark.parametrize("method", ["knowhalu", "conli", "factored"])
def test_contradicted_and_unmentioned_texts_have_different_relations(method):
    source = "The tower of Ulm was built in 1377 by Ulrich."
    against = read(claim(BUILT, source), f"method={method}", says=lambda pair: NO)
    silent = read(
        claim("The tower of Ulm keeps a bronze bell.", source), f"method={method}", says=lambda pair: (0.005, 0.005, 0.99)
    )
    assert (against.label, against.relation) == (Label.INCORRECT, Relation.CONTRADICTION)
    assert (silent.label, silent.relation) == (Label.INCORRECT, Relation.NEUTRAL)
    assert silent.inconclusive_reason is None and silent.segments[0].relation is Relation.NEUTRAL


def test_an_inconclusive_detail_of_a_summary_is_neutral():
    sample = Sample(id="s", response=BUILT, documents=BUILT)
    assert asked_once("few-shot", sample, Model(label=OPEN)).relation is Relation.NEUTRAL
    assert asked_once("few-shot", sample, Model(label=WRONG)).relation is Relation.CONTRADICTION


def test_a_binary_judge_gives_no_relation_to_the_sources():
    sample = Sample(id="s", response=BUILT, knowledge=BUILT)
    verdict = asked_once("halueval-knowledge", sample, Model(label={"CORRECT": 0.2, "INCORRECT": 0.8}))
    assert (verdict.label, verdict.relation) == (Label.INCORRECT, None)


@pytest.mark.parametrize("why", list(InconclusiveReason))
def test_every_reason_names_a_next_action_in_one_sentence(why):
    assert why.next_action.endswith(".") and ". " not in why.next_action and why.description


@pytest.mark.parametrize(
    ("label", "fields"),
    [
        (Label.CORRECT, {"inconclusive_reason": "unsure"}),
        (Label.INCORRECT, {"inconclusive_reason": "unsure"}),
        (Label.CORRECT, {"relation": "neutral"}),
        (Label.INCORRECT, {"relation": "entailment"}),
    ],
)
def test_a_reason_that_does_not_belong_to_the_label_is_refused(label, fields):
    with pytest.raises(ValidationError):
        Verdict(
            id="1", task=Task.CLAIM, method="m", label=label, hallucinated=label is Label.INCORRECT, kind=None, probability=0.5,
            reason="because", **fields,
        )  # fmt: skip
