"""KnowHalu by an LLM, with scripted replies: worked examples from the question to the verdict, every stage visible."""

import pytest

from knowhalu.results import Failure
from knowhalu.types import NO_INFORMATION, HallucinationKind, KnowledgeForm, Label, Sample, Task
from tests.support.multi_hop import HOPS, PAGES, QUESTION, SAID, WRONG, wrong_answer
from tests.support.thinking import BOTH, Hop, Thinker, check


def test_a_multi_hop_contradiction_shows_every_stage():
    thinker = Thinker(HOPS, SAID, WRONG, entity="Berlin")
    verdict = check(thinker, wrong_answer(), PAGES)
    assert (verdict.label, verdict.hallucinated, verdict.kind) == (Label.INCORRECT, True, HallucinationKind.FACTUAL)
    assert verdict.extraction.entity == "Berlin" and verdict.extraction.asked_for == "one thing"
    assert verdict.reason == SAID
    (segment,) = verdict.segments
    first, second = segment.base.steps
    assert [s.thought for s in (first, second)] == [h.thought for h in HOPS]
    assert [s.query.specific for s in (first, second)] == [h.specific for h in HOPS]
    assert [s.query.general for s in (first, second)] == [h.general for h in HOPS]
    assert {p.id for p in first.passages} >= {"Metropolis"} and {p.id for p in second.passages} >= {"Fritz Lang"}
    assert [s.knowledge.text for s in (first, second)] == [h.knowledge for h in HOPS]
    assert segment.base.confidence == pytest.approx(0.998)
    assert verdict.usage.calls == len(thinker.asked) == 9
    assert thinker.stages() == [
        "extract", "entity", "query", "knowledge", "query", "knowledge", "query", "judge", "label",
    ]  # fmt: skip


def test_a_contradiction_is_quoted_from_the_knowledge_that_decided():
    verdict = check(Thinker(HOPS, SAID, WRONG), wrong_answer(), PAGES)
    (evidence,) = verdict.evidence
    assert (evidence.relation, evidence.passage) == ("contradicts", "Fritz Lang")
    assert evidence.quote == "He was born in Vienna in 1890." == PAGES["Fritz Lang"][evidence.start : evidence.end]
    assert "Berlin" in wrong_answer().response[evidence.response_start : evidence.response_end]
    assert evidence.probability == pytest.approx(0.998)


def test_a_correct_answer_is_supported_by_the_knowledge_of_all_steps():
    right = {"CORRECT": 0.999, "INCORRECT": 0.0005, "INCONCLUSIVE": 0.0005}
    sample = Sample(id="r", question=QUESTION, response="The director of Metropolis was born in Vienna.")
    verdict = check(Thinker(HOPS, "Knowledge 2 says Vienna.", right), sample, PAGES)
    assert verdict.hallucinated is False and verdict.probability == pytest.approx(0.00075)
    assert {e.passage for e in verdict.evidence} == {"Metropolis", "Fritz Lang"}
    assert {e.relation for e in verdict.evidence} == {"supports"}


def test_structured_knowledge_is_parsed_and_each_triplet_names_its_quote():
    verdict = check(Thinker(HOPS, SAID, WRONG), wrong_answer(), PAGES, base_form="structured")
    knowledge = verdict.segments[0].base.steps[1].knowledge
    facts = [(t.subject, t.predicate, t.object) for t in knowledge.triplets]
    assert facts == [("Fritz Lang", "was born in", "Vienna"), ("Fritz Lang", "was born in", "1890")]
    assert [knowledge.quotes[t.quote].text for t in knowledge.triplets] == ["He was born in Vienna in 1890."] * 2
    assert knowledge.text == "(Fritz Lang, was born in, Vienna) (Fritz Lang, was born in, 1890)"


def test_missing_knowledge_makes_a_claim_inconclusive_without_a_request():
    thinker = Thinker([Hop("Look it up.", "Did Ilse Brand play the lute?", "What did Ilse Brand play?")])
    verdict = check(thinker, Sample(id="m", response="Ilse Brand played the lute."), PAGES)
    assert (verdict.label, verdict.hallucinated, verdict.task) == (Label.INCONCLUSIVE, None, Task.CLAIM)
    base, other = verdict.segments[0].base, verdict.segments[0].supplement
    assert base.steps[0].knowledge.text == NO_INFORMATION and other.form is KnowledgeForm.STRUCTURED
    assert (base.confidence, base.confidence_source) == (0.0, "none")
    assert "judge" not in thinker.stages()


def test_unsupported_knowledge_is_kept_apart_and_does_not_count():
    invented = Hop("Look.", "Was Fritz Lang born in Berlin?", "Where was Fritz Lang born?",
                   "Fritz Lang was born in Vienna. His brother Anton kept bees near Salzburg.")  # fmt: skip
    thinker = Thinker([invented], "Knowledge 1 says Vienna.", WRONG)
    knowledge = check(thinker, wrong_answer(), PAGES).segments[0].base.steps[0].knowledge
    assert knowledge.text == "Fritz Lang was born in Vienna."
    assert knowledge.unsupported == "His brother Anton kept bees near Salzburg."
    assert "bees" not in thinker.requests("judge")[0].prompt


