"""Selection of hypotheses: exact spans, whole sentences, and noise with its reason."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowhalu.methods.conli.method import select_hypotheses, split_response

MARKS = st.sampled_from([*".!?:;,()[]\"'“”*#-|>&∯…", "\n", "\r\n", " ", "1. ", "a. ", "Dr. ", "e.g. ", "...", "\u2028", "。"])
texts = st.lists(st.one_of(MARKS, st.sampled_from(["The cat", "sat", "In 1990", "J", "U.S"]), st.text(max_size=5)), max_size=30)


@given(texts.map("".join))
@settings(max_examples=150)
def test_spans_are_exact_in_order_and_miss_nothing_but_white_space(text):
    spans = split_response(text)
    assert all(text[s.start : s.end] == s.text and s.text.strip() == s.text != "" for s in spans)
    ends = [0, *(s.end for s in spans)]
    starts = [*(s.start for s in spans), len(text)]
    assert all(a <= b and not text[a:b].strip() for a, b in zip(ends, starts, strict=True))


@given(texts.map("".join), st.booleans())
@settings(max_examples=100)
def test_every_sentence_is_either_checked_or_named_with_its_reason(text, answers):
    chosen = select_hypotheses(text, answers=answers)
    assert len(chosen.hypotheses) + len(chosen.dropped) == len(split_response(text))
    assert all(text[s.start : s.end] == s.text for s in (*chosen.hypotheses, *chosen.dropped))
    assert all(d.reason for d in chosen.dropped)
    assert all(any(c.isalnum() for c in s.text) for s in chosen.hypotheses)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"Is it true?" she asked. "No!" he said.', ['"Is it true?" she asked.', '"No!" he said.']),
        ("He said: ‘It died!’ and left. So did she.", ["He said: ‘It died!’ and left.", "So did she."]),
        ("The firm (founded by Dr. Low.) was big. It died.", ["The firm (founded by Dr. Low.) was big.", "It died."]),
        ("He lives in the U.K. She does not.", ["He lives in the U.K.", "She does not."]),
        ("1. It opened.\n2. It closed.", ["1. It opened.", "2. It closed."]),
        ("Dr. Smith came on Jan. 5, 2020. He paid $3.50.", ["Dr. Smith came on Jan. 5, 2020.", "He paid $3.50."]),
        ("It rained in\nthe hills. Nobody\ncame.", ["It rained in\nthe hills.", "Nobody\ncame."]),
        ("", []),
        ("  \n ", []),
    ],
)  # fmt: skip
def test_speech_brackets_numbers_and_wrapped_lines_stay_in_their_sentence(text, expected):
    assert [s.text for s in split_response(text)] == expected


@pytest.mark.parametrize(
    ("noise", "reason"),
    [
        ("---", "markup"), ("|---|---|", "markup"), ("```", "markup"), ("<br>", "markup"), ("* * *", "markup"),
        ("# The bridge", "heading"), ("**Key facts**", "heading"), ("The main points:", "heading"),
        ("Hello there!", "courtesy"), ("Dear Anna,", "courtesy"), ("Thank you so much for your question!", "courtesy"),
        ("Sure, here is the summary you asked for.", "courtesy"), ("I hope this helps!", "courtesy"),
        ("Let me know if you need anything else.", "courtesy"), ("Best regards,", "courtesy"), ("Great question!", "courtesy"),
        ("Who built it?", "question"), ("“Why not?”", "question"),
        ("Indeed.", "short"), ("That is it.", "short"),
    ],
)  # fmt: skip
def test_noise_is_left_out_and_named(noise, reason):
    chosen = select_hypotheses(f"The bridge opened in 1932.\n\n{noise}\n\nIt is long.")
    assert [s.text for s in chosen.hypotheses] == ["The bridge opened in 1932.", "It is long."]
    assert [reason in d.reason for d in chosen.dropped] == [True]


@pytest.mark.parametrize(
    "claim",
    ["Sure, the tower opened in 1889.", "Here is the church that Wren built.", "Note: it rained.", 'He asked: "Why?"', "He died.",
     "Thanks to the rain, the river rose.", "1889.", "Hope sank when the mine shut.", 
     "In 1990 it had two parts: a nave and a tower.", "- **Cost**: four million", "Welcome rain fell on Monday."],
)  # fmt: skip
def test_sentences_with_claims_are_kept(claim):
    assert len(select_hypotheses(f"It is long. \n\n{claim}\n\nIt is old.").hypotheses) == 3


def test_list_marks_are_no_part_of_a_hypothesis():
    chosen = select_hypotheses("- The lake froze.\n2. The sea did not.\n> He said so.")
    assert [s.text for s in chosen.hypotheses] == ["The lake froze.", "The sea did not.", "He said so."]


def test_one_word_is_checked_where_it_is_the_whole_response_or_answers_a_question():
    assert [s.text for s in select_hypotheses("Vienna.").hypotheses] == ["Vienna."]
    assert [s.text for s in select_hypotheses("Yes. It opened.", answers=True).hypotheses] == ["Yes.", "It opened."]
    assert not select_hypotheses("Hello!").hypotheses


def test_without_selection_only_markup_is_left_out():
    chosen = select_hypotheses("Hello! Who built it?\n---", keep_all=True)
    assert len(chosen.hypotheses) == 2 and len(chosen.dropped) == 1


def test_long_lines_are_split_without_losing_a_sentence():
    sentence = "The cat, aged 5, sat on Dr. Smith's mat in 1999."
    found = split_response(" ".join([sentence] * 200))
    assert [s.text for s in found] == [sentence] * 200
    assert split_response("x" * 2000)[0].end == 2000


@pytest.mark.parametrize("heading", ["=== Early life ===", "--- 1990 ---", "==\tLife in two  parts\t--", "=_a b_="])
def test_words_between_rules_are_a_heading(heading):
    (dropped,) = select_hypotheses(f"{heading}\n\nIt opened in 1990.").dropped
    assert (dropped.text, dropped.reason) == (heading, "a heading")


@pytest.mark.parametrize("text", ["=" + " " * 20_000 + "x!", "--" + " a" * 20_000 + "!", "?" * 400_000 + "x"])
def test_a_long_text_that_is_almost_noise_is_checked_without_trying_all_ways_to_read_it(text):
    (hypothesis,) = select_hypotheses(text).hypotheses
    assert hypothesis.text == text
