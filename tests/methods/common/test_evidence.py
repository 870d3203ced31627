"""Evidence of a claim: sentences, a window of each source and sentences of several sources, all chosen by words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.methods.common.evidence import (
    MAX_SENTENCES_KEPT,
    MAX_SENTENCES_READ,
    MAX_WINDOW_WORDS,
    MAX_WINDOWS,
    META_CONTEXT,
    ReadSentence,
    joined_sentences,
    read_nearest_again,
    read_sentences_of,
    reading_of,
    score_sentences,
    select_sentences,
    source_windows,
    subject_names,
    window_parts,
)
from knowhalu.requests import Probabilities
from knowhalu.text.sentences import word_count
from knowhalu.types import Document, Knowledge, KnowledgeForm, Passage, Query, Quote, Sample, Step

PLAIN = KnowledgeForm.UNSTRUCTURED
EVEN = Probabilities(0.2, 0.2, 0.6)
BRIDGE = "The harbour bridge opened in 1932. It was closed for repairs last spring. Nobody had expected that."
RAIN = "Rain fell all week. The fields were wet and the cows stayed inside."
CLAIM = "The harbour bridge was closed for repairs."
QUERY = Query(specific=CLAIM, general="")


def passage(text, name="p", title=""):
    return Passage(id=name, text=text, title=title, document=name, end=len(text))


def step(*passages, quotes=()):
    return Step(thought="", query=QUERY, passages=passages, knowledge=Knowledge(form=PLAIN, quotes=quotes))


def windows(*texts, claim=CLAIM):
    return source_windows(Sample(response=claim), [step(*(passage(t, str(i)) for i, t in enumerate(texts)))])


def windows_of_document(text, found, claim=CLAIM):
    """Return the windows of a document of which a search found one stretch."""
    start = text.index(found)
    hit = Passage(id="d#1", document="d", text=found, start=start, end=start + len(found))
    return source_windows(Sample(response=claim, documents=(Document(id="d", text=text),)), [step(hit)])


def scored(part, places, says):
    """Score sentences by a scripted verifier; return the knowledge and the pairs that it was asked about."""
    conversation = score_sentences(part, QUERY, places, PLAIN)
    request = next(conversation)
    try:
        conversation.send([says(p) for p in request.pairs])
    except StopIteration as end:
        return end.value, request.pairs
    raise AssertionError("the sentences were asked about twice")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"question": "Who drew it?", "meta": {META_CONTEXT: "The mill is old."}}, "Who drew it?"),
        ({"meta": {META_CONTEXT: "The mill is old."}}, "The mill is old."),
        ({}, None),
    ],
)
def test_a_claim_is_read_with_its_question_or_else_its_context(fields, expected):
    assert reading_of(Sample(response="Tom Arden drew it.", **fields)) == expected


@pytest.mark.parametrize(
    ("claim", "source", "names"),
    [
        ("The bridge was drawn by Tom Arden.", "Tom Arden drew it.", {"tom", "arden"}),
        ("Penmor has a school.", "There is a school in Penmor.", {"penmor"}),
        ("Granite is hard.", "Granite, and above all grey granite, is hard.", set()),
        ("Bees make honey.", "Wasps do not.", set()),
        ("The tablets hold vitamin K.", "", {"k"}),
        ("The disk holds 40 GB and costs EUR 25.", "", set()),
        ("James Watt had 3 sons.", "James Watt lived there.", {"jam", "watt"}),
    ],
)
def test_the_first_word_is_a_name_only_where_the_source_has_it_with_a_capital(claim, source, names):
    assert subject_names(Sample(response=claim), source) == names


def test_the_names_of_a_question_are_subjects_too():
    part = Sample(response="In 1871.", question="When did Mara Quill build the tower?")
    assert subject_names(part, "") == {"mara", "quill"}


def test_the_sentences_nearest_to_a_query_are_read_in_the_order_of_the_source():
    fillers = [f"Sheep number {i} grazed there." for i in range(MAX_SENTENCES_READ)]
    text = " ".join([*fillers, "The bridge was closed.\n\nN/A\n\nRepairs of the harbour bridge took a year."])
    found = select_sentences([passage(text)], QUERY, set())
    assert len(found) == MAX_SENTENCES_READ
    assert [s.text for s in found[-2:]] == ["The bridge was closed.", "Repairs of the harbour bridge took a year."]
    again = select_sentences([passage(text)], QUERY, {("p", s.start) for s in found})
    assert not {s.text for s in again} & {s.text for s in found} and "N/A" not in {s.text for s in again}


def test_the_nearest_sentence_is_kept_among_others_that_sound_decisive():
    others = [f"Sheep number {i} never grazed in the fields." for i in range(MAX_SENTENCES_READ - 1)]
    places = select_sentences([passage(" ".join([*others, CLAIM]))], QUERY, set())
    known, _ = scored(Sample(response=CLAIM), places, lambda p: EVEN if "bridge" in p.premise else Probabilities(0.0, 0.99, 0.01))
    assert CLAIM in {q.text for q in known.quotes} and len(known.quotes) == MAX_SENTENCES_KEPT


def test_a_sentence_is_read_with_the_context_and_with_values_in_its_own_form():
    part = Sample(response="It is 295 feet high.", meta={META_CONTEXT: "The tower stands on granite."})
    _, (pair,) = scored(part, select_sentences([passage("The tower is 90 metres high.")], QUERY, set()), lambda p: EVEN)
    assert pair.question == "The tower stands on granite." and pair.claim == "It is 90 metres high."


def test_sentences_without_a_shared_word_are_no_knowledge_unless_one_supports():
    places = select_sentences([passage(RAIN)], QUERY, set())
    assert scored(Sample(response=CLAIM), places, lambda p: EVEN)[0].is_empty
    assert not scored(Sample(response=CLAIM), places, lambda p: Probabilities(0.9, 0.05, 0.05))[0].is_empty


def test_every_source_has_one_window_and_the_nearest_comes_first():
    found = windows("The bridge is long.", f"{RAIN}\n\n{BRIDGE}", "The bridge has repairs.", "A harbour bridge stood there.")
    assert [w.source for w in found] == ["1", "2", "3"] and len(found) == MAX_WINDOWS
    assert found[0].text == BRIDGE


def test_among_equal_windows_the_shorter_source_comes_first():
    assert [w.source for w in windows("A harbour bridge stood there.", "The harbour bridge fell.")] == ["1", "0"]


def test_a_window_begins_with_its_title_unless_the_text_names_it():
    named = step(passage("Penmor: the bridge is closed.", "a", "Penmor"), passage("The bridge is closed.", "b", "Penmor"))
    texts = {w.source: w.text for w in source_windows(Sample(response=CLAIM), [named])}
    assert texts == {"a": "Penmor: the bridge is closed.", "b": "Penmor: The bridge is closed."}


def test_neighbours_fill_a_window_within_their_paragraph():
    long = " ".join(f"The keeper counted ship number {i} that passed by." for i in range(40))
    (window,) = windows(f"{RAIN}\n\n{BRIDGE} {long}")
    assert window.text.startswith("The harbour bridge") and "ship number 0" in window.text
    assert MAX_WINDOW_WORDS - 10 < word_count(window.text) <= MAX_WINDOW_WORDS


def test_a_window_holds_a_retrieved_sentence_and_may_grow_by_words_of_its_neighbours():
    worse = "The bridge has rails."
    assert windows_of_document(f"{BRIDGE}\n\n{RAIN}\n\n{worse}", worse)[0].text == worse
    assert windows_of_document(f"{RAIN}\n\n{BRIDGE}", "Nobody had expected that.")[0].text == BRIDGE


def test_a_passage_is_no_place_in_another_document_with_the_same_id():
    part = Sample(response=CLAIM, documents=[{"id": "report", "text": RAIN}, {"id": "report", "text": BRIDGE}])
    found = Passage(id="report#1", document="report", text=RAIN[:20], start=0, end=20)
    assert not any("bridge" in w.text for w in source_windows(part, [step(found)]))


SENTENCES = st.lists(
    st.sampled_from(["Rain fell.", "A bridge, closed for repairs!", "He left!", "A title", "12 came."]), min_size=1
)
PADDING = st.lists(SENTENCES.map(" ".join), max_size=8).map("\n\n".join)


@given(PADDING, PADDING)
def test_a_window_does_not_depend_on_surrounding_paragraphs(before, after):
    (window,) = windows_of_document(f"{before}\n\n{BRIDGE}\n\n{after}", BRIDGE)
    assert window.text == BRIDGE


def test_a_unit_longer_than_a_window_is_split_in_its_places():
    text = "The keeper saw " + ", ".join(f"ship number {i}" for i in range(80)) + "."
    parts = window_parts(text)
    assert len(parts) > 1 and all(p.size <= MAX_WINDOW_WORDS for p in parts)
    assert all(text[p.start : p.end] == p.text for p in parts)


def read(view, name, supported=0.5):
    return ReadSentence(name, name[0], view, Probabilities(supported, 0.1, 0.4), 0.5)


def test_sentences_of_several_sources_are_joined_where_none_has_all_words():
    part = Sample(response="The director of Blue Lamp was born in Oslo.")
    film, birth, other = (
        read("Ilse Brand was the director of Blue Lamp.", "a"), read("Ilse Brand was born in Oslo.", "b"), read("Bees.", "c"),
    )  # fmt: skip
    assert joined_sentences(part, [other, birth, film]) == [birth, film]


def test_facts_of_two_things_are_not_joined_and_those_of_one_document_are():
    part = Sample(response="Ilse Brand wrote Blue Lamp.")
    brand, lamp = "Ilse Brand wrote plays.", "Blue Lamp is a novel by Otto Kern."
    assert not joined_sentences(part, [read(brand, "a"), read(lamp, "b")])
    assert [r.view for r in joined_sentences(part, [read(brand, "a1"), read(lamp, "a2")])] == [brand, lamp]


def test_nothing_is_joined_where_one_source_suffices():
    part = Sample(response="Ilse Brand was born in Oslo.")
    assert not joined_sentences(part, [read("Ilse Brand was born in Oslo.", "a"), read("Oslo has a harbour.", "b")])
    assert not joined_sentences(part, [read("Ilse Brand sang.", "a"), read("She was born in Oslo.", "a")])
    assert not joined_sentences(part, [])


def test_a_sentence_quoted_in_two_steps_counts_once_as_it_supports_most():
    source, at = passage(BRIDGE), BRIDGE.index("It was")
    text = "It was closed for repairs last spring."
    quotes = [
        Quote(passage="p", text=text, start=at, end=at + len(text), supported=p, contradicted=0.1, relevance=0.4)
        for p in (0.3, 0.8, 0.5)
    ]
    (kept,) = read_sentences_of([step(source, quotes=(q,)) for q in quotes], PLAIN)
    assert kept.scores == pytest.approx((0.8, 0.1, 0.1)) and kept.relevance == 0.4
    assert kept.view == f"The harbour bridge opened in 1932. {text}"


def test_the_nearest_quote_is_read_again_only_where_none_supports():
    text = "The harbour bridge took a year of repairs. It rained."

    def again(supported):
        quotes = [Quote(passage="p", text=text[:42], start=0, end=42, supported=supported, contradicted=0.3, relevance=0.9)]
        asked = read_nearest_again(Sample(response=CLAIM), [step(passage(text), quotes=quotes)], KnowledgeForm.UNSTRUCTURED)
        try:
            request = next(asked)
            asked.send([Probabilities(0.8, 0.1, 0.1) for _ in request.pairs])
        except StopIteration as end:
            return [q.supported for s in end.value for q in s.knowledge.quotes]

    assert again(0.7) == [0.7] and again(0.1) == [0.8]
