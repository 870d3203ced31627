"""The whole check of generated everyday cases by the default verifier: every kind, faithful and hallucinated responses alike.

What text rules decide must always be right; where the verifier decides, a floor for each kind holds what was reached. The floors
lie two and a half standard errors below the shares that `benchmarks/everyday.py` measures on other cases.
"""

import pytest

from knowhalu.api import Checker
from tests.everyday.checking import check_cases, is_right
from tests.everyday.kinds import KINDS, Case, Expected, case_pairs

PAIRS, SEED = 12, 7
FLOORS = {
    "yes/no": 0.6,
    'definitions answer "what is"': 0.85,
    "open questions": 0.5,
    "same date in another form": 0.9,
    "citation marks": 0.85,
    "abbreviations and lists": 0.8,
    "Markdown": 0.9,
    "same number in another form": 0.9,
    "crossed facts": 0.65,
    "roles": 0.85,
    "two passages": 0.55,
    "a sentence that needs the one before": 0.6,
    "two true sentences together": 0.8,
    "tables": 0.85,
    "code": 0.75,
    "small talk claims nothing": 0.9,
    "refusals": 0.9,
    "other languages": 0.9,
    "units": 0.9,
}


@pytest.fixture(scope="module")
def checker():
    return Checker()


def cases_of(kind: str) -> list[Case]:
    return [case for pair in case_pairs(kind, PAIRS, SEED) for case in pair]


@pytest.mark.parametrize("kind", KINDS)
def test_verdicts_on_a_kind_of_case_are_right_as_often_as_measured(checker, kind):
    cases = cases_of(kind)
    wrong = [c for c, v in zip(cases, check_cases(checker, cases), strict=True) if not is_right(c, v)]
    assert 1 - len(wrong) / len(cases) >= FLOORS[kind], [(c.documents, c.question, c.response) for c in wrong]


@pytest.mark.parametrize("expected", [Expected.NOTHING, Expected.FOREIGN])
def test_what_claims_nothing_or_cannot_be_read_is_always_left_open_for_that_reason(checker, expected):
    cases = [c for kind in KINDS for c in cases_of(kind) if c.expected is expected]
    assert cases
    assert [c.response for c, v in zip(cases, check_cases(checker, cases), strict=True) if not is_right(c, v)] == []
