"""Chunking: passages cover the text within the limits, overlap as configured, and stay within sections."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.errors import InputError
from knowhalu.index.chunking import Chunk, chunk_document, count_words, passage_title
from knowhalu.index.manifest import Chunking
from knowhalu.ingest.records import Heading
from knowhalu.ingest.sources import SourceRecord

PARTS = st.sampled_from(
    ["One", "two", "Dr.", "three.", "end!", "3.14", ",", "and", ";", "…", "日本語です。", "ภาษาไทย", "x" * 100, "\n", "\n\n",
     "- ", "\u3000", "\xa0", '"', "a.m.", "That", "𝄞"]
)  # fmt: skip
TEXTS = st.lists(PARTS, max_size=60).map(" ".join)


def record(text: str, headings: tuple[Heading, ...] = (), title: str = "T") -> SourceRecord:
    """Make a document of a text."""
    return SourceRecord("d", title, text, "test", headings)


def passages(text: str, words: int, overlap: int = 0, **other: object) -> list[Chunk]:
    """Cut a text and return the passages."""
    return list(chunk_document(record(text, **other), Chunking(words=words, overlap=overlap)))  # type: ignore[arg-type]


@given(TEXTS, st.integers(1, 12), st.data())
def test_passages_quote_and_cover_the_text_within_the_limit(text: str, words: int, data: st.DataObject) -> None:
    """Offsets are exact, nothing but white space is left out, every passage brings something new."""
    overlap = data.draw(st.integers(0, words - 1))
    spans = [p.span for p in passages(text, words, overlap)]
    covered: set[int] = set()
    end = -1
    for span in spans:
        assert text[span.start : span.end] == span.text == span.text.strip() != ""
        assert count_words(span.text) <= words and span.end > end
        shared = text[span.start : end] if span.start < end else ""
        assert count_words(shared) <= overlap
        covered |= set(range(span.start, span.end))
        end = span.end
    assert {i for i, c in enumerate(text) if not c.isspace()} <= covered
    assert [s.start for s in spans] == sorted({s.start for s in spans})


@given(st.lists(st.tuples(TEXTS, st.booleans()), max_size=6), st.integers(1, 12))
def test_no_passage_crosses_a_section(parts: list[tuple[str, bool]], words: int) -> None:
    """A passage lies within one section, or begins with headings that stand alone; all is covered."""
    text, headings = "", []
    for number, (part, headed) in enumerate(parts):
        if headed:
            line = f"Heading {number}"
            headings.append(Heading(len(text), len(text) + len(line), (line,)))
            text += line + "\n"
        text += part + "\n"
    found = passages(text, words, headings=tuple(headings))
    covered = {i for p in found for i in range(p.span.start, p.span.end)}
    assert {i for i, c in enumerate(text) if not c.isspace()} <= covered
    for passage in found:
        inside = [h for h in headings if passage.span.start < h.start < passage.span.end]
        for h in inside:
            before = next((o.end for o in reversed(headings) if o.start < h.start), 0)
            assert not text[max(before, passage.span.start) : h.start].strip()


def test_overlap_consists_of_whole_sentences() -> None:
    """A worked example: four sentences of three words, six words a passage, three shared."""
    text = "One two three. Four five six. Seven eight nine. Ten eleven twelve."
    assert [p.span.text for p in passages(text, 6)] == [text[:29], text[30:]]
    assert [p.span.text for p in passages(text, 6, 3)] == [text[:29], text[15:47], text[30:]]
    assert [p.span.text for p in passages(text, 6, 2)] == [text[:29], text[30:]]


def test_a_sentence_as_long_as_a_passage_is_not_shared() -> None:
    """No passage repeats only what was there."""
    long = "Very " * 7 + "long."
    text = f"Red sun. Blue sky. {long} Green sea."
    assert [p.span.text for p in passages(text, 9, 4)] == ["Red sun. Blue sky.", long, "Green sea."]


def test_passages_have_the_path_of_their_section() -> None:
    """A heading without text of its own goes with the section under it."""
    text = "Lead here.\nHistory\nEarly\nIt began.\nLate\nIt ended."
    headings = (Heading(11, 18, ("History",)), Heading(19, 24, ("History", "Early")), Heading(35, 39, ("History", "Late")))
    found = passages(text, 50, headings=headings)
    assert [(p.section, p.span.text) for p in found] == [
        ("", "Lead here."),
        ("History > Early", "History\nEarly\nIt began."),
        ("History > Late", "Late\nIt ended."),
    ]
    assert [passage_title(*t) for t in (("Town", "Past"), ("Town", ""), ("", "Past"))] == ["Town > Past", "Town", "Past"]
    whole = chunk_document(record(text, headings), Chunking(words=50, sections=False))
    assert [(p.section, p.span.text) for p in whole] == [("", text)]


def test_zero_words_keep_a_document_whole() -> None:
    """Nothing is cut, not even sections."""
    text = " One. Two.\n"
    assert passages(text, 0, headings=(Heading(1, 5, ("One.",)),)) == [("", (0, 11, text))]


def test_text_without_spaces_is_split() -> None:
    """Two letters of a script without spaces, and forty of any other, count as a word."""
    assert [len(p.span.text) for p in passages("日" * 100, 10)] == [20] * 5
    assert [len(p.span.text) for p in passages("x" * 1000, 10)] == [400, 400, 200]
    assert count_words("plain words, 3.5% of them") == 5


def test_an_overlap_as_long_as_a_passage_is_refused() -> None:
    """As many shared words as a passage has would never end."""
    with pytest.raises(InputError, match="an overlap of 5 words does not fit into passages of 5"):
        passages("One.", 5, 5)


@pytest.mark.parametrize("text", ["." * 200_000 + "x", "a" + " " * 200_000 + "b", "-\n" * 50_000, "((" * 100_000, "“" * 100_000])
def test_chunking_time_is_not_quadratic(text: str) -> None:
    """These would take minutes if any step looked at the rest of the text for each of its characters."""
    assert passages(text, 20, 5)[-1].span.end == len(text.rstrip())
