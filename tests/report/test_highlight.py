"""Pieces of a response: every character is shown once, with the right mark."""

from hypothesis import given
from hypothesis import strategies as st

from knowhalu.report.items import (
    MAX_RESPONSE_CHARS,
    HighlightedSegment,
    HighlightedText,
    highlight_segments,
)
from knowhalu.results import Finding
from knowhalu.types import Label
from tests.support.report_runs import sample, verdict

ONE = sample(0)
SAID = verdict(ONE, 0.9)
(SEGMENT,) = SAID.segments
(EVIDENCE,) = SAID.evidence


def with_segments(*segments):
    return SAID.model_copy(update={"segments": segments})


def cut(segment, start, end, **more):
    return segment.model_copy(update={"start": start, "end": end, "text": ONE.response[start:end], **more})


def test_evidence_marks_its_words_with_its_number():
    assert highlight_segments(ONE.response, SAID) == [
        HighlightedSegment(
            Label.INCORRECT,
            0.9,
            (HighlightedText("It is ", ""), HighlightedText("300", "contradicted", (1,)), HighlightedText(" metres high.", "")),
        )
    ]


def test_contradiction_is_shown_over_support():
    support = EVIDENCE.model_copy(update={"response_start": 0, "response_end": 22, "relation": "supports"})
    finding = Finding(unit="entity", start=10, end=16, text="metres", label=Label.INCONCLUSIVE, p_supported=0.5, reason="open")
    segment = SEGMENT.model_copy(update={"evidence": (support, EVIDENCE), "findings": (finding,)})
    (found,) = highlight_segments(ONE.response, with_segments(segment))
    assert [(p.text, p.mark, p.evidence) for p in found.pieces] == [
        ("It is ", "supported", ()), ("300", "contradicted", (2,)), (" ", "supported", ()), ("metres", "open", ()),
        (" high.", "supported", (1,)),
    ]  # fmt: skip


def test_text_between_segments_has_no_label():
    found = highlight_segments(ONE.response, with_segments(cut(SEGMENT, 0, 5, evidence=()), cut(SEGMENT, 10, 22, evidence=())))
    assert [(s.label, "".join(p.text for p in s.pieces)) for s in found] == [
        (Label.INCORRECT, "It is"), (None, " 300 "), (Label.INCORRECT, "metres high."),
    ]  # fmt: skip


def test_a_response_without_segments_is_judged_as_a_whole():
    assert highlight_segments("Paris.", with_segments()) == [
        HighlightedSegment(Label.INCORRECT, 0.9, (HighlightedText("Paris.", ""),))
    ]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=4),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=4),
)
def test_every_character_is_shown_once_for_any_offsets(segments, marks):
    evidence = tuple(EVIDENCE.model_copy(update={"response_start": a, "response_end": b}) for a, b in marks)
    made = with_segments(*(cut(SEGMENT, a, b, evidence=evidence) for a, b in segments))
    assert "".join(p.text for s in highlight_segments(ONE.response, made) for p in s.pieces) == ONE.response


def test_long_response_tells_the_omitted_characters():
    found = highlight_segments("x" * (MAX_RESPONSE_CHARS + 1234), with_segments())
    assert "1,234 more characters are not shown" in found[0].pieces[0].text


def test_response_is_rebuilt_from_segments_without_the_row():
    assert SAID.response == ONE.response
    parted = with_segments(cut(SEGMENT, 0, 5), cut(SEGMENT, 10, 22))
    assert parted.response == "It is …   metres high."
    assert len(parted.response) == len(ONE.response)
