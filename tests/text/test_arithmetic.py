"""Results of calculations that a claim states: two values of the source yield them, or another result, or do not tell."""

import datetime
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from knowhalu.text.arithmetic import check_arithmetic
from knowhalu.text.values import Agreement

EQUAL, DIFFERENT = Agreement.EQUAL, Agreement.DIFFERENT
OUTPUT = "Output of the plant rose from 1,000 units in 2010 to 1,200 units in 2011."
TOWERS = ("The north tower is 120 metres high.", "The south tower is 100 metres high.")
CLOSED = ("The mill closed in 1990.", "The school closed in 1992.")
SWIM = ("Ruiz was born in 1941.", "Ruiz crossed the strait in 1969.")
POET = ("Anna Reyes (3 May 1941 – 2 May 2009) was a poet.",)
MILL, DAY, NIGHT = (
    "The mill ran from 1890 to 1912.",
    "The session ran from 09:40 to 11:10.",
    "The shift runs from 22:00 to 07:00.",
)


def outcome(claim, *sentences):
    """Return the agreement and the calculation of a claim's only result, or None."""
    found = check_arithmetic(claim, sentences)
    assert len(found) <= 1
    return (found[0].agreement, found[0].explanation) if found else None


@pytest.mark.parametrize(
    ("claim", "sentences", "expected", "calculation"),
    [
        ("The plant's output grew by 200 units.", (OUTPUT,), EQUAL, "1,200 - 1,000 = 200"),
        ("The plant's output grew by 300 units.", (OUTPUT,), DIFFERENT, "1,200 - 1,000 = 200"),
        ("The plant's output fell by 200 units.", (OUTPUT,), DIFFERENT, "1,200 - 1,000 = 200"),
        ("The plant's output grew by 20%.", (OUTPUT,), EQUAL, "(1,200 - 1,000) / 1,000 = 20 %"),
        ("The plant's output grew by 40%.", (OUTPUT,), DIFFERENT, "(1,200 - 1,000) / 1,000 = 20 %"),
        ("The plant's output doubled.", (OUTPUT,), DIFFERENT, "1,200 / 1,000 = 1.2"),
        ("The plant's output halved.", ("Output of the plant fell from 800 units to 400 units.",), EQUAL, "400 / 800 = 0.5"),
        ("The share of readers fell by 14 points.", ("The share of readers fell from 58% to 44%.",), EQUAL, "58% - 44% = 14"),
        ("Sales rose by $2.", ("Sales rose from $5 to $7.",), EQUAL, "$7 - $5 = $2"),
        ("Lille has twice as many trams as Metz.", ("Lille has 40 trams and Metz 20 trams.",), EQUAL, "40 / 20 = 2"),
        ("Lille has twice as many trams as Metz.", ("Metz has 40 trams and Lille 20 trams.",), DIFFERENT, "20 / 40 = 0.5"),
        ("Metz has half as many trams as Lille.", ("Lille has 40 trams.", "Metz has 20 trams."), EQUAL, "20 / 40 = 0.5"),
        ("The north tower is 20 metres taller than the south tower.", TOWERS, EQUAL, "120 metres - 100 metres = 20 metres"),
        ("The north tower is 40 metres taller than the south tower.", TOWERS, DIFFERENT, "120 metres - 100 metres = 20 metres"),
        ("The south tower is 20 metres taller than the north tower.", TOWERS, DIFFERENT, "120 metres - 100 metres = 20 metres"),
        ("The north tower is taller than the south tower.", TOWERS, EQUAL, "120 metres > 100 metres"),
        ("The south tower is taller than the north tower.", TOWERS, DIFFERENT, "100 metres < 120 metres"),
        ("The mill ran for 22 years.", (MILL,), EQUAL, "1912 - 1890 = 22 years"),
        ("The mill ran for 22 years.", ("The mill ran 1890-1912.",), EQUAL, "1912 - 1890 = 22 years"),
        ("The mill ran for more than two decades.", (MILL,), EQUAL, "1912 - 1890 = 2.2 decades"),
        ("The mill ran for 12 years.", (MILL,), DIFFERENT, "1912 - 1890 = 22 years"),
        ("The session lasted 90 minutes.", (DAY,), EQUAL, "11:10 - 09:40 = 90 minutes"),
        ("The session lasted 60 minutes.", (DAY,), DIFFERENT, "11:10 - 09:40 = 90 minutes"),
        ("The shift lasts nine hours.", (NIGHT,), EQUAL, "07:00 - 22:00 = 9 hours"),
        ("The session lasted three hours.", ("The session ran from 11 am to 2 pm.",), EQUAL, "2 pm - 11 am = 3 hours"),
        ("The school closed two years after the mill.", CLOSED, EQUAL, "1992 - 1990 = 2 years"),
        ("The school closed six years after the mill.", CLOSED, DIFFERENT, "1992 - 1990 = 2 years"),
        ("The school closed two years before the mill.", CLOSED, DIFFERENT, "1992 - 1990 = 2 years"),
        ("Ruiz was 28 years old when she crossed the strait.", SWIM, EQUAL, "1969 - 1941 = 27 or 28"),
        ("Anna Reyes died at the age of 67.", POET, EQUAL, "2 May 2009 - 3 May 1941 = 67"),
        ("Anna Reyes died at the age of 68.", POET, DIFFERENT, "2 May 2009 - 3 May 1941 = 67"),
        ("The mills together have 70 staff.", ("The upper mill has 30 staff, the lower 40 staff.",), EQUAL, "30 + 40 = 70"),
    ],
)  # fmt: skip
def test_a_result_is_equal_to_that_of_two_values_or_different(claim, sentences, expected, calculation):
    assert outcome(claim, *sentences) == (expected, calculation)


