"""Sentences, segments, chunks and words: exact offsets, nothing but white space lost, limits kept."""

import multiprocessing
import resource
import sys
from multiprocessing.connection import Connection

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from knowhalu.text.sentences import (
    MAX_CACHED_CHARS,
    at_most_segments,
    chunks,
    content_words,
    segments,
    sentences,
    stem,
    windows,
    word_count,
    words,
)
from tests.support.hanging import HANG

PIECES = [
    "Dr.", "Who", "came", "He", "left", "at", "3", "p.m.", "Then", "slept.", "U.S.", "e.g.", "Mr.", "3.14", "1,000", ".", "...",
    "!", "?", "\n", "\n\n", "- item", "“Yes,”", "he", "said.", "(see", "below).", "and", "which", ";", ",", "–", "A.", "B.",
    "Inc.", "No.", "Donovan.Bernard", "5", "é", "日本語。", "\u00a0", "\u2028", "\t", "x" * 40, "“", "”", "can’t",
]  # fmt: skip
prose = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=60).map(" ".join)
texts = st.one_of(prose, st.text(max_size=200))
limits = st.integers(1, 40)


def check_spans(text, spans, *, gaps_are_space=True):
    """Hold what every splitter promises: exact, ordered, trimmed, not empty, and nothing but white space left out."""
    at = 0
    for start, end, piece in spans:
        assert text[start:end] == piece
        assert piece == piece.strip() != ""
        if gaps_are_space:
            assert start >= at
            assert not text[at:start].strip()
        at = end
    if gaps_are_space:
        assert not text[at:].strip()


@given(texts)
def test_sentences_lose_nothing(text):
    check_spans(text, sentences(text))


@given(texts, limits)
def test_segments_lose_nothing_and_keep_the_limit(text, limit):
    found = segments(text, limit)
    check_spans(text, found)
    assert all(word_count(s.text) <= limit for s in found)


@given(texts, limits)
def test_segments_are_packed(text, limit):
    found = segments(text, limit)
    for left, right in zip(found, found[1:], strict=False):
        assert word_count(text[left.start : right.end]) > limit


@given(texts, limits)
@example("A b c. D e f. " * 30, 5)
def test_chunks_keep_the_limit(text, limit):
    found = chunks(text, limit)
    check_spans(text, found)
    assert all(word_count(s.text) <= limit for s in found)


PARAGRAPH = st.lists(st.sampled_from(["The bridge is old.", "It was closed in spring, they said;", "Why?", "A list:", "x" * 9]))


@given(st.lists(PARAGRAPH.map(lambda p: " ".join([*p, "It ends."])), min_size=3, max_size=6), limits)
def test_chunks_do_not_depend_on_surrounding_paragraphs(paragraphs, limit):
    alone = [[c.text for c in chunks(p, limit)] for p in paragraphs]
    assert [c.text for c in chunks("\n\n".join(paragraphs), limit)] == sum(alone, [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One is here. Two is.\n\nThree is.", ["One is here. Two is.", "Three is."]),
        ("The title\n\nOne is here.\n \nTwo is.", ["The title\n\nOne is here.", "Two is."]),
        ("One is here.\nTwo is.", ["One is here.\nTwo is."]),
        ("“One is here.”\n\nThings:\n\n- eggs\n\n- flour", ["“One is here.”", "Things:\n\n- eggs\n\n- flour"]),
    ],
)
def test_chunks_restart_after_a_paragraph_but_not_after_a_heading(text, expected):
    assert [c.text for c in chunks(text, 40)] == expected


@given(texts, st.integers(2, 60), st.data())
def test_windows_cover_every_word(text, limit, data):
    overlap = data.draw(st.integers(0, limit - 1))
    found = windows(text, limit, overlap)
    check_spans(text, found, gaps_are_space=False)
    covered = {i for w in found for i in range(w.start, w.end)}
    assert all(i in covered for i, c in enumerate(text) if not c.isspace())
    assert all(word_count(w.text) <= limit for w in found)
    assert all(a.start < b.start and a.end < b.end for a, b in zip(found, found[1:], strict=False))