def test_the_judge_sees_queries_and_knowledge_and_no_thoughts():
    thinker = Thinker(HOPS, SAID, WRONG)
    check(thinker, wrong_answer(), PAGES)
    (request,) = thinker.requests("judge")
    tail = request.prompt[request.fixed :]
    assert "Thought" not in tail and "First find the director" not in tail
    assert "### Specific query 2: Was Fritz Lang born in Berlin?" in tail
    assert "### Knowledge 2: Fritz Lang was born in Vienna in 1890." in tail
    assert tail.endswith("### Judgment:")


def test_prompts_of_a_check_grow_only_at_the_end():
    thinker = Thinker(HOPS, SAID, WRONG)
    check(thinker, wrong_answer(), PAGES)
    first, second, third = (r.prompt for r in thinker.requests("query"))
    assert second.startswith(first) and third.startswith(second)
    (judge,), (label,) = thinker.requests("judge"), thinker.requests("label")
    assert label.prompt == judge.prompt
    assert label.prefill == f" {SAID}\n### Label:\n" and label.choices == ("CORRECT", "INCORRECT", "INCONCLUSIVE")
    (extract,), (entity,) = thinker.requests("extract"), thinker.requests("entity")
    assert entity.prompt == extract.prompt
    assert entity.prefill == " one thing\n### Reason: The answer gives a thing.\n### Entity:"


def test_the_fixed_part_is_the_same_for_every_sample():
    one, two = Thinker(HOPS, SAID, WRONG), Thinker(HOPS, SAID, WRONG)
    check(one, wrong_answer(), PAGES)
    check(two, Sample(id="x", question="Who?", response="Nobody at all."), PAGES)
    for stage in ("extract", "query", "knowledge", "judge"):
        a, b = one.requests(stage)[0], two.requests(stage)[0]
        assert a.fixed == b.fixed > 1500 and a.prompt[: a.fixed] == b.prompt[: b.fixed]


@pytest.mark.parametrize(("formulation", "heading"), [("specific", "Specific"), ("general", "General")])
def test_one_formulation_alone_is_asked_for_and_searched(formulation, heading):
    def one(request):
        number = request.prompt.rpartition("Thought ")[2].removesuffix(":")
        return f" Look.\n### {heading} query {number}: {'Done' if number == '2' else 'Where was Fritz Lang born?'}"

    thinker = Thinker(raw={("query", 0): one, ("query", 1): one})
    thinker.raw[("knowledge", 0)] = " Fritz Lang was born in Vienna."
    verdict = check(
        thinker, Sample(id="f", response="Fritz Lang was born in Vienna."), PAGES, formulation=formulation, delta1=0.5
    )
    (step,) = verdict.segments[0].base.steps
    assert getattr(step.query, formulation) == "Where was Fritz Lang born?"
    other = {"specific": "General query", "general": "Specific query"}[formulation]
    assert all(other not in r.prompt for r in thinker.llm.history)
    assert verdict.usage.searches == 1


DOCUMENT = "Vienna lies on the Danube."
QA_ROW = Sample(id="r", question="Where is Vienna?", response="On the Danube.", documents=DOCUMENT)


@pytest.mark.parametrize(("sample", "options", "heading"), [
    (Sample(id="s", response=DOCUMENT, documents=DOCUMENT), {"segmentation": "words"}, "Summary"),
    (Sample(id="d", response=DOCUMENT, documents=DOCUMENT), {}, "Claim"),
    (QA_ROW, {}, "Answer"),
    (Sample(id="c", response=DOCUMENT), {}, "Claim"),
])  # fmt: skip
def test_every_task_has_its_own_demonstrations(sample, options, heading):
    thinker = Thinker([Hop("Look.", "Does Vienna lie on the Danube?", "Where does Vienna lie?", DOCUMENT)])
    verdict = check(thinker, sample, {"Vienna": DOCUMENT}, delta1=0.5, **options)
    assert verdict.hallucinated is False
    prompt = thinker.requests("query")[0].prompt
    assert prompt.count(f"### {heading}: ") >= 6 and f"### {heading}: {sample.response}" in prompt


def test_a_claim_with_documents_is_not_called_a_piece_of_a_summary():
    thinker = Thinker([Hop("Look.", "Does Vienna lie on the Danube?", "Where does Vienna lie?", DOCUMENT)])
    check(thinker, Sample(id="d", response=DOCUMENT, documents=DOCUMENT), {"Vienna": DOCUMENT}, delta1=0.5)
    assert not any("summary" in r.prompt.lower() for r in thinker.llm.history)
    several = Sample(id="s", response=f"{DOCUMENT} It is old.", documents=DOCUMENT)
    thinker = Thinker([Hop("Look.", "Does Vienna lie on the Danube?", "Where does Vienna lie?", DOCUMENT)])
    check(thinker, several, {"Vienna": DOCUMENT}, delta1=0.5)
    assert "a piece of a summary" in thinker.requests("query")[0].prompt


