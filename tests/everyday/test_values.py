"""Values of all generated variants: an equal one in another form agrees with its source, and another one does not."""

import pytest

from knowhalu.text.values import Agreement, align_values, check_values
from tests.everyday.cases import MAKERS
from tests.everyday.kinds import Case, Expected, case_pairs

SEEDS = 6
DECIDED = sorted({(c.kind, c.variety) for kind in MAKERS for p in case_pairs(kind, len(MAKERS[kind])) for c in p if c.by_value})


def cases_of(kind: str, name: str) -> list[Case]:
    """Return the generated cases of a variety, over several seeds."""
    pairs = (p for seed in range(SEEDS) for p in case_pairs(kind, len(MAKERS[kind]), seed))
    return [c for pair in pairs for c in pair if c.variety == name]


def agreements(case: Case) -> list[Agreement | None]:
    return [c.agreement for c in check_values(case.response, " ".join(case.documents))]


@pytest.mark.parametrize(("kind", "name"), DECIDED)
def test_equal_values_agree_in_every_form(kind, name):
    cases = [c for c in cases_of(kind, name) if c.expected is Expected.FAITHFUL]
    assert [c.response for c in cases if set(agreements(c)) != {Agreement.EQUAL}] == []


@pytest.mark.parametrize(("kind", "name"), DECIDED)
def test_another_value_never_agrees(kind, name):
    cases = [c for c in cases_of(kind, name) if c.expected is Expected.HALLUCINATED]
    # a bare number may be a measurement or not: it is missing rather than different
    missed = {Agreement.DIFFERENT, None}
    assert [
        c.response for c in cases if not set(agreements(c)) & (missed if c.response.isdigit() else {Agreement.DIFFERENT})
    ] == []


@pytest.mark.parametrize(("kind", "name"), DECIDED)
def test_aligned_values_agree_as_before(kind, name):
    for case in cases_of(kind, name):
        source = " ".join(case.documents)
        aligned = check_values(align_values(case.response, source), source)
        assert (Agreement.DIFFERENT in agreements(case)) == (Agreement.DIFFERENT in {c.agreement for c in aligned}), case.response
