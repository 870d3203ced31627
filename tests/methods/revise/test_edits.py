"""Edits: sentences are dropped or replaced, and every other character stays."""

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


def test_dropping_a_middle_sentence_removes_one_separator():
    assert without("One is here. Two is here. Three is here.", 1) == "One is here. Three is here."


def test_dropping_the_first_or_last_sentence_leaves_no_white_space():
    text = "One is here. Two is here.\n"
    assert without(text, 0) == "Two is here.\n"
    assert without(text, 1) == "One is here.\n"


def test_windows_do_not_cross_paragraphs():
    text = "One is here. Two is here.\n\nThree is here. Four is here."
    assert without(text, 1) == "One is here.\n\nThree is here. Four is here."
    assert without(text, 2) == "One is here. Two is here.\n\nFour is here."
    assert without(text, 1, 2) == "One is here.\n\nFour is here."
    assert without("One is here.\n\nTwo is here.\n\nThree is here.", 1) == "One is here.\n\nThree is here."


def test_a_dropped_list_item_takes_its_marker_along():
    assert without("1. One is here.\n2. Two is here.\n3. Three is here.", 1) == "1. One is here.\n3. Three is here."
    assert without("Colours:\n- Red is here.\n- Blue is here.\n", 1) == "Colours:\n- Blue is here.\n"


def test_dropping_every_sentence_leaves_an_empty_text():
    assert not without(" One is here. Two is here. ", 0, 1).strip()


@given(anything, st.data())
def test_unchanged_sentences_keep_exact_spans_after_edits(text, data):
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
def test_differences_turn_one_text_into_the_other(old, new):
    assert apply_edits(old, diff_edits(old, new)) == new


@given(texts, texts)
def test_a_sentence_in_both_texts_is_not_among_the_differences(before, after):
    text, new = before + "This very sentence stays. " + after, before + "This very sentence stays. "
    at = text.index("This very")
    assert not [e for e in diff_edits(text, new) if e.start < at + 25 and at < e.end]


def test_differences_are_edits_of_sentences():
    found = diff_edits("One is red. Two is blue. Three is here.", "One is green. Two is blue. Three is here. Four too.")
    assert [(e.start, e.new) for e in found] == [(0, "One is green."), (39, " Four too.")]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9), st.sampled_from(list(Label))), max_size=8), st.integers(0, 30))
def test_the_verdict_on_a_span_is_that_of_its_worst_segment(given, start):
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
