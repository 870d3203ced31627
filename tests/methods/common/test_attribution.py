"""Attribution of knowledge: verbatim quotes, and statements that no passage supports."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.methods.common.attribution import assign_quote_scores, ground_statements
from knowhalu.types import NO_INFORMATION, Judgment, Knowledge, KnowledgeForm, Label, Passage, Query, Quote, Sample, Step, Triplet

PAGES = [
    Passage(id="a", title="Johannes Brahms", text="He was born in Hamburg in 1833.  He completed four symphonies."),
    Passage(id="b", title="Symphony", text="A symphony is a long work for orchestra."),
]
QUERY = Query(specific="Did Brahms complete nine symphonies?", general="How many symphonies did Brahms complete?")
PART = Sample(response="Brahms completed nine symphonies.")


def made(*statements, passages=PAGES):
    return ground_statements(KnowledgeForm.UNSTRUCTURED, statements, (), PART, QUERY, passages)


def test_a_statement_is_quoted_from_the_sentence_that_supports_it():
    knowledge = made("Johannes Brahms completed four symphonies.")
    (quote,) = knowledge.quotes
    assert (quote.passage, quote.text) == ("a", "He completed four symphonies.")
    assert PAGES[0].text[quote.start : quote.end] == quote.text
    assert quote.relevance > 0.34 and (quote.supported, quote.contradicted) == (0.0, 0.0)


def test_a_statement_may_be_supported_by_two_sentences():
    knowledge = made("Brahms, born in Hamburg, completed four symphonies.")
    assert [q.text for q in knowledge.quotes] == ["He completed four symphonies.", "He was born in Hamburg in 1833."]


@pytest.mark.parametrize(
    "statement",
    [
        "Brahms died of cancer near Vienna in old age.",  # no passage has enough of its words
        "Brahms completed four symphonies by 1885.",  # a figure that no passage has
        "...",
    ],
)
def test_statements_that_no_passage_supports_are_set_apart(statement):
    knowledge = made("Brahms completed four symphonies.", statement)
    assert (knowledge.text, knowledge.unsupported) == ("Brahms completed four symphonies.", statement)


def test_a_statement_may_span_passages_none_of_which_has_enough_of_its_words():
    texts = {"Ilse Brand": "She painted portraits.", "Karl Thun": "He carved masks.", "Lena Roth": "She made carpets."}
    pages = [Passage(id=title, title=title, text=text) for title, text in texts.items()]
    statement = "Ilse Brand painted portraits, Karl Thun carved masks and Lena Roth made carpets."
    knowledge = made(statement, passages=pages)
    assert (knowledge.text, knowledge.unsupported) == (statement, "")
    assert [q.text for q in knowledge.quotes] == list(texts.values())
    assert all(made(statement, passages=[page]).unsupported == statement for page in pages)


@pytest.mark.parametrize(
    "statement",
    [
        "According to passages 1 and 2, Brahms completed four symphonies.",
        "Passage 2 says that a symphony is long.",
        "The text also reports, confirms, mentions, notes and explains that Brahms completed symphonies.",
        "(passage, states, Brahms completed symphonies)",
    ],
)
def test_that_a_passage_says_it_is_no_part_of_a_statement(statement):
    assert made(statement).text == statement


@pytest.mark.parametrize("statement", ["The passage says that.", "Passage 1 states that Graz has trams."])
def test_saying_alone_supports_nothing(statement):
    assert made(statement).unsupported == statement


@pytest.mark.parametrize(
    "statement", ["Brahms did not complete nine symphonies, but four.", "Brahms completed 4 symphonies, not 9."]
)
def test_a_number_of_the_query_counts_as_given(statement):
    assert made(statement).text == statement


def test_without_supported_statements_the_knowledge_is_empty():
    knowledge = made("It was a sunny day in Graz.")
    assert knowledge.is_empty and knowledge.text == NO_INFORMATION and not knowledge.quotes
    assert made().is_empty and made("x", passages=[]).unsupported == "x"


def test_a_triplet_names_its_quote_and_an_unsupported_one_is_dropped():
    facts = [
        Triplet(subject="Brahms", predicate="completed", object="four symphonies"),
        Triplet(subject="Clara Schumann", predicate="admired", object="his piano quartets"),
        Triplet(subject="Brahms", predicate="was born in", object="Hamburg"),
    ]
    knowledge = ground_statements(KnowledgeForm.STRUCTURED, [str(t) for t in facts], facts, PART, QUERY, PAGES)
    assert [t.object for t in knowledge.triplets] == ["four symphonies", "Hamburg"]
    assert [knowledge.quotes[t.quote].text for t in knowledge.triplets] == [
        "He completed four symphonies.",
        "He was born in Hamburg in 1833.",
    ]
    assert "Schumann" in knowledge.unsupported and "Schumann" not in knowledge.text


@given(st.lists(st.text(max_size=40), max_size=4), st.lists(st.text(min_size=1, max_size=80), min_size=1, max_size=3))
def test_quotes_are_verbatim_in_their_passages(statements, texts):
    passages = [Passage(id=str(i), text=t) for i, t in enumerate(texts)]
    knowledge = made(*statements, *texts, passages=passages)
    for quote in knowledge.quotes:
        assert texts[int(quote.passage)][quote.start : quote.end] == quote.text
    assert knowledge.is_empty == (not knowledge.quotes)


def steps(*quoted):
    quotes = [Quote(passage="a", text="x", start=i, end=i + 1, supported=0.0, contradicted=0.0) for i in range(len(quoted))]
    return [
        Step(
            thought="",
            query=QUERY,
            passages=(),
            knowledge=Knowledge(form=KnowledgeForm.UNSTRUCTURED, quotes=(quote,) if q else (), text="x" if q else NO_INFORMATION),
        )
        for q, quote in zip(quoted, quotes, strict=True)
    ]


@pytest.mark.parametrize(
    ("rationale", "quoted", "scored"),
    [
        ("Knowledge 1 is right. Knowledge 2 says four, not nine.", (True, True, True), [2]),
        ("Knowledge 1 and 3 contradict it.", (True, True, True), [3]),
        ("It is wrong.", (True, True, False), [2]),
        ("Knowledge 2 has nothing.", (True, False, False), [1]),
        ("Knowledge 99 says so.", (False, True, False), [2]),
        ("Knowledge 1 says so.", (False, False, False), []),
    ],
)
def test_a_contradiction_is_attributed_to_the_knowledge_that_the_rationale_names_last(rationale, quoted, scored):
    judgment = Judgment(
        form=KnowledgeForm.UNSTRUCTURED, label=Label.INCORRECT, confidence=0.9, p_supported=0.07, rationale=rationale
    )
    found = assign_quote_scores(steps(*quoted), judgment, contradicted=0.9)
    assert [i for i, s in enumerate(found, 1) for q in s.knowledge.quotes if q.contradicted] == scored


def test_a_sentence_that_is_cited_again_keeps_its_score():
    judgment = Judgment(
        form=KnowledgeForm.UNSTRUCTURED, label=Label.INCORRECT, confidence=0.9, p_supported=0.07, rationale="Knowledge 1 says no."
    )
    once = steps(True)
    found = assign_quote_scores([*once, *once], judgment, contradicted=0.9)
    assert [q.contradicted for s in found for q in s.knowledge.quotes] == [0.9, 0.9]


def test_quotes_of_an_inconclusive_judgment_get_no_score():
    judgment = Judgment(form=KnowledgeForm.UNSTRUCTURED, label=Label.INCONCLUSIVE, confidence=0.9, rationale="-")
    assert assign_quote_scores(steps(True), judgment, contradicted=0.1) == tuple(steps(True))
