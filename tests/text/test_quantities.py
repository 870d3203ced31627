"""Dates and quantities: read in any form, and missing where the source has others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.text.findings import find_other_unit
from knowhalu.text.quantities import (
    Date,
    Quantity,
    find_dates,
    find_quantities,
    mismatched_quantity_share,
    missing_date_share,
    number_value,
)

SOURCE = (
    "Councillors voted 14 to 9 on Tuesday to close the bridge from 3 May. The work costs £2.5 million, 45% of 1,200 people "
    "agreed; it ends on November 9, 2025 and may last 18 months."
)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("1,000", "1000"), ("1000", "1000"), ("three", "3"), ("Third", "3"), ("3rd", "3"), ("2.3m", "2300000"), ("50%", "50"),
        ("3.0", "3"), ("0.3bn", "300000000"), ("300,000,000", "300000000"), ("word", None), ("a1", None),
    ],
)  # fmt: skip
def test_equal_numbers_match_in_any_form(word, value):
    assert number_value(word) == value


@pytest.mark.parametrize(("one", "other"), [("8,336,817", "8,336,820"), ("20230115", "20230119"), ("1.2345678", "1.2345681")])
def test_numbers_that_differ_late_are_different(one, other):
    assert number_value(one) != number_value(other)


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("on 9 May 1957", Date(1957, 5, 9)), ("on May 9, 1957", Date(1957, 5, 9)), ("1957-05-09", Date(1957, 5, 9)),
        ("on the 9th of May", Date(0, 5, 9)), ("in May 1957", Date(1957, 5, 0)), ("in May", Date(0, 5, 0)),
    ],
)  # fmt: skip
def test_a_date_is_read_in_any_form(text, date):
    assert find_dates(text) == (date,)


def test_a_verb_is_no_month_and_a_year_alone_no_date():
    assert find_dates("It may last until 1957. May I go?") == ()


def test_numbers_of_dates_are_not_counted():
    assert find_quantities(SOURCE) >= {
        Quantity("18", "month"),
        Quantity("2.5", "pound"),
        Quantity("45", "percent"),
        Quantity("14", ""),
    }
    assert not {c.value for c in find_quantities(SOURCE)} & {"3", "2025"}


@pytest.mark.parametrize(
    ("claim", "missing"),
    [
        ("The closure begins on 3 May.", 0), ("The closure begins on 9 May.", 1), ("It ends on 9 November.", 0),
        ("It ends in November 2024.", 1), ("Nothing is dated here.", 0), ("From 3 May to 10 November", 0.5),
    ],
)  # fmt: skip
def test_a_date_that_the_source_lacks_is_missing(claim, missing):
    assert missing_date_share(claim, SOURCE) == missing


@pytest.mark.parametrize(
    ("claim", "missing"),
    [("It lasts eighteen months.", 0), ("It lasts three months.", 1), ("54% agreed", 1), ("It has five arches.", 0)],
)
def test_another_number_of_the_same_thing_is_missing(claim, missing):
    assert mismatched_quantity_share(claim, SOURCE) == missing


@given(st.text(max_size=200))
def test_a_text_misses_nothing_of_itself(text):
    assert missing_date_share(text, text) == mismatched_quantity_share(text, text) == 0


@pytest.mark.parametrize(
    ("claim", "differs"),
    [("Give the depth in inches.", True), ("Give the depth in metres.", False), ("Give the rent in weeks.", False)],
)
def test_what_is_measured_in_another_unit_than_in_the_source_is_found(claim, differs):
    assert (find_other_unit(claim, ["The depth is a number of metres.", "The rent is due in May."]) is not None) is differs
