"""Revisions: changes quote the original and give the revised text; JSON there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from knowhalu.errors import InputError
from knowhalu.io.outcomes import format_outcome, parse_outcome, parse_revision
from knowhalu.methods.revise.edits import make_unified_diff
from knowhalu.results import Failure
from knowhalu.text.edits import TextEdit, apply_edits
from tests.support.revising import revise

FOUND = revise("Mars is red. It is wrong.\u2028")


def test_a_revision_reads_back_from_its_line():
    line = format_outcome(FOUND, "0123456789abcdef")
    assert "\n" not in line and parse_revision(line) == FOUND
    failure = Failure(id="1", stage="judge", reason="no label")
    assert parse_revision(format_outcome(failure)) == failure


def test_a_verdict_is_no_revision_and_a_revision_no_verdict():
    with pytest.raises(InputError):
        parse_outcome(format_outcome(FOUND))
    with pytest.raises(InputError):
        parse_revision(format_outcome(FOUND.before))


@pytest.mark.parametrize("lie", [
    {"revised": "Mars is green."}, {"revised": None}, {"original": "Mars is blue. It is wrong.\u2028"}, {"status": "refused"},
    {"changes": ()},
])  # fmt: skip
def test_an_inconsistent_revision_is_refused(lie):
    with pytest.raises(ValidationError):
        type(FOUND).model_validate(FOUND.model_dump() | lie)


@given(st.text(max_size=40), st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10), st.text(max_size=5)), max_size=4))
def test_edits_are_applied_in_any_order(text, steps):
    made, expected, at = [], "", 0
    for skip, length, new in steps:
        start = min(len(text), at + skip)
        end = min(len(text), start + length)
        made.append(TextEdit(start, end, new))
        expected += text[at:start] + new
        at = end + 1
        expected += text[end : end + 1]
    expected += text[at:]
    if len({e.start for e in made}) == len(made):
        assert apply_edits(text, reversed(made)) == expected


def test_edits_that_overlap_are_refused():
    with pytest.raises(ValueError, match="overlap at character 3"):
        apply_edits("Mars is red.", [TextEdit(0, 4, "Venus"), TextEdit(3, 6, "x")])


def test_the_diff_has_a_sentence_on_each_line():
    assert make_unified_diff("One is here. Two is here.", "One is here.").split("\n")[3:] == [" One is here.", "-Two is here."]
    assert make_unified_diff("One is here.", "One is here.") == ""
