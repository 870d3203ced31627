"""Limits: bounds of the same side differ where their numbers do, estimates are confirmed by what implies them."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from knowhalu.text.values import Agreement, align_values, check_values, find_conflict, find_values

EQUAL, OPEN, DIFFERENT = Agreement.EQUAL, Agreement.OPEN, Agreement.DIFFERENT
LOWER = ("at least {} days", "no fewer than {} days", "a minimum of {} days", "min. {} days", "{} days or more")
UPPER = ("within {} days", "up to {} days", "at most {} days", "no more than {} days", "a maximum of {} days", "max. {} days",
         "{} days or less", "no longer than {} days")  # fmt: skip
SIDES = st.sampled_from((LOWER, UPPER))


def agreement(claim: str, source: str) -> Agreement | None:
    """Return how a source agrees with the only value of a claim."""
    (check,) = check_values(claim, source)
    return check.agreement


@given(SIDES, st.integers(2, 400), st.data())
def test_the_same_bound_agrees_in_every_form(forms, days, data):
    one, other = (data.draw(st.sampled_from(forms)).format(days) for _ in range(2))
    claim, source = f"The loan runs for {one}.", f"Loans of this library run for {other}."
    assert agreement(claim, source) is EQUAL
    assert agreement(align_values(claim, source), source) is EQUAL


@given(SIDES, st.integers(2, 400), st.integers(2, 400), st.data())
def test_another_bound_differs_and_is_never_rewritten(forms, one, other, data):
    assume(abs(one - other) > 1)
    claim = f"The loan runs for {data.draw(st.sampled_from(forms)).format(one)}."
    source = f"Loans of this library run for {data.draw(st.sampled_from(forms)).format(other)}."
    assert agreement(claim, source) is DIFFERENT
    assert align_values(claim, source) == claim


@given(st.integers(1001, 9000), st.integers(0, 5000), st.sampled_from(("more than", "over", "upwards of")))
def test_an_estimate_is_confirmed_by_a_larger_number_or_estimate(number, more, word):
    claim = f"It drew {word} {number:,} visitors."
    assert agreement(claim, f"It drew {number + more + 1:,} visitors.") is EQUAL
    assert agreement(claim, f"It drew {word} {number + more:,} visitors.") is EQUAL
    assert agreement(f"It drew {word} {2 * number:,} visitors.", f"It drew {word} {number:,} visitors.") is DIFFERENT


@pytest.mark.parametrize(
    ("claim", "source", "expected"),
    [
        ("Dogs under 10 kg ride in the cabin.", "Dogs under 7 kg ride in the cabin.", DIFFERENT),
        ("Dogs under 10 kg ride in the cabin.", "Dogs under 10 kg ride in the cabin.", EQUAL),
        ("Pupils must be under 14.", "Pupils must be under 16.", DIFFERENT),
        ("Rides over $40 earn a stamp.", "Rides over $60 earn a stamp.", DIFFERENT),
        ("Its staff is over $40 cheaper.", "Its staff is over $60 cheaper.", EQUAL),
        ("The line carries up to 90 kg.", "The line carries 40 kg.", OPEN),
        ("The line carries up to 90 kg.", "The line carries 86 kg.", EQUAL),
        ("The line carries 80 kg.", "The line carries up to 90 kg.", OPEN),
        ("Post it before 4 June 2021.", "Post it before 2021-06-04.", EQUAL),
        ("Post it before 4 June 2021.", "Post it before 2021-05-04.", DIFFERENT),
        ("Post it after 4 June 2021.", "Post it after 11 June 2021.", DIFFERENT),
        ("Post it by 4 June 2021.", "Post it by 11 June 2021.", DIFFERENT),
        ("Ring before 9 am.", "Ring before 8 am.", DIFFERENT),
        ("Ring before 9 am.", "Ring before 9:00.", EQUAL),
        ("The mill was built before 1900.", "The mill was built before 1850.", OPEN),
        ("The mill was built before 1900.", "The mill was built in 1850.", EQUAL),
        ("The lift takes at most 50 lb.", "The lift takes at most 50 kg.", DIFFERENT),
    ],
)
def test_a_limit_is_compared_with_one_of_its_side(claim, source, expected):
    assert agreement(claim, source) is expected


@pytest.mark.parametrize(
    ("claim", "source", "aligned"),
    [
        ("It has to be in before 2021-06-04.", "It is due before 4 June 2021.", "It has to be in before 4 June 2021."),
        ("It has to be in after 2021-06-04.", "It is due after 4 June 2021.", "It has to be in after 4 June 2021."),
        ("It has to be in by 2021-06-04.", "It is due by 4 June 2021.", "It has to be in by 4 June 2021."),
        ("More than 400 came.", "More than 450 came.", "More than 450 came."),
        ("Some 295 feet of rope.", "A rope of 90 metres.", "90 metres of rope."),
        ("A third of them left.", "Of the 60 guests, 20 left.", "A third of them left."),
    ],
)
def test_an_aligned_value_keeps_the_words_of_its_limit(claim, source, aligned):
    assert align_values(claim, source) == aligned


@given(st.integers(2, 900), st.sampled_from((("kg", "pounds"), ("mg", "g"), ("km", "miles"), ("minutes", "hours"))))
def test_the_same_number_of_another_unit_is_a_sure_conflict(number, units):
    one, other = units
    found = find_conflict(f"The parcel label says {number} {one}.", [f"The parcel label says {number} {other}."])
    assert found is not None and found.sure == 2


def test_a_verb_behind_a_number_is_no_unit():
    assert [v.kind.value for v in find_values("Season 2 has ended.")] == ["rank"]
