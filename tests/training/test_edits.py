"""Edits report exactly what they changed."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.training.edits import (
    EDIT_FUNCTIONS,
    find_details,
    negate,
    random_edit,
    swap_listed,
    swap_name,
    swap_number,
    swap_opposite,
    swap_roles,
)

NAMES = ["Rome", "Paris", "Ada Lovelace", "Alan Turing", "Bank of England"]
PIECES = [
    "In", "March", "1887", "the", "first", "king", "Ada Lovelace", "won", "3.5", "1,200", "was not", "is", "isn't", "two", "Rome",
    ".", ",",
    "on Monday", "increased",
    "Bank of England", "é", "more", "10",
]  # fmt: skip
texts = st.one_of(st.lists(st.sampled_from(PIECES), max_size=20).map(" ".join), st.text(max_size=40))


def check(before, changed):
    """Hold that the text differs from the one before only in the characters that the edit names."""
    assert 0 <= changed.start <= changed.end <= len(changed.text)
    tail = len(changed.text) - changed.end
    assert changed.text[: changed.start] == before[: changed.start]
    assert changed.text[changed.end :] == before[len(before) - tail :]
    assert changed.start + tail <= len(before)


@pytest.mark.parametrize("change", sorted(set(EDIT_FUNCTIONS), key=lambda c: c.__name__), ids=lambda c: c.__name__)
@given(text=texts, seed=st.integers(0, 1000))
def test_each_edit_changes_exactly_what_it_reports(change, text, seed):
    changed = change(text, random.Random(seed), NAMES)
    if changed is not None:
        check(text, changed)


@given(texts, st.integers(0, 1000))
def test_an_edit_is_a_change_and_depends_on_the_seed_alone(text, seed):
    changed = random_edit(text, random.Random(seed), NAMES)
    assert changed == random_edit(text, random.Random(seed), NAMES)
    if changed is not None:
        assert changed.text != text
        check(text, changed)


@given(st.from_regex(r"[1-9][0-9]{0,5}", fullmatch=True), st.integers(0, 1000))
def test_an_edited_number_keeps_its_size(number, seed):
    changed = swap_number(f"It has {number} parts.", random.Random(seed), [])
    new = changed.text.removeprefix("It has ").removesuffix(" parts.")
    assert new != number
    assert len(str(int(new))) == len(number)


@pytest.mark.parametrize(
    ("change", "text", "kind"),
    [
        (swap_number, "It was built in 1887.", "number"),
        (swap_listed, "It was built in March.", "date"),
        (swap_name, "It was built by Ada Lovelace in Rome.", "name"),
        (swap_roles, "Rome paid a debt to Paris.", "roles"),
        (swap_opposite, "It increased.", "opposite"),
        (negate, "It was built.", "negation"),
    ],
)
def test_each_edit_finds_a_place_to_change(change, text, kind):
    changed = change(text, random.Random(0), NAMES)
    assert changed.kind == kind
    assert changed.text != text
    check(text, changed)


@pytest.mark.parametrize(("text", "new"), [("It was built.", "It was not built."), ("It wasn't built.", "It was built.")])
def test_negate_inserts_and_removes_negations(text, new):
    assert negate(text, random.Random(0), []).text == new


@pytest.mark.parametrize("text", ["", "Nothing here", "...", "small letters only"])
def test_a_text_that_allows_no_edit_gives_none(text):
    assert random_edit(text, random.Random(0), NAMES) is None


def test_swap_roles_leaves_lists_alone():
    rng = random.Random(0)
    assert swap_roles("Rome paid a debt to Paris.", rng, []).text == "Paris paid a debt to Rome."
    assert swap_roles("Ada Lovelace and Alan Turing met.", rng, []) is None


def test_an_edited_number_may_come_from_the_document():
    names = find_details("It opened in 1887, was closed in 1901, and cost 12 pounds to Ada Lovelace.")
    assert {"1887", "1901", "12", "Ada Lovelace"} <= set(names)
    found = {swap_number("Opened in 1887.", random.Random(seed), names).text for seed in range(30)}
    assert "Opened in 1901." in found and not any("12" in f for f in found if len(f) != len("Opened in 1887."))
