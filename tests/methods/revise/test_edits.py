"""Drafts: sentences leave or change, every other character stays."""

from hypothesis import given
from hypothesis import strategies as st

from knowhalu.methods.revise.edits import (
    LABEL_SEVERITY,
    SentenceVerdicts,
    diff_edits,
    editable_spans,
    make_edits,
    spans_after_edits,
)
from knowhalu.results import Segment
from knowhalu.text.edits import apply_edits
from knowhalu.text.sentences import Span
from knowhalu.types import Judgment, Label, Sample
from tests.support.revising import verdict

SENTENCES = [
    "The red ship sails.",
    "It is 3.5 miles long!",
    "“Who knows?”",
    "Mr. Jones said so.",
    "- A thing on a list.",
    "Ärger.",
]
GAPS = [" ", "  ", "\n", "\n\n", " \n", "\t"]
texts = st.lists(st.tuples(st.sampled_from(SENTENCES), st.sampled_from(GAPS)), min_size=1, max_size=7).map(
    lambda parts: "".join(s + g for s, g in parts)
)
anything = st.one_of(texts, st.text(max_size=60))


def without(text, *dropped):
    return apply_edits(text, make_edits(text, editable_spans(text), dict.fromkeys(dropped, "")).values())


def test_a_sentence_in_the_middle_takes_one_separator_along():
    assert without("One is here. Two is here. Three is here.", 1) == "One is here. Three is here."


def test_the_first_and_the_last_leave_no_white_space_behind():
    text = "One is here. Two is here.\n"
    assert without(text, 0) == "Two is here.\n"
    assert without(text, 1) == "One is here.\n"


def test_paragraphs_stay_apart():
    text = "One is here. Two is here.\n\nThree is here. Four is here."
    assert without(text, 1) == "One is here.\n\nThree is here. Four is here."
    assert without(text, 2) == "One is here. Two is here.\n\nFour is here."
    assert without(text, 1, 2) == "One is here.\n\nFour is here."
    assert without("One is here.\n\nTwo is here.\n\nThree is here.", 1) == "One is here.\n\nThree is here."


def test_an_item_of_a_list_leaves_with_its_number_or_mark():
    assert without("1. One is here.\n2. Two is here.\n3. Three is here.", 1) == "1. One is here.\n3. Three is here."
    assert without("Colours:\n- Red is here.\n- Blue is here.\n", 1) == "Colours:\n- Blue is here.\n"


def test_everything_dropped_leaves_nothing_to_read():
    assert not without(" One is here. Two is here. ", 0, 1).strip()


@given(anything, st.data())
def test_what_is_not_changed_stays_where_it_is_said_to_be(text, data):
    spans = editable_spans(text)
    choice = st.sampled_from([None, "", "New words here."])
    new = {i: put for i in range(len(spans)) if (put := data.draw(choice)) is not None}
    made = make_edits(text, spans, new)
    after = apply_edits(text, made.values())
    put = spans_after_edits(spans, made)
    assert set(put) == {i for i in range(len(spans)) if new.get(i) != ""}
    for i, place in put.items():
        assert after[place.start : place.end] == place.text == (new.get(i) or spans[i].text)
    letters = "".join(place.text for _, place in sorted(put.items()))
    assert "".join(after.split()) == "".join(letters.split())


@given(anything, anything)
def test_differences_make_one_text_of_the_other(old, new):
    assert apply_edits(old, diff_edits(old, new)) == new


@given(texts, texts)
def test_a_sentence_that_stands_in_both_texts_is_not_among_the_differences(before, after):
    text, new = before + "This very sentence stays. " + after, before + "This very sentence stays. "
    at = text.index("This very")
    assert not [e for e in diff_edits(text, new) if e.start < at + 25 and at < e.end]


def test_differences_are_told_sentence_by_sentence():
    found = diff_edits("One is red. Two is blue. Three is here.", "One is green. Two is blue. Three is here. Four too.")
    assert [(e.start, e.new) for e in found] == [(0, "One is green."), (39, " Four too.")]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9), st.sampled_from(list(Label))), max_size=8), st.integers(0, 30))
def test_what_is_said_of_a_place_is_the_worst_of_the_segments_there(given, start):
    text = "abcdefghij" * 5
    place = Span(start, start + 6, text[start : start + 6])
    verdict = made_verdict(text, [(a, a + n, label) for a, n, label in given])
    there = [s for s in verdict.segments if s.start < place.end and place.start < s.end]
    read = SentenceVerdicts(verdict).of(place)
    assert sorted(read.segments, key=id) == sorted(there, key=id)
    assert read.label == max((s.label for s in there), key=LABEL_SEVERITY.__getitem__, default=None)


def made_verdict(text, segments):
    judged = [
        Segment(
            start=a, end=b, text=text[a:b], label=label, probability=0.5,
            base=Judgment(label=label, confidence=0.5, rationale="so"),
        )
        for a, b, label in segments
    ]  # fmt: skip
    return verdict(Sample(id="1", response=text), Label.CORRECT, tuple(judged))