@pytest.mark.parametrize(
    "told", ["Answer: On the Rhine.", "**Judgment:** CORRECT", "### Answer: On the Rhine.", "### Anything: x"]
)
def test_a_query_ends_at_the_next_heading(told):
    said = f" Look.\n### Specific query 1: Is it so?\n### General query 1: Where is it?\n{told}"
    thinker = Thinker(raw={("query", 0): said, ("knowledge", 0): f" {DOCUMENT}"})
    verdict = check(thinker, Sample(response=DOCUMENT), {"Vienna": DOCUMENT}, delta1=0.5)
    assert verdict.segments[0].base.steps[0].query.general == "Where is it?"


def test_nothing_is_asked_again_in_the_second_form_where_retrieval_found_nothing():
    thinker = Thinker(HOPS, SAID, WRONG)
    verdict = check(thinker, wrong_answer(), {})
    assert verdict.segments[0].supplement is None
    assert thinker.stages().count("query") == 3 and "knowledge" not in thinker.stages()
    assert check(Thinker(HOPS, SAID, WRONG), wrong_answer(), {}, **BOTH).segments[0].forms_agree is True


def test_an_inconclusive_detail_of_a_summary_counts_as_incorrect():
    unsure = {"CORRECT": 0.2, "INCORRECT": 0.1, "INCONCLUSIVE": 0.7}
    hop = Hop("Look.", "Does Vienna lie on the Rhine?", "Where does Vienna lie?", "Vienna lies on the Danube.",
              "(Vienna, lies on, the Danube)")  # fmt: skip
    sample = Sample(id="s", response="Vienna lies on the Rhine.", documents="Vienna lies on the Danube.")
    verdict = check(Thinker([hop], choices=unsure), sample, {"Vienna": "Vienna lies on the Danube."})
    assert verdict.hallucinated is True and verdict.probability == pytest.approx(0.8)


def test_a_repeated_query_ends_the_chain():
    again = Hop("Once more.", 'WHO directed  the film "Metropolis"', "Another formulation?")
    verdict = check(Thinker([HOPS[0], again, HOPS[1]], SAID, WRONG), wrong_answer(), PAGES)
    assert len(verdict.segments[0].base.steps) == 1


def test_the_step_cap_keeps_the_evidence_for_the_judge():
    thinker = Thinker(HOPS, SAID, WRONG)
    verdict = check(thinker, wrong_answer(), PAGES, max_steps=1)
    assert len(verdict.segments[0].base.steps) == 1
    assert "### Knowledge 1: The film Metropolis was directed by Fritz Lang." in thinker.requests("judge")[0].prompt


def test_the_system_prompt_of_the_options_reaches_every_request():
    thinker = Thinker(HOPS, SAID, WRONG)
    check(thinker, wrong_answer(), PAGES, llm={"system": "Be strict.", "seed": 7})
    assert {(r.system, r.seed, r.temperature) for r in thinker.llm.history} == {("Be strict.", 7, 0.0)}


def test_thresholds_depend_on_the_source_and_settings_override_them():
    unsure = {"CORRECT": 0.9, "INCORRECT": 0.06, "INCONCLUSIVE": 0.04}
    doubted = check(Thinker(HOPS, choices=unsure), wrong_answer(), PAGES)
    trusted = check(Thinker(HOPS, choices=unsure), wrong_answer(), PAGES, delta1=0.8)
    assert doubted.segments[0].supplement is not None and trusted.segments[0].supplement is None


def test_both_forms_agree_or_not():
    thinker = Thinker(HOPS, SAID, WRONG)
    assert check(thinker, wrong_answer(), PAGES).segments[0].forms_agree is None
    assert check(thinker, wrong_answer(), PAGES, **BOTH).segments[0].forms_agree is True


def test_a_stage_that_cannot_be_read_is_a_failure_with_the_raw_reply():
    thinker = Thinker(raw={("judge", 0): "  ", ("judge", 1): "..."}, hops=HOPS)
    failure = check(thinker, wrong_answer(), PAGES)
    assert isinstance(failure, Failure)
    assert (failure.stage, failure.reply) == ("judge", "...") and "no reasons" in failure.reason


def test_given_knowledge_is_read_as_it_is_at_every_step():
    thinker = Thinker(HOPS, SAID, WRONG)
    sample = wrong_answer().model_copy(update={"knowledge": (PAGES["Metropolis"], PAGES["Fritz Lang"])})
    verdict = check(thinker, sample)
    assert verdict.hallucinated is True and verdict.usage.searches == 0
    first, second = (r.prompt[r.fixed :] for r in thinker.requests("knowledge"))
    assert first.partition("### Specific query")[0] == second.partition("### Specific query")[0]  # its cache lasts for the check
    cited = [q.text for q in verdict.segments[0].base.steps[1].knowledge.quotes]
    assert cited == ["He was born in Vienna in 1890.", "Fritz Lang was a film director."]
    assert [e.quote for e in verdict.evidence] == ["He was born in Vienna in 1890."]  # the other only says who he is
