"""Clauses by rules: which sentences are split, with which subject, and which stay whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.text.clauses import claims_nothing, clause_segments, split_clauses

PARTED = [
    ("Marie Curie was born in Warsaw and died in Passy.", ["Marie Curie was born in Warsaw.", "Marie Curie died in Passy."]),
    ("Marie Curie was born in Warsaw and studied in Paris.",
     ["Marie Curie was born in Warsaw.", "Marie Curie studied in Paris."]),
    ("The bridge was closed and repaired in May.", ["The bridge was closed.", "The bridge was repaired in May."]),
    ("The bridge was built in 1932 and opened in 1933.", ["The bridge was built in 1932.", "The bridge opened in 1933."]),
    ("The old house was sold in 1990 and was torn down in 1995.",
     ["The old house was sold in 1990.", "The old house was torn down in 1995."]),
    ("The river rises in Wales and flows into the sea.", ["The river rises in Wales.", "The river flows into the sea."]),
    ("Paris is the capital of France and has two million inhabitants.",
     ["Paris is the capital of France.", "Paris has two million inhabitants."]),
    ("The film won an award and became a success.", ["The film won an award.", "The film became a success."]),
    ("The drug lowered blood pressure but increased heart rate.",
     ["The drug lowered blood pressure.", "The drug increased heart rate."]),
    ("The survey found corrosion in two spans and also recommended repairs.",
     ["The survey found corrosion in two spans.", "The survey recommended repairs."]),
    ("The company bought the mill in 1999, and it sold the land in 2005.",
     ["The company bought the mill in 1999.", "The company sold the land in 2005."]),
    ("Peter Hale bought the mill in 1999, and he sold it in 2005.",
     ["Peter Hale bought the mill in 1999.", "Peter Hale sold it in 2005."]),
    ("The council closed the bridge, but the buses may still cross.",
     ["The council closed the bridge.", "The buses may still cross."]),
    ("Traffic fell by 12 percent; the council called it a success.",
     ["Traffic fell by 12 percent.", "The council called it a success."]),
    ("Anna Berg painted it and her brother framed it.", ["Anna Berg painted it.", "Her brother framed it."]),
    ("Smith scored two goals, Jones saved a penalty, and Leeds won.",
     ["Smith scored two goals.", "Jones saved a penalty.", "Leeds won."]),
    ("The mill closed in 1990, while the quarry remained open.", ["The mill closed in 1990.", "The quarry remained open."]),
    ("The tower, which was finished in 1889, stands in Paris.",
     ["The tower stands in Paris.", "The tower was finished in 1889."]),
    ("Fritz Lang directed Metropolis, which was shot in Babelsberg.",
     ["Fritz Lang directed Metropolis.", "Metropolis was shot in Babelsberg."]),
    ("Fritz Lang married Thea von Harbou, who wrote the screenplay.",
     ["Fritz Lang married Thea von Harbou.", "Thea von Harbou wrote the screenplay."]),
    ("Rosalind Achebe chairs the committee, which proposed the closure and backed the survey.",
     ["Rosalind Achebe chairs the committee.", "The committee proposed the closure.", "The committee backed the survey."]),
    ("Ada Lovelace, an English mathematician, wrote the notes in 1843.",
     ["Ada Lovelace wrote the notes in 1843.", "Ada Lovelace is an English mathematician."]),
    ("The mayor, a former nurse, resigned on Monday.", ["The mayor resigned on Monday.", "The mayor is a former nurse."]),
    ("Jane Doe, the head of the bank, has resigned.", ["Jane Doe has resigned.", "Jane Doe is the head of the bank."]),
]  # fmt: skip
WHOLE = [
    "Snow.", "Snow is white.", "The shop sells bread, butter and milk.", "Buses and cyclists may still cross.",
    "Peter Hale met Dana Okoro, and he left early.",  # he may be either
    "He was born in Ulm and died in Bern.",  # a pronoun says of nobody
    "Ulm and Bern are cities and lie far apart.",
    "The minister said that taxes rose and wages fell.",  # what was said stands only with who said it
    "According to Hale, the mill closed and the workers left.",
    "If it rains, the match is off and the cup goes to Leeds.",
    "The festival did not start on time and ended late.",  # the "not" may reach further
    "The team has won the cup and met the queen.",
    "The firm will build a school and has opened a shop or a bank.",
    "Either the mill closed or the quarry opened.", "“Taxes rose and wages fell.”",
    "Sales rose in May, helped by exports.", "The crew built and opened the bridge.",
    "In 1999 the mill closed and the workers moved to Leeds.",
    "The mayor, who resigned, and the clerk, who stayed, signed it.",
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "expected"), PARTED, ids=[s for s, _ in PARTED])
def test_every_part_is_a_statement_with_its_subject(sentence, expected):
    assert [c.text for c in split_clauses(sentence)] == expected


@pytest.mark.parametrize("sentence", WHOLE)
def test_uncertain_sentences_are_not_split(sentence):
    assert split_clauses(sentence) == [(0, len(sentence), sentence)]


def test_a_statement_that_is_verbatim_in_the_sentence_has_its_exact_span():
    sentence = "Smith scored two goals, Jones saved a penalty, and Leeds won."
    assert [sentence[c.start : c.end] for c in split_clauses(sentence)] == [
        "Smith scored two goals",
        "Jones saved a penalty",
        "Leeds won",
    ]
    worded = split_clauses("Marie Curie was born in Warsaw and died in Passy.")[1]
    assert (worded.start, worded.end) == (0, 49)


@pytest.mark.parametrize(
    "sentence", ["Who pays?", "Is it so?”", "I do not know.", "I'm sorry, I cannot answer this.", "...", "—", "Who pays? "]
)
def test_questions_refusals_and_marks_claim_nothing(sentence):
    assert claims_nothing(sentence, answers=True)


@pytest.mark.parametrize("sentence", ["Snow", "42", "Yes.", "He asked who pays.", "The report does not say who paid."])
def test_other_sentences_claim_something(sentence):
    assert not claims_nothing(sentence, answers=False)


def test_a_hedge_followed_by_a_claim_claims_something():
    assert not claims_nothing("The passage does not state when the bridge opened, but it opened in 1932.", answers=True)


WORDS = [
    "The mill", "Ada Lovelace", ", which ", ", who ", " and ", ", ", "; ", "was built", "closed", "it ", "he ", " 1999", ".",
    "\n", "(", "\u202e",
]  # fmt: skip


@given(st.one_of(st.text(max_size=80), st.lists(st.sampled_from(WORDS), max_size=25).map("".join)))
def test_any_text_gives_statements_within_it(text):
    found = split_clauses(text)
    assert found and all(0 <= c.start <= c.end <= len(text) for c in found)
    assert len(found) > 1 or found[0].text == text


def test_a_very_long_sentence_stays_whole():
    assert len(split_clauses("The mill closed and " * 5000)) == 1


LIST = "The shop sells apples and pears, plums and figs, old maps of the coast, bread, butter, cheese and eggs from the farm."


def test_a_segment_ends_neither_inside_a_list_nor_inside_a_clause():
    assert [s.text for s in clause_segments(LIST, 8)] == [LIST]
    long = f"It opened in 1911. {LIST} It closed in 1950."
    assert [s.text for s in clause_segments(long, 8)] == ["It opened in 1911.", LIST, "It closed in 1950."]


def test_a_long_sentence_is_split_between_clauses_with_subjects_of_their_own():
    text = "Tom Arden built the mill in 1911, and Ida Moss wrote the anthem of the town in 1913."
    assert [s.text for s in clause_segments(text, 10)] == [
        "Tom Arden built the mill in 1911", "Ida Moss wrote the anthem of the town in 1913.",
    ]  # fmt: skip
    assert [s.text for s in clause_segments(text, 30)] == [text]


@given(st.text(alphabet="ab .,;\n-", max_size=200), st.integers(5, 30))
def test_segments_hold_every_word_once_and_in_order(text, limit):
    found = clause_segments(text, limit)
    assert all(s.text == text[s.start : s.end] for s in found)
    assert all(a.end <= b.start for a, b in zip(found, found[1:], strict=False))
    assert [c for s in found for c in s.text if c.isalnum()] == [c for c in text if c.isalnum()]
