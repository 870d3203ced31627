"""Parts of a whole, times that amounts are for, starts of changes, and ranks with a label."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from knowhalu.text.values import Agreement, align_values, check_values, find_conflict

EQUAL, OPEN, DIFFERENT = Agreement.EQUAL, Agreement.OPEN, Agreement.DIFFERENT
FORMS = ("{} of {} jurors agreed.", "{} of the {} jurors agreed.", "{} out of {} jurors agreed.", "{} jurors out of {} agreed.",
         "Of the {1} jurors, {0} agreed.", "Out of {1} jurors heard, only {0} agreed.")  # fmt: skip


def agreements(claim: str, source: str) -> list[Agreement | None]:
    return [c.agreement for c in check_values(claim, source)]


@given(st.integers(2, 90), st.integers(91, 200), st.sampled_from(FORMS), st.sampled_from(FORMS))
def test_a_part_of_a_whole_agrees_in_every_form(part, whole, one, other):
    assert set(agreements(one.format(part, whole), other.format(part, whole))) == {EQUAL}


@given(st.integers(2, 90), st.integers(2, 90), st.integers(91, 200), st.sampled_from(FORMS), st.sampled_from(FORMS))
def test_another_part_differs(part, wrong, whole, one, other):
    assume(part != wrong)
    claim, source = one.format(wrong, whole), other.format(part, whole)
    assert DIFFERENT in agreements(claim, source) and find_conflict(claim, [source]) is not None


@pytest.mark.parametrize(
    ("claim", "source", "expected"),
    [
        ("A quarter of the tenants pay late.", "50 of the 200 tenants pay late.", [EQUAL]),
        ("25% of the 200 tenants pay late.", "50 of the 200 tenants pay late.", [EQUAL, EQUAL]),
        ("Half of the tenants pay late.", "50 of the 200 tenants pay late.", [DIFFERENT]),
        ("Two in five tenants pay late.", "Of the 50 tenants in the house, 20 pay late.", [EQUAL]),
        ("Nine tenants pay late.", "4 of 9 tenants pay late.", [OPEN]),
        ("Four tenants pay late.", "4 of 9 tenants pay late.", [EQUAL]),
        ("Five tenants pay late.", "4 of 9 tenants pay late.", [DIFFERENT]),
        ("There are nine tenants.", "All nine tenants pay late.", [EQUAL]),
        ("There are eight tenants.", "All nine tenants pay late.", [DIFFERENT]),
        ("There are nine tenants.", "One of the nine tenants pays late.", [EQUAL]),
        ("There are nine tenants in total.", "4 of 9 tenants pay late.", [EQUAL]),
        ("In March of 2019 they paid.", "They paid in March 2019.", [EQUAL]),
    ],
)
def test_a_share_is_that_of_the_part_and_a_count_the_part_itself(claim, source, expected):
    assert agreements(claim, source) == expected


@given(st.integers(2, 900), st.sampled_from(("a day", "per day", "daily", "in 24 hours")), st.sampled_from(("each day", "daily")))
def test_a_day_is_24_hours_behind_an_amount(amount, one, other):
    claim, source = f"Take {amount} mg {one}.", f"Adults take {amount} mg {other}."
    assert set(agreements(claim, source)) == {EQUAL}
    assert align_values(claim, source) == f"Take {amount} mg {other}."


def test_24_hours_alone_are_a_time_like_others():
    assert agreements("It lasts 24 hours.", "It lasts 20 hours a day.") == [DIFFERENT]


@given(st.integers(11, 400), st.integers(401, 900), st.sampled_from(("rose", "climbed by a lot", "went up")))
def test_the_start_of_a_change_confirms_only_what_speaks_of_it(start, end, verb):
    source = f"The fee {verb} from {start} euros to {end} euros."
    assert agreements(f"The fee is {end} euros.", source) == [EQUAL]
    assert agreements(f"The fee is {start} euros.", source) == [DIFFERENT]
    assert agreements(f"The fee was {start} euros before.", source) == [EQUAL]
    assert agreements(f"The fee {verb} from {start} to {end} euros.", source)[-1] is EQUAL


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("The port moved 80 ships in 2020.", [DIFFERENT, EQUAL]),
        ("The port moved 95 ships in 2020.", [EQUAL, EQUAL]),
        ("The port moved 80 ships in 2019.", [EQUAL, EQUAL]),
    ],
)
def test_a_start_belongs_to_its_own_date(claim, expected):
    assert agreements(claim, "The port moved 95 ships in 2020, up from 80 ships in 2019.") == expected


def test_a_price_from_which_others_begin_is_a_limit():
    assert agreements("A cabin costs 60 euros.", "Cabins cost from 40 euros.") == [OPEN]


@pytest.mark.parametrize(
    ("claim", "source", "expected"),
    [
        ("Take line 4.", "Line: 4; First tram: 05:10.", [EQUAL]),
        ("Take line 4.", "The first tram leaves at 05:10.", [None]),
        ("It is in the fourth chapter.", "It is in chapter 4.", [EQUAL]),
        ("It is in the fifth chapter.", "It is in chapter 4.", [DIFFERENT]),
    ],
)
def test_a_rank_is_compared_with_one_of_its_label(claim, source, expected):
    assert agreements(claim, source) == expected


def test_the_value_in_the_same_place_is_the_rival():
    source = "The path is 9 km long, climbs 300 metres and needs about five hours and a 20-minute break."
    found = find_conflict("The path is 9 km long, climbs 300 m and needs about two hours.", [source])
    assert found is not None and (found.value.text, found.source.text) == ("two hours", "five hours")


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Three of the nine tenants pay late.", "One of the nine tenants pays on time."),
        ("Of the 31 tenants asked, 19 do not own a car.", "Of the 31 tenants asked, 12 own a car."),
    ],
)
def test_neither_the_whole_nor_the_rest_of_it_is_another_part(claim, source):
    found = find_conflict(claim, [source])
    assert found is None or found.source.text not in ("nine", "12", "31")
