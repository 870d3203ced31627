"""The window that a claim is judged by: chosen by shared words, independent of text elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.methods.common.evidence_selection import WindowSource, best_window, document_window, window_sentences
from knowhalu.text.sentences import MAX_CACHED_CHARS, word_count
from knowhalu.types import Knowledge, KnowledgeForm, Passage, Query, Sample, Step

BRIDGE = "The harbour bridge opened in 1932. It was closed for repairs last spring. Nobody had expected that."
RAIN = "Rain fell all week. The fields were wet and the cows stayed inside."
CLAIM = "The harbour bridge was closed for repairs."


def choose(claim, texts, limit, found=None):
    """Choose where a search found all of every text, or only the stretch `found`."""
    spans = [[(t.index(found), t.index(found) + len(found))] if found and found in t else [] for t in texts]
    return best_window(claim, [WindowSource(t, s if found else [(0, len(t))]) for t, s in zip(texts, spans, strict=True)], limit)


def test_the_window_with_most_words_is_found_in_any_document():
    number, span = choose(CLAIM, [RAIN, f"{RAIN}\n\n{BRIDGE}\n\n{RAIN}"], 60)
    assert number == 1 and span.text == BRIDGE


def test_among_equal_windows_the_shortest_is_chosen_then_the_first():
    far = "The harbour was old. Nobody knew how old. Then came the bridge."
    assert choose("A harbour bridge", [far, "A harbour bridge stood there.", "The harbour bridge fell."], 12)[0] == 2
    assert choose("A harbour bridge", ["The harbour bridge stood.", "The harbour bridge fell."], 4)[0] == 0


def test_a_repeated_word_counts_once():
    text = "Bridge, bridge, bridge and bridge.\n\nThe bridge has repairs."
    assert choose("The bridge repairs", [text], 5)[1].text == "The bridge has repairs."


@pytest.mark.parametrize(
    ("limit", "first", "last"), [(7, "It was", "last spring."), (13, "The harbour", "last spring."), (17, "The", "that.")]
)
def test_neighbours_before_and_after_fill_the_limit(limit, first, last):
    _, span = choose("closed for repairs last spring", [f"{RAIN}\n\n{BRIDGE}"], limit)
    assert span.text.startswith(first) and span.text.endswith(last)


def test_a_window_without_a_retrieved_sentence_is_not_chosen():
    worse = "The bridge has rails."
    _, span = choose(CLAIM, [f"{BRIDGE}\n\n{RAIN}\n\n{worse}"], 60, found=worse)
    assert span.text == worse


def test_a_neighbour_of_a_retrieved_sentence_is_chosen_by_its_words():
    _, span = choose(CLAIM, [f"{RAIN}\n\n{BRIDGE}"], 14, found="Nobody had expected that.")
    assert span.text == "It was closed for repairs last spring. Nobody had expected that."


def test_sources_without_a_shared_word_have_no_window():
    assert choose(CLAIM, [], 60) is None and choose(CLAIM, [RAIN, ""], 60) is None and choose("of the", [RAIN], 60) is None


def test_offsets_do_not_match_another_document_with_the_same_id():
    sample = Sample(response=CLAIM, documents=[{"id": "report", "text": RAIN}, {"id": "report", "text": BRIDGE}])
    found = Passage(id="report#1", document="report", text=RAIN[:20], start=0, end=20)
    query, form = Query(specific=CLAIM, general=""), KnowledgeForm.UNSTRUCTURED
    assert (
        document_window(sample, [Step(thought="", query=query, passages=(found,), knowledge=Knowledge(form=form))], form) is None
    )


SENTENCES = st.lists(
    st.sampled_from(["Rain fell.", "A bridge, closed for repairs!", "He left!", "A title", "12 came."]), min_size=1
)
PADDING = st.lists(SENTENCES.map(" ".join), max_size=8).map("\n\n".join)


@given(PADDING, PADDING, st.integers(7, 60))
def test_windows_do_not_depend_on_surrounding_paragraphs(before, after, limit):
    _, alone = choose(CLAIM, [BRIDGE], limit, found=BRIDGE)
    _, among = choose(CLAIM, [f"{before}\n\n{BRIDGE}\n\n{after}"], limit, found=BRIDGE)
    assert among.text == alone.text and word_count(alone.text) <= limit


def test_many_short_texts_are_cached_and_few_long_ones():
    short, *_ = [window_sentences(f"Hill {i} is high.", 60) for i in range(100)]
    long, *_ = [window_sentences(f"{i}. {'A hill. ' * MAX_CACHED_CHARS}"[: MAX_CACHED_CHARS + 1], 60) for i in range(12)]
    assert window_sentences("Hill 0 is high.", 60) is short
    assert window_sentences(f"0. {'A hill. ' * MAX_CACHED_CHARS}"[: MAX_CACHED_CHARS + 1], 60) is not long
