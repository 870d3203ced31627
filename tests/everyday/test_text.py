"""Claims, languages and questions of all generated variants: what is left to check, what cannot be read, what rules can see."""

from itertools import chain

import pytest

from knowhalu.methods.knowhalu.off_target import extract_entity
from knowhalu.text.blocks import read_units
from knowhalu.text.claims import NoClaim, find_claims
from knowhalu.text.language import is_foreign
from knowhalu.text.questions import is_checkable
from tests.everyday.cases import MAKERS
from tests.everyday.kinds import KINDS, Case, Expected, case_pairs

SEEDS = 4
OPEN = ('definitions answer "what is"', "open questions")
CLOSED = ("yes/no", "crossed facts")


def cases_of(kind: str) -> list[Case]:
    """Return generated cases of all varieties of a kind."""
    return list(chain.from_iterable(p for seed in range(SEEDS) for p in case_pairs(kind, len(MAKERS[kind]), seed)))


def claims_of(text: str) -> tuple[str, ...]:
    return tuple(c.text for c in find_claims(text) if c.no_claim is None)


@pytest.mark.parametrize("kind", KINDS)
def test_exactly_the_claims_are_left_to_check(kind):
    wrong = [
        (c.response, claims_of(c.response), c.claims) for c in cases_of(kind) if c.claims not in (None, claims_of(c.response))
    ]
    assert wrong == []


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_claims_something_leaves_a_claim(kind):
    says = [c for c in cases_of(kind) if c.expected is not Expected.NOTHING and kind != "refusals"]
    assert [c.response for c in says if not claims_of(c.response)] == []


def test_a_refusal_is_no_claim_and_an_invented_answer_is_one():
    refused = [c for c in cases_of("refusals") if "source has" not in c.variety]
    found = [(c.expected is Expected.FAITHFUL, {x.no_claim for x in find_claims(c.response)}) for c in refused]
    told = [c.response for c, (right, reasons) in zip(refused, found, strict=True) if right is (None in reasons)]
    assert told == []
    assert all(NoClaim.REFUSAL in reasons for right, reasons in found if right)


@pytest.mark.parametrize("kind", KINDS)
def test_every_character_of_a_claim_has_its_place(kind):
    for case in cases_of(kind):
        for unit in chain(read_units(case.response), *map(read_units, case.documents)):
            assert len(unit.offsets) == len(unit.text)
            assert list(unit.offsets) == sorted(unit.offsets)


@pytest.mark.parametrize("kind", KINDS)
def test_only_other_languages_are_foreign(kind):
    for case in cases_of(kind):
        if case.expected is Expected.FOREIGN:
            assert all(map(is_foreign, case.documents)), case.documents
        else:
            assert [t for t in (case.response, case.question or "", *case.documents) if is_foreign(t)] == []


@pytest.mark.parametrize("kind", (*OPEN, *CLOSED))
def test_rules_see_the_answers_to_closed_questions_only(kind):
    asked = {c.question for c in cases_of(kind) if c.question}
    assert [q for q in sorted(asked) if is_checkable(q) is (kind in OPEN)] == []


@pytest.mark.parametrize(
    "kind", [k for k in KINDS if k not in (*OPEN, "refusals", "tables", "code", "small talk claims nothing")]
)
def test_no_answer_to_a_checkable_question_is_off_target(kind):
    asked = [c for c in cases_of(kind) if c.question and is_checkable(c.question) and c.expected is not Expected.FOREIGN]
    assert [(c.question, c.response) for c in asked if (e := extract_entity(c.question, c.response)).is_none or e.refusal] == []


def test_a_pronoun_names_its_subject_or_brings_the_sentence_before():
    for case in cases_of("a sentence that needs the one before"):
        first, second = find_claims(case.response)
        own = case.response[second.start : second.end]
        subject = second.text.removesuffix(own.split(" ", 2 if own.startswith("The ") else 1)[-1]).strip()
        assert second.context == first.text or (second.text != own and subject.removesuffix("'s") in first.text), case.response
