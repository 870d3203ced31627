"""Values in different forms: equal ones agree, others differ, and a claim may be less precise than its source."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.text.values import Agreement, check_values, compare_values, find_conflict, find_values
from knowhalu.text.wordlists import MONTHS

EQUAL, OPEN, DIFFERENT = Agreement.EQUAL, Agreement.OPEN, Agreement.DIFFERENT
DATES = st.dates(datetime.date(1800, 1, 1), datetime.date(2040, 12, 31))


def agreement(claim: str, source: str) -> Agreement | None:
    """Return the best agreement of the first value of a claim with any value of a source."""
    order = list(Agreement)
    found = [a for v in find_values(claim)[:1] for g in find_values(source) if (a := compare_values(v, g))]
    return min(found, key=order.index, default=None)


@pytest.mark.parametrize(
    ("claim", "source", "expected"),
    [
        ("1240", "1,240 people", EQUAL),
        ("It has 1240 members.", "The club has 1,420 members.", DIFFERENT),
        ("2,500,000 tonnes", "2.5 million tonnes", EQUAL),
        ("2.5M tonnes", "2.5 million tonnes", EQUAL),
        ("two and a half million tonnes", "2.5 million tonnes", EQUAL),
        ("It lasts half an hour.", "30 minutes", EQUAL),
        ("It lasts half an hour.", "45 minutes", DIFFERENT),
        ("three quarters of an hour", "45 minutes", EQUAL),
        ("two years and a half", "30 months", EQUAL),
        ("a fortnight", "14 days", EQUAL),
        ("a couple of weeks", "14 days", EQUAL),
        ("half a litre", "500 ml", EQUAL),
        ("2.5 billion tonnes", "2.5 million tonnes", DIFFERENT),
        ("$3.2bn", "3.2 billion dollars", EQUAL),
        ("3.2 million euros", "€3.2 million", EQUAL),
        ("twelve members", "12 members", EQUAL),
        ("a dozen eggs", "12 eggs", EQUAL),
        ("about 300 people", "298 people", EQUAL),
        ("about 300 people", "430 people", DIFFERENT),
        ("more than 1,000 people", "1,240 people", EQUAL),
        ("over 2,000 people", "1,240 people", DIFFERENT),
        ("fewer than 1,000 people", "1,240 people", DIFFERENT),
        ("nearly 3,000 people", "2,940 people", EQUAL),
        ("between 10 and 20 people", "14 people", EQUAL),
        ("10 to 12 people", "14 people", DIFFERENT),
        ("a third", "33.3%", EQUAL),
        ("one in five", "20 percent", EQUAL),
        ("about 30.2 percent", "30.2052%", EQUAL),
        ("35.2 percent", "30.2052%", DIFFERENT),
        ("rose by 4 percent", "rose by 14 percent", DIFFERENT),
        ("295 feet", "90 metres", EQUAL),
        ("90 feet", "90 metres", DIFFERENT),
        ("62 mph", "100 km/h", EQUAL),
        ("68 °F", "20 °C", EQUAL),
        ("90 minutes", "1.5 hours", EQUAL),
        ("2.5 kg", "2.5 mg", DIFFERENT),
        ("15 EUR", "15 USD", DIFFERENT),
        ("in March 1958", "on 3 March 1958", EQUAL),
        ("on 3 March 1958", "in 1958", OPEN),
        ("in the 1950s", "in 1958", EQUAL),
        ("in the 1960s", "in 1958", DIFFERENT),
        ("in the 20th century", "in 1958", EQUAL),
        ("in spring 1958", "on 3 March 1958", EQUAL),
        ("in the late 1950s", "in 1952", DIFFERENT),
        ("before 1960", "in 1958", EQUAL),
        ("after 1960", "in 1958", DIFFERENT),
        ("in 44 BC", "in 44 AD", DIFFERENT),
        ("12 people", "12 metres", None),
        ("180 Brennfield gardens", "180 gardens", EQUAL),
        ("four worn joints", "four expansion joints", EQUAL),
        ("five worn joints", "four expansion joints", DIFFERENT),
        ("180 gardens", "180 families", OPEN),
        ("tens of thousands of people", "35,000 people", EQUAL),
        ("hundreds of people", "35,000 people", DIFFERENT),
        ("thousands of people", "35,000 people", EQUAL),
        ("181 gardens", "180 families", None),
    ],
)
def test_a_claimed_value_is_compared_with_the_source(claim, source, expected):
    assert agreement(claim, source) is expected


@given(DATES, st.integers(0, 4), st.integers(0, 4))
def test_a_date_equals_itself_in_every_form(day, one, two):
    forms = _forms(day)
    assert agreement(f"It opened on {forms[one]}.", f"The opening was on {forms[two]}.") is EQUAL


@given(DATES, st.integers(1, 20_000), st.integers(0, 4), st.integers(0, 4))
def test_another_day_differs_in_every_form(day, later, one, two):
    other = day + datetime.timedelta(later)
    assert agreement(f"It opened on {_forms(other)[one]}.", f"The opening was on {_forms(day)[two]}.") is DIFFERENT


def _forms(day: datetime.date) -> list[str]:
    month = MONTHS[day.month - 1]
    return [
        f"{day.day} {month} {day.year}",
        f"{month} {day.day}, {day.year}",
        day.isoformat(),
        f"{month[:3]} {day.day}, {day.year}",
        f"{day.day}th of {month} {day.year}",
    ]


@given(st.integers(2101, 10**9))
def test_a_count_equals_itself_with_and_without_separators(number):
    assert agreement(f"{number} visitors came.", f"There were {number:,} visitors.") is EQUAL


@given(st.integers(2101, 10**8), st.integers(1, 10**8))
def test_another_count_differs(number, more):
    assert agreement(f"{number + more:,} visitors came.", f"There were {number} visitors.") is DIFFERENT


@given(
    st.integers(11, 999), st.sampled_from(["million", "billion", "thousand"]), st.sampled_from(["million", "billion", "thousand"])
)
def test_a_scale_makes_the_difference(tenths, one, two):
    found = agreement(f"{tenths / 10} {one} tonnes", f"{tenths / 10} {two} tonnes")
    assert found is (EQUAL if one == two else DIFFERENT)


@given(st.text(max_size=200))
def test_every_value_is_where_it_says(text):
    for value in find_values(text):
        assert value.text == text[value.start : value.end] and value.low <= value.high


@pytest.mark.parametrize(
    ("claim", "source", "expected"),
    [
        ("It was part of a 2011 edition of Band 3.", "In January 2011, it was added to Band 3.", [EQUAL, EQUAL]),
        ("It opened in 1958.", "It has 1,240 workers.", [None]),
        ("It opened in 1958 with 300 workers.", "It opened in 1959 with 1958 workers.", [DIFFERENT, DIFFERENT]),
    ],
)
def test_every_value_of_a_claim_is_checked_once(claim, source, expected):
    assert [c.agreement for c in check_values(claim, source)] == expected


@pytest.mark.parametrize("text", ["No one came.", "The old ones broke.", "They know one another.", "He bought a new one."])
def test_one_is_no_number_where_it_stands_for_a_noun(text):
    assert find_values(text) == ()


@pytest.mark.parametrize(
    ("claim", "source", "expected"),
    [
        # the clause of the claim's value is about something else
        ("The exhibition closes on 9 June.", "The exhibition closes on 2 June, and the auction takes place on 9 June.", "2 June"),
        ("The ferry is 40 euros.", "Prices: ferry 25 euros, cabin 40 euros.", "25 euros"),
        # it is about the same, or has nothing of its own
        ("The exhibition closes on 2 June.", "The exhibition closes on 2 June, and the auction takes place on 9 June.", None),
        ("The bridge was rebuilt in 1950.", "The bridge was built in 1850 and rebuilt in 1950.", None),
        ("The mill was restored in 1950.", "The mill was built in 1850 and in 1950.", None),
    ],
)
def test_a_value_that_a_sentence_gives_for_something_else_is_a_conflict(claim, source, expected):
    found = find_conflict(claim, [source])
    assert (found.source.text if found else None) == expected


@pytest.mark.parametrize("count", [2, 4, 10])
def test_a_multiple_of_a_portion_is_no_other_value(count):
    portion = "One spoonful of 5 ml contains 120 mg of iron."
    assert find_conflict(f"{5 * count} ml contain {120 * count} mg of iron.", [portion]) is None
    assert find_conflict(f"{5 * count} ml contain {120 * count + 40} mg of iron.", [portion]) is not None
