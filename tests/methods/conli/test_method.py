"""CoNLI's algorithm with a scripted reasoner: both levels, one level, merging, sources, and skipped sentences."""

import pytest

from knowhalu.methods.conli.method import CoNLI
from knowhalu.methods.options import ConliOptions
from knowhalu.requests import Search
from knowhalu.results import Verdict
from knowhalu.text.entities import find_entities
from knowhalu.types import Document, HallucinationKind, Judgment, Knowledge, Label, Passage, Query, Quote, Relation, Sample, Step

SOURCE = "The bridge opened in 1932. It is 503 metres long. Anna Kovacs cut the ribbon in Hexley."
YES, NO, OPEN = Label.CORRECT, Label.INCORRECT, Label.INCONCLUSIVE


class Script:
    """Judges as told by sentence, or by (sentence, entity); what it was not told is entailed with P 0.9."""

    def __init__(self, **told):
        self.told = told.get("told", {})
        self.asked = []

    def detector(self, name):
        assert name == "rules"
        return find_entities

    def infer(self, sample, hypotheses, passages):
        yield from ()
        self.asked.append((hypotheses, passages))
        return [self._judgment(h, passages) for h in hypotheses]

    def _judgment(self, hypothesis, passages):
        text, focus = hypothesis
        label, p = self.told.get((text, focus.text) if focus else text, (YES, 0.9))
        quote = Quote(passage=passages[0].id, text=passages[0].text[:26], start=0, end=26,
                      supported=p, contradicted=1 - p if label is NO else 0.0)  # fmt: skip
        step = Step(thought="", query=Query(specific=text, general=""), passages=tuple(passages),
                    knowledge=Knowledge(form="unstructured", quotes=(quote,), text="known"))  # fmt: skip
        said = f"{'entity' if focus else 'sentence'} {label}"
        return Judgment(label=label, confidence=max(p, 1 - p), p_supported=p, rationale=said, steps=(step,))

    def sentences(self):
        return [[h.text for h in hypotheses] for hypotheses, _ in self.asked if hypotheses[0].focus is None]

    def entities(self):
        return [[h.focus.text for h in hypotheses] for hypotheses, _ in self.asked if hypotheses[0].focus]


def check(response, told=None, source=SOURCE, question=None, found=(), **options):
    """Run a check; searches are answered with the passages `found`. Returns verdict, script and searches."""
    script, searches = Script(told=told or {}), []
    sample = Sample(id="x", response=response, question=question, documents=[source] if source else ())
    conversation, reply = CoNLI(script, ConliOptions(**options)).check(sample), None
    try:
        while True:
            request = conversation.send(reply)
            assert isinstance(request, Search)
            searches.append(request)
            reply = [list(found) for _ in request.queries]
    except StopIteration as end:
        verdict: Verdict = end.value
        return verdict, script, searches


FIRST, SECOND = "The bridge opened in 1932.", "Anna Kovacs cut the ribbon in Hexley."


def test_a_text_passes_if_all_sentences_and_all_entities_do():
    verdict, script, _ = check(f"{FIRST} {SECOND}", {(SECOND, "Hexley"): (YES, 0.7)})
    assert (verdict.label, verdict.hallucinated, verdict.kind) == (YES, False, None)
    assert verdict.probability == pytest.approx(0.3)
    assert verdict.reason == "“Hexley”: entity CORRECT"
    assert script.sentences() == [[FIRST], [SECOND]]
    assert script.entities() == [["1932"], ["Anna Kovacs", "Hexley"]]
    assert {e.relation for e in verdict.evidence} == {"supports"}


@pytest.mark.parametrize(("label", "relation"), [(NO, Relation.CONTRADICTION), (OPEN, Relation.NEUTRAL)])
def test_contradicted_and_neutral_sentences_are_hallucinated_without_checking_entities(label, relation):
    verdict, script, _ = check(f"{FIRST} {SECOND}", {SECOND: (label, 0.2)})
    assert (verdict.label, verdict.hallucinated, verdict.kind) == (NO, True, HallucinationKind.FACTUAL)
    assert [s.label for s in verdict.segments] == [YES, NO]
    assert verdict.segments[1].base.label is label and not verdict.segments[1].findings
    assert verdict.probability == pytest.approx(0.8) and verdict.reason == f"sentence {label}"
    assert script.entities() == [["1932"]]
    assert any(e.relation == "contradicts" for e in verdict.evidence) == (label is NO)


