"""Tables in several notations are read as rows with their headers, and prose with the same marks is not."""

import pytest

from knowhalu.text.blocks import UnitKind, read_units

ROWS = ["Item: lamp; Fee: 5 EUR", "Item: rug; Fee: 9 EUR"]


@pytest.mark.parametrize(
    "text",
    [
        "| Item | Fee |\n|---|---|\n| lamp | 5 EUR |\n| rug | 9 EUR |",
        "Item | Fee\n--- | ---\nlamp | 5 EUR\nrug | 9 EUR",
        "Item | Fee\nlamp | 5 EUR\nrug | 9 EUR",
        "Item\tFee\nlamp\t5 EUR\nrug\t9 EUR",
        '[{"Item": "lamp", "Fee": "5 EUR"},\n {"Item": "rug", "Fee": "9 EUR"}]',
    ],
)
def test_every_notation_gives_the_same_rows(text):
    units = read_units(f"The fees:\n\n{text}\n\nAsk at the desk.")
    assert [u.text for u in units if u.kind is UnitKind.TABLE_ROW] == ROWS
    assert [u.text for u in units if u.kind is UnitKind.SENTENCE] == ["The fees:", "Ask at the desk."]


def test_commas_make_a_table_of_three_columns_only():
    assert [u.text for u in read_units("Item,Fee,Stock\nlamp,5 EUR,8\nrug,9 EUR,2")] == [
        f"{ROWS[0]}; Stock: 8",
        f"{ROWS[1]}; Stock: 2",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "He brought eggs, milk, and bread,\nthen came, saw, and left,\nand slept, ate, and read.",
        "Use a | b here.\nUse c | d there.\nUse e | f at home.",
        '{"Item": {"name": "lamp"}}',
        "[the lamp costs 5 EUR]",
    ],
)
def test_prose_and_nested_data_are_no_table(text):
    assert all(u.kind is not UnitKind.TABLE_ROW for u in read_units(text))


def test_a_cell_is_found_in_its_place():
    text = '[\n  {"Item": "lamp", "Fee": 5}\n]'
    (row,) = read_units(text)
    assert row.text == "Item: lamp; Fee: 5"
    at = row.text.index("lamp")
    assert text[slice(*row.place(at, at + 4))] == "lamp"