@given(texts)
def test_words_have_exact_offsets(text):
    found = words(text)
    assert all(text[a:b] == w and w for a, b, w in found)
    assert all(left.end <= right.start for left, right in zip(found, found[1:], strict=False))


@given(texts)
def test_content_words_are_lower_case_and_not_empty(text):
    assert all(w and w == w.lower() for w in content_words(text))


WORKED = {
    "Dr. Who came. He left at 3 p.m. Then slept.": ["Dr. Who came.", "He left at 3 p.m.", "Then slept."],
    "She left at 3 p.m. and slept.": ["She left at 3 p.m. and slept."],
    "It costs 3.50 dollars. That is 2.5% more.": ["It costs 3.50 dollars.", "That is 2.5% more."],
    "He lives in the U.S. today.": ["He lives in the U.S. today."],
    "Mr. and Mrs. Smith met Prof. J. R. Jones. They ate.": ["Mr. and Mrs. Smith met Prof. J. R. Jones.", "They ate."],
    "The firm is Acme Inc. It was sold.": ["The firm is Acme Inc.", "It was sold."],
    "Acme Inc. was sold.": ["Acme Inc. was sold."],
    "Cats, dogs, etc. are pets. Yes.": ["Cats, dogs, etc. are pets.", "Yes."],
    "No stop at the end": ["No stop at the end"],
    "It was sung by Donovan.Bernard Curry wrote it.": ["It was sung by Donovan.", "Bernard Curry wrote it."],
    "See example.com for more. Or node.js docs.": ["See example.com for more.", "Or node.js docs."],
    "One line\nAnother line": ["One line", "Another line"],
    "Title\n\nText one. Text two.": ["Title", "Text one.", "Text two."],
    "Things:\n- one\n- two": ["Things:", "- one", "- two"],
    "Really?! Yes! No... Maybe.": ["Really?!", "Yes!", "No...", "Maybe."],
    "“Stop.” He ran. (It was late.) Then dark.": ["“Stop.”", "He ran.", "(It was late.)", "Then dark."],
    "He won in 1999. 2001 was worse.": ["He won in 1999.", "2001 was worse."],
    "He said no. and left.": ["He said no. and left."],
    "Version 2.0.1 is out. Use it.": ["Version 2.0.1 is out.", "Use it."],
    "See Fig. 3 and No. 5. Both help.": ["See Fig. 3 and No. 5.", "Both help."],
    "It was e.g. red, i.e. warm. Fine.": ["It was e.g. red, i.e. warm.", "Fine."],
    "He took vitamin C. Then he slept.": ["He took vitamin C.", "Then he slept."],
    "In March he said no. Then he left.": ["In March he said no.", "Then he left."],
    "The answer is no. It was never built.": ["The answer is no.", "It was never built."],
    "He was born on 5 Jan. 1900 in Rome.": ["He was born on 5 Jan. 1900 in Rome."],
    "这是一句。那是另一句。": ["这是一句。", "那是另一句。"],
    "It orbits the sun. Then it turns. The U.S. The country is big.": [
        "It orbits the sun.", "Then it turns.", "The U.S.", "The country is big.",
    ],
    "Written by J. Smith et al. in 1990. It sold.": ["Written by J. Smith et al. in 1990.", "It sold."],
    "They played Blur vs. Oasis in the Washington D.C. area. Good.": [
        "They played Blur vs. Oasis in the Washington D.C. area.", "Good.",
    ],
    "George W. Bush met J. K. Rowling on Jan. 5. Who won?": ["George W. Bush met J. K. Rowling on Jan. 5.", "Who won?"],
    "...": ["..."],
    "": [],
    " \n ": [],
}  # fmt: skip


@pytest.mark.parametrize("text", WORKED)
def test_worked_sentences(text):
    assert [s.text for s in sentences(text)] == WORKED[text]


def test_a_long_sentence_is_cut_at_clauses():
    text = "The old bridge was closed in the spring, because the river had risen; it opened again after the summer was over."
    found = [s.text for s in segments(text, 12)]
    assert found[0] == "The old bridge was closed in the spring,"
    assert all(word_count(s) <= 12 for s in found)