@pytest.mark.parametrize(
    ("claim", "sentences"),
    [
        ("The plant's output grew by 200 units.", ("The town has 1,000 people.", "A train has 1,200 seats.")),
        ("The plant's output grew by 500 units.", ("Output of the plant was 1,000 units, then 1,200 units, and 1,900 units.",)),
        ("The plant's output did not grow by 300 units.", (OUTPUT,)),
        ("The plant has 300 units.", (OUTPUT,)),
        ("The plant's output rose to 1,200 units.", (OUTPUT,)),
        ("The plant's output grew by 22%.", ("Output of the plant rose from 1,000 units to 1,207 units.",)),
        ("The Arden plant's output grew by 300 units.", (OUTPUT,)),
        ("Lille has twice as many buses as Metz.", ("Lille has 40 trams.", "Metz has 10 bridges.")),
        ("The north tower is taller than the chimney.", TOWERS),
        ("The mill ran for 21 years.", (MILL,)),
        ("The mill was shut for two weeks.", (MILL,)),
        ("The lake warmed by 10 degrees Fahrenheit.", ("The lake warmed from 10 °C to 20 °C.",)),
        ("The mills together employed 90 people.", ("The upper mill employed 30 people, the lower 40 people.",)),
        ("Ines ran the mill for 20 years.", ("Ines (1890–1950) ran the mill.",)),
    ],
)
def test_nothing_is_said_where_the_claim_or_the_source_does_not_tell(claim, sentences):
    assert outcome(claim, *sentences) is None


def test_a_value_that_the_source_states_needs_no_calculation():
    assert outcome("The mill ran for 22 years.", "The mill ran for 22 years.", MILL) is None


def test_each_result_of_a_claim_is_checked():
    claim = "The plant's output grew by 200 units, a growth of 30%."
    found = check_arithmetic(claim, [OUTPUT])
    assert [(claim[d.value.start : d.value.end], d.agreement) for d in found] == [("200", EQUAL), ("30%", DIFFERENT)]
    assert all({v.text for v in d.sources} == {"1,000", "1,200"} for d in found)


def test_a_sentence_that_is_given_twice_counts_once():
    assert outcome("The mill ran for 12 years.", MILL, MILL) == outcome("The mill ran for 12 years.", MILL)


@given(st.integers(100, 9999), st.integers(100, 9999), st.integers(1, 9999))
def test_only_the_difference_of_the_two_values_is_equal(first, last, claimed):
    assume(first != last and claimed not in (first, last))
    verb, other = ("grew", "fell") if last > first else ("fell", "grew")
    source = f"Output of the plant went from {first} units to {last} units."
    assert outcome(f"The plant's output {verb} by {abs(last - first)} units.", source) in (
        (EQUAL, f"{max(first, last)} - {min(first, last)} = {abs(last - first):,}"),
        None if abs(last - first) in (first, last) else ...,
    )
    for found in (outcome(f"The plant's output {v} by {claimed} units.", source) for v in (verb, other)):
        assert found is None or found[0] is (EQUAL if claimed == abs(last - first) and found[0] is EQUAL else DIFFERENT)
    wrong = outcome(f"The plant's output {other} by {abs(last - first)} units.", source)
    assert wrong is None or wrong[0] is DIFFERENT


@given(st.dates(datetime.date(1850, 1, 1), datetime.date(1950, 1, 1)), st.integers(0, 89 * 365), st.integers(1, 99))
def test_an_age_by_years_is_one_of_two_and_never_refuted_where_a_birthday_allows_it(born, days, claimed):
    event = born + datetime.timedelta(days=days)
    age = event.year - born.year - ((event.month, event.day) < (born.month, born.day))
    assume(event.year > born.year)
    found = outcome(f"Ruiz was {claimed} years old when she crossed the strait.", f"Ruiz was born in {born.year}.",
                    f"Ruiz crossed the strait in {event.year}.")  # fmt: skip
    assert found is not None and (found[0] is EQUAL) == (claimed in (event.year - born.year - 1, event.year - born.year))
    assert claimed != age or found[0] is EQUAL


@given(st.dates(datetime.date(1850, 1, 1), datetime.date(1950, 1, 1)), st.integers(366, 89 * 365), st.integers(-1, 1))
def test_an_age_between_two_days_is_exact(born, days, off):
    event = born + datetime.timedelta(days=days)
    age = event.year - born.year - ((event.month, event.day) < (born.month, born.day))
    source = f"Ruiz was born on {born:%d %B %Y}.", f"Ruiz crossed the strait on {event:%d %B %Y}."
    found = outcome(f"Ruiz crossed the strait at the age of {age + off}.", *source)
    assert found is not None and found[0] is (DIFFERENT if off else EQUAL) and found[1].endswith(f" = {age}")


@given(st.text(max_size=200), st.lists(st.text(max_size=200), max_size=3))
def test_any_text_is_read(claim, sentences):
    for derived in check_arithmetic(claim, sentences):
        assert derived.agreement in (EQUAL, DIFFERENT) and math.isfinite(derived.value.nominal)
