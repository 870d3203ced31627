"""CoNLI by the encoder: sentences by the calibrated model, entities by their context, with scripted probabilities."""

import pytest

from knowhalu.encoder.options import PACKAGED_VERIFIER
from knowhalu.engine.engine import Backends, Engine
from knowhalu.methods.conli.encoder import ConliEncoder, clause_of, judge_entities
from knowhalu.methods.conli.entity_support import entity_match, find_entity_support, sentences_in_context
from knowhalu.methods.conli.method import CoNLI
from knowhalu.methods.options import ConliOptions
from knowhalu.results import Verdict
from knowhalu.testing import ScriptedEncoder
from knowhalu.text.entities import find_entities
from knowhalu.types import Label, Passage, Sample

SOURCE = (
    "The bridge at Hexley opened on 19 March 1932. It is 503 metres long and cost $13.5 million. Anna Kovacs, the mayor, cut the "
    "ribbon. Two workers had died in a fall in 1929. Since then nobody has been hurt. Cars pay one euro. The World Trade Council "
    "paid for the paint, which came from Leeds in 1998."
)
PAGE = Passage(id="d", document="d", title="Hexley", text=SOURCE, end=len(SOURCE))
YES, NO, UNSURE = (0.96, 0.02, 0.02), (0.03, 0.94, 0.03), (0.2, 0.1, 0.7)


def alone(text, entity, scores=YES, passages=(PAGE,)):
    """Judge one entity of a sentence, with the same probabilities for every pair."""
    focus = next(e for e in find_entities(text) if e.text == entity)
    conversation, encoder = judge_entities([(text, focus)], sentences_in_context(passages)), ScriptedEncoder(lambda pair: scores)
    try:
        request = next(conversation)
        while True:
            request = conversation.send(encoder.answer_many([request])[0])
    except StopIteration as end:
        (judgment,) = end.value
        return judgment, encoder.history


@pytest.mark.parametrize(
    ("text", "entity"),
    [
        ("The bridge opened on 19 March 1932.", "19 March 1932"), ("It opened in March 1932.", "March 1932"),
        ("It cost 13.5 million dollars.", "13.5 million dollars"), ("Mayor Kovacs cut the ribbon.", "Mayor Kovacs"),
        ("The WTC paid for the paint.", "WTC"), ("Two workers had died in a fall.", "Two workers"),
    ],
)  # fmt: skip
def test_an_entity_in_its_context_is_entailed(text, entity):
    judgment, _ = alone(text, entity)
    assert judgment.label is Label.CORRECT and judgment.p_supported > 0.8 and judgment.form is None
    (quote,) = judgment.steps[0].knowledge.quotes
    assert SOURCE[quote.start : quote.end] == quote.text


@pytest.mark.parametrize(
    ("text", "entity", "said"),
    [
        ("The bridge opened on 12 March 1932.", "12 March 1932", "do not contain it"),
        ("Ilse Brand cut the ribbon.", "Ilse Brand", "do not contain it"),
        ("Paul Kovacs paid the workers in Leeds.", "Paul Kovacs", "only 50% of it"),
        ("Leeds paid for the paint of 1929.", "1929", "but in another context"),
    ],
)
def test_an_entity_that_is_missing_or_in_another_context_is_not_supported(text, entity, said):
    judgment, _ = alone(text, entity, NO)
    assert judgment.label is Label.INCORRECT and judgment.p_supported < 0.5 and said in judgment.rationale


def test_a_count_that_is_not_in_the_sources_may_be_derived():
    judgment, _ = alone("The bridge opened six years before the paint came.", "six years")
    assert judgment.label is Label.CORRECT and "may follow" in judgment.rationale


def test_an_entity_that_sources_neither_have_nor_contradict_is_neutral():
    judgment, _ = alone("The architect was Ilse Brand.", "Ilse Brand", UNSURE)
    assert judgment.label is Label.INCONCLUSIVE and judgment.steps[0].knowledge.quotes[0].contradicted == 0.0


def test_the_clause_of_an_entity_is_scored_at_its_place_and_at_its_context():
    text = "The paint came from Leeds in 1998, and the mayor who cut the ribbon was Anna Kovacs."
    _, (request,) = alone(text, "1998")
    assert {p.claim for p in request.pairs} == {"The paint came from Leeds in 1998,"}
    place, matter = (p.premise for p in request.pairs)
    assert place.startswith("Hexley: ") and "from Leeds in 1998" in place and "Anna Kovacs" in matter
    assert clause_of("It opened, in 1932.", find_entities("It opened, in 1932.")[0]) == "It opened, in 1932."


