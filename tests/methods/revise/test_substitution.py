"""Rewording without a language model: typed spans and their replacements."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.methods.revise.edits import RewriteInput
from knowhalu.methods.revise.substitution import SubstitutionRewriter, is_mentioned, substitution_candidates
from knowhalu.requests import Entail
from knowhalu.testing import ScriptedEncoder
from knowhalu.text.entities import typed_spans
from knowhalu.types import Passage

REPORT = (
    "Councillors in Hexley voted 14 to 9 on Tuesday to close the Old Mill Bridge to cars for eighteen months. "
    "The closure begins on 3 March. It will cost $5.5 million, or 45% of the budget. The vote to close it was led by Dana Okoro."
)
SOURCES = [Passage(id="1", text=REPORT)]


@pytest.mark.parametrize(("text", "found"), [
    ("It begins on 3 March 2021.", [("3 March 2021", "date")]),
    ("It begins in March 1889.", [("March 1889", "date")]),
    ("It began on Tuesday.", [("Tuesday", "weekday")]),
    ("The Saturday Evening Post said so.", [("Saturday Evening Post", "name")]),
    ("It cost $5.5 million.", [("$5.5 million", "money")]),
    ("It was 45% of 2,000 people.", [("45%", "percent"), ("2,000", "number")]),
    ("It was 45 per cent.", [("45", "percent")]),
    ("A 19-year-old won 3-1 in 1999.", [("19", "number"), ("3-1", "score"), ("1999", "year")]),
    ("He came third after two hundred metres.", [("third", "ordinal"), ("two hundred", "number")]),
    ("In Lower Brindle he met Chelsea's Jose Kay.", [("Lower Brindle", "name"), ("Chelsea", "name"), ("Jose Kay", "name")]),
    ("it is one of the others", []),
])  # fmt: skip
def test_typed_spans_have_a_type(text, found):
    assert [(s.text, s.type) for s in typed_spans(text)] == found


@given(st.text(max_size=80))
def test_typed_spans_are_verbatim_and_do_not_overlap(text):
    found = typed_spans(text)
    assert all(text[s.start : s.end] == s.text and s.text for s in found)
    assert all(a.end <= b.start for a, b in zip(found, found[1:], strict=False))


@pytest.mark.parametrize(("sentence", "revised"), [
    ("The closure begins on 5 April.", "The closure begins on 3 March."),
    ("Councillors voted 12 to 9 on Tuesday.", "Councillors voted 14 to 9 on Tuesday."),
    ("The bridge closes to cars for six months.", "The bridge closes to cars for eighteen months."),
    ("It will cost $7 million.", "It will cost $5.5 million."),
    ("It will cost 54% of the budget.", "It will cost 45% of the budget."),
    ("Councillors in Brindle voted to close the Old Mill Bridge.", "Councillors in Hexley voted to close the Old Mill Bridge."),
    ("Councillors voted on Friday to close it.", "Councillors voted on Tuesday to close it."),
    ("The vote to close it was led by Ruth Okoro, 31.", "The vote to close it was led by Dana Okoro, 31."),
])  # fmt: skip
def test_the_replacement_from_the_same_context_comes_first(sentence, revised):
    assert substitution_candidates(sentence, SOURCES)[0].text == revised


def test_several_wrong_spans_are_replaced_together():
    texts = [c.text for c in substitution_candidates("Councillors in Brindle voted for six months of closure.", SOURCES)]
    assert "Councillors in Hexley voted for eighteen months of closure." in texts


@pytest.mark.parametrize(("sentence", "source"), [
    ("The coin was found in Saltford near Bath.", "Roman coins were dug up by Ada Kay."),  # the source speaks of something else
    ("Seven people moved to the hotel.", "The hotel has nine rooms for people who moved."),  # rooms are no people
    ("Bears guard the old coin of Tanit.", "Carthage minted the old coin of Tanit, and guards it."),  # a word that only begins
    ("A Vietnamese girl lives in Ontario.", "A Danish girl lives in Ontario."),  # no name of its own
    ("The film won two prizes in 1999.", "In 1999 the film won two prizes."),  # all of it is told
])  # fmt: skip
def test_a_detail_in_another_context_is_not_substituted(sentence, source):
    assert substitution_candidates(sentence, [Passage(id="1", text=source)]) == []


def test_a_detail_that_other_sources_have_needs_equal_words_on_both_sides():
    told = Passage(id="1", text="The inquiry opens on 4 May.")
    near, far = (Passage(id="2", text=f"The closure {w} begins on 3 March at noon.") for w in ("of the bridge", "which"))
    assert [c.text for c in substitution_candidates("The closure begins on 4 May at noon.", [told, near])] == [
        "The closure begins on 3 March at noon."
    ]
    assert substitution_candidates("The closure on 4 May is long.", [told, far]) == []


@pytest.mark.parametrize("sentence", ["The closure begins soon.", "Nothing of it is like the rest on 5 May.", "It is red."])
def test_a_sentence_without_replaceable_spans_has_no_candidate(sentence):
    assert substitution_candidates(sentence, SOURCES) == []


def test_a_date_is_confirmed_by_one_that_agrees():
    (date,) = typed_spans("on 3 March")
    assert (
        is_mentioned(date, "It was on March 3, 2020.")
        and not is_mentioned(date, "It was on 4 March.")
        and not is_mentioned(date, "Nothing.")
    )


def propose(score, refused=(), sentence="Councillors voted 12 to 9 on Tuesday."):
    encoder = ScriptedEncoder(lambda pair: (score(pair), 1 - score(pair), 0.0))
    talk = SubstitutionRewriter().propose(RewriteInput(sentence, "wrong", sentence), SOURCES, refused)
    try:
        request = next(talk)
        assert isinstance(request, Entail)
        talk.send(encoder.answer_many([request])[0])
    except StopIteration as end:
        return [p.text for p in end.value]


def test_wordings_that_are_no_better_than_the_sentence_are_dropped():
    sentence, likes = "Councillors voted 12 to 8 on Tuesday.", {"14 to 8": 0.6, "14 to 9": 0.9}

    def score(pair):
        return next((p for said, p in likes.items() if said in pair.claim), 0.1)

    assert propose(score, sentence=sentence)[0] == "Councillors voted 14 to 9 on Tuesday."
    assert propose(lambda pair: 0.5) == [] and propose(lambda pair: 0.9) == []
    assert propose(lambda pair: 0.4 if "14" in pair.claim else 0.1) == []


def test_refused_wordings_are_not_scored_again():
    text = "Councillors voted 14 to 9 on Tuesday."
    assert text not in propose(lambda pair: 0.2 if "12" in pair.claim else 0.7, refused=(text,))
    assert propose(lambda pair: 1.0, sentence="It is red.") == []


@given(st.text(max_size=60), st.text(max_size=80))
def test_hostile_text_makes_candidates_or_none(sentence, source):
    for found in substitution_candidates(sentence, [Passage(id="1", text=source)]):
        assert found.text != sentence and found.quote in source