@pytest.mark.parametrize(("label", "relation"), [(NO, Relation.CONTRADICTION), (OPEN, Relation.NEUTRAL)])
def test_one_entity_fails_a_sentence_that_passed_as_a_whole(label, relation):
    verdict, _, _ = check(f"{FIRST} {SECOND}", {(SECOND, "Hexley"): (label, 0.1)})
    segment = verdict.segments[1]
    assert verdict.hallucinated is True and segment.label is NO and segment.base.label is YES
    good, bad = segment.findings
    assert (good.label, bad.label, bad.relation, bad.unit, bad.type) == (YES, NO, relation, "entity", "name")
    assert segment.probability == verdict.probability == pytest.approx(0.9)
    assert verdict.reason == f"“Hexley”: entity {label}"


def test_sentences_and_entities_have_exact_offsets_in_the_response():
    response = f"  Hello!\n- {FIRST}\n- {SECOND}"
    verdict, _, _ = check(response, {(SECOND, "Hexley"): (NO, 0.1)})
    assert [response[s.start : s.end] for s in verdict.segments] == [FIRST, SECOND] == [s.text for s in verdict.segments]
    found = [f for s in verdict.segments for f in s.findings]
    assert [response[f.start : f.end] for f in found] == ["1932", "Anna Kovacs", "Hexley"]
    (contradiction,) = [e for e in verdict.evidence if e.relation == "contradicts"]
    assert response[contradiction.response_start : contradiction.response_end] == "Hexley"


def test_sentences_alone_ask_for_no_entity():
    verdict, script, _ = check(f"{FIRST} {SECOND}", {(SECOND, "Hexley"): (NO, 0.1)}, levels="sentence")
    assert verdict.hallucinated is False and script.entities() == []


def test_entities_alone_judge_every_sentence_that_has_one():
    response = f"{FIRST} It is long. {SECOND}"
    verdict, script, _ = check(response, {SECOND: (NO, 0.1), (SECOND, "Hexley"): (YES, 0.6)}, levels="entity")
    assert verdict.hallucinated is False and script.sentences() == []
    assert [u.text for u in verdict.skipped] == ["It is long."] and "no entity" in verdict.skipped[0].reason
    assert verdict.segments[1].base.rationale == "entity CORRECT" and verdict.probability == pytest.approx(0.4)


def test_skipped_sentences_are_in_the_verdict_with_their_reason():
    response = f"Hello there! {FIRST} Was it raining? I hope this helps!"
    verdict, script, _ = check(response)
    assert [u.text for u in verdict.skipped] == ["Hello there!", "Was it raining?", "I hope this helps!"]
    assert [response[u.start : u.end] for u in verdict.skipped] == [u.text for u in verdict.skipped]
    assert script.sentences() == [[FIRST]]
    kept, _, _ = check(response, select=False)
    assert len(kept.segments) == 4 and not kept.skipped


def test_a_text_without_claims_is_not_decided():
    verdict, script, searches = check("Hello! How are you?")
    assert (verdict.label, verdict.hallucinated, verdict.probability) == (OPEN, None, 0.5)
    assert "nothing to check" in verdict.reason and len(verdict.skipped) == 2
    assert not script.asked and not searches


def test_short_sources_are_read_whole_and_long_ones_by_chunks():
    long = " ".join([SOURCE] * 20)
    chunk = Passage(id="c", document="document-1", text=SOURCE, end=len(SOURCE))
    _, script, searches = check(f"{FIRST} {SECOND}", source=long, found=[chunk], source_words=80, question="What happened?")
    assert [s.queries for s in searches] == [(f"What happened? {FIRST}",), (f"What happened? {SECOND}",)]
    assert all(s.documents and s.k == 2 for s in searches)
    assert {p.id for _, passages in script.asked for p in passages} == {"c"}
    assert check(FIRST)[2] == []