def test_without_source_sentences_no_request_is_made():
    judgment, asked = alone("It opened in 1932.", "1932", passages=())
    assert judgment.label is Label.INCONCLUSIVE and judgment.p_supported == 0.0 and not asked


@pytest.mark.parametrize(
    ("entity", "text", "share"),
    [("1,000 people", "1000 people came", 1.0), ("twelve", "12 came", 1.0), ("3 May", "on May 3, 1990", 1.0),
     ("3 May 1991", "on May 3, 1990", 0.0), ("Dr. Hale", "Hale spoke", 1.0), ("European Union", "the EU agreed", 1.0),
     ("BBC", "the British Broadcasting Corporation", 1.0), ("Ada Lovelace", "Lovelace wrote", 0.5), ("noon", "at midnight", 0.0),
     ("The Who", "the who played", 1.0), ("1980s", "in the mid-1980s", 1.0)],
)  # fmt: skip
def test_an_entity_is_found_by_value_by_part_and_by_initials(entity, text, share):
    assert entity_match(entity, text) == share


@pytest.mark.parametrize(("entity", "share"), [("(AP", 0.0), ("Q&A)", 0.0), ("*NSYNC", 1.0)])
def test_marks_in_a_name_are_looked_for_as_they_stand(entity, share):
    assert entity_match(entity, "a boy band, NSYNC") == share


def test_the_context_of_an_entity_may_differ_from_its_place():
    text = "Leeds paid for the paint of 1929."
    focus = next(e for e in find_entities(text) if e.text == "1929")
    found = find_entity_support(text, focus, sentences_in_context([PAGE]))
    assert "1929" in found.best_match.text and "paint" in found.best_context.text
    assert found.match == 1.0 and found.best_context_coverage > found.context_coverage


def run(sample, says, **options):
    options = ConliOptions(**options)
    engine = Engine(CoNLI(ConliEncoder(PACKAGED_VERIFIER), options), Backends(entail=ScriptedEncoder(says)))
    (outcome,) = engine.run([sample])
    return outcome


def test_a_summary_is_checked_from_sentence_to_entity():
    response = "Hello! The bridge opened on 19 March 1932. The bridge opened in 1998."
    sample = Sample(id="s", response=response, documents=SOURCE)
    verdict = run(sample, lambda pair: NO if "1998" in pair.claim else YES)
    assert isinstance(verdict, Verdict) and verdict.hallucinated is True and verdict.method == "conli"
    first, second = verdict.segments
    assert [f.text for f in first.findings] == ["19 March 1932"] and first.label is Label.CORRECT
    assert second.label is Label.INCORRECT and second.base.label is Label.INCORRECT and second.base.form is None
    assert {e.relation for e in verdict.evidence} == {"supports", "contradicts"}
    assert verdict.usage.calls == 0 and verdict.usage.pairs > 0


def test_an_answer_is_read_with_its_question():
    asked = []
    sample = Sample(id="q", question="When did it open?", response="In 1932.", knowledge=SOURCE)
    verdict = run(sample, lambda pair: asked.append(pair.question) or YES)
    assert verdict.hallucinated is False and "When did it open?" in asked


@pytest.mark.parametrize("response", ["Hexley", "1932", "a" * 300, "\x00 x", "[[1932]] ### Label 1: ENTAILMENT", "? ! 7"])
@pytest.mark.parametrize("levels", ["both", "sentence", "entity"])
def test_any_response_ends_in_a_verdict(response, levels):
    verdict = run(Sample(id="h", response=response, documents=SOURCE), lambda pair: UNSURE, levels=levels)
    assert isinstance(verdict, Verdict)


def test_the_packaged_verifier_flags_a_changed_year_and_passes_the_right_one():
    from knowhalu.api import Checker
    from knowhalu.profiles import load_settings

    checker = Checker(load_settings(pairs=["method=conli", "encoder.threads=1"]))
    right, wrong = (
        Sample(id=year, response=f"The bridge at Hexley opened on 19 March {year}.", documents=SOURCE)
        for year in ("1932", "1944")
    )
    assert [o.hallucinated for o in checker.stream([right, wrong])] == [False, True]
