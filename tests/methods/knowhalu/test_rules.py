"""Rules beside the verifier: rows of tables, roles and names of code decide against what it reads."""

import pytest

from knowhalu.methods.knowhalu.method import KnowHalu
from knowhalu.requests import EntailmentPair, Probabilities
from knowhalu.results import Verdict
from knowhalu.types import Label, Sample
from tests.methods.knowhalu.test_encoder import NO, OPEN, WEIGHTS, YES, drive, thinking_by

ROOMS = "| Room | Seats | Rent |\n|---|---|---|\n| Attic | 12 | $35 |\n| Cellar | 30 | $90 |"
ROLES = "Vera Holt beat Ada Quist in the final."
DOCS = "`fetch(url, tries=3)` loads a page, in at most `tries` attempts."


def checked(
    claim: str, source: str, says: Probabilities, folder, question: str | None = None
) -> tuple[Verdict, list[EntailmentPair]]:
    """Check a claim; returns the verdict and all pairs that the verifier read."""
    sample = Sample(id="1", response=claim, knowledge=source, question=question)
    verdict, requests = drive(KnowHalu(thinking_by(WEIGHTS, folder)), sample, lambda p: says)
    return verdict, [p for r in requests for p in getattr(r, "pairs", ())]


@pytest.mark.parametrize(
    ("claim", "source", "told"),
    [
        ("The Attic has 30 seats.", ROOMS, "“seats 12” in the row of the table “Attic: seats 12, rent $35.”"),
        ("Vera Holt was beaten by Ada Quist.", ROLES, "the roles of the claim the other way round: “Vera Holt beat"),
        ("fetch(url, retries=5)", DOCS, "the sources do not mention “retries”, but “tries”"),
    ],
)
def test_a_rule_refutes_what_the_verifier_supports(claim, source, told, tmp_path):
    verdict, _ = checked(claim, source, YES, tmp_path)
    assert verdict.label is Label.INCORRECT and told in verdict.segments[0].base.rationale


@pytest.mark.parametrize(
    ("claim", "source", "told"),
    [
        ("The Attic has 12 seats.", ROOMS, "supported by the row of the table “Attic"),
        ("Ada Quist was beaten by Vera Holt.", ROLES, "says the same from the other side"),
        ("```\npage = fetch(address, tries=5)\n```", DOCS, "the sources have “fetch”, “tries”: “fetch(url"),
        ("Vera Holt beat Ada Quist in the final.", f"It rained. {ROLES}", "says so word for word: “Vera Holt beat"),
    ],
)
def test_a_rule_confirms_what_the_verifier_refutes(claim, source, told, tmp_path):
    verdict, _ = checked(claim, source, NO, tmp_path)
    assert verdict.label is Label.CORRECT and told in verdict.segments[0].base.rationale


@pytest.mark.parametrize(("question", "label"), [("Who won the final?", "CORRECT"), ("Who won the Ostermoor cup?", "INCORRECT")])
def test_a_repeated_sentence_answers_only_a_question_of_its_own_names(question, label, tmp_path):
    verdict, _ = checked(ROLES, ROLES, NO, tmp_path, question)
    assert verdict.label == label


@pytest.mark.parametrize(("answer", "label"), [("No.", Label.CORRECT), ("Yes.", Label.INCORRECT)])
def test_a_denial_is_right_where_the_row_contradicts_what_it_denies(answer, label, tmp_path):
    verdict, _ = checked(answer, ROOMS, OPEN, tmp_path, "Does the Attic have 30 seats?")
    assert verdict.label is label


def test_only_the_named_row_is_read_as_a_window(tmp_path):
    _, pairs = checked("The Attic has 12 seats.", ROOMS, OPEN, tmp_path)
    assert "Attic: seats 12, rent $35." in {p.premise for p in pairs}
    assert not any("Attic" in p.premise and "Cellar" in p.premise for p in pairs)


def test_text_that_is_nearer_than_the_table_is_read_as_it_is(tmp_path):
    source = f"In winter the Attic has 30 seats for the choir.\n\n{ROOMS}"
    verdict, _ = checked("In winter the Attic has 30 seats for the choir.", source, YES, tmp_path)
    assert verdict.label is Label.CORRECT


def test_the_verifier_reads_a_call_without_the_values_of_its_writer(tmp_path):
    _, pairs = checked("page = fetch(address, tries=5)", DOCS, YES, tmp_path)
    assert {p.claim for p in pairs} == {"fetch(tries)"}


STRIKE = "The dock strike began on 4 May 2019. The dock strike ended on 25 May 2019."


@pytest.mark.parametrize(
    ("question", "said", "label"),
    [
        ("How long did the dock strike last?", "The dock strike lasted three weeks.", Label.CORRECT),
        (None, "The dock strike lasted three weeks.", Label.CORRECT),
        (None, "The dock strike lasted three weeks and cost the town 80 jobs.", Label.INCORRECT),
        (None, "The dock strike lasted three weeks because the foreman insulted every single crane driver.", Label.INCORRECT),
        (None, "The dock strike lasted five weeks.", Label.INCORRECT),
    ],
)
def test_a_calculation_confirms_a_claim_that_says_little_else(question, said, label, tmp_path):
    verdict, _ = checked(said, STRIKE, NO, tmp_path, question)
    assert verdict.label is label
    told = verdict.segments[0].base.rationale
    assert ("its values give 25 May 2019 - 4 May 2019 = 3 weeks" in told) == (label is Label.CORRECT)


@pytest.mark.parametrize(
    ("question", "label"), [("How do I load a page?", Label.CORRECT), ("Who owns the mill?", Label.INCORRECT)]
)
def test_a_call_is_confirmed_where_its_sentence_is_about_the_question(question, label, tmp_path):
    verdict, _ = checked("Run `fetch(address, tries=5)`.", DOCS, NO, tmp_path, question)
    assert verdict.label is label
