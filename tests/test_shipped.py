"""The verifier that comes with the package, end to end: obvious cases are decided rightly, with evidence from the right place."""

import json
import re

import pytest

import knowhalu
from knowhalu import Reviser, Revision, Verdict
from knowhalu.api import Checker
from knowhalu.encoder.bases import name_of
from knowhalu.encoder.change import read_change
from knowhalu.encoder.models import MODELS, SHIPPED_FILES
from knowhalu.encoder.options import PACKAGED_VERIFIER
from knowhalu.io.fitted_files import FITTED_FILES, HASHED_FILES, WEIGHTS_HASH_FIELD
from knowhalu.methods.knowhalu.options import KnowHaluOptions
from knowhalu.settings import Settings
from knowhalu.training.recipes import RECIPES
from knowhalu.types import HallucinationKind, Label, Sample

TOWER = "The Eiffel Tower stands in Paris. It was finished in March 1889. Gustave Eiffel's company built it for the World's Fair."
REPORT = (
    "Councillors in Hexley voted 14 to 9 on Tuesday to close the Old Mill Bridge to cars for eighteen months. "
    "Buses and cyclists may still cross. The closure begins on 3 March. "
    "An engineering survey last autumn had found corrosion in two of its five spans."
)


@pytest.fixture(scope="module")
def checker():
    return Checker()


def check(checker: Checker, **fields) -> Verdict:
    outcome = checker.check(Sample.model_validate({"id": "1", **fields}))
    assert isinstance(outcome, Verdict), outcome
    return outcome


@pytest.mark.parametrize(
    ("question", "answer", "hallucinated"),
    [
        ("When was the Eiffel Tower finished?", "It was finished in March 1889.", False),
        ("When was the Eiffel Tower finished?", "It was finished in May 1921.", True),
        ("Where does the Eiffel Tower stand?", "In Paris", False),
        ("Where does the Eiffel Tower stand?", "In Lyon", True),
        ("When was the Eiffel Tower finished?", "It is a very famous tower.", True),
        ("When was the Eiffel Tower finished?", "I'm sorry, I don't know.", False),
    ],
)
def test_obvious_answers_are_decided_rightly(checker, question, answer, hallucinated):
    assert check(checker, question=question, response=answer, knowledge=TOWER).hallucinated is hallucinated


@pytest.mark.parametrize(
    ("summary", "hallucinated"),
    [
        ("Buses and cyclists may still cross. The closure begins on 3 March.", False),
        ("Buses and cyclists may not cross the Old Mill Bridge.", True),
        ("Buses and cyclists may still cross the bridge. The mayor of Brindle resigned in anger.", True),
    ],
)
def test_obvious_summaries_are_decided_rightly(checker, summary, hallucinated):
    verdict = check(checker, response=summary, documents=[REPORT])
    assert verdict.hallucinated is hallucinated


def test_evidence_stands_where_it_says(checker):
    verdict = check(checker, response="The closure begins on 3 March.", documents=[REPORT])
    assert verdict.label is Label.CORRECT and verdict.evidence
    for e in verdict.evidence:
        assert REPORT[e.document_start : e.document_start + len(e.quote)] == e.quote
    assert "3 March" in verdict.evidence[0].quote


def test_an_off_target_answer_is_told_from_a_wrong_one(checker):
    off = check(checker, question="When was the Eiffel Tower finished?", response="It is a very famous tower.", knowledge=TOWER)
    wrong = check(checker, question="When was the Eiffel Tower finished?", response="In May 1921.", knowledge=TOWER)
    assert (off.kind, wrong.kind) == (HallucinationKind.OFF_TARGET, HallucinationKind.FACTUAL)


def test_both_forms_are_judged_when_asked_for():
    both = Checker(Settings(knowhalu=KnowHaluOptions(second_opinion="always")))
    segment = check(both, response="The Eiffel Tower was finished in 1889.", knowledge=TOWER).segments[0]
    assert segment.supplement is not None and segment.supplement.steps[0].knowledge.triplets


def test_the_same_sample_gets_the_same_verdict_alone_and_among_others(checker):
    samples = [Sample(id=str(i), response=f"The tower was finished in {1880 + i}.", knowledge=(TOWER,)) for i in range(20)]
    alone = [checker.check(s) for s in samples]
    together = list(checker.stream(samples))
    for a, b in zip(alone, together, strict=True):
        assert isinstance(a, Verdict) and isinstance(b, Verdict)
        assert a.label is b.label and a.probability == pytest.approx(b.probability, abs=0.02)


