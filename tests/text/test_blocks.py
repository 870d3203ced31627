"""Blocks of a text: sentences, list items, table rows and code without marks, with the places of all characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.text.blocks import UnitKind, read_units


def texts(text: str) -> list[str]:
    return [u.text for u in read_units(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The mine closed in 1984 [2, 3]. It reopened.[4]", ["The mine closed in 1984.", "It reopened."]),
        ("Yilmaz et al. [2004] measured the tides.", ["Yilmaz et al. [2004] measured the tides."]),
        ("The **largest** of _all_ rivers `flows` north.", ["The largest of all rivers flows north."]),
        ('Pass `rows[1]`, `sep="_"` or `a*b*c` [2].', ['Pass rows[1], sep="_" or a*b*c.']),
        ("See [the manual](https://example.org/a_b) first.", ["See the manual first."]),
        ("Set wait_ms to 3 * 4 and max_size to 2.", ["Set wait_ms to 3 * 4 and max_size to 2."]),
        ("It covers 30 km² and 20 m².", ["It covers 30 km² and 20 m²."]),
        ("A line\nthat goes on.\n\nAnother one.", ["A line that goes on.", "Another one."]),
        ("1. Wash it.\n2) Dry it.\n- [x] Store it.", ["Wash it.", "Dry it.", "Store it."]),
        ("> Quoted words.\n---\nOwn words.", ["Quoted words.", "Own words."]),
        ("Prices rose (source: document 2) last year.", ["Prices rose last year."]),
    ],
)
def test_marks_of_layout_and_citation_are_left_out(text, expected):
    assert texts(text) == expected


def test_a_table_row_reads_as_header_and_cell():
    table = "| Item | Fee |\n|---|---:|\n| Books | 2 EUR |\n| **Maps** |  |\n"
    rows = read_units(table)
    assert [u.text for u in rows] == ["Item: Books; Fee: 2 EUR", "Item: Maps"]
    assert {u.kind for u in rows} == {UnitKind.TABLE_ROW}
    start = rows[0].text.index("2 EUR")
    assert table[slice(*rows[0].place(start, start + 5))] == "2 EUR"


def test_an_item_knows_its_heading_and_what_introduces_its_list():
    item = read_units("## Opening hours\n\nThe office is open:\n\n- on Mondays\n- on Fridays")[-1]
    assert (item.text, item.heading, item.lead) == ("on Fridays", "Opening hours", "The office is open:")


def test_code_is_read_line_by_line_as_it_is():
    units = read_units("Use this:\n```python\nclient.open(port=8080)\n\n# done [1]\n```\nThat is all.")
    assert [(u.text, u.kind) for u in units[1:3]] == [("client.open(port=8080)", UnitKind.CODE), ("# done [1]", UnitKind.CODE)]


MARKDOWN = st.text(st.sampled_from("ab. *_`#|-[]()1\n>~:【】²"), max_size=80) | st.text(max_size=80)


@given(MARKDOWN)
def test_every_character_comes_from_its_place(text):
    at = 0
    for unit in read_units(text):
        assert len(unit.offsets) == len(unit.text) and unit.start >= at
        assert all(unit.start <= i < unit.end for i in unit.offsets)
        if unit.kind is not UnitKind.TABLE_ROW:
            assert all(text[i] == c or (text[i].isspace() and c == " ") for i, c in zip(unit.offsets, unit.text, strict=True))
            assert sorted(set(unit.offsets)) == list(unit.offsets)
        at = unit.end