def test_a_first_sentence_over_the_limit_makes_no_empty_segment():
    found = segments(" ".join(["word"] * 65) + ". Short one.", 30)
    assert [word_count(s.text) for s in found] == [30, 30, 7]


@pytest.mark.parametrize("most", [1, 4, 1000])
def test_a_long_text_gets_longer_segments_and_not_more_of_them(most):
    text = "The bridge is old. " * 400
    found = at_most_segments(text, 10, most)
    assert len(found) <= most and "".join(s.text for s in found).count("bridge") == 400
    check_spans(text, found)
    assert at_most_segments("One. Two.", 30, most) == segments("One. Two.", 30)


def test_few_whole_documents_are_cached():
    documents = [f"Document {n}. {'It goes on and on. ' * 600}" for n in range(40)]
    before = sys.getrefcount(documents[0])
    for document in documents:
        assert len(chunks(document)) > 1
    after = sys.getrefcount(documents[0])
    assert after == before


def test_words_keep_numbers_whole():
    assert [w.text for w in words("It rose 3.5% to $1,000.50, didn't it? Well-known U.S. fact.")] == [
        "It", "rose", "3.5%", "to", "$", "1,000.50", "didn't", "it", "Well-known", "U.S", "fact",
    ]  # fmt: skip


def test_inflected_forms_meet():
    pairs = "studies study, played plays, making make, names name, times time, cars car, moved move, cities city, newton's newton"
    for pair in pairs.split(", "):
        one, other = pair.split()
        assert stem(one) == stem(other), pair


def test_many_short_texts_are_cached_and_few_long_ones():
    short, *_ = [sentences(f"{i}. It rains.") for i in range(100)]
    long, *_ = [sentences(f"{i}. {'It rains. ' * MAX_CACHED_CHARS}"[: MAX_CACHED_CHARS + 1]) for i in range(20)]
    assert sentences("0. It rains.") is short
    assert sentences(f"0. {'It rains. ' * MAX_CACHED_CHARS}"[: MAX_CACHED_CHARS + 1]) is not long


HOSTILE = [
    "a" * 500_000,
    "a." * 250_000,
    "(" * 500_000,
    "\n" * 500_000,
    ". " * 200_000,
    "a, " * 130_000,
    "... " * 100_000,
    " " * 500_000,
]


def split_hostile(done: Connection) -> None:
    """Split each text and say so; the system ends a process whose computing takes so many seconds, also within a pattern."""
    resource.setrlimit(resource.RLIMIT_CPU, (HANG, HANG))
    for number, text in enumerate(HOSTILE):
        check_spans(text, segments(text, 30))
        done.send(number)


def test_hostile_text_takes_no_quadratic_time():
    """All of it takes three seconds; a step that looked at the rest of one text for each of its characters would take minutes."""
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=split_hostile, args=(writer,))
    process.start()
    writer.close()
    for number, text in enumerate(HOSTILE):
        try:
            assert reader.recv() == number
        except EOFError:
            pytest.fail(f"{text[:4]!r}...: the process ended")
    process.join()
    assert process.exitcode == 0


@pytest.mark.parametrize(
    ("text", "count"),
    [("Call text.TrimLeft(s) first.", 1), ("Use Console.WriteLine here.", 1), ("It ended.Then it rained.", 2)],
)
def test_a_dot_inside_a_name_of_code_ends_no_sentence(text, count):
    assert len(sentences(text)) == count


@pytest.mark.parametrize("word", ["max.", "min.", "approx.", "no."])
def test_an_abbreviation_before_a_number_ends_no_sentence(word):
    assert len(sentences(f"Take {word} 8 jars. Close them.")) == 2
    assert len(sentences("The climb takes 40 min. Bring water.")) == 2


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("It takes a depth and a width. width is in metres.", 2),
        ("The pump is sold with a stand. iPumps are not.", 2),
        ("Prices incl. tax are lower.", 1),
        ("A mill of approx. nine metres stands there.", 1),
        ("He lives in Calif. now.", 1),
    ],
)
def test_a_sentence_may_open_with_a_small_letter_after_a_whole_word(text, count):
    assert len(sentences(text)) == count