def test_ten_thousand_words_are_checked_to_the_end(checker):
    response = "The Eiffel Tower stands in Paris. " * 1600 + "It was finished in 1921."
    verdict = check(checker, response=response, knowledge=TOWER)
    assert verdict.segments[-1].end == len(response) and verdict.hallucinated
    assert "".join(s.text for s in verdict.segments).count("Eiffel") == 1600


def test_the_module_checks_in_one_call():
    verdict = knowhalu.check(question="Where does the tower stand?", answer="In Paris", knowledge=TOWER)
    assert verdict.hallucinated is False
    failure = knowhalu.check(claim="The tower stands in Paris.")
    assert failure.stage == "retrieval" and "index" in failure.reason


def test_the_folder_is_small_complete_and_has_its_card():
    names = {p.name for p in PACKAGED_VERIFIER.iterdir()}
    assert names == {"README.md", *HASHED_FILES}
    assert sum(p.stat().st_size for p in PACKAGED_VERIFIER.iterdir()) <= 50_000_000
    card = (PACKAGED_VERIFIER / "README.md").read_text(encoding="utf-8")
    parts = re.findall(r"^\| ([^|]+) \| \d+% \| ([^|]+) \|$", card, re.MULTILINE)
    assert len(parts) > 10 and set(parts) <= {(r.name, r.licence) for r in RECIPES}, "a part that may not be shipped"
    assert set(json.loads((PACKAGED_VERIFIER / "judgment.json").read_text())["weights"]) == {
        f"{task}.{form}" for task in ("claim", "answer") for form in ("structured", "unstructured")
    }


@pytest.mark.skipif(not MODELS["base"].is_shipped, reason="the change of the verifier `base` is not packaged yet")
def test_the_change_of_base_is_small_complete_and_of_the_known_base():
    model = MODELS["base"]
    files = {path.name: path for path in model.shipped.iterdir()}
    assert files.keys() - {"README.md"} == set(SHIPPED_FILES)
    assert sum(path.stat().st_size for path in files.values()) <= 25_000_000
    assert name_of(read_change(files["change.safetensors"]).base) == model.base
    assert len({json.loads(files[name].read_text()).get(WEIGHTS_HASH_FIELD) for name in FITTED_FILES}) == 1


@pytest.fixture(scope="module")
def reviser():
    return Reviser()


def revise(reviser: Reviser, text: str) -> Revision:
    found = reviser.revise(Sample(id="1", response=text, documents=[REPORT]))
    assert isinstance(found, Revision), found
    return found


def test_a_wrong_date_is_replaced_and_an_invention_dropped(reviser):
    text = (
        "The closure begins on 5 April. Buses and cyclists may still cross the bridge.\n\nThe mayor of Brindle resigned in anger."
    )
    found = revise(reviser, text)
    assert found.revised == "The closure begins on 3 March. Buses and cyclists may still cross the bridge."
    assert {c.text.strip(): c.how for c in found.changes if c.how != "kept"} == {
        "The closure begins on 5 April.": "substituted", "The mayor of Brindle resigned in anger.": "dropped",
    }  # fmt: skip
    change = found.changes[0]
    for evidence, said in ((change.evidence, found.original), (change.support, found.revised)):
        assert evidence and "3 March" in evidence[0].quote
        assert said[evidence[0].response_start : evidence[0].response_end] in said
        assert REPORT[evidence[0].document_start :].startswith(evidence[0].quote)


def test_what_is_supported_is_left_alone_and_what_is_not_at_all_is_refused(reviser):
    assert revise(reviser, "Buses and cyclists may still cross.").status == "unchanged"
    assert revise(reviser, "The mayor of Brindle resigned in anger.").status == "refused"


@pytest.mark.parametrize("text", ["x", "...!", "\u202e\x00 ###", "a " * 400, "1. 2. 3."])
def test_odd_texts_are_revised_or_refused(reviser, text):
    assert revise(reviser, text).status in ("revised", "unchanged", "refused")


def test_the_module_revises_in_one_call():
    found = knowhalu.revise(summary="The closure begins on 5 April.", document=REPORT)
    assert found.revised == "The closure begins on 3 March."
    with pytest.raises(knowhalu.KnowHaluError, match="response, answer, summary or claim"):
        knowhalu.revise(document=REPORT)
