"""Claims about the rows of tables: the row by its name, the cell by its header or measure, and nothing where that is unclear."""

import pytest

from knowhalu.text.blocks import read_tables
from knowhalu.text.cells import check_cells
from knowhalu.text.values import Agreement

EQUAL, DIFFERENT = Agreement.EQUAL, Agreement.DIFFERENT
ROOMS = """| Room | Floor | Seats | Rent per day (EUR) | Booked by |
|---|---|---|---|---|
| Blue Hall | 1 | 120 | 450 | Choir |
| Blue Hall Annex | 1 | 30 | 90 | Chess club |
| Attic | 3 | 12 | 35.5 | Poets |
"""
RUNS = "runner,born,time_min,club\nOda Brekke,1991,42.5,Falken\nNils Aas,1988,44.0,Ørn\nMia Voll,1999,40.1,Falken"


def agreement(claim: str, table: str = ROOMS, question: str = "") -> Agreement | str | None:
    """Return how the table agrees with a claim, "no row" where it names none."""
    check = check_cells(claim, question, read_tables(table)[0])
    return check.agreement if check else "no row"


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("The Attic has 12 seats.", EQUAL),
        ("The Attic has 30 seats.", DIFFERENT),
        ("Renting the Attic costs €35.50 a day.", EQUAL),
        ("Renting the Attic costs €90 a day.", DIFFERENT),
        ("The Attic is on floor 3.", EQUAL),
        ("The Attic is on floor 1.", DIFFERENT),
        ("The Blue Hall Annex seats 30 people.", EQUAL),
        ("The Blue Hall seats 30 people.", DIFFERENT),
        ("The Attic is booked by the poets.", EQUAL),
        ("The Attic is booked by the choir.", DIFFERENT),
    ],
)
def test_a_cell_of_the_named_row_decides(claim, expected):
    assert agreement(claim) is expected


@pytest.mark.parametrize(
    ("claim", "question", "expected"),
    [
        ("Mia Voll", "Who was the youngest runner, born in 1999?", EQUAL),
        ("Nils Aas", "Which runner has the longest time?", EQUAL),
        ("Oda Brekke", "Which runner has the longest time?", DIFFERENT),
        ("40.1 minutes", "What was the time of Mia Voll?", EQUAL),
        ("42.5 minutes", "What was the time of Mia Voll?", DIFFERENT),
        ("Ørn", "For which club does Nils Aas run?", EQUAL),
        ("Falken", "For which club does Nils Aas run?", DIFFERENT),
    ],
)
def test_row_column_and_superlative_may_stand_in_the_question(claim, question, expected):
    assert agreement(claim, RUNS, question) is expected


@pytest.mark.parametrize(
    "claim",
    [
        "The Attic does not have 30 seats.",
        "The Attic has a skylight.",
        "The Attic is one of the rooms with the highest rent.",
        "The Attic was opened 14 years ago.",
        "The Blue Hall costs three times as much per seat in summer.",
        "The Attic seats up to 50 people.",
        "The Attic has 12 seats and 4 tables.",
    ],
)
def test_what_the_cells_leave_open_stays_open(claim):
    assert agreement(claim) is None


@pytest.mark.parametrize("claim", ["The Attic has fewer seats than the Blue Hall.", "The rooms have 162 seats in all.", "30"])
def test_no_row_is_read_where_several_or_none_are_named(claim):
    assert agreement(claim) == "no row"


def test_a_true_cell_in_a_claim_that_says_much_else_does_not_settle_it():
    assert agreement("The Attic has 12 seats, a grand piano, air conditioning and a wheelchair ramp.") is None


def test_the_row_is_written_as_a_sentence_with_the_units_of_its_headers():
    check = check_cells("Mia Voll", "", read_tables(RUNS)[0])
    assert check is not None
    assert check.text == "Mia Voll: born 1999, time 40.1 min, club Falken."