def test_without_sources_an_index_is_searched_for_each_sentence():
    page = Passage(id="p", title="Bridge", text=SOURCE, end=len(SOURCE))
    verdict, _, searches = check(f"{FIRST} {SECOND}", source=None, found=[page], passages=5)
    assert [(s.queries, s.k, s.documents) for s in searches] == [((FIRST,), 5, ()), ((SECOND,), 5, ())]
    assert verdict.hallucinated is False


def test_unmentioned_text_is_inconclusive_without_a_request_and_incorrect_in_a_summary():
    verdict, script, _ = check(FIRST, source=None)
    assert (verdict.label, verdict.hallucinated, verdict.probability) == (OPEN, None, 0.5)
    assert not script.asked and verdict.segments[0].base.confidence_source == "none"
    blank, asked, _ = check(FIRST, source=" \n ")
    assert (blank.hallucinated, blank.probability) == (True, 1.0) and not asked.asked


def test_batches_share_their_passages():
    five = [f"The bridge number {i} opened in 193{i}." for i in range(5)]
    _, script, _ = check(" ".join(five), batched=True, batch_size=2)
    assert [len(s) for s in script.sentences()] == [2, 2, 1]
    long = " ".join([SOURCE] * 20)
    chunk = Passage(id="c", document="document-1", text=SOURCE, end=len(SOURCE))
    _, _, searches = check(" ".join(five), source=long, found=[chunk], source_words=160, batched=True, batch_size=2)
    assert [len(s.queries) for s in searches] == [2, 2, 1] and [s.k for s in searches] == [2, 2, 4]


def test_a_long_response_makes_a_bounded_number_of_requests():
    response = " ".join(f"Bridge {i} opened in 1932 and is 503 metres long." for i in range(1000))
    _, script, _ = check(response, batched=True, batch_size=50)
    assert len(script.sentences()) == 20 and len(script.entities()) == 20


@pytest.mark.parametrize("response", ["Hexley", "1932", "é", "### Label 1:\nENTAILMENT", "[[x]] ]] [[", "\x00 a", "。a"])
def test_any_text_ends_in_a_verdict(response):
    verdict, _, _ = check(response)
    assert all(response[s.start : s.end] == s.text for s in (*verdict.segments, *verdict.skipped))
    assert verdict.segments or verdict.skipped


def test_the_documents_of_a_sample_are_read_with_their_titles():
    script = Script()
    sample = Sample(id="x", response=FIRST, knowledge=("k",), documents=(Document(id="d", title="T", text=SOURCE),))
    with pytest.raises(StopIteration):
        next(CoNLI(script).check(sample))
    assert [(p.id, p.title) for p in script.asked[0][1]] == [("knowledge-1", ""), ("d", "T")]


@pytest.mark.parametrize("source", [SOURCE, None])
def test_the_question_may_be_left_out_of_queries_and_hypotheses(source):
    asked = []

    class Noting(Script):
        def infer(self, sample, hypotheses, passages):
            asked.append(sample.question)
            return (yield from super().infer(sample, hypotheses, passages))

    for question in (True, False):
        sample = Sample(id="x", response=FIRST, question="When did it open?", documents=[source] if source else ())
        conversation, reply = CoNLI(Noting(), ConliOptions(question=question, levels="sentence")).check(sample), None
        found = [Passage(id="p", text=SOURCE)]
        try:
            while True:
                request = conversation.send(reply)
                assert request.queries == ((f"When did it open? {FIRST}" if question else FIRST),)
                reply = [found]
        except StopIteration as end:
            assert (end.value.task, end.value.label) == (sample.task, YES)
    assert asked == ["When did it open?", None]


def test_a_short_answer_is_checked_without_its_question_too():
    sample = Sample(id="x", response="Paris.", question="Where is it?", documents=[SOURCE])
    script = Script()
    with pytest.raises(StopIteration):
        next(CoNLI(script, ConliOptions(question=False)).check(sample))
    assert script.sentences() == [["Paris."]]
